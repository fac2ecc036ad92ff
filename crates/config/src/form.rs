//! The forms that a text can have: what it is called, what a right one looks like, and who judges it.
//!
//! A list. The judges are in `text.rs`, `address.rs` and `query.rs`.

use crate::address;
use crate::argument::Given;
use crate::fault::{Wrong, wrong};
use crate::query;
use crate::text;

/// Whether a text may stand elsewhere and only be pointed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indirect {
    /// What is written is meant.
    No,
    /// `env:NAME` is the value of a variable. A path, whose `file:` would be misread.
    Variable,
    /// `env:NAME` is the value of a variable, `file:PATH` the content of a file.
    VariableOrFile,
}

/// A value that stands in the file, or the place where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<'t> {
    Here(&'t str),
    Variable(&'t str),
    File(&'t str),
}

/// One form of text.
#[derive(Debug)]
pub(crate) struct Form {
    /// What it is, as `issuer URL`.
    pub(crate) what: &'static str,
    /// What a right one looks like; completes "write …".
    pub(crate) expected: &'static str,
    /// A regular expression that every right text matches, for editors; the judge decides.
    pub(crate) pattern: Option<&'static str>,
    /// Says what is wrong with a text.
    pub(crate) judge: fn(&str) -> Result<(), Wrong>,
    pub(crate) indirect: Indirect,
    /// A URL, of which faults leave out what may be secret.
    pub(crate) url: bool,
    /// Never shown in a fault.
    pub(crate) hidden: bool,
    /// May not be written in clear.
    pub(crate) credential: bool,
    /// May have several lines, as PEM has.
    pub(crate) lines: bool,
}

impl Form {
    const fn new(
        what: &'static str,
        expected: &'static str,
        pattern: Option<&'static str>,
        judge: fn(&str) -> Result<(), Wrong>,
    ) -> Self {
        Self {
            what,
            expected,
            pattern,
            judge,
            indirect: Indirect::No,
            url: false,
            hidden: false,
            credential: false,
            lines: false,
        }
    }

    const fn indirect(mut self, indirect: Indirect) -> Self {
        self.indirect = indirect;
        self
    }

    const fn url(mut self) -> Self {
        self.url = true;
        self
    }

    const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    const fn credential(mut self) -> Self {
        self.credential = true;
        self.hidden = true;
        self.indirect = Indirect::VariableOrFile;
        self
    }

    const fn lines(mut self) -> Self {
        self.lines = true;
        self
    }

    /// Tells `env:NAME` and `file:PATH` from a value that stands there itself, and judges what is there.
    pub(crate) fn written<'t>(&self, text: &'t str) -> Result<Written<'t>, Wrong> {
        match (self.indirect, text.split_once(':')) {
            (Indirect::Variable | Indirect::VariableOrFile, Some(("env", name))) => {
                text::variable(name)?;
                Ok(Written::Variable(name))
            }
            (Indirect::VariableOrFile, Some(("file", path))) => match text::path(path) {
                Ok(()) => Ok(Written::File(path)),
                Err(path) => Err(wrong(format!("has a path behind `file:` that {}", path.problem))
                    .expected("file:PATH, as file:/run/secrets/billing")),
            },
            (Indirect::No | Indirect::Variable | Indirect::VariableOrFile, _) => {
                (self.judge)(text)?;
                Ok(Written::Here(text))
            }
        }
    }
}

// === names ===

macro_rules! names {
    ($( $form:ident: $what:literal, $expected:literal, $pattern:expr, $kind:ty; )*) => {
        $( pub(crate) static $form: Form = Form::new($what, $expected, $pattern, |text| {
            <$kind>::parse(text).map(drop).map_err(|fault| text::of_name(&fault))
        }); )*
    };
}

const WORD: &str = "^[A-Za-z][A-Za-z0-9_-]{0,63}$";

names! {
    UPSTREAM_NAME: "upstream name", "a lower-case letter, then lower-case letters, digits and `-`, at most 32", Some("^[a-z][a-z0-9-]{0,31}$"), model::UpstreamName;
    CALLER_NAME: "caller name", "a letter, then letters, digits, `_` and `-`, at most 64", Some(WORD), model::CallerName;
    SOURCE_NAME: "source name", "a letter, then letters, digits, `_` and `-`, at most 64", Some(WORD), model::SourceName;
    ISSUER_NAME: "issuer name", "a letter, then letters, digits, `_` and `-`, at most 64", Some(WORD), model::IssuerName;
    TOOL_NAME: "tool name", "a letter or `_`, then letters, digits, `_` and `-`, at most 64", Some("^[A-Za-z_][A-Za-z0-9_-]{0,63}$"), model::ToolName;
    RESOURCE_TYPE: "resource type", "a letter, then letters and digits, at most 64, as `Invoice`", Some("^[A-Za-z][A-Za-z0-9]{0,63}$"), model::ResourceType;
    SUBJECT: "subject", "printable characters, at most 256", None, model::Subject;
    TENANT: "tenant", "printable characters without spaces, at most 256", None, model::TenantId;
    ROLE: "role", "printable characters, at most 256", None, model::Role;
    CLIENT: "client id", "printable characters, at most 512", None, model::ClientId;
}

