//! A token issuer as the operator configured it: whose tokens are taken, and which claims mean what.
//!
//! Plain data; [`crate::Tokens`] judges by it. Where the key set comes from is not its matter.

use std::time::Duration;

use model::IssuerName;

use crate::algorithm::Algorithm;

/// An issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The name in the configuration. It becomes [`model::Caller::issuer`] of its callers, so `key` and
    /// `configuration` are taken: [`crate::Tokens::new`] leaves an issuer of such a name out.
    pub name: IssuerName,
    /// The exact `iss` of its tokens; compared byte for byte, no normalisation (AUTH-12).
    pub issuer: String,
    /// Who its tokens must be for: this server's own URL, and its other names. Any one is enough; compared byte for
    /// byte. With none, no token is accepted.
    pub audience: Vec<String>,
    /// The signature algorithms that are accepted. With none, no token is accepted.
    pub algorithms: Vec<Algorithm>,
    /// Which claims say who the caller is.
    pub claims: ClaimMap,
    /// How far the clocks may be apart.
    pub leeway: Duration,
    /// Scopes that every token must have, in `scope` or `scp`.
    pub scopes_required: Vec<String>,
}

/// Which claims say who the caller is.
///
/// A name is looked up as it stands among the claims; if there is none, its dots lead into nested claims. So both
/// `https://example.com/roles` and `realm_access.roles` can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimMap {
    /// The claim that holds the subject. A text; must be there.
    pub subject: String,
    /// The claim that holds the tenant. A text, if it is there.
    pub tenant: Option<String>,
    /// The claim that holds roles or groups. An array of texts, or one text with spaces between.
    pub roles: Option<String>,
    /// The claim that names the client program. A text, if it is there.
    pub client: Option<String>,
    /// Claims that policies may read, under the same names. Texts or arrays of texts.
    pub extra: Vec<String>,
}

impl Default for ClaimMap {
    /// `sub` is the subject; nothing else is read.
    fn default() -> Self {
        Self {
            subject: "sub".to_owned(),
            tenant: None,
            roles: None,
            client: None,
            extra: Vec::new(),
        }
    }
}
