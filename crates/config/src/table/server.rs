//! The table of keys, continued: the keys of an MCP server, which is started or connected to. A table, with no logic.

use super::credential::CREDENTIAL;
use super::tool::{
    APPROVAL_KEY, CLASSES, CONSENT_KEY, FACTS_KEY, OWNER_KEY, RESOURCE_KEY, RETURNS_KEY, ROWS_KEY,
    TIMEOUT_KEY,
};
use super::{DAY, HOUR, MINUTE, NETWORK, TIMEOUT, TLS};
use crate::form;
use crate::key::{Choice, Key, Keys, Kind, Section, defaulted, optional, required};

/// What every MCP server has.
const REVISION: Key = defaulted(
    "revision",
    Kind::Text(&form::REVISION),
    "\"auto\"",
    "\"auto\"",
    "The revision of MCP that is spoken with the server: the date of one, or `auto`, which asks the server.",
);
const SHARING: Key = defaulted(
    "sharing",
    Kind::Word {
        what: "way of sharing",
        words: &["per-session", "per-caller", "shared"],
    },
    "\"per-session\"",
    "\"per-caller\"",
    "Who uses one connection: each session of an agent its own, all sessions of one caller, or all callers. `shared` only for a server that keeps nothing of one caller that another could see.",
);
const MAY_ASK: Key = defaulted(
    "may_ask",
    Kind::List {
        of: &Kind::Word {
            what: "kind of question",
            words: &["elicitation", "sampling", "roots"],
        },
        min: 0,
        max: 3,
    },
    "[]",
    "[\"elicitation\"]",
    "What the server may ask of the client whose call it carries out, if that client can be asked: `elicitation` asks the person, `sampling` the client's model, `roots` for its folders. Whatever is not named here is not declared to the server, and refused.",
);
const DEADLINE: Key = optional(
    "timeout",
    TIMEOUT,
    "\"5s\"",
    "The deadline of calls. Default: `limits.call_timeout`.",
);
static EACH_TOOL: Kind = Kind::Table(&SERVER_TOOL);
const TOOLS: Key = optional(
    "tool",
    Kind::Named {
        name: &form::TOOL_NAME,
        of: &EACH_TOOL,
        min: 0,
        max: 100_000,
    },
    "",
    "The tools of the server that are offered.",
);

static EACH_PROMPT: Kind = Kind::Table(&SERVER_PROMPT);
const PROMPTS: Key = optional(
    "prompt",
    Kind::Named {
        name: &form::TOOL_NAME,
        of: &EACH_PROMPT,
        min: 0,
        max: 100_000,
    },
    "",
    "The prompts of the server that are offered.",
);
static EACH_RESOURCE: Kind = Kind::Table(&SERVER_RESOURCE);
const RESOURCES: Key = optional(
    "resource",
    Kind::Named {
        name: &form::TOOL_NAME,
        of: &EACH_RESOURCE,
        min: 0,
        max: 100_000,
    },
    "",
    "The resources of the server that are offered, and templates of such.",
);