// === addresses ===

pub(crate) static LISTEN: Form = Form::new(
    "listen address",
    "ADDRESS:PORT, as 127.0.0.1:7300 or [::1]:7300",
    Some(r"^(\[[0-9A-Fa-f:.%]+\]|[0-9.]+):[0-9]{1,5}$"),
    |text| address::listen(text).map(drop),
)
.indirect(Indirect::Variable);

pub(crate) static PUBLIC_URL: Form = Form::new(
    "public URL",
    "a URL without a slash at its end, as https://mcp.example.com",
    Some("^https?://[^?#]+[^/?#]$"),
    |text| address::public_url(text).map(drop),
)
.indirect(Indirect::Variable)
.url();

pub(crate) static HOST: Form = Form::new(
    "host",
    "a host, as `mcp.example.com` or `mcp.example.com:8443`",
    Some(r"^[^/@\s]+$"),
    address::host,
)
.url();

pub(crate) static ORIGIN: Form = Form::new(
    "origin",
    "an origin, as `https://app.example.com`",
    Some(r"^[a-z][a-z0-9+.-]*://[^/?#@\s]+$"),
    address::origin,
)
.url();

pub(crate) static DESTINATION: Form = Form::new(
    "destination",
    "a URL without query, as https://billing.internal:8443/api",
    Some("^https?://[^?#]+$"),
    address::destination,
)
.indirect(Indirect::VariableOrFile)
.url();

pub(crate) static REFERENCE_URL: Form = Form::new(
    "URL",
    "a URL without query, as https://schemas.example.com/common/",
    Some("^https?://[^?#]+$"),
    address::destination,
)
.url();

pub(crate) static ISSUER_URL: Form = Form::new(
    "issuer URL",
    "the `iss` of its tokens, as https://idp.example.com",
    Some("^https?://[^?#]+$"),
    address::issuer,
)
.url();

pub(crate) static KEY_SET: Form = Form::new(
    "key set",
    "a URL or a file, as https://idp.example.com/jwks.json or file:keys.json",
    Some("^(https?://|file:).+$"),
    |text| address::key_set(text).map(drop),
)
.url();

pub(crate) static NETWORK: Form = Form::new(
    "network",
    "a network or an address, as 10.20.0.0/16 or fd00::1",
    Some("^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$"),
    |text| address::network(text).map(drop),
);

pub(crate) static STORE: Form = Form::new(
    "database",
    "sqlite:FILE or postgres://USER@HOST/NAME",
    Some("^(sqlite|postgres|postgresql):.+$"),
    |text| address::database(text).map(drop),
)
.indirect(Indirect::VariableOrFile)
.hidden();

pub(crate) static PATH: Form = Form::new(
    "path",
    "a path, relative to the folder of this file or absolute",
    None,
    text::path,
);

pub(crate) static DOCUMENT_PATH: Form = Form::new(
    "path",
    "a path, relative to the folder of this file or absolute",
    None,
    text::path,
)
.indirect(Indirect::Variable);

// === MCP servers ===

pub(crate) static SERVER_ADDRESS: Form = Form::new(
    "URL",
    "the URL of an MCP endpoint, as https://tracker.example.com/mcp",
    Some("^https?://[^#]+$"),
    address::endpoint_of_server,
)
.indirect(Indirect::VariableOrFile)
.url();

pub(crate) static COMMAND_WORD: Form = Form::new(
    "word of a command",
    "the program or one argument, without quotes for a shell",
    None,
    text::command_word,
);

pub(crate) static VARIABLE_NAME: Form = Form::new(
    "variable name",
    "a letter or `_`, then letters, digits and `_`, at most 256",
    Some("^[A-Za-z_][A-Za-z0-9_]{0,255}$"),
    text::variable_name,
);

pub(crate) static VARIABLE_VALUE: Form = Form::new("value", "one line of text", None, text::variable_value)
    .indirect(Indirect::VariableOrFile)
    .hidden();

pub(crate) static REVISION: Form = Form::new(
    "revision",
    "auto, or the date of a revision of MCP",
    Some("^(auto|[0-9]{4}-[0-9]{2}-[0-9]{2})$"),
    text::revision,
);

