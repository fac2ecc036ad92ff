//! The table of keys: every key that a configuration can have. A table, with no logic but the rows of `[limits]`.

mod approval;
mod credential;
mod probe;
mod server;
mod tool;
mod work;

use std::sync::LazyLock;

use model::{LIMITS, Unit};

use crate::amount;
use crate::form;
use crate::key::{Case, Choice, Key, Keys, Kind, Section, defaulted, optional, required};
use credential::CREDENTIAL;
use probe::PROBE;

#[cfg(test)]
pub(crate) use tool::CLASSES;
use tool::{NESTINGS, SERVER, TOOL};

/// The name of the table of limits.
pub(crate) const LIMITS_AT: &str = "limits";

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The longest deadline that any tool can set, whatever `call_timeout_max` says.
const TIMEOUT: Kind = Kind::Span { min: 1, max: DAY };

pub(crate) static ROOT: Section = Section {
    at: "",
    doc: "Where Tollhouse listens, under which URL it is known, and where it keeps its records.",
    keys: Keys::Here(&[
        defaulted(
            "listen",
            Kind::Text(&form::LISTEN),
            "\"127.0.0.1:7300\"",
            "\"[::1]:7300\"",
            "The address and port for agents. A name is refused, because it can mean several addresses. Beyond this machine, callers must be able to identify themselves.",
        ),
        optional(
            "public_url",
            Kind::Text(&form::PUBLIC_URL),
            "\"https://mcp.example.com\"",
            "The URL under which agents reach this server, also behind a proxy. Default: `http://` and the listen address. With `/mcp` behind it, it is the resource that tokens must be made for.",
        ),
        defaulted(
            "store",
            Kind::Text(&form::STORE),
            "\"sqlite:tollhouse.db\"",
            "\"postgres://tollhouse@db.internal/tollhouse\"",
            "The database of Tollhouse: ledger, keys, approvals. A SQLite file, relative to the folder of this file, or a PostgreSQL server.",
        ),
        optional(
            "store_bytes_max",
            Kind::Size {
                min: 1 << 20,
                max: 1 << 50,
            },
            "\"1GiB\"",
            "The size past which the SQLite file does not grow. A full store takes no record, and without a record there is no call.",
        ),
        defaulted(
            "allowed_hosts",
            Kind::List {
                of: &Kind::Text(&form::HOST),
                min: 0,
                max: 100,
            },
            "[]",
            "[\"mcp.example.com\"]",
            "Values of the `Host` header that are answered, beyond the listen address, the names of this machine and the host of `public_url`.",
        ),
        defaulted(
            "allowed_origins",
            Kind::List {
                of: &Kind::Text(&form::ORIGIN),
                min: 0,
                max: 100,
            },
            "[]",
            "[\"https://app.example.com\"]",
            "Web origins whose pages may call. Without any, a request from a web page is refused.",
        ),
        defaulted(
            "danger_clear_text_credential",
            Kind::Truth,
            "false",
            "true",
            "Allows credentials that stand in this file in clear. Whoever reads the file can then use them.",
        ),
        optional("log", Kind::Table(&LOG), "", "What is written to standard error."),
        optional(
            "stdio",
            Kind::Table(&STDIO),
            "",
            "Who calls over standard input and output.",
        ),
        optional(
            "view",
            Kind::Named {
                name: &form::UPSTREAM_NAME,
                of: &Kind::Table(&VIEW),
                min: 0,
                max: 1_000,
            },
            "",
            "Endpoints that show some tools.",
        ),
        optional(
            "caller",
            Kind::Named {
                name: &form::CALLER_NAME,
                of: &Kind::Table(&CALLER),
                min: 0,
                max: 10_000,
            },
            "",
            "Callers that this file names.",
        ),
        optional(
            "identity",
            Kind::Table(&IDENTITY),
            "",
            "How callers over HTTP show who they are.",
        ),
        optional("policy", Kind::Table(&POLICY), "", "The rules."),
        optional("ledger", Kind::Table(&LEDGER), "", "How records are written."),
        optional(
            "source",
            Kind::Named {
                name: &form::SOURCE_NAME,
                of: &Kind::Table(&SOURCE),
                min: 0,
                max: 100,
            },
            "",
            "Where facts come from.",
        ),
        required(
            "upstream",
            Kind::Named {
                name: &form::UPSTREAM_NAME,
                of: &Kind::Cases(&[
                    Case {
                        by: "openapi",
                        section: &UPSTREAM,
                    },
                    Case {
                        by: "command",
                        section: &server::COMMAND,
                    },
                    Case {
                        by: "url",
                        section: &server::URL,
                    },
                ]),
                min: 1,
                max: 1_000,
            },
            "",
            "What is behind the gate: services with an OpenAPI document, and MCP servers. At least one.",
        ),
        optional(
            "limits",
            Kind::Table(&LIMITS_SECTION),
            "",
            "How much of everything.",
        ),
    ]),
    choices: &[],
};

