//! Single arguments of a tool, as a reviewer bounds them. Whether the operation has them, and lets them be bounded so, is
//! known only to the room that reads documents.

use std::collections::BTreeMap;

use model::Value;
use serde_json::Number;

use crate::check::excerpt;
use crate::fault::{FaultKind, Wrong, wrong};
use crate::reading::Reading;
use crate::text;
use crate::view::View;

/// `[upstream.<name>.tool.<name>.argument.<name>]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentSettings {
    /// Its name, as the document gives it.
    pub name: String,
    /// The name that callers use.
    pub rename: Option<String>,
    /// What models read of it.
    pub description: Option<String>,
    /// In what it is counted.
    pub unit: Option<String>,
    /// Whether every call must give it.
    pub required: bool,
    /// Whether no call can give it.
    pub hide: bool,
    /// What Tollhouse gives for it; no call can.
    pub given: Option<Given>,
    /// The only values that it may have.
    pub values: Option<Vec<Value>>,
    /// The smallest number.
    pub minimum: Option<Number>,
    /// The largest number.
    pub maximum: Option<Number>,
    /// The longest text, in characters.
    pub length_max: Option<u64>,
    /// The longest list.
    pub items_max: Option<u64>,
}

/// What Tollhouse gives for an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// Always this.
    Fixed(Value),
    /// The organisation of the caller.
    Tenant,
    /// Who calls.
    Subject,
    /// The client program of the caller.
    Client,
    /// Who vouches for the caller.
    Issuer,
    /// A claim of the caller.
    Claim(String),
    /// The id of the call: a UUID that no other call has, and the same when the call is tried again.
    CallId,
}

impl Given {
    /// Reads `principal.tenant`, `principal.subject`, `principal.client`, `principal.issuer`,
    /// `claims.NAME` or `call.id`.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "principal.tenant" => Ok(Self::Tenant),
            "principal.subject" => Ok(Self::Subject),
            "principal.client" => Ok(Self::Client),
            "principal.issuer" => Ok(Self::Issuer),
            "call.id" => Ok(Self::CallId),
            _ => match text.strip_prefix("claims.") {
                Some(name) => {
                    text::prose(name, 256, false)?;
                    Ok(Self::Claim(name.to_owned()))
                }
                None => Err(wrong("is nothing that is known of a caller or a call")),
            },
        }
    }
}

/// What only a caller's argument can have.
const OF_CALLERS: [&str; 9] = [
    "rename",
    "description",
    "unit",
    "required",
    "values",
    "minimum",
    "maximum",
    "length_max",
    "items_max",
];

/// The arguments of a tool that are bounded, in the order of the file.
pub(crate) fn read(reading: &mut Reading<'_>, tool: &View<'_>) -> Vec<ArgumentSettings> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut all = Vec::new();
    for (name, view) in tool.named("argument") {
        let one = one(reading, name, &view);
        if let Some(rename) = &one.rename
            && let Some(first) = names.insert(rename.clone(), name.to_owned())
        {
            let problem = format!("`{first}` is renamed to `{rename}` as well");
            let fault = reading.fault_at(&view, "rename", FaultKind::Conflict, problem);
            reading.faults.push(fault.hint("give one of them another name"));
        }
        all.push(one);
    }
    scope(reading, tool);
    all
}

fn one(reading: &mut Reading<'_>, name: &str, view: &View<'_>) -> ArgumentSettings {
    let given = match (view.datum("fixed"), view.parsed("from", Given::parse)) {
        (Some(value), _) => Some(Given::Fixed(value)),
        (None, from) => from,
    };
    let hide = view.truth("hide").unwrap_or(false);
    if let Some(Given::Claim(claim)) = &given
        && !reading.known.claims.contains(claim.as_str())
    {
        let problem = format!("no caller can have the claim `{}`", excerpt(claim));
        let warning = reading.fault_at(view, "from", FaultKind::Ineffective, problem);
        reading
            .warnings
            .push(warning.hint("list it in `claims.extra` of an issuer, or in `claims` of a caller"));
    }
    if given.is_some() || hide {
        for key in OF_CALLERS {
            if view.has(key) {
                let problem = format!("`{key}` means nothing for an argument that no call can give");
                let fault = reading.fault_at(view, key, FaultKind::Conflict, problem);
                reading.faults.push(fault.hint("leave it out"));
            }
        }
    }
    let (minimum, maximum) = (view.decimal("minimum"), view.decimal("maximum"));
    if let (Some(low), Some(high)) = (
        minimum.as_ref().and_then(Number::as_f64),
        maximum.as_ref().and_then(Number::as_f64),
    ) && low > high
    {
        let problem = format!("`minimum` is {low}, more than `maximum`, which is {high}");
        let fault = reading.fault_at(view, "minimum", FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("change one of the two"));
    }
    ArgumentSettings {
        name: name.to_owned(),
        rename: view.text("rename"),
        description: view.text("description"),
        unit: view.text("unit"),
        required: view.truth("required").unwrap_or(false),
        hide,
        given,
        values: view.data("values"),
        minimum,
        maximum,
        length_max: view.count("length_max"),
        items_max: view.count("items_max"),
    }
}

/// The argument of `scope` is given already.
fn scope(reading: &mut Reading<'_>, tool: &View<'_>) {
    let Some(argument) = tool.table("scope").and_then(|scope| scope.text("argument")) else {
        return;
    };
    let twice = tool
        .named("argument")
        .into_iter()
        .find(|(name, _)| *name == argument);
    if let Some((_, view)) = twice {
        let problem = format!("`scope` sets the argument `{}` already", excerpt(&argument));
        let fault = reading.fault(view.header, &view.path, FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("leave one of the two out"));
    }
}
