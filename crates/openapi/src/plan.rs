//! Request plans: how the arguments of a call become one request, and nothing but that request.
//!
//! The plan was made when the tool was; a call only fills it. No value changes the number of path segments, the
//! origin, or the structure of the headers, and what cannot be sent so that it reads back the same is refused.
//! It sends nothing, and knows no destination and no credential.
//! Sources: RFC 3986, RFC 6570 sections 3.2.2 and 3.2.8, RFC 9110 section 5.5, OpenAPI 3.1.1 section 4.8.12.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use model::{Fault, Object, Value};

use crate::form::{self, FieldFault, FieldForm};
use crate::media::Kind;
use crate::operation::OperationKey;
use crate::serial::{Nesting, Serial, SerialFault, Style, text};
use crate::template::{FixedQuery, Template};
use crate::text::excerpt;

/// The longest path and query, in bytes. Servers commonly refuse longer ones.
pub const TARGET_BYTES_MAX: usize = 32 << 10;
/// The longest value of one header, in bytes.
pub const HEADER_VALUE_BYTES_MAX: usize = 8 << 10;

/// How a call of one tool becomes a request.
#[derive(Debug, Clone)]
pub struct RequestPlan {
    pub(crate) operation: OperationKey,
    /// What stands before the path of every request, by the operator's word.
    pub(crate) base_path: String,
    pub(crate) template: Template,
    /// What the path of the document has behind a `?`.
    pub(crate) fixed_query: Option<FixedQuery>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) accept: String,
    /// Names of query parameters, whether or not they are arguments.
    pub(crate) query_names: BTreeSet<String>,
    pub(crate) body: BodyPlan,
}

/// One argument and its place in the request.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// As the model writes it.
    pub(crate) name: String,
    /// As the wire writes it.
    pub(crate) wire: String,
    pub(crate) place: ArgumentPlace,
    pub(crate) required: bool,
    /// Whether null is the same as absent. Fields of a body can be null themselves.
    pub(crate) nullable: bool,
    /// Whether only the operator gives it.
    pub(crate) injected: bool,
    /// How a parameter is written; `None` for a body and its fields.
    pub(crate) serial: Option<Serial>,
    /// How a field of a form is written.
    pub(crate) form: FieldForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentPlace {
    Path,
    Query,
    /// The whole query.
    QueryString,
    Header,
    Cookie,
    /// A field of a body that is an object.
    Field,
    /// The whole body.
    Body,
}

#[derive(Debug, Clone)]
pub(crate) enum BodyPlan {
    None,
    /// The arguments that are fields. Sent if one is given, or always.
    Fields {
        content_type: String,
        kind: Kind,
        always: bool,
    },
    /// The argument that is the body.
    Whole {
        content_type: String,
        kind: Kind,
        /// How fields of a form are written; those that are not here, by their value.
        fields: BTreeMap<String, FieldForm>,
    },
}

/// A request, ready but for destination and credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The method.
    pub method: &'static str,
    /// Path and query, percent-encoded: starts with `/` and is relative to the base path of the destination.
    pub path_and_query: String,
    /// Headers with lower-case names: `accept`, and those that are arguments. Never one of the gateway's.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Body>,
}

/// A request body.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    /// The value of `content-type`.
    pub content_type: String,
    /// The bytes.
    pub bytes: Bytes,
}

// Values of arguments are the caller's data: they do not belong in a log that prints a request for debugging.
impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("method", &self.method)
            .field("path_and_query_bytes", &self.path_and_query.len())
            .field(
                "headers",
                &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            )
            .field("body", &self.body)
            .finish()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("content_type", &self.content_type)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Why arguments make no request. The text names arguments as the published schema does and quotes no value, so the
