//! Arguments on their way from the document to the plan: drafted, named, and some of them kept for the operator.

use std::collections::BTreeMap;

use model::Value;

use super::bounds::{ArgumentBounds, unknown};
use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::body::{self, Form};
use crate::form::FieldForm;
use crate::media::Kind;
use crate::name::{self, WireName};
use crate::parameter::{Parameter, Place};
use crate::plan::{Argument, ArgumentPlace};
use crate::pointer::Pointer;
use crate::reference::Located;
use crate::serial::Serial;
use crate::text::excerpt;

/// An argument on its way: where it goes, and what describes it.
pub(super) struct Draft<'d> {
    pub(super) name: String,
    pub(super) wire: &'d str,
    pub(super) place: ArgumentPlace,
    pub(super) required: bool,
    pub(super) nullable: bool,
    pub(super) injected: bool,
    pub(super) is_operators: bool,
    pub(super) may_be_empty: bool,
    pub(super) pointer: Pointer,
    pub(super) schema: Option<Located<'d>>,
    /// A schema of our own, instead of the document's.
    pub(super) fixed: Option<Value>,
    pub(super) serial: Option<Serial>,
    pub(super) form: FieldForm,
    pub(super) description: Option<&'d Value>,
    pub(super) is_deprecated: bool,
    /// What the operator says about it, under the document's name of it.
    pub(super) bounds: Option<(String, ArgumentBounds)>,
    /// Whether the operator gave it another name.
    pub(super) is_renamed: bool,
    /// Whether the operator requires it.
    pub(super) is_asked_for: bool,
}

/// What is left of a body once its arguments are drafted.
pub(super) struct BodyDraft {
    pub(super) content_type: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
    /// How the fields of a body that is one argument are written; `None` where its fields are arguments.
    pub(super) whole: Option<BTreeMap<String, FieldForm>>,
}

impl<'d> Draft<'d> {
    pub(super) fn of_parameter(parameter: Parameter<'d>) -> Self {
        Self {
            name: String::new(),
            wire: parameter.name,
            place: match parameter.place {
                Place::Path => ArgumentPlace::Path,
                Place::Query => ArgumentPlace::Query,
                Place::Header => ArgumentPlace::Header,
                Place::Cookie => ArgumentPlace::Cookie,
                Place::QueryString => ArgumentPlace::QueryString,
            },
            required: parameter.required,
            nullable: parameter.nullable,
            injected: false,
            is_operators: parameter.is_operators,
            may_be_empty: parameter.may_be_empty,
            pointer: parameter.pointer,
            schema: Some(parameter.schema),
            fixed: None,
            serial: Some(parameter.serial),
            form: FieldForm::Auto,
            description: parameter.description,
            is_deprecated: parameter.is_deprecated,
            bounds: None,
            is_renamed: false,
            is_asked_for: false,
        }
    }

    pub(super) fn of_body(body: body::Body<'d>, drafts: &mut Vec<Self>) -> BodyDraft {
        let draft = |wire, place, required, pointer| Self {
            name: String::new(),
            wire,
            place,
            required,
            nullable: false,
            injected: false,
            is_operators: false,
            may_be_empty: false,
            pointer,
            schema: None,
            fixed: None,
            serial: None,
            form: FieldForm::Auto,
            description: None,
            is_deprecated: false,
            bounds: None,
            is_renamed: false,
            is_asked_for: false,
        };
        let whole = match body.form {
            Form::Fields(fields) => {
                drafts.extend(fields.into_iter().map(|field| Self {
                    form: field.form,
                    fixed: field.fixed,
                    ..Self {
                        schema: Some(field.schema.clone()),
                        ..draft(
                            field.name,
                            ArgumentPlace::Field,
                            field.required,
                            field.schema.pointer,
                        )
                    }
                }));
                None
            }
            Form::Whole {
                schema,
                fixed,
                pointer,
                fields,
            } => {
                drafts.push(Self {
                    schema,
                    fixed,
                    ..draft("body", ArgumentPlace::Body, body.required, pointer)
                });
                Some(fields)
            }
        };
        BodyDraft {
            content_type: body.content_type,
            kind: body.kind,
            required: body.required,
            whole,
        }
    }

    fn wire_name(&self) -> WireName<'d> {
        WireName {
            prefix: match self.place {
                ArgumentPlace::Path => "path",
                ArgumentPlace::Query | ArgumentPlace::QueryString => "query",
                ArgumentPlace::Header => "header",
                ArgumentPlace::Cookie => "cookie",
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
            serial: self.serial,
            form: self.form,
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

/// A cookie, and a header that says who is calling, is the operator's to give, or nobody's.
pub(super) fn without_the_operators(drafts: &mut Vec<Draft<'_>>, findings: &mut Findings) {
    drafts.retain(|draft| {
        let stays = !draft.is_operators || draft.injected;
        let shown = excerpt(draft.wire);
        let (cause, what) = match draft.place {
            ArgumentPlace::Cookie => (BlockerCause::ParameterCookie, "cookie"),
            _ => (BlockerCause::ParameterIdentity, "header"),
        };
        let why = match draft.place {
            ArgumentPlace::Cookie => "no caller may set a cookie",
            _ => "no caller may say who it is",
        };
        if !stays && draft.required {
            findings.block(Blocker::new(
                cause,
                &draft.pointer,
                format!("the {what} `{shown}` is required, and {why}"),
                format!("let the operator give the argument `{}`", draft.name),
            ));
        } else if !stays {
            findings.note(
                NoteKind::ParameterIgnored,
                &draft.pointer,
                format!("the {what} `{shown}` was left out: {why}"),
            );
        }
        stays
    });
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
        let known: Vec<String> = drafts.iter().map(|draft| draft.name.clone()).collect();
        findings.block(unknown(name, &known, operation));
    }
}