pub(crate) static SERVER_TOOL: Form = Form::new(
    "tool",
    "the name of a tool, as the server spells it",
    None,
    |text| text::prose(text, 256, false),
);

pub(crate) static SERVER_PROMPT: Form = Form::new(
    "prompt",
    "the name of a prompt, as the server spells it",
    None,
    |text| text::prose(text, 256, false),
);

pub(crate) static RESOURCE_URI: Form = Form::new(
    "URI",
    "a URI, as the server spells it: file:///srv/docs/start.md",
    None,
    text::resource_uri,
);

// === credentials ===

pub(crate) static BEARER: Form = Form::new(
    "bearer token",
    "env:NAME or file:PATH",
    Some(r"^\S+$"),
    text::visible,
)
.credential();
pub(crate) static PASSWORD: Form =
    Form::new("password", "env:NAME or file:PATH", None, text::printable_line).credential();
pub(crate) static API_KEY: Form =
    Form::new("API key", "env:NAME or file:PATH", Some(r"^\S+$"), text::visible).credential();

pub(crate) static CLIENT_SECRET: Form = Form::new(
    "client secret",
    "env:NAME or file:PATH",
    None,
    text::printable_line,
)
.credential();
pub(crate) static PRIVATE_KEY: Form =
    Form::new("private key", "env:NAME or file:PATH", None, text::private_key)
        .credential()
        .lines();

pub(crate) static SCHEME_NAME: Form = Form::new(
    "security scheme",
    "the name of a security scheme of the document",
    None,
    |text| text::prose(text, 128, false),
);

pub(crate) static CLIENT_ID: Form = Form::new("client id", "one line of printable text", None, |text| {
    text::prose(text, 512, false)
})
.indirect(Indirect::VariableOrFile);

pub(crate) static ENDPOINT: Form = Form::new(
    "endpoint",
    "an https URL, as https://idp.example.com/oauth2/token",
    Some("^https?://.+$"),
    |text| address::endpoint(text).map(drop),
)
.indirect(Indirect::Variable)
.url();

pub(crate) static TOKEN_PARAMETER: Form = Form::new(
    "parameter",
    "the name of a further parameter, as `audience`",
    Some("^[A-Za-z0-9_.~-]{1,128}$"),
    text::token_parameter,
);

pub(crate) static PARAMETER_VALUE: Form = Form::new("value", "one line of printable text", None, |text| {
    text::prose(text, 1_024, false)
});

pub(crate) static COOKIE_NAME: Form = Form::new(
    "cookie",
    "the name of a cookie, as `session`",
    Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$"),
    text::cookie_name,
);

pub(crate) static USERNAME: Form = Form::new(
    "user name",
    "a user name without a colon",
    Some("^[^:]+$"),
    text::username,
)
.indirect(Indirect::VariableOrFile);

// === headers and parameters ===

pub(crate) static HEADER_NAME: Form = Form::new(
    "header name",
    "a header name that is not reserved, as X-Env",
    Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$"),
    text::plain_header_name,
);

pub(crate) static KEY_HEADER: Form = Form::new(
    "header name",
    "a header name that is not reserved, as X-API-Key",
    Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$"),
    text::header_name,
);

pub(crate) static HEADER_VALUE: Form = Form::new(
    "header value",
    "visible ASCII, with spaces only inside",
    Some("^[!-~]([ -~]*[!-~])?$"),
    text::header_value,
)
.hidden();

pub(crate) static QUERY_NAME: Form = Form::new(
    "query parameter",
    "a parameter name, as `key`",
    Some("^[A-Za-z0-9_.~-]{1,128}$"),
    text::query_name,
);

// === tools ===

