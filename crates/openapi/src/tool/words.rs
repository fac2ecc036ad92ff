//! Title and description of a tool.

use model::Value;

use super::ToolOptions;
use crate::blocker::{Findings, NoteKind};
use crate::operation::OperationRef;
use crate::pointer::Pointer;
use crate::prose;
use crate::reference::Located;

/// Title and description: the operator's as they are; the document's cleaned and cut.
pub(super) fn words(
    reference: &OperationRef,
    operation: &Located<'_>,
    options: &ToolOptions,
    findings: &mut Findings,
) -> (Option<String>, String) {
    let mut text = |key: &str| {
        let text = operation.value.get(key)?.as_str()?;
        let spoken = prose::spoken(text);
        let cleaned = prose::clean(&spoken);
        if cleaned.len() != spoken.len() {
            findings.note(
                NoteKind::TextCleaned,
                &operation.pointer.child(key),
                "invisible characters or comments were taken out",
            );
        }
        let trimmed = cleaned.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    };
    let (summary, written) = (text("summary"), text("description"));
    if operation.value.get("deprecated") == Some(&Value::Bool(true)) {
        findings.note(
            NoteKind::OperationDeprecated,
            &operation.pointer,
            "the operation is marked as deprecated",
        );
    }
    let description = options
        .description
        .clone()
        .or_else(|| {
            written
                .or_else(|| summary.clone())
                .map(|text| cut(text, &operation.pointer, findings))
        })
        .unwrap_or_else(|| {
            findings.note(
                NoteKind::DescriptionMissing,
                &operation.pointer,
                "there is no description; the tool says method and path",
            );
            reference.key().to_string()
        });
    let title = options.title.clone().or_else(|| {
        let line = summary?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(prose::cut(&line, TITLE_BYTES_MAX).map_or(line.clone(), str::to_owned))
    });
    (title, description)
}

/// The longest title, in bytes: it is shown in lists.
const TITLE_BYTES_MAX: usize = 120;

fn cut(text: String, operation: &Pointer, findings: &mut Findings) -> String {
    match prose::cut(&text, prose::DESCRIPTION_BYTES_MAX) {
        None => text,
        Some(head) => {
            findings.note(
                NoteKind::DescriptionCut,
                operation,
                format!(
                    "the description has {} bytes and was cut to {}",
                    text.len(),
                    head.len()
                ),
            );
            head.to_owned()
        }
    }
}
