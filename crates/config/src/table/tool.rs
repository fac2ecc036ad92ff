//! The table of keys, continued: the keys of a tool. A table, with no logic.

use super::work::LONG_RUNNING;
use super::{TIMEOUT, approval};
use crate::form;
use crate::key::{Choice, Key, Keys, Kind, Section, defaulted, optional, required};

pub(super) const NESTINGS: &[&str] = &["refuse", "indexed", "unindexed"];

pub(super) static SERVER: Section = Section {
    at: "upstream.<name>.server",
    doc: "A server of the document, of which only the path is used: it stands behind the path of `destination` and before the path of the operation. An operation that has servers of its own uses those. The same table stands under a tool.",
    keys: Keys::Here(&[
        optional(
            "url",
            Kind::Text(&form::SERVER_URL),
            "\"https://{region}.example.com/{version}\"",
            "The server, as the document writes it. Default: the first one of the operation.",
        ),
        optional(
            "variables",
            Kind::Named {
                name: &form::FIELD_NAME,
                of: &Kind::Text(&form::SERVER_URL),
                min: 0,
                max: 64,
            },
            "{ version = \"v2\" }",
            "Values of its variables, of those that the document allows. Default: those of the document.",
        ),
    ]),
    choices: &[],
};

pub(crate) const CLASSES: &[&str] = &["read", "sensitive-read", "write", "destructive"];

static EACH_FACT: Kind = Kind::Table(&FACT);
static EACH_PATH: Kind = Kind::Text(&form::JSON_PATH);

/// What a tool has, whatever stands behind it.
pub(super) const RESOURCE_KEY: Key = optional(
    "resource",
    Kind::Table(&RESOURCE),
    "{ type = \"Invoice\", id = \"$.invoiceId\" }",
    "The thing that a call is about. Policies see it as `resource`.",
);
pub(super) const OWNER_KEY: Key = optional(
    "owner",
    Kind::Table(&OWNER),
    "{ source = \"directory\", query = \"select tenant from invoice where id = $1\" }",
    "Who owns the thing. Looked up before the call; an unknown owner is a no.",
);
pub(super) const ROWS_KEY: Key = optional(
    "rows",
    Kind::Table(&ROWS),
    "{ items = \"$.invoices\", owner = \"$.tenant\" }",
    "For tools that list: rows of other owners are dropped. A row whose owner is unknown does not leave.",
);
pub(super) const FACTS_KEY: Key = optional(
    "facts",
    Kind::Named {
        name: &form::FACT_NAME,
        of: &EACH_FACT,
        min: 0,
        max: 32,
    },
    "",
    "Further facts that policies see as `context.facts.<name>`.",
);
pub(super) const RETURNS_KEY: Key = optional(
    "returns",
    Kind::Named {
        name: &form::FIELD_NAME,
        of: &EACH_PATH,
        min: 1,
        max: 256,
    },
    "{ status = \"$.status\" }",
    "The only parts of the answer that leave: a name and a path (RFC 9535) each. Default: the whole answer.",
);
pub(super) const TIMEOUT_KEY: Key = optional(
    "timeout",
    TIMEOUT,
    "\"5s\"",
    "The deadline of a call. Default: that of the upstream, else `limits.call_timeout`.",
);
pub(super) const CONSENT_KEY: Key = optional(
    "consent",
    Kind::Table(&CONSENT),
    "{ waived_by = \"Grace Hopper\", because = \"a sandbox with synthetic data\", until = \"2027-01-31\" }",
    "Waives the approval of each call by a person, for a tool that changes state.",
);
pub(super) const APPROVAL_KEY: Key = optional(
    "approval",
    Kind::Table(&approval::APPROVALS),
    "",
    "Who answers for it that this tool is offered although operations like it are left out by default. What needs one and has none is held.",
);