static LOG: Section = Section {
    at: "log",
    doc: "What is written to standard error. Records of calls are in the ledger, not here.",
    keys: Keys::Here(&[
        defaulted(
            "level",
            Kind::Word {
                what: "log level",
                words: &["error", "warn", "info", "debug", "trace"],
            },
            "\"info\"",
            "\"debug\"",
            "The least important message that is written.",
        ),
        defaulted(
            "format",
            Kind::Word {
                what: "log format",
                words: &["text", "json"],
            },
            "\"text\"",
            "\"json\"",
            "For people, or one JSON object a line.",
        ),
    ]),
    choices: &[],
};

static STDIO: Section = Section {
    at: "stdio",
    doc: "Over standard input and output there is one caller: the one that is named here. Without this section, that way in is closed.",
    keys: Keys::Here(&[
        required(
            "caller",
            Kind::Text(&form::CALLER_NAME),
            "\"ada\"",
            "The name of a caller, as in `[caller.ada]`.",
        ),
        optional(
            "upstream",
            Kind::Text(&form::UPSTREAM_NAME),
            "\"files\"",
            "Shows the tools of this upstream alone, by their names without its own in front. Default: all tools.",
        ),
    ]),
    choices: &[],
};

static VIEW: Section = Section {
    at: "view.<name>",
    doc: "An endpoint of its own, `/mcp/view/<name>`, that shows some tools, prompts and resources and no other. It gives no right: who may call what is decided by the same rules. Each upstream also has one, `/mcp/<upstream>`, on which its tools and prompts have their names without its own in front.",
    keys: Keys::Here(&[required(
        "tools",
        Kind::List {
            of: &Kind::Text(&form::TOOL_NAME),
            min: 1,
            max: 10_000,
        },
        "[\"billing_getInvoiceStatus\", \"files_read\"]",
        "The public names of the tools, and of prompts and resources.",
    )]),
    choices: &[],
};

static CALLER: Section = Section {
    at: "caller.<name>",
    doc: "A caller that this file names, for API keys and for standard input and output. What it may do is decided by the policy, from these facts.",
    keys: Keys::Here(&[
        optional(
            "subject",
            Kind::Text(&form::SUBJECT),
            "\"ada\"",
            "Who it is. Default: the name of the caller.",
        ),
        optional(
            "tenant",
            Kind::Text(&form::TENANT),
            "\"north\"",
            "The organisation that it belongs to.",
        ),
        defaulted(
            "roles",
            Kind::List {
                of: &Kind::Text(&form::ROLE),
                min: 0,
                max: 1_000,
            },
            "[]",
            "[\"member\"]",
            "Its roles or groups.",
        ),
        optional(
            "client",
            Kind::Text(&form::CLIENT),
            "\"ide\"",
            "The client program that it uses.",
        ),
        optional(
            "claims",
            Kind::Named {
                name: &form::CLAIM_NAME,
                of: &Kind::OneOrMany {
                    of: &form::CLAIM_VALUE,
                    max: 1_000,
                },
                min: 0,
                max: 64,
            },
            "{ accounts = [\"a1\", \"a2\"] }",
            "Further facts, as a token would carry them.",
        ),
    ]),
    choices: &[],
};

