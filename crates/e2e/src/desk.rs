//! A gate in front of a service that a test holds in its hand: three tools, callers by key, limits as the test wants them.
//!
//! For what the doors promise. What the whole house promises is driven through the worked example, see `road.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::client::Mcp;
use crate::house::{Gate, House, Pipe};
use crate::service::{Service, json as answer};

/// Everybody who may have a key, and what each may do: `ada` and `bob` look, `cleo` also changes things, `dan` may
/// nothing at all.
const CALLERS: &str = r#"
[caller.ada]
tenant = "north"
roles = ["member"]

[caller.bob]
tenant = "south"
roles = ["member"]

[caller.cleo]
tenant = "north"
roles = ["member", "clerk"]

[caller.dan]
tenant = "north"
roles = []
"#;

const POLICY: &str = r#"
@id("members-look")
permit (principal is Caller, action in Action::"class:read", resource)
when { principal.roles.contains("member") };

@id("clerks-change")
permit (principal is Caller, action, resource)
when { principal.roles.contains("clerk") };
"#;

const TOOLS: &str = r#"
[upstream.desk.tool.look]
operation = "getThing"
title = "Look at a thing"
class = "read"

[upstream.desk.tool.make]
operation = "makeThing"
class = "write"
approval.mutations = { by = "the tests", because = "nothing is real here", until = "2099-12-31", for = ["everyone"] }
consent = { waived_by = "the tests", because = "nothing is real here", until = "2099-12-31" }

[upstream.desk.tool.drop]
operation = "dropThing"
class = "destructive"
approval.mutations = { by = "the tests", because = "nothing is real here", until = "2099-12-31", for = ["everyone"] }
consent = { waived_by = "the tests", because = "nothing is real here", until = "2099-12-31" }
"#;

/// What a desk is to be like. Everything that is not said is as a fresh installation has it.
#[derive(Debug, Default)]
pub struct Plan {
    top: String,
    limits: String,
    tools: Option<String>,
    callers: Vec<&'static str>,
}

/// A service, and a folder from which gates in front of it run.
pub struct Desk {
    pub service: Service,
    pub house: House,
    keys: BTreeMap<&'static str, String>,
}

impl Plan {
    pub fn new() -> Self {
        Self::default()
    }

    /// A limit, as it stands in the configuration: `limit("calls_max", 2)`, `limit("drain_timeout", "\"1s\"")`.
    #[must_use]
    pub fn limit(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        writeln!(self.limits, "{name} = {value}").unwrap();
        self
    }

    /// A line at the top of the configuration.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        writeln!(self.top, "{line}").unwrap();
        self
    }

    /// Other tools than the three.
    #[must_use]
    pub fn tools(mut self, tools: impl Into<String>) -> Self {
        self.tools = Some(tools.into());
        self
    }

    /// Who gets a key, beside `ada`.
    #[must_use]
    pub fn with(mut self, caller: &'static str) -> Self {
        self.callers.push(caller);
        self
    }

    /// Sets the desk up, with a service that answers `{"id": …}` with the last part of the path.
    pub async fn set_up(self) -> Desk {
        let mut desk = self.without_keys().await;
        for caller in std::iter::once("ada").chain(desk.keys.keys().copied().collect::<Vec<_>>()) {
            let key = desk.house.key(caller).await;
            desk.keys.insert(caller, key);
        }
        desk
    }

    /// Sets the desk up and opens a gate on standard input and output, where the caller is `ada`.
    pub async fn stdio(self) -> (Desk, Pipe) {
        let desk = self.without_keys().await;
        let pipe = desk.house.stdio();
        (desk, pipe)
    }

    /// Sets the desk up and opens its gate.
    pub async fn serve(self) -> (Desk, Gate) {
        let desk = self.set_up().await;
        let gate = desk.house.serve().await;
        (desk, gate)
    }

    async fn without_keys(self) -> Desk {
        let service = Service::start(|arrived| {
            let id = arrived.target.rsplit('/').next().unwrap_or_default();
            answer(200, &json!({"id":id}))
        })
        .await;
        let config = format!(
            "listen = \"127.0.0.1:0\"\n{}\n[stdio]\ncaller = \"ada\"\n{CALLERS}\n[policy]\nfolder = \"policy\"\n\n\
             [upstream.desk]\nopenapi = \"desk.json\"\ndestination = \"{}\"\nnetwork = {{ allow = [\"127.0.0.1/32\"] }}\n\
             timeout = \"50s\"\n{}\n[limits]\n{}",
            self.top,
            service.url(),
            self.tools.as_deref().unwrap_or(TOOLS),
            self.limits
        );
        let house = House::new()
            .with_file("tollhouse.toml", config)
            .with_file("desk.json", document())
            .with_file("policy/desk.cedar", POLICY);
        Desk {
            service,
            house,
            keys: self
                .callers
                .into_iter()
                .map(|caller| (caller, String::new()))
                .collect(),
        }
    }
}

impl Desk {
    /// The key of a caller.
    pub fn key(&self, caller: &str) -> &str {
        &self.keys[caller]
    }

    /// A client of the stateless era.
    pub fn modern(&self, gate: &Gate, caller: &str) -> Mcp {
        Mcp::modern(&gate.url, self.key(caller))
    }

    /// A client with an open session.
    pub async fn legacy(&self, gate: &Gate, caller: &str, revision: &str) -> Mcp {
        Mcp::legacy(&gate.url, self.key(caller), revision).await
    }
}

/// A call of the tool that looks, in the form of a client's era.
pub fn look(client: &Mcp, id: impl Into<Value>) -> Value {
    let params = json!({"name":"desk_look","arguments":{"id":"a"}});
    client.request(id, "tools/call", params)
}

/// The first page of the list of tools.
pub fn list(client: &Mcp) -> Value {
    client.request(1, "tools/list", json!({}))
}

/// The service's document.
fn document() -> String {
    let id = json!({"name":"id","in":"path","required":true,"schema":{"type":"string","maxLength":64,"x-mcp-header":"Id"}});
    let thing = json!({"type":"object","required":["id"],"properties":{"id":{"type":"string"}}});
    let gives = |description: &str| json!({"200":{"description":description,"content":{"application/json":{"schema":thing}}}});
    json!({
        "openapi":"3.1.0",
        "info":{"title":"Desk","version":"1"},
        "paths":{
            "/things":{
                "post":{"operationId":"makeThing","summary":"Make a thing","description":"Makes a thing.",
                    "requestBody":{"required":true,"content":{"application/json":{"schema":
                        {"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}},
                    "responses":gives("The new thing.")},
            },
            "/things/{id}":{
                "parameters":[id],
                "get":{"operationId":"getThing","summary":"Get a thing","description":"Gives one thing.",
                    "responses":gives("The thing.")},
                "delete":{"operationId":"dropThing","summary":"Drop a thing","description":"Removes one thing.",
                    "responses":gives("What was removed.")},
            },
            "/things/{id}/tags":{
                "parameters":[id],
                "get":{"operationId":"getTags","summary":"Tags of a thing","description":"Gives the tags of a thing.",
                    "responses":{"200":{"description":"The tags.","content":{"application/json":{"schema":
                        {"type":"array","items":{"type":"string"}}}}}}},
            },
        },
    })
    .to_string()
}
