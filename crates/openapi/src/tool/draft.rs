//! Arguments on their way from the document to the plan: drafted, named, and some of them kept for the operator.

use model::Value;

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::body::{self, Form};
use crate::name::{self, WireName};
use crate::parameter::{Parameter, Place};
use crate::plan::{Argument, ArgumentPlace};
use crate::pointer::Pointer;
use crate::reference::Located;
use crate::text::excerpt;

/// An argument on its way: where it goes, and what describes it.
pub(super) struct Draft<'d> {
    pub(super) name: String,
    pub(super) wire: &'d str,
    pub(super) place: ArgumentPlace,
    pub(super) required: bool,
    pub(super) nullable: bool,
    pub(super) injected: bool,
    pub(super) pointer: Pointer,
    pub(super) schema: Option<Located<'d>>,
    pub(super) description: Option<&'d Value>,
    pub(super) is_deprecated: bool,
}

/// What is left of a body once its arguments are drafted.
pub(super) struct BodyDraft {
    pub(super) content_type: String,
    pub(super) required: bool,
    pub(super) is_whole: bool,
}

impl<'d> Draft<'d> {
    pub(super) fn of_parameter(parameter: Parameter<'d>) -> Self {
        Self {
            name: String::new(),
            wire: parameter.name,
            place: match parameter.place {
                Place::Path => ArgumentPlace::Path,
                Place::Query => ArgumentPlace::Query {
                    explode: parameter.explode,
                },
                Place::Header => ArgumentPlace::Header,
            },
            required: parameter.required,
            nullable: parameter.nullable,
            injected: false,
            pointer: parameter.pointer,
            schema: Some(parameter.schema),
            description: parameter.description,
            is_deprecated: parameter.is_deprecated,
        }
    }

    pub(super) fn of_body(body: body::Body<'d>, drafts: &mut Vec<Self>) -> BodyDraft {
        let mut add = |wire, place, required, pointer, schema| {
            drafts.push(Self {
                name: String::new(),
                wire,
                place,
                required,
                nullable: false,
                injected: false,
                pointer,
                schema,
                description: None,
                is_deprecated: false,
            });
        };
        let is_whole = match body.form {
            Form::Fields(fields) => {
                for field in fields {
                    let pointer = field.schema.pointer.clone();
                    add(
                        field.name,
                        ArgumentPlace::Field,
                        field.required,
                        pointer,
                        Some(field.schema),
                    );
                }
                false
            }
            Form::Whole { schema, pointer } => {
                add("body", ArgumentPlace::Body, body.required, pointer, schema);
                true
            }
        };
        BodyDraft {
            content_type: body.content_type,
            required: body.required,
            is_whole,
        }
    }

    fn wire_name(&self) -> WireName<'d> {
        WireName {
            prefix: match self.place {
                ArgumentPlace::Path => "path",
                ArgumentPlace::Query { .. } => "query",
                ArgumentPlace::Header => "header",
                ArgumentPlace::Field => "body",
                ArgumentPlace::Body => "request",
            },
            name: self.wire,
        }
    }

    pub(super) fn into_argument(self) -> Argument {
        Argument {
            name: self.name,
            wire: self.wire.to_owned(),
            place: self.place,
            required: self.required,
            nullable: self.nullable,
            injected: self.injected,
        }
    }
}

pub(super) fn name_all(drafts: &mut [Draft<'_>], operation: &Pointer, findings: &mut Findings) -> Option<()> {
    let wires: Vec<WireName<'_>> = drafts.iter().map(Draft::wire_name).collect();
    let Some(names) = name::assign(&wires) else {
        findings.block(Blocker::new(
            BlockerCause::ArgumentCollision,
            operation,
            "two arguments cannot be given different names",
            "rename one of them",
        ));
        return None;
    };
    for (draft, name) in drafts.iter_mut().zip(names) {
        if name != draft.wire {
            findings.note(
                NoteKind::ArgumentRenamed,
                &draft.pointer,
                format!("`{}` is the argument `{name}`", excerpt(draft.wire)),
            );
        }
        draft.name = name;
    }
    Some(())
}

pub(super) fn inject(
    drafts: &mut [Draft<'_>],
    names: &[String],
    operation: &Pointer,
    findings: &mut Findings,
) {
    for name in names {
        if let Some(draft) = drafts.iter_mut().find(|draft| draft.name == *name) {
            draft.injected = true;
            continue;
        }
        let known: Vec<String> = drafts
            .iter()
            .take(16)
            .map(|draft| format!("`{}`", draft.name))
            .collect();
        findings.block(Blocker::new(
            BlockerCause::ArgumentUnknown,
            operation,
            format!("there is no argument `{}` to inject", excerpt(name)),
            if known.is_empty() {
                "the operation has no arguments".to_owned()
            } else {
                format!("inject one of {}", known.join(", "))
            },
        ));
    }
}