static IDENTITY: Section = Section {
    at: "identity",
    doc: "How callers over HTTP show who they are.",
    keys: Keys::Here(&[
        defaulted(
            "api_keys",
            Kind::Truth,
            "true",
            "false",
            "Whether API keys are accepted. A key stands for a caller of this file.",
        ),
        optional(
            "issuer",
            Kind::Named {
                name: &form::ISSUER_NAME,
                of: &Kind::Table(&ISSUER),
                min: 0,
                max: 100,
            },
            "",
            "Issuers of access tokens.",
        ),
    ]),
    choices: &[],
};

pub(crate) const ALGORITHMS: &[&str] = &[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "HS256", "HS384",
    "HS512",
];

static ISSUER: Section = Section {
    at: "identity.issuer.<name>",
    doc: "An issuer of access tokens (JWT): any OAuth or OpenID Connect server.",
    keys: Keys::Here(&[
        required(
            "issuer",
            Kind::Text(&form::ISSUER_URL),
            "\"https://idp.example.com\"",
            "The issuer, exactly as its tokens spell it in `iss`.",
        ),
        optional(
            "audience",
            Kind::OneOrMany {
                of: &form::AUDIENCE,
                max: 16,
            },
            "\"https://mcp.example.com/mcp\"",
            "What its tokens must be made for; one of these must be in `aud`. Default: the resource, which is `public_url` with `/mcp` behind it.",
        ),
        defaulted(
            "algorithms",
            Kind::List {
                of: &Kind::Word {
                    what: "signature algorithm",
                    words: ALGORITHMS,
                },
                min: 1,
                max: 12,
            },
            "[\"RS256\", \"PS256\", \"ES256\", \"ES384\", \"EdDSA\"]",
            "[\"ES256\"]",
            "The signature algorithms that are accepted. The HS algorithms only with a key set in a file.",
        ),
        required(
            "key_set",
            Kind::Text(&form::KEY_SET),
            "\"https://idp.example.com/jwks.json\"",
            "Its public keys (JWKS): a URL, or `file:` and a path.",
        ),
        defaulted(
            "key_set_max_age",
            Kind::Span {
                min: 10 * SECOND,
                max: DAY,
            },
            "\"10m\"",
            "\"1h\"",
            "How long a key set from a URL is used before it is read again.",
        ),
        defaulted(
            "leeway",
            Kind::Span {
                min: 0,
                max: 5 * MINUTE,
            },
            "\"30s\"",
            "\"10s\"",
            "How far the clock of the issuer may be off.",
        ),
        defaulted(
            "scopes_required",
            Kind::List {
                of: &Kind::Text(&form::SCOPE_NAME),
                min: 0,
                max: 64,
            },
            "[]",
            "[\"invoices\"]",
            "Scopes that a token must have, all of them.",
        ),
        optional(
            "claims",
            Kind::Table(&CLAIMS),
            "{ tenant = \"org_id\", roles = \"groups\" }",
            "Which claims mean what.",
        ),
        optional(
            "network",
            Kind::Table(&NETWORK),
            "{ allow = [\"10.0.0.0/8\"] }",
            "Where the key set may be, beyond the public internet.",
        ),
        optional(
            "tls",
            Kind::Table(&TLS),
            "{ ca = \"ca.pem\" }",
            "Whom to trust, beyond the system's authorities.",
        ),
    ]),
    choices: &[],
};