pub(super) static COMMAND: Section = Section {
    at: "upstream.<name> with `command`",
    doc: "An MCP server that Tollhouse starts and speaks with over its standard input and output. It starts only after its command line was approved, with `tollhouse approve`.",
    keys: Keys::Here(&[
        required(
            "command",
            Kind::List {
                of: &Kind::Text(&form::COMMAND_WORD),
                min: 1,
                max: 256,
            },
            "[\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/docs\"]",
            "The program and its arguments. No shell reads them. A program without `/` is looked up in `PATH`; a relative one begins in the folder of this file.",
        ),
        optional(
            "env",
            Kind::Named {
                name: &form::VARIABLE_NAME,
                of: &Kind::Text(&form::VARIABLE_VALUE),
                min: 0,
                max: 256,
            },
            "{ GITHUB_TOKEN = \"env:FILES_TOKEN\" }",
            "Variables of its environment. A value may be `env:NAME` or `file:PATH`, and must be where the name says that it is a secret. Values are taken out of what is logged.",
        ),
        defaulted(
            "pass_env",
            Kind::List {
                of: &Kind::Text(&form::VARIABLE_NAME),
                min: 0,
                max: 256,
            },
            "[]",
            "[\"NODE_EXTRA_CA_CERTS\"]",
            "Variables that are passed on from the environment of Tollhouse, beyond PATH, HOME, LANG, LC_ALL, TZ and TMPDIR, which always are. No other is.",
        ),
        optional(
            "cwd",
            Kind::Text(&form::PATH),
            "\"work\"",
            "The folder in which it runs. Default: the folder of this file.",
        ),
        optional(
            "sandbox",
            Kind::Table(&SANDBOX),
            "{ read = [\"/srv/docs\"], network = false }",
            "What it may reach. Without it, it may do whatever the user may that Tollhouse runs as.",
        ),
        REVISION,
        SHARING,
        MAY_ASK,
        DEADLINE,
        defaulted(
            "start_timeout",
            Kind::Span {
                min: 10,
                max: 10 * MINUTE,
            },
            "\"30s\"",
            "\"2m\"",
            "How long it may take to start, until it has answered for the first time. A package that is fetched at the first start can need more.",
        ),
        defaulted(
            "stop_timeout",
            Kind::Span { min: 10, max: MINUTE },
            "\"3s\"",
            "\"10s\"",
            "How long it may take to end after its standard input was closed, and once more after SIGTERM, before it is killed with all that it started.",
        ),
        defaulted(
            "idle_stop",
            Kind::Span { min: 100, max: DAY },
            "\"10m\"",
            "\"1h\"",
            "A child that nobody used for this long is stopped.",
        ),
        defaulted(
            "restart_wait",
            Kind::Span { min: 10, max: HOUR },
            "\"1s\"",
            "\"5s\"",
            "How long after a child that failed the next one starts. It doubles with each failure up to `restart_wait_max`, and is this again after a child that ran for a minute.",
        ),
        defaulted(
            "restart_wait_max",
            Kind::Span { min: 10, max: DAY },
            "\"1m\"",
            "\"5m\"",
            "The longest wait before the next start.",
        ),
        defaulted(
            "children_max",
            Kind::Count { min: 1, max: 10_000 },
            "64",
            "8",
            "Children of this server at once. The next call that needs one more is refused.",
        ),
        defaulted(
            "children_per_caller_max",
            Kind::Count { min: 1, max: 10_000 },
            "8",
            "2",
            "Children of this server that one caller has at once. The next call that needs one more is refused.",
        ),
        TOOLS,
        PROMPTS,
        RESOURCES,
    ]),
    choices: &[],
};

pub(super) static URL: Section = Section {
    at: "upstream.<name> with `url`",
    doc: "An MCP server that Tollhouse connects to over HTTP.",
    keys: Keys::Here(&[
        required(
            "url",
            Kind::Text(&form::SERVER_ADDRESS),
            "\"https://tracker.example.com/mcp\"",
            "Its endpoint. Nothing that the server says leads to another scheme, host or port.",
        ),
        defaulted(
            "transport",
            Kind::Word {
                what: "transport",
                words: &["auto", "streamable", "sse"],
            },
            "\"auto\"",
            "\"streamable\"",
            "How MCP travels over HTTP: `streamable`, or `sse`, the older way with two endpoints. `auto` tries the first, then the second.",
        ),
        optional(
            "network",
            Kind::Table(&NETWORK),
            "{ allow = [\"10.20.0.0/16\"] }",
            "Where it may be, beyond the public internet.",
        ),
        optional(
            "tls",
            Kind::Table(&TLS),
            "{ ca = \"ca.pem\" }",
            "Whom to trust, beyond the system's authorities.",
        ),
        optional(
            "headers",
            Kind::Named {
                name: &form::HEADER_NAME,
                of: &Kind::Text(&form::HEADER_VALUE),
                min: 0,
                max: 64,
            },
            "{ \"X-Env\" = \"prod\" }",
            "Headers on every request. Not for credentials.",
        ),
        optional(
            "credential",
            Kind::Table(&CREDENTIAL),
            "{ bearer = \"env:TRACKER_TOKEN\" }",
            "How Tollhouse identifies itself to the server, on every request. The caller's own credential is never sent on.",
        ),
        REVISION,
        SHARING,
        MAY_ASK,
        DEADLINE,
        TOOLS,
        PROMPTS,
        RESOURCES,
    ]),
    choices: &[],
};

static SANDBOX: Section = Section {
    at: "upstream.<name>.sandbox",
    doc: "What a child may reach: nothing but this, and what programs need to start (`/usr`, `/lib`, `/proc`, a few files of `/etc`, for reading; `/dev/null` and the like). Linux only, with Landlock and seccomp.",
    keys: Keys::Here(&[
        defaulted(
            "read",
            Kind::List {
                of: &Kind::Text(&form::PATH),
                min: 0,
                max: 256,
            },
            "[]",
            "[\"/srv/docs\"]",
            "Files and folders that it may read, with all below them, and programs in them that it may run.",
        ),
        defaulted(
            "write",
            Kind::List {
                of: &Kind::Text(&form::PATH),
                min: 0,
                max: 256,
            },
            "[]",
            "[\"/var/lib/files\"]",
            "Files and folders that it may read and change, with all below them.",
        ),
        defaulted(
            "network",
            Kind::Truth,
            "false",
            "true",
            "Whether it may open sockets. Without, it has none, not even to other programs of this machine; pairs of sockets between its own processes work.",
        ),
        defaulted(
            "allow_degraded",
            Kind::Truth,
            "false",
            "true",
            "Starts it also where the kernel can do only a part of this, or nothing. Otherwise it is not started there.",
        ),
    ]),
    choices: &[],
};

