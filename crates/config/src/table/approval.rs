//! The rows of the table of keys for approvals: one for each thing that can need one.

use crate::form;
use crate::key::{Keys, Kind, Section, optional, required};

/// One approval: every kind has the same keys.
const APPROVAL_KIND: Kind = Kind::Table(&APPROVAL);

pub(super) static APPROVALS: Section = Section {
    at: "upstream.<name>.tool.<name>.approval",
    doc: "One approval for each thing that needs one. What a tool needs is said by `tollhouse check` and `tollhouse review`, with the evidence in the document.",
    keys: Keys::Here(&[
        optional(
            "class",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"a search that is sent as POST\", until = \"2027-01-31\", for = [\"everyone\"] }",
            "The declared class is lower than the one that the document suggests.",
        ),
        optional(
            "keys",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"shows only whether a key exists\", until = \"2027-01-31\", for = [\"role:operator\"] }",
            "It deals with keys, tokens or secrets.",
        ),
        optional(
            "members",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"names of colleagues only\", until = \"2027-01-31\", for = [\"tenant:north\"] }",
            "It lists people.",
        ),
        optional(
            "exports",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"the auditors ask for it\", until = \"2027-01-31\", for = [\"role:auditor\"] }",
            "It exports or reads in bulk.",
        ),
        optional(
            "billing",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"members may see their invoices\", until = \"2027-01-31\", for = [\"role:member\"] }",
            "It deals with bills or money.",
        ),
        optional(
            "administration",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"lists the roles of the caller\", until = \"2027-01-31\", for = [\"role:admin\"] }",
            "It administers roles, permissions or members.",
        ),
        optional(
            "impersonation",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"support needs it\", until = \"2027-01-31\", for = [\"subject:grace\"] }",
            "It acts as somebody else.",
        ),
        optional(
            "webhooks",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"the address is only stored\", until = \"2027-01-31\", for = [\"everyone\"] }",
            "It takes an address that the service may call.",
        ),
        optional(
            "execution",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"runs a fixed report\", until = \"2027-01-31\", for = [\"role:operator\"] }",
            "It runs commands or passes requests on.",
        ),
        optional(
            "files",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"small files of the caller\", until = \"2027-01-31\", for = [\"everyone\"] }",
            "It sends or fetches files.",
        ),
        optional(
            "queries",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"the account sees one table\", until = \"2027-01-31\", for = [\"role:analyst\"] }",
            "It takes a query in a language of its own.",
        ),
        optional(
            "mutations",
            APPROVAL_KIND,
            "{ by = \"Grace Hopper\", because = \"members may pay\", until = \"2027-01-31\", for = [\"role:member\"] }",
            "It changes state.",
        ),
    ]),
    choices: &[],
};

static APPROVAL: Section = Section {
    at: "upstream.<name>.tool.<name>.approval.<approved>",
    doc: "Who answers for it, why, until when, and for whom.",
    keys: Keys::Here(&[
        required(
            "by",
            Kind::Text(&form::REASON),
            "\"Grace Hopper\"",
            "Who answers for it.",
        ),
        required(
            "because",
            Kind::Text(&form::REASON),
            "\"members may see their invoices\"",
            "Why.",
        ),
        required(
            "until",
            Kind::Text(&form::DATE),
            "\"2027-01-31\"",
            "The last day on which it holds (UTC). Afterwards the tool is held.",
        ),
        required(
            "for",
            Kind::List {
                of: &Kind::Text(&form::AUDIENCE_OF_APPROVAL),
                min: 1,
                max: 64,
            },
            "[\"role:member\"]",
            "For whom: `everyone` whom the rules permit, or only a role, an organisation or a caller. For everybody else the tool is held.",
        ),
    ]),
    choices: &[],
};