static CLAIMS: Section = Section {
    at: "identity.issuer.<name>.claims",
    doc: "Which claims of a token mean what. A name with dots is a path into nested claims, unless a claim is called exactly so.",
    keys: Keys::Here(&[
        defaulted(
            "subject",
            Kind::Text(&form::CLAIM_NAME),
            "\"sub\"",
            "\"sub\"",
            "Who calls.",
        ),
        optional(
            "tenant",
            Kind::Text(&form::CLAIM_NAME),
            "\"org_id\"",
            "The organisation of the caller.",
        ),
        optional(
            "roles",
            Kind::Text(&form::CLAIM_NAME),
            "\"groups\"",
            "Roles or groups: a list, or words with spaces between.",
        ),
        optional(
            "client",
            Kind::Text(&form::CLAIM_NAME),
            "\"azp\"",
            "The client program.",
        ),
        defaulted(
            "extra",
            Kind::List {
                of: &Kind::Text(&form::CLAIM_NAME),
                min: 0,
                max: 64,
            },
            "[]",
            "[\"accounts\"]",
            "Further claims that `owner = { claims = … }` uses.",
        ),
    ]),
    choices: &[],
};

static NETWORK: Section = Section {
    at: "upstream.<name>.network",
    doc: "Addresses beyond the public internet that may be connected to. Without it, private, loopback and link-local addresses are refused, whatever a name resolves to. The same table stands under an issuer and under `oauth2`.",
    keys: Keys::Here(&[required(
        "allow",
        Kind::List {
            of: &Kind::Text(&form::NETWORK),
            min: 1,
            max: 100,
        },
        "[\"10.20.0.0/16\"]",
        "Networks or single addresses.",
    )]),
    choices: &[],
};

static TLS: Section = Section {
    at: "upstream.<name>.tls",
    doc: "Whom to trust in a TLS handshake. Certificates are always checked; there is no switch against it. The same table stands under an issuer and under `oauth2`.",
    keys: Keys::Here(&[required(
        "ca",
        Kind::Text(&form::PATH),
        "\"ca.pem\"",
        "A file of certificates (PEM) that are trusted in addition to the system's.",
    )]),
    choices: &[],
};

static POLICY: Section = Section {
    at: "policy",
    doc: "The rules. What no rule permits is refused.",
    keys: Keys::Here(&[defaulted(
        "folder",
        Kind::Text(&form::PATH),
        "\"policy\"",
        "\"policy\"",
        "The folder of the rules: every `*.cedar` file in it, in the order of their names.",
    )]),
    choices: &[],
};

static LEDGER: Section = Section {
    at: "ledger",
    doc: "How safely a record is written before a call goes on: `process` survives a killed process, `disk` also a power failure.",
    keys: Keys::Here(&[
        defaulted(
            "read",
            Kind::Word {
                what: "durability",
                words: &["process", "disk"],
            },
            "\"process\"",
            "\"disk\"",
            "For calls that change nothing.",
        ),
        defaulted(
            "write",
            Kind::Word {
                what: "durability",
                words: &["process", "disk"],
            },
            "\"disk\"",
            "\"disk\"",
            "For calls that change state. `process` only together with `danger_write_without_disk`.",
        ),
        defaulted(
            "danger_write_without_disk",
            Kind::Truth,
            "false",
            "true",
            "Allows `write = \"process\"`: after a power failure, a change can be missing from the ledger.",
        ),
        defaulted(
            "checkpoint_every",
            Kind::Count {
                min: 1,
                max: 1_000_000,
            },
            "1000",
            "100",
            "A signed checkpoint is written after this many entries.",
        ),
    ]),
    choices: &[],
};

static SOURCE: Section = Section {
    at: "source.<name>",
    doc: "A source of facts: who owns a thing, who is a member. It is never the call that is being protected.",
    keys: Keys::Here(&[
        optional(
            "sql",
            Kind::Text(&form::STORE),
            "\"sqlite:directory.db\"",
            "A database that is asked with prepared queries, in a read-only session.",
        ),
        optional(
            "file",
            Kind::Text(&form::DOCUMENT_PATH),
            "\"owners.json\"",
            "A JSON file of owners: `{\"Invoice\": {\"inv-1\": \"north\"}}`.",
        ),
    ]),
    choices: &[Choice {
        keys: &["sql", "file"],
        required: true,
    }],
};

