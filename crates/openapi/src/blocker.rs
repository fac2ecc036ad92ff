//! Findings as data: blockers, which keep an operation from becoming a tool, and notes, which a reviewer should read.
//!
//! A blocker belongs to one operation and never harms another. Its code is part of the contract: reports group by it.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::pointer::Pointer;
use crate::text::excerpt;

/// Blockers reported for one operation; more would not help to clear it.
pub(crate) const BLOCKERS_MAX: usize = 32;
/// Notes reported for one operation.
pub(crate) const NOTES_MAX: usize = 64;

/// Why an operation cannot be offered as a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{cause} at {pointer}: {text}; {clears}")]
pub struct Blocker {
    /// The place in the document, as `#/paths/~1invoices/get/parameters/0`.
    pub pointer: String,
    /// The cause.
    pub cause: BlockerCause,
    /// What is wrong there, with the offending value.
    pub text: String,
    /// What would clear it.
    pub clears: String,
    /// The argument of the operator's bounds that is at fault, and not the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

impl Blocker {
    pub(crate) fn new(
        cause: BlockerCause,
        pointer: &Pointer,
        text: impl Into<String>,
        clears: impl Into<String>,
    ) -> Self {
        Self {
            pointer: pointer.to_string(),
            cause,
            text: text.into(),
            clears: clears.into(),
            argument: None,
        }
    }

    /// A blocker that the operator's bounds of an argument cause.
    pub(crate) fn of_argument(mut self, name: &str) -> Self {
        self.argument = Some(excerpt(name));
        self
    }
}

/// Something about a tool that a reviewer should know; the tool can be offered all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The place in the document.
    pub pointer: String,
    /// What kind of note it is.
    pub kind: NoteKind,
    /// What was found and what was done about it.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.kind, self.pointer, self.text)
    }
}