static SERVER_TOOL: Section = Section {
    at: "upstream.<name>.tool.<name> of an MCP server",
    doc: "One tool of an MCP server that agents may call. Its public name is the name of the upstream, `_`, and the name here; together at most 64 characters.",
    keys: Keys::Here(&[
        optional(
            "tool",
            Kind::Text(&form::SERVER_TOOL),
            "\"read_file\"",
            "The name by which the server knows it. Default: the name here.",
        ),
        required(
            "class",
            Kind::Word {
                what: "class",
                words: CLASSES,
            },
            "\"read\"",
            "What a call can do to the world, as the reviewer judges it. What the server says of itself proves nothing.",
        ),
        optional(
            "title",
            Kind::Text(&form::TITLE),
            "\"Read a file\"",
            "The name that people see. Default: what the server calls it, as it was approved.",
        ),
        optional(
            "description",
            Kind::Text(&form::DESCRIPTION),
            "\"The text of one file below /srv/docs.\"",
            "What models read, in place of the server's own words. Default: the description that was approved.",
        ),
        RESOURCE_KEY,
        OWNER_KEY,
        ROWS_KEY,
        FACTS_KEY,
        RETURNS_KEY,
        TIMEOUT_KEY,
        CONSENT_KEY,
        APPROVAL_KEY,
    ]),
    choices: &[],
};

/// What is got or read has one of these.
const READING: &[&str] = &["read", "sensitive-read"];
const READING_CLASS: Key = defaulted(
    "class",
    Kind::Word {
        what: "class",
        words: READING,
    },
    "\"read\"",
    "\"sensitive-read\"",
    "How sensitive what it gives is, as the reviewer judges it.",
);

static SERVER_PROMPT: Section = Section {
    at: "upstream.<name>.prompt.<name>",
    doc: "One prompt of an MCP server that agents may get. Its public name, also for policies, is the name of the upstream, `_`, and the name here; tools, prompts and resources of an upstream have one space of names.",
    keys: Keys::Here(&[
        optional(
            "prompt",
            Kind::Text(&form::SERVER_PROMPT),
            "\"code_review\"",
            "The name by which the server knows it. Default: the name here.",
        ),
        READING_CLASS,
        optional(
            "title",
            Kind::Text(&form::TITLE),
            "\"Review a change\"",
            "The name that people see. Default: what the server calls it, as it was approved.",
        ),
        optional(
            "description",
            Kind::Text(&form::DESCRIPTION),
            "\"Asks for a review of one change.\"",
            "What people and models read, in place of the server's own words. Default: the description that was approved.",
        ),
        RESOURCE_KEY,
        OWNER_KEY,
        FACTS_KEY,
        TIMEOUT_KEY,
    ]),
    choices: &[],
};

static SERVER_RESOURCE: Section = Section {
    at: "upstream.<name>.resource.<name>",
    doc: "One resource of an MCP server that agents may read, or a template of such. It is known to agents by its URI; the name of the upstream, `_`, and the name here are its name for policies and in the ledger. The arguments of a read are `uri` and, of a template, its variables.",
    keys: Keys::Here(&[
        optional(
            "uri",
            Kind::Text(&form::RESOURCE_URI),
            "\"file:///srv/docs/start.md\"",
            "The URI of one resource, as the server spells it.",
        ),
        optional(
            "template",
            Kind::Text(&form::RESOURCE_URI),
            "\"file:///srv/docs/{name}\"",
            "A template of URIs (RFC 6570), as the server lists it. What stands for a variable is one segment of a path, unless the template says `{+name}`; it never leads out of the folder that it stands in.",
        ),
        READING_CLASS,
        optional(
            "title",
            Kind::Text(&form::TITLE),
            "\"The manual\"",
            "The name that people see. Default: what the server calls it, as it was approved.",
        ),
        optional(
            "description",
            Kind::Text(&form::DESCRIPTION),
            "\"The manual, page by page.\"",
            "What people and models read, in place of the server's own words. Default: the description that was approved.",
        ),
        RESOURCE_KEY,
        OWNER_KEY,
        FACTS_KEY,
        TIMEOUT_KEY,
    ]),
    choices: &[Choice {
        keys: &["uri", "template"],
        required: true,
    }],
};
