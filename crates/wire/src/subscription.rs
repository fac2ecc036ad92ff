//! Subscriptions of the stateless era, and what is told of changes in every era. Who wants what, and in which words it is said;
//! nothing is remembered here.

use std::collections::HashSet;

use bytes::Bytes;
use model::{Limits, Object, Value};
use serde_json::json;

use crate::ask::json_limits;
use crate::envelope::{Params, object_of};
use crate::failure::Failure;
use crate::id::Id;
use crate::surface::Surface;

/// What a client subscribes to (SUB-01). What it does not name it does not want.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscription {
    /// Changes of lists.
    pub wants: Wants,
    /// The resources of whose changes it wants to be told; each once.
    pub uris: Vec<String>,
}

/// Of which lists somebody wants to hear.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the lists of resources and of templates.
    pub resources: bool,
}

/// Marks everything that belongs to a subscription (SUB-03).
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Subscription {
    pub(crate) fn read(params: &Params<'_>, limits: &Limits) -> Result<Self, Failure> {
        let Some(raw) = params.notifications else {
            return Err(Failure::InvalidParams("`notifications` is missing".to_owned()));
        };
        let object = object_of(raw, "notifications", json_limits(limits)).map_err(Failure::InvalidParams)?;
        let flag = |name: &str| match object.get(name) {
            None => Ok(false),
            Some(Value::Bool(is_wanted)) => Ok(*is_wanted),
            Some(_) => Err(Failure::InvalidParams(format!(
                "`notifications.{name}` is true or false"
            ))),
        };
        let mut uris: Vec<String> = Vec::new();
        let mut known = HashSet::new();
        if let Some(wanted) = object.get("resourceSubscriptions") {
            let texts = || {
                Failure::InvalidParams(
                    "`notifications.resourceSubscriptions` is an array of texts".to_owned(),
                )
            };
            for uri in wanted.as_array().ok_or_else(texts)? {
                let uri = uri.as_str().ok_or_else(texts)?.to_owned();
                if uris.len() >= limits.resource_subscriptions_max {
                    return Err(Failure::InvalidParams(format!(
                        "`notifications.resourceSubscriptions` has at most {} entries",
                        limits.resource_subscriptions_max
                    )));
                }
                if known.insert(uri.clone()) {
                    uris.push(uri);
                }
            }
        }
        Ok(Self {
            wants: Wants {
                tools: flag("toolsListChanged")?,
                prompts: flag("promptsListChanged")?,
                resources: flag("resourcesListChanged")?,
            },
            uris,
        })
    }
}

impl Wants {
    /// Whether it is told of changes of a list.
    #[must_use]
    pub const fn of(self, surface: Surface) -> bool {
        match surface {
            Surface::Tools => self.tools,
            Surface::Prompts => self.prompts,
            Surface::Resources | Surface::Templates => self.resources,
        }
    }

    /// What of it is also in `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            prompts: self.prompts && other.prompts,
            resources: self.resources && other.resources,
        }
    }
}

/// `notifications/subscriptions/acknowledged`: what of a subscription is honoured, as its first message (SUB-02).
#[must_use]
pub fn acknowledged(subscription: &Id, honoured: &Subscription) -> Bytes {
    let mut notifications = Object::new();
    for (name, is_honoured) in [
        ("toolsListChanged", honoured.wants.tools),
        ("promptsListChanged", honoured.wants.prompts),
        ("resourcesListChanged", honoured.wants.resources),
    ] {
        if is_honoured {
            notifications.insert(name.to_owned(), Value::Bool(true));
        }
    }
    if !honoured.uris.is_empty() {
        notifications.insert("resourceSubscriptions".to_owned(), json!(honoured.uris));
    }
    message(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": { "notifications": notifications, "_meta": { SUBSCRIPTION: subscription } },
    }))
}

/// That a list has changed; on a subscription with its id.
#[must_use]
pub fn list_changed(surface: Surface, subscription: Option<&Id>) -> Bytes {
    let method = match surface {
        Surface::Tools => "notifications/tools/list_changed",
        Surface::Prompts => "notifications/prompts/list_changed",
        Surface::Resources | Surface::Templates => "notifications/resources/list_changed",
    };
    message(&match subscription {
        None => json!({ "jsonrpc": "2.0", "method": method }),
        Some(id) => json!({
            "jsonrpc": "2.0", "method": method, "params": { "_meta": { SUBSCRIPTION: id } },
        }),
    })
}

/// That a resource has changed; on a subscription with its id.
#[must_use]
pub fn updated(uri: &str, subscription: Option<&Id>) -> Bytes {
    let mut params = json!({ "uri": uri });
    if let (Some(id), Some(params)) = (subscription, params.as_object_mut()) {
        params.insert("_meta".to_owned(), json!({ SUBSCRIPTION: id }));
    }
    message(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params }))
}

/// The result that ends a subscription in order (SUB-06).
#[must_use]
pub fn ended(subscription: &Id) -> Bytes {
    message(&json!({
        "jsonrpc": "2.0",
        "id": subscription,
        "result": { "resultType": "complete", "_meta": { SUBSCRIPTION: subscription } },
    }))
}

/// What is said behind that on a pipe, where nobody sees a stream end (SUB-07).
#[must_use]
pub fn torn_down(subscription: &Id) -> Bytes {
    message(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": subscription, "reason": "the server is closing" },
    }))
}

fn message(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