/// caller may read it, except where [`Self::fault`] says that it is not the caller's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildFault {
    /// An argument that the tool does not have, or that only the operator gives.
    #[error("`{0}` is no argument of this tool; remove it")]
    Undeclared(String),
    /// A required argument is missing.
    #[error("`{0}` is missing; it is required")]
    Missing(String),
    /// Null where nothing can stand for it.
    #[error("`{0}` is null; leave it out, or give it a value")]
    Null(String),
    /// A value that is neither a single value nor a list, or where the schema says so an object, of single values.
    #[error("`{0}` can only be a text, a number, true, false, or a list of these; nothing can stand deeper")]
    Kind(String),
    /// An empty list or object, which a URL, a header or a form cannot say.
    #[error("`{0}` is empty, which cannot be sent; leave it out, or give it an item")]
    EmptyList(String),
    /// An item that holds what separates items, or a key that is the name of another parameter.
    #[error("`{0}` has an item or a key that would be read as another one; use other characters")]
    Delimiter(String),
    /// A text that is not base64.
    #[error("`{0}` is not base64 with padding and without line ends")]
    Base64(String),
    /// A file name that cannot be sent.
    #[error("`{0}` needs a file name without `/`, `\\`, quotes and control characters, of at most 255 bytes")]
    FileName(String),
    /// A media type that a file cannot have.
    #[error("`{0}` has a media type that is not taken here; the schema says which are")]
    MediaType(String),
    /// A path value that is empty, or that a server could read as a step to another folder.
    #[error("`{0}` is empty or holds a step such as `..`, which cannot stand in a path")]
    PathStep(String),
    /// A header value that is no line of visible ASCII.
    #[error(
        "`{0}` can only have visible ASCII characters, with spaces between them; items of a list no comma"
    )]
    HeaderValue(String),
    /// A value that is too long for its place.
    #[error("`{0}` is too long to be sent in a header")]
    HeaderLong(String),
    /// Path and query together are too long.
    #[error("the arguments are too long for a URL; at most {TARGET_BYTES_MAX} bytes fit")]
    TargetLong,
    /// What was built is not the path that the template promises. A second lock: the faults above come first.
    #[error("the arguments do not fit the path of this tool")]
    Path,
    /// The operator's part is wrong: an argument that is to be injected was not given, cannot be sent, or is none.
    #[error("injected argument: {0}")]
    Injected(Box<Self>),
}

impl BuildFault {
    /// Who has to change something. What the operator injects must not be told to a caller.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Injected(_) => Fault::Gateway,
            Self::Undeclared(_)
            | Self::Missing(_)
            | Self::Null(_)
            | Self::Kind(_)
            | Self::EmptyList(_)
            | Self::Delimiter(_)
            | Self::Base64(_)
            | Self::FileName(_)
            | Self::MediaType(_)
            | Self::PathStep(_)
            | Self::HeaderValue(_)
            | Self::HeaderLong(_)
            | Self::TargetLong
            | Self::Path => Fault::Caller,
        }
    }
}

impl RequestPlan {
    /// The arguments that a caller gives and that go into the body: the name in the schema, and the name of the field on
    /// the wire where the argument is one field.
    pub fn body_arguments(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.arguments
            .iter()
            .filter(|argument| !argument.injected)
            .filter_map(|argument| match argument.place {
                ArgumentPlace::Field => Some((argument.name.as_str(), Some(argument.wire.as_str()))),
                ArgumentPlace::Body => Some((argument.name.as_str(), None)),
                ArgumentPlace::Path
                | ArgumentPlace::Query
                | ArgumentPlace::QueryString
                | ArgumentPlace::Header
                | ArgumentPlace::Cookie => None,
            })
    }

