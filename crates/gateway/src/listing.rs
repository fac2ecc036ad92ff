//! `tools/list`: the tools that a caller may use in some way, in a stable order, a page at a time.
//!
//! The same rules decide here as at the call: a tool is left out only if every call of this caller would be refused.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::Principal;
use model::ToolName;
use wire::{Failure, Page};

use crate::house::Gateway;
use crate::mount::Mount;

/// Stands before the name in a cursor, so that another form can be told from this one.
const FORM: &str = "t1:";

impl Gateway {
    /// One page of the tools that this caller may use, as far as `mount` shows them.
    ///
    /// `cursor` is what the last page gave (PAG-01). It names a place, not a right: a cursor of somebody else gives
    /// nothing that this caller could not list anyway.
    ///
    /// # Errors
    /// [`Failure::BadCursor`] for a text that was not given out here (PAG-03).
    pub fn list(&self, principal: &Principal, mount: &Mount, cursor: Option<&str>) -> Result<Page, Failure> {
        let after = cursor.map(parse).transpose()?;
        let now = self.now();
        let mut visible = self
            .catalog
            .tools_after(after.as_ref().map(ToolName::as_str))
            .filter(|tool| mount.shows(tool))
            .filter(|tool| tool.objection(Some(principal.caller()), now).is_none())
            .filter(|tool| self.policy.listable(principal.caller(), tool.name()));
        let mut tools = Vec::new();
        for tool in visible.by_ref().take(self.limits.tools_per_page) {
            tools.push(Arc::clone(tool.definition()));
        }
        let next = match (tools.last(), visible.next()) {
            (Some(last), Some(_)) => Some(write(&last.name)),
            (Some(_) | None, _) => None,
        };
        Ok(Page {
            tools,
            next,
            left_out: mount.left_out(),
        })
    }
}

fn write(name: &ToolName) -> String {
    URL_SAFE_NO_PAD.encode(format!("{FORM}{name}"))
}

fn parse(cursor: &str) -> Result<ToolName, Failure> {
    // The longest cursor that is given out has 90 characters; a longer text is not decoded.
    let bytes = if cursor.len() > 128 {
        None
    } else {
        URL_SAFE_NO_PAD.decode(cursor).ok()
    };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.strip_prefix(FORM))
        .and_then(|name| ToolName::parse(name).ok())
        .ok_or(Failure::BadCursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pag_03_a_cursor_is_read_back_and_no_other_text_is_one() {
        let name = ToolName::parse("billing_getInvoiceStatus").unwrap();
        assert_eq!(parse(&write(&name)), Ok(name));
        for text in [
            "",
            "x",
            "dDE6",
            "dDI6YQ",
            "!!",
            &"a".repeat(200),
            &URL_SAFE_NO_PAD.encode("t1:no name"),
        ] {
            assert_eq!(parse(text), Err(Failure::BadCursor), "{text}");
        }
    }
}