pub(crate) static OPERATION: Form = Form::new(
    "operation",
    "an operationId, or a method and a path, as \"GET /invoices/{id}\"",
    None,
    |text| text::prose(text, 512, false),
);
pub(crate) static TITLE: Form = Form::new("title", "one line of printable text", None, |text| {
    text::prose(text, 128, false)
});
pub(crate) static DESCRIPTION: Form = Form::new("description", "printable text", None, |text| {
    text::prose(text, 4_096, true)
});
pub(crate) static JSON_OBJECT: Form = Form::new(
    "arguments",
    "a JSON object in a text, as '{\"id\":\"x\"}'",
    Some(r"^\{[\s\S]*\}$"),
    text::json_object,
);
pub(crate) static PROBED: Form = Form::new(
    "destination",
    "a URL without query, as http://127.0.0.1:7310",
    Some("^https?://[^?#]+$"),
    address::destination,
)
.url();
pub(crate) static STATE: Form = Form::new("state", "one line of printable text", None, |text| {
    text::prose(text, 64, false)
});
pub(crate) static REASON: Form = Form::new("reason", "one line of printable text", None, |text| {
    text::prose(text, 512, false)
});
pub(crate) static AUDIENCE: Form = Form::new("audience", "the `aud` of its tokens", None, |text| {
    text::prose(text, 512, false)
});
pub(crate) static SCOPE_NAME: Form = Form::new(
    "scope",
    "an OAuth scope, as `invoices:read`",
    Some(r"^[!#-\[\]-~]+$"),
    text::scope_name,
);
pub(crate) static CLAIM_NAME: Form = Form::new(
    "claim",
    "the name of a claim, as `groups` or `realm_access.roles`",
    None,
    |text| text::prose(text, 256, false),
);
pub(crate) static CLAIM_VALUE: Form = Form::new("claim value", "printable text", None, |text| {
    text::prose(text, 1_024, false)
});
pub(crate) static FIELD_NAME: Form = Form::new(
    "field name",
    "letters, digits, `_`, `.` and `-`, at most 64",
    Some("^[A-Za-z0-9_.-]{1,64}$"),
    text::argument,
);
pub(crate) static ARGUMENT: Form = Form::new(
    "argument",
    "the name of an argument, as `tenant`",
    Some("^[A-Za-z0-9_.-]{1,64}$"),
    text::argument,
);
pub(crate) static GIVEN: Form = Form::new(
    "part of a caller or of a call",
    "one of principal.tenant, principal.subject, principal.client, principal.issuer, claims.NAME, call.id",
    Some(r"^(principal\.(tenant|subject|client|issuer)|claims\..+|call\.id)$"),
    |text| Given::parse(text).map(drop),
);
pub(crate) static UNIT: Form = Form::new("unit", "a few words, as `cents (EUR)`", None, |text| {
    text::prose(text, 64, false)
});
pub(crate) static STATUS: Form = Form::new(
    "status",
    "a status code from 400 to 599, or 4xx or 5xx",
    Some("^[45]([0-9][0-9]|xx)$"),
    text::error_status,
);
pub(crate) static MEDIA_TYPE: Form = Form::new(
    "media type",
    "a media type without parameters, as `text/csv`",
    Some("^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$"),
    text::media_type,
);
pub(crate) static SERVER_URL: Form =
    Form::new("server URL", "a server as the document writes it", None, |text| {
        text::prose(text, 1_024, false)
    });
pub(crate) static RESOURCE_ID: Form = Form::new(
    "argument",
    "a top-level argument, as `invoiceId` or `$.invoiceId`",
    Some(r"^(\$\.)?[A-Za-z0-9_.-]{1,64}$"),
    |text| text::resource_id(text).map(drop),
);
pub(crate) static JSON_PATH: Form = Form::new(
    "JSONPath",
    "a path into the answer, as \"$.status\"",
    Some(r"^\$.*$"),
    text::json_path,
);
pub(crate) static FACT_NAME: Form = Form::new(
    "fact name",
    "a letter or `_`, then letters, digits and `_`, at most 64",
    Some("^[A-Za-z_][A-Za-z0-9_]{0,63}$"),
    text::fact_name,
);
pub(crate) static QUERY: Form = Form::new("query", "one SELECT with placeholders $1, $2, …", None, |text| {
    query::placeholders(text).map(drop)
});
pub(crate) static BIND: Form = Form::new(
    "bound value",
    "one of resource.id, principal.subject, principal.tenant, principal.client, principal.issuer, arguments.NAME",
    Some(r"^(resource\.id|principal\.(subject|tenant|client|issuer)|arguments\.[A-Za-z0-9_.-]{1,64})$"),
    |text| query::Bind::parse(text).map(drop),
);
pub(crate) static AUDIENCE_OF_APPROVAL: Form = Form::new(
    "audience",
    "`everyone`, `role:NAME`, `tenant:NAME` or `subject:NAME`",
    Some(r"^(everyone|(role|tenant|subject):.+)$"),
    |text| crate::approval::Audience::parse(text).map(drop),
);
pub(crate) static BLOCKER_CODE: Form = Form::new(
    "blocker",
    "a code of a report as `schema.over-budget`, its part before the dot, or `any`",
    Some(r"^[a-z]+(-[a-z]+)*(\.[a-z]+(-[a-z]+)*)*$"),
    text::blocker_code,
);
pub(crate) static DATE: Form = Form::new(
    "date",
    "a date, as 2027-01-31",
    Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    |text| text::date(text).map(drop),
);