    /// The parameters that the request has: `path`, `query`, `querystring`, `header` or `cookie`, and the name on the wire.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.arguments.iter().filter_map(|argument| {
            let place = match argument.place {
                ArgumentPlace::Path => "path",
                ArgumentPlace::Query => "query",
                ArgumentPlace::QueryString => "querystring",
                ArgumentPlace::Header => "header",
                ArgumentPlace::Cookie => "cookie",
                ArgumentPlace::Field | ArgumentPlace::Body => return None,
            };
            Some((place, argument.wire.as_str()))
        })
    }

    /// Whether the request can have a body.
    #[must_use]
    pub const fn has_body(&self) -> bool {
        !matches!(self.body, BodyPlan::None)
    }

    /// The method, as a request line writes it.
    #[must_use]
    pub const fn method(&self) -> &str {
        self.operation.method().as_str()
    }

    /// The path template, as the document writes it.
    #[must_use]
    pub fn template(&self) -> &str {
        self.operation.path()
    }

    /// Whether an argument goes into the query, under one name there: what a link to another page can carry.
    #[must_use]
    pub fn query_name(&self, argument: &str) -> Option<&str> {
        self.arguments
            .iter()
            .find(|one| one.name == argument && one.place == ArgumentPlace::Query)
            .map(|one| one.wire.as_str())
    }

    /// Builds the request.
    ///
    /// `arguments`: what the caller sent, after it was checked against the input schema; this is not that check.
    /// `injected`: exactly the arguments that the tool was made to inject, by their argument names. One that is
    /// missing is a fault: a scope that is left out would widen the call.
    ///
    /// # Errors
    /// [`BuildFault`], by the argument. Nothing is sent half.
    pub fn build(&self, arguments: &Object, injected: &Object) -> Result<Prepared, BuildFault> {
        self.only_declared(arguments, injected)?;
        let mut given = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            if let Some(value) = argument.value(arguments, injected)? {
                given.push((argument, value));
            }
        }
        let path_and_query = self.target(&given)?;
        let mut headers = vec![("accept".to_owned(), self.accept.clone())];
        let mut cookies: Vec<String> = Vec::new();
        for (argument, value) in &given {
            match argument.place {
                ArgumentPlace::Header => {
                    headers.push((argument.wire.to_ascii_lowercase(), argument.header(value)?));
                }
                ArgumentPlace::Cookie => {
                    let cookie = argument.written(|serial| serial.cookie(value))?;
                    cookies.push(format!("{}={cookie}", argument.wire));
                }
                ArgumentPlace::Path
                | ArgumentPlace::Query
                | ArgumentPlace::QueryString
                | ArgumentPlace::Field
                | ArgumentPlace::Body => {}
            }
        }
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        Ok(Prepared {
            method: self.operation.method().as_str(),
            path_and_query,
            headers,
            body: self.body(&given)?,
        })
    }

    fn only_declared(&self, arguments: &Object, injected: &Object) -> Result<(), BuildFault> {
        let declares = |name: &str, by_operator: bool| {
            self.arguments
                .iter()
                .any(|argument| argument.name == name && argument.injected == by_operator)
        };
        if let Some(name) = injected.keys().find(|name| !declares(name, true)) {
            return Err(BuildFault::Injected(Box::new(BuildFault::Undeclared(excerpt(
                name,
            )))));
        }
        match arguments.keys().find(|name| !declares(name, false)) {
            Some(name) => Err(BuildFault::Undeclared(excerpt(name))),
            None => Ok(()),
        }
    }

    fn target(&self, given: &[(&Argument, &Value)]) -> Result<String, BuildFault> {
        let mut in_path: BTreeMap<&str, String> = BTreeMap::new();
        let mut query: Vec<String> = self.fixed_query.iter().flat_map(FixedQuery::pairs).collect();
        for (argument, value) in given {
            match argument.place {
                ArgumentPlace::Path => {
                    let written = argument.written(|serial| serial.path(&argument.wire, value))?;
                    in_path.insert(&argument.wire, written);
                }
                ArgumentPlace::Query => {
                    let taken = |name: &str| name != argument.wire && self.query_names.contains(name);
                    argument.written(|serial| serial.query(&argument.wire, value, &taken, &mut query))?;
                }
                ArgumentPlace::QueryString => {
                    let fields = value
                        .as_object()
                        .ok_or_else(|| argument.blame(BuildFault::Kind))?;
                    for (name, value) in fields {
                        form::urlencoded(&FieldForm::Auto, name, value, &|_| false, &mut query)
                            .map_err(|fault| argument.blame_field(fault))?;
                    }
                }
                ArgumentPlace::Header
                | ArgumentPlace::Cookie
                | ArgumentPlace::Field
                | ArgumentPlace::Body => {}
            }
        }
        let path = self
            .template
            .fill(|name| in_path.get(name).map(String::as_str))
            .ok_or(BuildFault::Path)?;
        let mut target = format!("{}{path}", self.base_path);
        if !query.is_empty() {
            target.push('?');
            target.push_str(&query.join("&"));
        }
        if target.len() > TARGET_BYTES_MAX {
            return Err(BuildFault::TargetLong);
        }
        Ok(target)
    }

    fn body(&self, given: &[(&Argument, &Value)]) -> Result<Option<Body>, BuildFault> {
        match &self.body {
            BodyPlan::None => Ok(None),
            BodyPlan::Fields {
                content_type,
                kind,
                always,
            } => {
                let fields: Vec<(&Argument, &Value)> = given
                    .iter()
                    .filter(|(argument, _)| argument.place == ArgumentPlace::Field)
                    .copied()
                    .collect();
                if fields.is_empty() && !always {
                    return Ok(None);
                }
                // A body that is sent is sent whole, also where it could have been left out.
                let missing = self.arguments.iter().find(|argument| {
                    argument.place == ArgumentPlace::Field
                        && argument.required
                        && !fields.iter().any(|(given, _)| given.wire == argument.wire)
                });
                if let Some(argument) = missing {
                    return Err(argument.blame(BuildFault::Missing));
                }
                let fields = fields
                    .into_iter()
                    .map(|(argument, value)| FieldValue {
                        argument,
                        name: &argument.wire,
                        form: &argument.form,
                        value,
                    })
                    .collect();
                written(*kind, content_type, fields).map(Some)
            }
            BodyPlan::Whole {
                content_type,
                kind,
                fields,
            } => given
                .iter()
                .find(|(argument, _)| argument.place == ArgumentPlace::Body)
                .map(|(argument, value)| whole(argument, value, (*kind, content_type), fields))
                .transpose(),
        }
    }
}