macro_rules! codes {
    ($(#[$type_doc:meta])* $name:ident { $( $(#[$doc:meta])* $variant:ident = $text:literal; )* }) => {
        $(#[$type_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $( $(#[$doc])* $variant, )* }

        impl $name {
            /// Every code.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The code as reports write it. Stable.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

codes! {
    /// The causes of blockers.
    BlockerCause {
        /// The operation or its path item is not what OpenAPI says.
        OperationMalformed = "operation.malformed";
        /// A method that is not offered.
        OperationMethod = "operation.method-unsupported";
        /// The operation reaches more of the document than is looked at.
        OperationOverBudget = "operation.over-budget";
        /// The path template cannot be used as one.
        PathMalformed = "path.malformed";
        /// The template has a variable that no parameter declares.
        PathUndeclaredVariable = "path.undeclared-variable";
        /// The parameter is not what OpenAPI says.
        ParameterMalformed = "parameter.malformed";
        /// Two parameters with one name in one place.
        ParameterDuplicate = "parameter.duplicate";
        /// A way of serialising that is not offered.
        ParameterStyle = "parameter.style-unsupported";
        /// A parameter that is described by a media type that is not offered there.
        ParameterContent = "parameter.content-unsupported";
        /// A parameter whose value holds a list or an object where its style defines none.
        ParameterObject = "parameter.object-unsupported";
        /// A place that is not offered.
        ParameterLocation = "parameter.location-unsupported";
        /// A required header that no caller may set.
        ParameterReserved = "parameter.reserved-header";
        /// A required header by which a service is told who is calling.
        ParameterIdentity = "parameter.identity-header";
        /// A required cookie.
        ParameterCookie = "parameter.cookie-unsupported";
        /// The request body is not what OpenAPI says.
        BodyMalformed = "body.malformed";
        /// No media type of the body can be sent.
        BodyMediaType = "body.media-type-unsupported";
        /// A required field of a form that cannot be written.
        BodyField = "body.field-unsupported";
        /// The operator asks for an answer that the document does not declare.
        ResponseMediaType = "response.media-type-undeclared";
        /// A required body on a method that has none.
        BodyMethod = "body.method-unsupported";
        /// The operator injects an argument that the operation does not have.
        ArgumentUnknown = "argument.unknown";
        /// The operator bounds an argument by what the document does not let it be.
        ArgumentBounds = "argument.bounds";
        /// Two arguments cannot be given different names.
        ArgumentCollision = "argument.name-collision";
        /// A reference that names nothing.
        ReferenceUnresolved = "ref.unresolved";
        /// A reference to a file or a URL.
        ReferenceExternal = "ref.external";
        /// A reference that leads back to itself without a value in between.
        ReferenceCyclic = "ref.cyclic";
        /// Something that is no JSON Schema.
        SchemaMalformed = "schema.malformed";
        /// A field is required and refused, so that no call fits.
        SchemaImpossible = "schema.impossible";
        /// A keyword that cannot be carried over.
        SchemaKeyword = "schema.keyword-unsupported";
        /// A pattern that cannot be matched in linear time.
        SchemaPattern = "schema.pattern-unsupported";
        /// A number that JSON readers do not hold exactly.
        SchemaNumber = "schema.number-unsupported";
        /// The schema is larger than a tool may have.
        SchemaOverBudget = "schema.over-budget";
    }
}

codes! {
    /// The kinds of notes.
    NoteKind {
        /// There is no description; the tool says method and path instead.
        DescriptionMissing = "description.missing";
        /// The description was longer than a tool's may be.
        DescriptionCut = "description.cut";
        /// Invisible characters or comments were taken out of a text.
        TextCleaned = "text.cleaned";
        /// The operation is marked as deprecated.
        OperationDeprecated = "operation.deprecated";
        /// The document's own schema dialect was read as JSON Schema 2020-12.
        SchemaDialect = "schema.dialect";
        /// A keyword of another version was carried over.
        SchemaDialectMismatch = "schema.dialect-mismatch";
        /// A keyword has no effect and was left out.
        SchemaKeywordDropped = "schema.keyword-dropped";
        /// A bound or value that no JSON reader holds exactly was left out.
        SchemaNumberDropped = "schema.number-dropped";
        /// A pattern of the answer cannot be matched in linear time and was left out.
        SchemaPatternDropped = "schema.pattern-dropped";
        /// Members that stand beside a reference were left out, as version 3.0 says.
        SchemaSiblingsIgnored = "schema.siblings-ignored";
        /// A field is required and not declared; it takes anything.
        SchemaFieldUndeclared = "schema.field-undeclared";
        /// A reference names nothing; what can be left out without it was.
        SchemaReferenceLeftOut = "schema.reference-left-out";
        /// Texts in a large input were cut short or left out.
        SchemaTerse = "schema.terse";
        /// Optional fields of a large input were left out.
        SchemaFolded = "schema.folded";
        /// The operation names servers of its own, other than the document's.
        ServerOwn = "server.own";
        /// The path has a fragment, which is not sent.
        PathFragment = "path.fragment";
        /// The path has a query, which is sent with every request.
        PathQuery = "path.query";
        /// The parameter is left to the gateway or to the operator's credential.
        ParameterIgnored = "parameter.ignored";
        /// A path parameter that the template does not use.
        ParameterUnused = "parameter.unused";
        /// A path parameter that is not marked as required.
        ParameterRequired = "parameter.required-assumed";
        /// An optional parameter was left out: its serialisation is not defined.
        ParameterLeftOut = "parameter.left-out";
        /// Reserved characters of a parameter are sent encoded, although the document lets them stand.
        ParameterReservedEncoded = "parameter.reserved-encoded";
        /// A parameter that does not say its type.
        ParameterUntyped = "parameter.untyped";
        /// The argument has another name than the parameter or field.
        ArgumentRenamed = "argument.renamed";
        /// One of several media types was chosen.
        BodyMediaTypeChosen = "body.media-type-chosen";
        /// A field of a form was left out: its serialisation is not defined.
        BodyFieldLeftOut = "body.field-left-out";
        /// A field of a form is sent as JSON text, which is the standard's default for objects.
        BodyFieldJson = "body.field-json";
        /// The body holds a file.
        BodyFile = "body.file";
        /// The body is sent as the caller gives it: text, or bytes.
        BodyRaw = "body.raw";
        /// The body of a method that has none was left out.
        BodyIgnored = "body.ignored";
        /// A body that may be missing, but has required fields.
        BodyOptional = "body.optional-with-required-fields";
        /// An argument that no caller can give, by the operator's bounds.
        ArgumentHidden = "argument.hidden";
        /// A successful answer can be without a body; the output schema lets it be an empty object.
        OutputEmpty = "output.empty";
        /// The output schema does not describe the whole depth of the answer.
        OutputFolded = "output.folded";
        /// The tool has no output schema.
        OutputLeftOut = "output.left-out";
        /// More notes than are kept.
        More = "more";
    }
}

/// What was found out about one operation so far. Bounded.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    blockers: Vec<Blocker>,
    notes: Vec<Note>,
}

impl Findings {
    pub(crate) fn block(&mut self, blocker: Blocker) {
        if self.blockers.len() < BLOCKERS_MAX {
            self.blockers.push(blocker);
        }
    }

    pub(crate) fn note(&mut self, kind: NoteKind, pointer: &Pointer, text: impl Into<String>) {
        self.keep(Note {
            pointer: pointer.to_string(),
            kind,
            text: text.into(),
        });
    }

    /// Takes over a note that was made elsewhere.
    pub(crate) fn keep(&mut self, mut note: Note) {
        if self.notes.contains(&note) {
            return;
        }
        match self.notes.len().cmp(&NOTES_MAX.saturating_sub(1)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => {
                note.kind = NoteKind::More;
                "more notes were found than are kept; simplify the operation".clone_into(&mut note.text);
            }
            std::cmp::Ordering::Greater => return,
        }
        self.notes.push(note);
    }

    /// What was noted so far.
    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Takes over everything that was found elsewhere.
    pub(crate) fn take(&mut self, other: Self) {
        for blocker in other.blockers {
            self.block(blocker);
        }
        for note in other.notes {
            self.keep(note);
        }
    }

    /// Whether there are blockers, all of one cause.
    pub(crate) fn is_only(&self, cause: BlockerCause) -> bool {
        self.is_blocked() && self.blockers.iter().all(|blocker| blocker.cause == cause)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        !self.blockers.is_empty()
    }

    /// Whether more blockers would be dropped anyway.
    pub(crate) fn is_full(&self) -> bool {
        self.blockers.len() >= BLOCKERS_MAX
    }

    pub(crate) fn into_parts(self) -> (Vec<Blocker>, Vec<Note>) {
        (self.blockers, self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_of_one_form() {
        let mut codes: Vec<_> = BlockerCause::ALL.iter().map(|code| code.as_str()).collect();
        codes.extend(NoteKind::ALL.iter().map(|code| code.as_str()));
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
        for code in codes {
            assert!(
                code.bytes()
                    .all(|b| b.is_ascii_lowercase() || matches!(b, b'.' | b'-')),
                "{code}"
            );
        }
    }

    #[test]
    fn findings_are_kept_up_to_their_limits_and_not_past_them() {
        let mut findings = Findings::default();
        for n in 0..NOTES_MAX + 5 {
            let pointer = Pointer::root().item(n);
            findings.block(Blocker::new(BlockerCause::PathMalformed, &pointer, "x", "y"));
            findings.note(NoteKind::ArgumentRenamed, &pointer, "x");
        }
        let (blockers, notes) = findings.into_parts();
        assert_eq!((blockers.len(), notes.len()), (BLOCKERS_MAX, NOTES_MAX));
        assert_eq!(notes.last().unwrap().kind, NoteKind::More);
    }

    #[test]
    fn a_note_that_says_the_same_stands_once() {
        let mut findings = Findings::default();
        for _ in 0..3 {
            findings.note(NoteKind::TextCleaned, &Pointer::root(), "x");
        }
        assert_eq!(findings.into_parts().1.len(), 1);
    }
}
