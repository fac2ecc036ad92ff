//! The rows of the table of keys for the credentials of an upstream.

use super::{MINUTE, NETWORK, TLS};
use crate::form;
use crate::key::{Choice, Keys, Kind, Section, defaulted, optional, required};

pub(super) static CREDENTIAL: Section = Section {
    at: "upstream.<name>.credential",
    doc: "One credential. Secrets are `env:NAME` or `file:PATH`. The same table stands under `credentials` and the name of a security scheme.",
    keys: Keys::Here(&[
        optional(
            "bearer",
            Kind::Text(&form::BEARER),
            "\"env:BILLING_TOKEN\"",
            "A bearer token.",
        ),
        optional(
            "basic",
            Kind::Table(&BASIC),
            "{ username = \"tollhouse\", password = \"env:BILLING_PASSWORD\" }",
            "A user name and a password.",
        ),
        optional(
            "api_key",
            Kind::Table(&API_KEY),
            "{ header = \"X-API-Key\", value = \"env:BILLING_KEY\" }",
            "A key in a header, in the query, or in a cookie.",
        ),
        optional(
            "oauth2",
            Kind::Table(&OAUTH2),
            "{ token_url = \"https://idp.example.com/oauth2/token\", client_id = \"tollhouse\", client_secret = \"env:BILLING_SECRET\" }",
            "A token that Tollhouse gets for itself.",
        ),
        optional(
            "mutual_tls",
            Kind::Table(&MUTUAL_TLS),
            "{ certificate = \"tollhouse.pem\", key = \"file:/run/secrets/tollhouse.key\" }",
            "A certificate of Tollhouse.",
        ),
        optional(
            "outside",
            Kind::Text(&form::REASON),
            "\"the service mesh adds a certificate\"",
            "Something outside Tollhouse identifies it to the service: says what. Nothing is attached.",
        ),
    ]),
    choices: &[Choice {
        keys: &["bearer", "basic", "api_key", "oauth2", "mutual_tls", "outside"],
        required: true,
    }],
};

static OAUTH2: Section = Section {
    at: "upstream.<name>.credential.oauth2",
    doc: "A token by client credentials (OAuth 2.0, RFC 6749 section 4.4). It is kept until shortly before it expires; one request gets it for all that wait. A service that answers 401 to a reading call is asked once more with a fresh one.",
    keys: Keys::Here(&[
        optional(
            "token_url",
            Kind::Text(&form::ENDPOINT),
            "\"https://idp.example.com/oauth2/token\"",
            "The token endpoint. What the document says of it is not used.",
        ),
        optional(
            "discovery",
            Kind::Text(&form::ENDPOINT),
            "\"https://idp.example.com/.well-known/openid-configuration\"",
            "Instead, the document of OpenID Connect that names the token endpoint.",
        ),
        required(
            "client_id",
            Kind::Text(&form::CLIENT_ID),
            "\"tollhouse\"",
            "Who Tollhouse is there.",
        ),
        required(
            "client_secret",
            Kind::Text(&form::CLIENT_SECRET),
            "\"env:BILLING_SECRET\"",
            "Its secret there.",
        ),
        defaulted(
            "method",
            Kind::Word {
                what: "method",
                words: &["basic", "post"],
            },
            "\"basic\"",
            "\"post\"",
            "How the secret travels: in the header `Authorization`, or in the body.",
        ),
        optional(
            "scopes",
            Kind::List {
                of: &Kind::Text(&form::SCOPE_NAME),
                min: 0,
                max: 64,
            },
            "[\"invoices:read\"]",
            "The scopes that are asked for. Default: those that the operation requires.",
        ),
        optional(
            "parameters",
            Kind::Named {
                name: &form::TOKEN_PARAMETER,
                of: &Kind::Text(&form::PARAMETER_VALUE),
                min: 0,
                max: 32,
            },
            "{ audience = \"https://billing.internal\" }",
            "Further parameters of the token request.",
        ),
        defaulted(
            "timeout",
            Kind::Span { min: 1, max: MINUTE },
            "\"5s\"",
            "\"2s\"",
            "How long a token may take. Later, the call is refused.",
        ),
        optional(
            "network",
            Kind::Table(&NETWORK),
            "{ allow = [\"10.20.0.0/16\"] }",
            "Where the token endpoint may be, beyond the public internet.",
        ),
        optional(
            "tls",
            Kind::Table(&TLS),
            "{ ca = \"ca.pem\" }",
            "Whom to trust there, beyond the system's authorities.",
        ),
    ]),
    choices: &[Choice {
        keys: &["token_url", "discovery"],
        required: true,
    }],
};

static MUTUAL_TLS: Section = Section {
    at: "upstream.<name>.credential.mutual_tls",
    doc: "A certificate of Tollhouse, shown in the TLS handshake with the service.",
    keys: Keys::Here(&[
        required(
            "certificate",
            Kind::Text(&form::PATH),
            "\"tollhouse.pem\"",
            "A file with the certificate and those between it and an authority (PEM).",
        ),
        required(
            "key",
            Kind::Text(&form::PRIVATE_KEY),
            "\"file:/run/secrets/tollhouse.key\"",
            "Its private key (PEM).",
        ),
    ]),
    choices: &[],
};

static BASIC: Section = Section {
    at: "upstream.<name>.credential.basic",
    doc: "A user name and a password (RFC 7617).",
    keys: Keys::Here(&[
        required(
            "username",
            Kind::Text(&form::USERNAME),
            "\"tollhouse\"",
            "The user name.",
        ),
        required(
            "password",
            Kind::Text(&form::PASSWORD),
            "\"file:/run/secrets/billing\"",
            "The password.",
        ),
    ]),
    choices: &[],
};

static API_KEY: Section = Section {
    at: "upstream.<name>.credential.api_key",
    doc: "A key in a header, in the query, or in a cookie.",
    keys: Keys::Here(&[
        optional(
            "header",
            Kind::Text(&form::KEY_HEADER),
            "\"X-API-Key\"",
            "The header that carries the key.",
        ),
        optional(
            "query",
            Kind::Text(&form::QUERY_NAME),
            "\"key\"",
            "The query parameter that carries the key. Queries end up in logs; prefer a header.",
        ),
        optional(
            "cookie",
            Kind::Text(&form::COOKIE_NAME),
            "\"session\"",
            "The cookie that carries the key.",
        ),
        required(
            "value",
            Kind::Text(&form::API_KEY),
            "\"env:BILLING_KEY\"",
            "The key.",
        ),
    ]),
    choices: &[Choice {
        keys: &["header", "query", "cookie"],
        required: true,
    }],
};
