//! A workbench: one upstream whose document, keys and tools a test writes, and the one request that a call becomes.
//!
//! Calls go through `tollhouse call`, which walks the whole road; what arrives at the service is written down as text, so
//! that a test can hold it against a golden one.

use std::fmt::Write as _;

use axum::response::Response;
use serde_json::{Value, json};

use crate::house::House;
use crate::said::{Said, run};
use crate::service::{Arrived, Service, json as answer};

const CALLERS: &str = r#"
[caller.ada]
subject = "ada"
tenant = "north"
client = "ide"
roles = ["member"]
claims = { account = "acc-7", level = "3", groups = ["a", "b"], odd = "a;b=c" }

[caller.nobody]
"#;

const POLICY: &str = "@id(\"all\")\npermit (principal is Caller, action, resource);\n";

/// Everything that an operation can need an approval for.
const APPROVALS: [&str; 12] = [
    "class",
    "keys",
    "members",
    "exports",
    "billing",
    "administration",
    "impersonation",
    "webhooks",
    "execution",
    "files",
    "queries",
    "mutations",
];

/// A house in front of a service.
pub struct Bench {
    pub service: Service,
    pub house: House,
    keys: String,
    tools: String,
    limits: String,
}

impl Bench {
    /// A bench with this document, in front of a service that answers `{}` with 200 to everything.
    pub async fn new(document: &str) -> Self {
        let house = House::new()
            .with_file("api.yaml", document)
            .with_file("policy/all.cedar", POLICY);
        let bench = Self {
            service: Service::start(|_| answer(200, &json!({}))).await,
            house,
            keys: String::new(),
            tools: String::new(),
            limits: String::new(),
        };
        bench.written()
    }

    /// Lines in `[upstream.api]`.
    #[must_use]
    pub fn keys(mut self, lines: &str) -> Self {
        self.keys = lines.to_owned();
        self.written()
    }

    /// Other lines in `[upstream.api]`, in place of those before.
    pub fn change_keys(&mut self, lines: &str) -> &Self {
        self.keys = lines.to_owned();
        self.write();
        self
    }

    /// Lines behind `[upstream.api]`: whole tables.
    #[must_use]
    pub fn tools(mut self, tables: &str) -> Self {
        self.tools = tables.to_owned();
        self.written()
    }

    /// A tool of class `read` for an operation, with further lines in its table.
    #[must_use]
    pub fn tool(mut self, name: &str, operation: &str, lines: &str) -> Self {
        write!(
            self.tools,
            "\n[upstream.api.tool.{name}]\noperation = \"{operation}\"\nclass = \"read\"\n{lines}\n"
        )
        .unwrap();
        self.written()
    }

    /// A line in `[limits]`.
    #[must_use]
    pub fn limit(mut self, line: &str) -> Self {
        self.limits = line.to_owned();
        self.written()
    }

    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.house.write(path, content);
        self
    }

    /// Answers by a script from now on.
    #[must_use]
    pub fn answering(self, script: impl Fn(&Arrived) -> Response + Send + Sync + 'static) -> Self {
        self.service.script(script);
        self
    }

    fn written(self) -> Self {
        self.write();
        self
    }

    fn write(&self) {
        // What is sent is the matter here, and not who answers for it.
        let approved: String = APPROVALS
            .iter()
            .map(|what| {
                format!(
                    "approval.{what} = {{ by = \"the tests\", because = \"nothing is real here\", until = \"2099-12-31\", for = [\"everyone\"] }}\n"
                )
            })
            .collect();
        let mut tools = String::new();
        for line in self.tools.lines() {
            writeln!(tools, "{line}").unwrap();
            if line.starts_with("class = ") {
                tools.push_str(&approved);
            }
        }
        let config = format!(
            "listen = \"127.0.0.1:0\"\n{CALLERS}\n[upstream.api]\nopenapi = \"api.yaml\"\ndestination = \"{}/base\"\n\
             network = {{ allow = [\"127.0.0.1/32\"] }}\n{}\n{}\n[limits]\n{}\n",
            self.service.url(),
            self.keys,
            tools,
            self.limits
        );
        self.house.write("tollhouse.toml", config);
    }

    /// Runs a command.
    pub async fn run(&self, arguments: &[&str]) -> Said {
        run(&self.house, arguments).await
    }

    /// Calls a tool as `ada`.
    pub async fn call(&self, tool: &str, arguments: Value) -> Said {
        let (tool, arguments) = (format!("api_{tool}"), arguments.to_string());
        self.run(&["call", "--json", "--as", "ada", &tool, &arguments])
            .await
    }

    /// Calls a tool as `ada` and gives the one request that arrived: method and target, the headers that say something
    /// of the call, and the body.
    pub async fn request(&self, tool: &str, arguments: Value) -> String {
        self.service.forget();
        let said = self.call(tool, arguments).await;
        let arrived = self.service.arrived();
        assert_eq!(arrived.len(), 1, "{said:?}");
        golden(&arrived[0])
    }

    /// Asserts that a call is refused before anything is sent, and gives what it says.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        self.service.forget();
        let said = self.call(tool, arguments).await;
        assert_eq!(self.service.count(), 0, "{said:?}");
        assert_ne!(said.code, Some(0), "{said:?}");
        format!("{}{}", said.out, said.err)
    }

    /// The definition of a tool as the newest clients see it.
    pub async fn definition(&self, tool: &str) -> Value {
        let said = self.run(&["tools", "--json", "--as", "ada"]).await.ended(0);
        let tools = said.json()["tools"].as_array().unwrap().clone();
        let name = format!("api_{tool}");
        tools
            .into_iter()
            .find(|tool| tool["name"] == name.as_str())
            .unwrap_or_else(|| panic!("no {name}: {said:?}"))
    }

    /// The pin of a tool.
    pub async fn pin(&self, tool: &str) -> String {
        let said = self.run(&["tools", "--json"]).await.ended(0);
        let name = format!("api_{tool}");
        said.json()["tools"]
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name.as_str())
            .unwrap_or_else(|| panic!("no {name}: {said:?}"))["pin"]
            .to_string()
    }

    /// What `check --offline` says of a configuration that does not hold.
    pub async fn faults(&self) -> String {
        self.run(&["check", "--offline"]).await.ended(78).err
    }
}

/// A request as text. Headers that every request has, and the id of the call, are left out.
pub fn golden(arrived: &Arrived) -> String {
    const USUAL: [&str; 6] = [
        "accept",
        "content-length",
        "host",
        "traceparent",
        "user-agent",
        "x-request-id",
    ];
    let mut text = format!("{} {}", arrived.method, arrived.target);
    let mut headers: Vec<(&str, String)> = arrived
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.as_str(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .filter(|(name, _)| !USUAL.contains(name))
        .collect();
    headers.sort();
    for (name, value) in headers {
        write!(text, "\n{name}: {value}").unwrap();
    }
    if !arrived.body.is_empty() {
        write!(text, "\n\n{}", String::from_utf8_lossy(&arrived.body)).unwrap();
    }
    text
}