/// A field on its way into a body.
struct FieldValue<'v> {
    /// The argument that is blamed.
    argument: &'v Argument,
    name: &'v str,
    form: &'v FieldForm,
    value: &'v Value,
}

fn whole(
    argument: &Argument,
    value: &Value,
    (kind, content_type): (Kind, &str),
    forms: &BTreeMap<String, FieldForm>,
) -> Result<Body, BuildFault> {
    let bytes: Bytes = match kind {
        Kind::Json => value.to_string().into(),
        Kind::Text => argument.written(|_| text(value))?.into(),
        Kind::Bytes => value
            .as_str()
            .and_then(form::decode)
            .ok_or_else(|| argument.blame(BuildFault::Base64))?
            .into(),
        Kind::Urlencoded | Kind::Multipart => {
            let object = value
                .as_object()
                .ok_or_else(|| argument.blame(BuildFault::Kind))?;
            let fields = object
                .iter()
                .map(|(name, value)| FieldValue {
                    argument,
                    name,
                    form: forms.get(name).unwrap_or(&FieldForm::Auto),
                    value,
                })
                .collect();
            return written(kind, content_type, fields);
        }
    };
    Ok(Body {
        content_type: content_type.to_owned(),
        bytes,
    })
}

fn written(kind: Kind, content_type: &str, fields: Vec<FieldValue<'_>>) -> Result<Body, BuildFault> {
    let names: BTreeSet<&str> = fields.iter().map(|field| field.name).collect();
    match kind {
        Kind::Multipart => {
            let mut parts = Vec::new();
            for field in fields {
                // A name that the schema does not declare comes from the caller.
                if !form::is_part_name(field.name) {
                    return Err(field.argument.blame(BuildFault::Delimiter));
                }
                form::parts(field.form, field.name, field.value, &mut parts)
                    .map_err(|fault| field.argument.blame_field(fault))?;
            }
            let (boundary, bytes) = form::multipart(&parts);
            Ok(Body {
                content_type: format!("{content_type}; boundary={boundary}"),
                bytes: bytes.into(),
            })
        }
        Kind::Urlencoded => {
            let mut pairs = Vec::new();
            for field in fields {
                let taken = |name: &str| name != field.name && names.contains(name);
                form::urlencoded(field.form, field.name, field.value, &taken, &mut pairs)
                    .map_err(|fault| field.argument.blame_field(fault))?;
            }
            Ok(Body {
                content_type: content_type.to_owned(),
                bytes: pairs.join("&").into(),
            })
        }
        Kind::Json | Kind::Text | Kind::Bytes => {
            let object: Object = fields
                .into_iter()
                .map(|field| (field.name.to_owned(), field.value.clone()))
                .collect();
            Ok(Body {
                content_type: content_type.to_owned(),
                bytes: Value::Object(object).to_string().into(),
            })
        }
    }
}