pub(super) static TOOL: Section = Section {
    at: "upstream.<name>.tool.<name>",
    doc: "One operation that agents may call, as a reviewer bounds it. Its public name is the name of the upstream, `_`, and the name here; together at most 64 characters.",
    keys: Keys::Here(&[
        required(
            "operation",
            Kind::Text(&form::OPERATION),
            "\"getInvoice\"",
            "The operation of the document: its `operationId`, or its method and path.",
        ),
        optional(
            "title",
            Kind::Text(&form::TITLE),
            "\"Invoice status\"",
            "The name that people see. Default: the summary of the operation.",
        ),
        optional(
            "description",
            Kind::Text(&form::DESCRIPTION),
            "\"Payment status of one invoice of your own organisation.\"",
            "What models read. Default: the description of the operation.",
        ),
        required(
            "class",
            Kind::Word {
                what: "class",
                words: CLASSES,
            },
            "\"read\"",
            "What a call can do to the world, as the reviewer judges it. A GET proves nothing.",
        ),
        RESOURCE_KEY,
        OWNER_KEY,
        optional(
            "scope",
            Kind::Table(&SCOPE),
            "{ argument = \"tenant\" }",
            "For tools that list: the argument of the operation that Tollhouse sets to the caller's own scope. The caller cannot set it.",
        ),
        ROWS_KEY,
        FACTS_KEY,
        optional(
            "pages",
            Kind::Table(&PAGES),
            "{ argument = \"cursor\", next = \"$.next\", items = \"$.data\", pages_max = 5 }",
            "For tools that list page by page: lets a caller have several pages with one call.",
        ),
        RETURNS_KEY,
        optional(
            "argument",
            Kind::Named {
                name: &form::ARGUMENT,
                of: &Kind::Table(&ARGUMENT),
                min: 0,
                max: 512,
            },
            "",
            "Arguments that are bounded further, by the names that the document gives them.",
        ),
        defaulted(
            "allow_reserved",
            Kind::Truth,
            "false",
            "true",
            "Sends reserved characters of parameters that say `allowReserved` as they are, as far as they cannot change what the query says.",
        ),
        optional(
            "media_type",
            Kind::Text(&form::MEDIA_TYPE),
            "\"application/x-www-form-urlencoded\"",
            "The media type in which the body is sent, of those that the document declares. Default: JSON, where it is one of them.",
        ),
        optional(
            "accept",
            Kind::Text(&form::MEDIA_TYPE),
            "\"text/csv\"",
            "The media type in which the answer is asked for, of those that the document declares. Default: JSON, where it is one of them.",
        ),
        optional(
            "server",
            Kind::Table(&SERVER),
            "{ url = \"https://files.example.com/v3\" }",
            "Another server than that of the upstream, for its path.",
        ),
        optional(
            "errors",
            Kind::Named {
                name: &form::STATUS,
                of: &Kind::Text(&form::DESCRIPTION),
                min: 1,
                max: 64,
            },
            "{ 404 = \"there is no such invoice; list the invoices first\" }",
            "What a model reads when the service answers with an error, by status. Default: the status, and what a problem document says.",
        ),
        TIMEOUT_KEY,
        optional(
            "retry",
            Kind::Table(&RETRY),
            "{ attempts = 2, on = [502, 503, 504] }",
            "When a reading call is tried again. Calls that change state never are.",
        ),
        optional(
            "long_running",
            Kind::Table(&LONG_RUNNING),
            "{ status = \"getReport\", id = \"$.job_id\", state = \"$.status\", done = [\"done\"] }",
            "For operations that start work and answer at once: the call lasts until the work has ended, and its result is what the status operation says then.",
        ),
        CONSENT_KEY,
        APPROVAL_KEY,
    ]),
    choices: &[
        Choice {
            keys: &["retry", "long_running"],
            required: false,
        },
        Choice {
            keys: &["pages", "long_running"],
            required: false,
        },
    ],
};