static UPSTREAM: Section = Section {
    at: "upstream.<name> with `openapi`",
    doc: "A service behind the gate that an OpenAPI document describes. The name becomes the first part of its tools' names. Only operations that are listed as tools can be called.",
    keys: Keys::Here(&[
        required(
            "openapi",
            Kind::Text(&form::DOCUMENT_PATH),
            "\"billing.yaml\"",
            "The OpenAPI document, JSON or YAML: version 2.0, 3.0, 3.1 or 3.2.",
        ),
        optional(
            "openapi_root",
            Kind::Text(&form::PATH),
            "\"spec\"",
            "The folder that relative references of the document stay inside of. Symbolic links in it are not followed. Default: the folder of the document.",
        ),
        defaulted(
            "overlays",
            Kind::List {
                of: &Kind::Text(&form::PATH),
                min: 0,
                max: 16,
            },
            "[]",
            "[\"billing.overlay.yaml\"]",
            "Overlays (OpenAPI Overlay 1.0 or 1.1) that are applied to the document in this order before it is read.",
        ),
        optional(
            "references",
            Kind::Table(&REFERENCES),
            "{ from = [\"https://schemas.example.com/common/\"] }",
            "Servers that files of the document may be fetched from. Without it, a reference to a server blocks the operations that need it.",
        ),
        required(
            "destination",
            Kind::Text(&form::DESTINATION),
            "\"https://billing.internal:8443/api\"",
            "Where the service is. Scheme, host and port are always from here, whatever the document says in `servers`.",
        ),
        optional(
            "network",
            Kind::Table(&NETWORK),
            "{ allow = [\"10.20.0.0/16\"] }",
            "Where the service may be, beyond the public internet.",
        ),
        optional(
            "tls",
            Kind::Table(&TLS),
            "{ ca = \"ca.pem\" }",
            "Whom to trust, beyond the system's authorities.",
        ),
        defaulted(
            "redirects",
            Kind::Word {
                what: "redirect rule",
                words: &["none", "same-origin"],
            },
            "\"none\"",
            "\"same-origin\"",
            "Whether redirects of reading calls are followed, and then only to the same scheme, host and port.",
        ),
        optional(
            "timeout",
            TIMEOUT,
            "\"5s\"",
            "The deadline of calls whose tool sets none.",
        ),
        defaulted(
            "nesting",
            Kind::Word {
                what: "way of nesting",
                words: NESTINGS,
            },
            "\"refuse\"",
            "\"indexed\"",
            "How this API writes values inside of `deepObject`, which OpenAPI does not define: `indexed` is `a[b][c]` and `a[0]`, `unindexed` is `a[b][c]` and `a[]`. With `refuse`, operations that need it are blocked.",
        ),
        defaulted(
            "input_bytes_max",
            Kind::Size {
                min: 2 << 10,
                max: 64 << 10,
            },
            "\"64KiB\"",
            "\"4KiB\"",
            "The budget of the input schema of each tool. In a larger one, texts are cut short, as they are beyond 4 KiB in any case, then optional fields are left out, with a note; what must be given stays, up to 64 KiB. It holds for each tool alone, so that a tool stays as it is when another one is enabled.",
        ),
        defaulted(
            "output_bytes_max",
            Kind::Size {
                min: 256,
                max: 64 << 10,
            },
            "\"2KiB\"",
            "\"1KiB\"",
            "The budget of the output schema of each tool that has no `returns`: an answer is described no deeper, and without words where they do not fit.",
        ),
        optional(
            "server",
            Kind::Table(&SERVER),
            "{ variables = { version = \"v2\" } }",
            "Takes the path before the operations from a server of the document. Without it, requests begin at `destination`.",
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
            "{ bearer = \"env:BILLING_TOKEN\" }",
            "How Tollhouse identifies itself to the service, on every request. An operation for which the document asks for something else is no tool. The caller's own credential is never sent on.",
        ),
        optional(
            "credentials",
            Kind::Named {
                name: &form::SCHEME_NAME,
                of: &Kind::Table(&CREDENTIAL),
                min: 1,
                max: 64,
            },
            "{ service = { bearer = \"env:BILLING_TOKEN\" } }",
            "The same, by the security schemes of the document: each request gets those that its operation asks for and no other. An operation whose requirement none of them meets is no tool.",
        ),
        optional(
            "blocker",
            Kind::Named {
                name: &form::BLOCKER_CODE,
                of: &Kind::Table(&BLOCKER),
                min: 0,
                max: 256,
            },
            "{ any = { owner = \"the billing team\" }, schema = { owner = \"Grace Hopper\", due = \"2027-01-31\" } }",
            "Who clears what is in the way of operations, by the codes that `tollhouse review` gives, by their part before the dot, or for `any`. The most exact one counts. A name clears nothing.",
        ),
        optional(
            "probe",
            Kind::Table(&PROBE),
            "",
            "What `tollhouse probe` may call, and where.",
        ),
        optional(
            "tool",
            Kind::Named {
                name: &form::TOOL_NAME,
                of: &Kind::Table(&TOOL),
                min: 0,
                max: 100_000,
            },
            "",
            "The operations that are tools.",
        ),
    ]),
    choices: &[Choice {
        keys: &["credential", "credentials"],
        required: false,
    }],
};

