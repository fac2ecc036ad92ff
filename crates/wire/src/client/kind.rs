//! What a result is, as far as it says so itself: the end, a question, or something else.

use bytes::Bytes;
use model::{JsonLimits, Object, Value, parse_foreign};

use crate::client::input::InputRequired;
use crate::revision::{Era, Revision};

/// A result by its `resultType`.
pub(crate) enum Kind {
    /// It is the end (BASE-11); what it says is still to be read.
    Complete(Object),
    /// The server wants something of the client first (MRTR-02).
    InputRequired(InputRequired),
    /// Something that was not asked for (BASE-12).
    Other(String),
}

impl Kind {
    /// Reads a result.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence about it.
    pub(crate) fn read(revision: Revision, result: &Bytes, limits: JsonLimits) -> Result<Self, String> {
        let mut object = match parse_foreign(result, limits) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err("is no object".to_owned()),
            Err(why) => return Err(format!("is not JSON that may pass: {why}")),
        };
        // An older server may have a field of this name that means nothing (C3).
        let kind = object.shift_remove("resultType");
        match (revision.era(), kind) {
            (Era::Legacy, _) | (Era::Modern, None) => Ok(Self::Complete(object)),
            (Era::Modern, Some(Value::String(kind))) => match kind.as_str() {
                "complete" => Ok(Self::Complete(object)),
                "input_required" => InputRequired::read(object)
                    .map(Self::InputRequired)
                    .map_err(str::to_owned),
                other => Ok(Self::Other(other.chars().take(64).collect())),
            },
            (Era::Modern, Some(_)) => Err("has a `resultType` that is no text".to_owned()),
        }
    }
}