static PAGES: Section = Section {
    at: "upstream.<name>.tool.<name>.pages",
    doc: "How the pages of a list follow each other. The tool gets one argument more, by which a caller says how many pages one call reads; their rows come as one list, in the form of the last page. Rows of other owners are dropped on every page.",
    keys: Keys::Here(&[
        required(
            "argument",
            Kind::Text(&form::ARGUMENT),
            "\"cursor\"",
            "The argument that names the page. Nothing else of the call changes from page to page.",
        ),
        required(
            "items",
            Kind::Text(&form::JSON_PATH),
            "\"$.data\"",
            "The list of rows in a page.",
        ),
        required(
            "pages_max",
            Kind::Count { min: 2, max: 100 },
            "5",
            "The most pages that one call reads.",
        ),
        defaulted(
            "as",
            Kind::Text(&form::ARGUMENT),
            "\"pages\"",
            "\"pages\"",
            "The name of the argument that the tool gets.",
        ),
        optional(
            "next",
            Kind::Text(&form::JSON_PATH),
            "\"$.next_cursor\"",
            "Where a page names the next one.",
        ),
        optional(
            "link",
            Kind::Truth,
            "true",
            "The next page is in the header `Link`, with `rel=\"next\"`. Only a link to the same operation is followed, and only the argument is taken from it.",
        ),
        optional(
            "first",
            Kind::Count {
                min: 0,
                max: 1_000_000,
            },
            "1",
            "Pages are numbered, from this number on; an empty page is the last.",
        ),
    ]),
    choices: &[Choice {
        keys: &["next", "link", "first"],
        required: true,
    }],
};

static ARGUMENT: Section = Section {
    at: "upstream.<name>.tool.<name>.argument.<name>",
    doc: "One argument of the operation, within bounds. A bound can only narrow what the document allows. What is `fixed`, `from` the caller or hidden is no argument of the tool any more.",
    keys: Keys::Here(&[
        optional(
            "rename",
            Kind::Text(&form::ARGUMENT),
            "\"invoice_id\"",
            "The name that callers use.",
        ),
        optional(
            "description",
            Kind::Text(&form::DESCRIPTION),
            "\"The number on the invoice, as INV-7.\"",
            "What models read of it. Default: the description in the document.",
        ),
        optional(
            "unit",
            Kind::Text(&form::UNIT),
            "\"cents (EUR)\"",
            "In what it is counted; stands behind the description.",
        ),
        defaulted(
            "required",
            Kind::Truth,
            "false",
            "true",
            "Whether every call must give it, although the document lets it be left out.",
        ),
        optional(
            "hide",
            Kind::Truth,
            "true",
            "Whether no call can give it; it is never sent then.",
        ),
        optional(
            "fixed",
            Kind::Datum { lists: true },
            "\"EUR\"",
            "What is sent for it with every call.",
        ),
        optional(
            "from",
            Kind::Text(&form::GIVEN),
            "\"principal.tenant\"",
            "What is known of the caller that is sent for it; a call of a caller without it is refused. Or `call.id`, a UUID of the call alone, as an idempotency key.",
        ),
        optional(
            "values",
            Kind::List {
                of: &Kind::Datum { lists: false },
                min: 1,
                max: 256,
            },
            "[\"open\", \"paid\"]",
            "The only values that it may have.",
        ),
        optional("minimum", Kind::Number, "1", "The smallest number."),
        optional("maximum", Kind::Number, "100", "The largest number."),
        optional(
            "length_max",
            Kind::Count {
                min: 1,
                max: 1_000_000,
            },
            "64",
            "The longest text, in characters.",
        ),
        optional(
            "items_max",
            Kind::Count {
                min: 1,
                max: 1_000_000,
            },
            "10",
            "The longest list.",
        ),
    ]),
    choices: &[Choice {
        keys: &["hide", "fixed", "from"],
        required: false,
    }],
};

static RESOURCE: Section = Section {
    at: "upstream.<name>.tool.<name>.resource",
    doc: "The thing that a call is about: one that an argument names (`id`), or the caller's own scope (`scope`).",
    keys: Keys::Here(&[
        required(
            "type",
            Kind::Text(&form::RESOURCE_TYPE),
            "\"Invoice\"",
            "Its type, as policies name it.",
        ),
        optional(
            "id",
            Kind::Text(&form::RESOURCE_ID),
            "\"$.invoiceId\"",
            "The top-level argument that names it.",
        ),
        optional(
            "scope",
            Kind::Word {
                what: "scope",
                words: &["tenant", "subject"],
            },
            "\"tenant\"",
            "For tools that list: what belongs to the caller's organisation, or to the caller alone.",
        ),
    ]),
    choices: &[Choice {
        keys: &["id", "scope"],
        required: true,
    }],
};

const BINDS: Kind = Kind::List {
    of: &Kind::Text(&form::BIND),
    min: 0,
    max: 32,
};

