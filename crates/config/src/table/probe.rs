//! The rows of the table of keys for probes.

use crate::form;
use crate::key::{Choice, Keys, Kind, Section, defaulted, optional, required};

pub(super) static PROBE: Section = Section {
    at: "upstream.<name>.probe",
    doc: "What `tollhouse probe` may do: really call tools with synthetic arguments, and compare witnesses of the state before and after. Only for an environment of your own with synthetic data.",
    keys: Keys::Here(&[
        required(
            "environment",
            Kind::Word {
                what: "environment",
                words: &["synthetic"],
            },
            "\"synthetic\"",
            "Your word that the destination below is yours and holds synthetic data only.",
        ),
        required(
            "destination",
            Kind::Text(&form::PROBED),
            "\"http://127.0.0.1:7310\"",
            "That environment, spelled out here. Where `destination` of the upstream is another one, nothing is probed.",
        ),
        required(
            "call",
            Kind::Named {
                name: &form::TOOL_NAME,
                of: &Kind::Text(&form::JSON_OBJECT),
                min: 1,
                max: 1_000,
            },
            "{ getInvoiceStatus = '{\"invoice_id\":\"inv-1001\"}' }",
            "What is called: a tool of this upstream, and its synthetic arguments as a JSON object.",
        ),
        required(
            "witness",
            Kind::Named {
                name: &form::SOURCE_NAME,
                of: &Kind::Table(&WITNESS),
                min: 1,
                max: 64,
            },
            "{ invoices = { source = \"directory\", query = \"select count(*) from invoice\" } }",
            "What shows the state of the environment.",
        ),
    ]),
    choices: &[],
};

static WITNESS: Section = Section {
    at: "upstream.<name>.probe.witness.<name>",
    doc: "Something that shows the state of the environment: the one value of a query, the answer of a reading tool, or the files of a folder. One that changes without the call is noticed and says nothing.",
    keys: Keys::Here(&[
        optional(
            "source",
            Kind::Text(&form::SOURCE_NAME),
            "\"directory\"",
            "The name of a source with `sql`.",
        ),
        optional(
            "query",
            Kind::Text(&form::QUERY),
            "\"select count(*) from invoice\"",
            "For a source: a query that gives one row with one column.",
        ),
        optional(
            "tool",
            Kind::Text(&form::TOOL_NAME),
            "\"listInvoices\"",
            "A tool of this upstream that changes nothing.",
        ),
        defaulted(
            "arguments",
            Kind::Text(&form::JSON_OBJECT),
            "\"{}\"",
            "'{\"limit\":100}'",
            "For a tool: its arguments, as a JSON object.",
        ),
        optional(
            "folder",
            Kind::Text(&form::PATH),
            "\"data\"",
            "A folder whose files are compared by name and content.",
        ),
    ]),
    choices: &[Choice {
        keys: &["source", "tool", "folder"],
        required: true,
    }],
};
