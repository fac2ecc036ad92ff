//! The request that would be sent, for people, with every secret hidden. It sends nothing.

use model::Value;
use serde_json::json;

/// What a call would send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The method.
    pub method: String,
    /// The whole URL, without a credential.
    pub url: String,
    /// The headers, without a credential.
    pub headers: Vec<(String, String)>,
    /// Where the credential goes, as `header authorization`; `None` if there is none.
    pub credential: Option<String>,
    /// The body, as text.
    pub body: Option<String>,
}

impl Preview {
    /// The preview as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "method": self.method,
            "url": self.url,
            "headers": self.headers.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
            "credential": self.credential,
            "body": self.body,
        })
    }
}