static OWNER: Section = Section {
    at: "upstream.<name>.tool.<name>.owner",
    doc: "Who owns the thing: asked of a source, or listed in the caller's own claims.",
    keys: Keys::Here(&[
        optional(
            "source",
            Kind::Text(&form::SOURCE_NAME),
            "\"directory\"",
            "The name of a source, as in `[source.directory]`.",
        ),
        optional(
            "query",
            Kind::Text(&form::QUERY),
            "\"select tenant from invoice where id = $1\"",
            "For a source with `sql`: a query that gives the owner in one row with one column. No row means unknown; more than one is a fault.",
        ),
        optional(
            "bind",
            BINDS,
            "[\"resource.id\"]",
            "The values of `$1`, `$2`, … in the query. Default: `[\"resource.id\"]`.",
        ),
        optional(
            "claims",
            Kind::Text(&form::CLAIM_NAME),
            "\"accounts\"",
            "A claim of the caller that lists ids. A thing whose id is in it belongs to the caller's tenant, or to the caller where it has no tenant.",
        ),
    ]),
    choices: &[Choice {
        keys: &["source", "claims"],
        required: true,
    }],
};

static SCOPE: Section = Section {
    at: "upstream.<name>.tool.<name>.scope",
    doc: "The argument that Tollhouse sets.",
    keys: Keys::Here(&[required(
        "argument",
        Kind::Text(&form::ARGUMENT),
        "\"tenant\"",
        "The argument of the operation that gets the caller's own scope.",
    )]),
    choices: &[],
};

static ROWS: Section = Section {
    at: "upstream.<name>.tool.<name>.rows",
    doc: "Which rows of an answer leave.",
    keys: Keys::Here(&[
        required(
            "items",
            Kind::Text(&form::JSON_PATH),
            "\"$.invoices\"",
            "The list of rows in the answer.",
        ),
        required(
            "owner",
            Kind::Text(&form::JSON_PATH),
            "\"$.tenant\"",
            "The owner in a row.",
        ),
    ]),
    choices: &[],
};

static FACT: Section = Section {
    at: "upstream.<name>.tool.<name>.facts.<name>",
    doc: "One fact, asked of a source with `sql` before the call.",
    keys: Keys::Here(&[
        required(
            "source",
            Kind::Text(&form::SOURCE_NAME),
            "\"directory\"",
            "The name of a source with `sql`.",
        ),
        required(
            "query",
            Kind::Text(&form::QUERY),
            "\"select count(*) > 0 from member where tenant = $1 and subject = $2\"",
            "A query that gives the fact in one row with one column.",
        ),
        defaulted(
            "bind",
            BINDS,
            "[]",
            "[\"principal.tenant\", \"principal.subject\"]",
            "The values of `$1`, `$2`, … in the query.",
        ),
        defaulted(
            "type",
            Kind::Word {
                what: "fact type",
                words: &["truth", "integer", "text"],
            },
            "\"truth\"",
            "\"integer\"",
            "What the fact is.",
        ),
    ]),
    choices: &[],
};

static RETRY: Section = Section {
    at: "upstream.<name>.tool.<name>.retry",
    doc: "When a reading call is tried again, within its deadline.",
    keys: Keys::Here(&[
        defaulted(
            "attempts",
            Kind::Count { min: 1, max: 5 },
            "2",
            "3",
            "How often a call is tried in all.",
        ),
        required(
            "on",
            Kind::List {
                of: &Kind::Count { min: 100, max: 599 },
                min: 1,
                max: 16,
            },
            "[502, 503, 504]",
            "The answers after which it is tried again: 429 or 5xx.",
        ),
    ]),
    choices: &[],
};

static CONSENT: Section = Section {
    at: "upstream.<name>.tool.<name>.consent",
    doc: "A waiver: who answers for it that no person approves each call, why, and until when. It is written into the ledger with each call.",
    keys: Keys::Here(&[
        required(
            "waived_by",
            Kind::Text(&form::REASON),
            "\"Grace Hopper\"",
            "Who answers for it.",
        ),
        required(
            "because",
            Kind::Text(&form::REASON),
            "\"a sandbox with synthetic data\"",
            "Why.",
        ),
        required(
            "until",
            Kind::Text(&form::DATE),
            "\"2027-01-31\"",
            "The last day on which it holds (UTC). Afterwards the tool is refused.",
        ),
    ]),
    choices: &[],
};