impl Argument {
    fn blame(&self, fault: fn(String) -> BuildFault) -> BuildFault {
        let fault = fault(self.name.clone());
        if self.injected {
            BuildFault::Injected(Box::new(fault))
        } else {
            fault
        }
    }

    /// The value that is to be sent; `None` where there is none and none is needed.
    fn value<'v>(
        &self,
        arguments: &'v Object,
        injected: &'v Object,
    ) -> Result<Option<&'v Value>, BuildFault> {
        let source = if self.injected { injected } else { arguments };
        let is_in_body = matches!(self.place, ArgumentPlace::Field | ArgumentPlace::Body);
        match source.get(&self.name) {
            None if self.injected => Err(self.blame(BuildFault::Missing)),
            // Required fields of a body that may be absent are missed only when it is sent.
            None if self.required && self.place != ArgumentPlace::Field => {
                Err(self.blame(BuildFault::Missing))
            }
            None => Ok(None),
            Some(Value::Null) if !is_in_body => {
                // RFC 6570 section 2.3: null is an undefined value, and an undefined value is left out.
                if self.nullable && !self.required && !self.injected {
                    Ok(None)
                } else {
                    Err(self.blame(BuildFault::Null))
                }
            }
            Some(value) => Ok(Some(value)),
        }
    }

    /// Writes a value by its style. A parameter always has one.
    fn written<T>(&self, write: impl FnOnce(&Serial) -> Result<T, SerialFault>) -> Result<T, BuildFault> {
        let serial = self.serial.unwrap_or(Serial {
            style: Style::Simple,
            explode: false,
            reserved: false,
            objects: false,
            nesting: Nesting::Refuse,
        });
        write(&serial).map_err(|fault| self.blame_serial(fault))
    }

    fn header(&self, value: &Value) -> Result<String, BuildFault> {
        let line = self.written(|serial| serial.header(value))?;
        if line.len() > HEADER_VALUE_BYTES_MAX {
            return Err(self.blame(BuildFault::HeaderLong));
        }
        Ok(line)
    }

    fn blame_serial(&self, fault: SerialFault) -> BuildFault {
        self.blame(match fault {
            SerialFault::Kind => BuildFault::Kind,
            SerialFault::Empty => BuildFault::EmptyList,
            SerialFault::Step => BuildFault::PathStep,
            SerialFault::Delimiter => BuildFault::Delimiter,
            SerialFault::Header => BuildFault::HeaderValue,
        })
    }

    fn blame_field(&self, fault: FieldFault) -> BuildFault {
        match fault {
            FieldFault::Serial(fault) => self.blame_serial(fault),
            FieldFault::Null => self.blame(BuildFault::Null),
            FieldFault::Base64 => self.blame(BuildFault::Base64),
            FieldFault::FileName => self.blame(BuildFault::FileName),
            FieldFault::MediaType => self.blame(BuildFault::MediaType),
        }
    }
}