static BLOCKER: Section = Section {
    at: "upstream.<name>.blocker.<name>",
    doc: "Who clears blockers of one kind, and until when.",
    keys: Keys::Here(&[
        required(
            "owner",
            Kind::Text(&form::REASON),
            "\"the billing team\"",
            "A person or a team.",
        ),
        optional(
            "due",
            Kind::Text(&form::DATE),
            "\"2027-01-31\"",
            "The last day, in UTC, on which it may still be in the way. Afterwards `tollhouse review` says that it is overdue.",
        ),
    ]),
    choices: &[],
};

static REFERENCES: Section = Section {
    at: "upstream.<name>.references",
    doc: "Servers that files of the document may be fetched from, when Tollhouse starts. No redirect is followed, and no credential is sent.",
    keys: Keys::Here(&[
        required(
            "from",
            Kind::List {
                of: &Kind::Text(&form::REFERENCE_URL),
                min: 1,
                max: 32,
            },
            "[\"https://schemas.example.com/common/\"]",
            "URLs: one that ends with `/` allows everything below it, any other one file.",
        ),
        optional(
            "network",
            Kind::Table(&NETWORK),
            "{ allow = [\"10.20.0.0/16\"] }",
            "Where these servers may be, beyond the public internet.",
        ),
        optional(
            "tls",
            Kind::Table(&TLS),
            "{ ca = \"ca.pem\" }",
            "Whom to trust, beyond the system's authorities.",
        ),
    ]),
    choices: &[],
};

static LIMITS_SECTION: Section = Section {
    at: LIMITS_AT,
    doc: "How much of something is taken before more is refused. None can be switched off.",
    keys: Keys::Limits,
    choices: &[],
};

/// The rows of `[limits]`, made from `model::LIMITS`.
pub(crate) fn limits() -> &'static [Key] {
    static DEFAULTS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let text = |unit, value: u64| match unit {
            Unit::Bytes => format!("\"{}\"", amount::bytes_text(value)),
            Unit::Count => value.to_string(),
            Unit::Millis => format!("\"{}\"", amount::millis_text(value)),
        };
        LIMITS
            .iter()
            .map(|limit| text(limit.unit, limit.default))
            .collect()
    });
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let row = |(limit, default): (&'static model::LimitKey, &'static String)| {
            let (min, max) = (limit.min, limit.max);
            let kind = match limit.unit {
                Unit::Bytes => Kind::Size { min, max },
                Unit::Count => Kind::Count { min, max },
                Unit::Millis => Kind::Span { min, max },
            };
            defaulted(limit.name, kind, default, default, limit.doc)
        };
        LIMITS.iter().zip(DEFAULTS.iter()).map(row).collect()
    });
    &KEYS
}
