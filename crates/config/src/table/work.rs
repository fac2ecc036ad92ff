//! The rows of the table of keys for work that takes longer than one request.

use super::{DAY, HOUR};
use crate::form;
use crate::key::{Keys, Kind, Section, defaulted, optional, required};

pub(super) static LONG_RUNNING: Section = Section {
    at: "upstream.<name>.tool.<name>.long_running",
    doc: "Work that takes longer than one request: it is started once, looked at until it has ended, and called off where the caller no longer waits. `returns`, `rows` and the output schema are about the last look. A client that asked for it is told of the progress.",
    keys: Keys::Here(&[
        required(
            "status",
            Kind::Text(&form::OPERATION),
            "\"getReport\"",
            "The operation that tells of the work: a GET that takes its name and nothing else that is required.",
        ),
        required(
            "id",
            Kind::Text(&form::JSON_PATH),
            "\"$.job_id\"",
            "Where the answer to the start names the work.",
        ),
        optional(
            "argument",
            Kind::Text(&form::ARGUMENT),
            "\"job_id\"",
            "The argument that gets this name. Default: the only one that the operation requires.",
        ),
        required(
            "state",
            Kind::Text(&form::JSON_PATH),
            "\"$.status\"",
            "Where the state of the work stands.",
        ),
        required(
            "done",
            Kind::List {
                of: &Kind::Text(&form::STATE),
                min: 1,
                max: 32,
            },
            "[\"done\"]",
            "The states of work that is done.",
        ),
        defaulted(
            "failed",
            Kind::List {
                of: &Kind::Text(&form::STATE),
                min: 0,
                max: 32,
            },
            "[]",
            "[\"failed\", \"cancelled\"]",
            "The states of work that failed. In any other state it is still running.",
        ),
        optional(
            "progress",
            Kind::Text(&form::JSON_PATH),
            "\"$.progress_percent\"",
            "Where it stands how much is done, in percent.",
        ),
        optional(
            "cancel",
            Kind::Text(&form::OPERATION),
            "\"cancelReport\"",
            "The operation that calls the work off. It is sent once, where the caller cancelled or the deadline passed.",
        ),
        defaulted(
            "poll",
            Kind::Span { min: 10, max: HOUR },
            "\"1s\"",
            "\"500ms\"",
            "How long to wait between two looks.",
        ),
        defaulted(
            "deadline",
            Kind::Span { min: 1, max: DAY },
            "\"2m\"",
            "\"5m\"",
            "How long the whole may take. `timeout` is then for each request of it.",
        ),
    ]),
    choices: &[],
};
