//! MCP servers behind the gate, as configured: how each is reached, who shares a connection to it, and what is offered
//! of it. Which revisions there are, and whether a command line is approved, is known to other rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use model::{SecretText, UpstreamName};
use url::Url;

use crate::amount::millis_text;
use crate::credential::{self, CredentialSettings};
use crate::fault::FaultKind;
use crate::identity::{NetworkSettings, TlsSettings, network, reachable, tls};
use crate::reading::Reading;
use crate::text::names_a_secret;
use crate::tool::{self, ToolSettings};
use crate::upstream::{clear_line, headers, timeout};
use crate::view::View;

/// `[upstream.<name>]` of an MCP server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Its name, the first part of its tools' public names.
    pub name: UpstreamName,
    /// How it is reached.
    pub reach: Reach,
    /// The revision of MCP that is spoken with it, as a date; `None`: what the server says. Only its spelling was
    /// judged here.
    pub revision: Option<String>,
    /// Who shares a connection to it.
    pub sharing: Sharing,
    /// What it may ask of the client whose call it carries out.
    pub may_ask: BTreeSet<Asks>,
    /// The deadline of calls; at most `call_timeout_max`.
    pub timeout: Option<Duration>,
    /// The tools that are offered, in the order of the file.
    pub tools: Vec<ToolSettings>,
    /// The prompts that are offered. The `operation` of each is the server's own name of it.
    pub prompts: Vec<ToolSettings>,
    /// The resources that are offered. The `operation` of each is its URI.
    pub resources: Vec<ToolSettings>,
    /// The templates of resources that are offered. The `operation` of each is the template.
    pub templates: Vec<ToolSettings>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone)]
pub enum Reach {
    /// It is started, and spoken with over its standard input and output.
    Command(CommandSettings),
    /// It is there, and spoken with over HTTP.
    Url(UrlSettings),
}

/// A server that is started. `Debug` shows no value of its environment.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// The program and its arguments, as written. Never empty.
    pub command: Vec<String>,
    /// Variables of its environment, in the order of the file.
    pub env: Vec<(String, SecretText)>,
    /// Which of them are secrets: their value came from `env:` or `file:`, or their name says so.
    pub secrets: BTreeSet<String>,
    /// Variables that are passed on from our own environment, beyond those that always are.
    pub pass_env: Vec<String>,
    /// The folder in which it runs: as written, behind the folder of the configuration where it is relative; that
    /// folder itself where none is written.
    pub cwd: PathBuf,
    /// The folder of the configuration, in which a program with a relative path begins.
    pub folder: PathBuf,
    /// What it may reach. `None`: whatever its user may.
    pub sandbox: Option<SandboxSettings>,
    /// How long it may take until it has answered for the first time.
    pub start_timeout: Duration,
    /// How long it may take to end after each step of being asked to.
    pub stop_timeout: Duration,
    /// A child that nobody used for this long is stopped.
    pub idle_stop: Duration,
    /// When the next child starts after one that failed.
    pub restart: RestartSettings,
    /// Children at once.
    pub children_max: usize,
    /// Children that one caller has at once; at most `children_max`.
    pub children_per_caller_max: usize,
}

/// What a child may reach, beyond what programs need to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Files and folders that it may read and run; relative ones stand behind the folder of the configuration.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also change.
    pub write: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Whether it starts where the kernel cannot do all of this.
    pub allow_degraded: bool,
}

/// When the next child starts after one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartSettings {
    /// The wait after the first failure. It doubles with each further one.
    pub wait: Duration,
    /// The longest wait; not shorter than `wait`.
    pub wait_max: Duration,
}

/// A server that is connected to.
#[derive(Debug, Clone)]
pub struct UrlSettings {
    /// Its endpoint, exactly as written: http or https, no user and no fragment; it may have a query.
    pub url: String,
    /// How MCP travels.
    pub transport: Transport,
    /// Where it may be, beyond the public internet.
    pub network: NetworkSettings,
    /// Whom to trust.
    pub tls: TlsSettings,
    /// Headers on every request, in the order of the file. None of them is reserved or the name of a credential.
    pub headers: Vec<(String, String)>,
    /// How Tollhouse identifies itself. Never by the schemes of a document.
    pub credential: CredentialSettings,
}

/// How MCP travels over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP, and HTTP+SSE where the server does not speak it.
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, with two endpoints.
    Sse,
}

/// Who shares a connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody: each session of an agent has its own.
    PerSession,
    /// All sessions of one caller.
    PerCaller,
    /// All callers.
    Shared,
}

/// A kind of question of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asks {
    /// Of the person.
    Elicitation,
    /// Of the client's model.
    Sampling,
    /// For the client's folders.
    Roots,
}

/// Whether this upstream is an MCP server.
pub(crate) fn is_one(view: &View<'_>) -> bool {
    view.section.key("openapi").is_none()
}

/// One server, and every fault of it.
pub(crate) fn read(reading: &mut Reading<'_>, name: &str, view: &View<'_>) -> Option<ServerSettings> {
    let upstream = UpstreamName::parse(name).ok();
    let reach = if view.section.key("command").is_some() {
        command(reading, view).map(Reach::Command)
    } else {
        url(reading, view).map(Reach::Url)
    };
    let revision = view.text("revision");
    let timeout = timeout(reading, view);
    let tools = offered(reading, upstream.as_ref(), view, Kind::Tool);
    let prompts = offered(reading, upstream.as_ref(), view, Kind::Prompt);
    let resources = offered(reading, upstream.as_ref(), view, Kind::Resource);
    one_space(reading, view);
    Some(ServerSettings {
        name: upstream?,
        reach: reach?,
        revision: revision.filter(|revision| revision != "auto"),
        sharing: view.parsed("sharing", sharing)?,
        may_ask: view
            .texts("may_ask")
            .iter()
            .filter_map(|placed| asks(&placed.text))
            .collect(),
        timeout,
        tools: tools?,
        prompts: prompts?,
        templates: of_template(resources.as_deref()?, view, true),
        resources: of_template(resources.as_deref()?, view, false),
    })
}

/// Those of the resources that are templates, or those that are not.
fn of_template(resources: &[ToolSettings], view: &View<'_>, are_templates: bool) -> Vec<ToolSettings> {
    let views = view.named("resource").into_iter();
    let templates: BTreeSet<String> = views
        .filter(|(_, view)| view.has("template"))
        .map(|(_, view)| view.path)
        .collect();
    let resources = resources.iter();
    resources
        .filter(|one| templates.contains(&one.key) == are_templates)
        .cloned()
        .collect()
}

fn command(reading: &mut Reading<'_>, view: &View<'_>) -> Option<CommandSettings> {
    let command: Vec<String> = view
        .texts("command")
        .into_iter()
        .map(|placed| placed.text)
        .collect();
    if command.first().is_some_and(String::is_empty) {
        let fault = reading.fault_at(view, "command", FaultKind::WrongValue, "the program is empty");
        reading
            .faults
            .push(fault.expected("the program first, as [\"npx\", \"-y\", \"PACKAGE\"]"));
    }
    let env = env(reading, view);
    let pass_env = view.texts("pass_env").into_iter();
    let pass_env: Vec<String> = pass_env.map(|placed| placed.text).collect();
    if let Some(both) = pass_env
        .iter()
        .find(|name| view.named_texts("env").iter().any(|(set, ..)| set == name))
    {
        let problem = format!("`{both}` is passed on, and set by `env`, too");
        let fault = reading.fault_at(view, "pass_env", FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("take it out of one of the two"));
    }
    let sandbox = view.table("sandbox").map(|view| sandbox(reading, &view));
    let cwd = view.text("cwd").map(|path| reading.path(&path));
    let folder = if reading.folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        reading.folder.clone()
    };
    let restart = restart(reading, view);
    let (all, each) = (view.count("children_max"), view.count("children_per_caller_max"));
    Some(CommandSettings {
        command,
        secrets: secrets(view, env.as_deref()),
        env: env?,
        pass_env,
        cwd: cwd.unwrap_or_else(|| folder.clone()),
        folder,
        sandbox: sandbox.map_or(Some(None), |sandbox| sandbox.map(Some))?,
        start_timeout: view.duration("start_timeout")?,
        stop_timeout: view.duration("stop_timeout")?,
        idle_stop: view.duration("idle_stop")?,
        restart: restart?,
        children_max: usize::try_from(all?).ok()?,
        children_per_caller_max: usize::try_from(each?.min(all?)).ok()?,
    })
}

/// The variables whose values are secrets.
fn secrets(view: &View<'_>, env: Option<&[(String, SecretText)]>) -> BTreeSet<String> {
    let written = view.named_texts("env").into_iter();
    let referred = written.filter_map(|(name, texts, _)| {
        let text = texts.into_iter().next()?.text;
        (text.starts_with("env:") || text.starts_with("file:")).then(|| name.to_owned())
    });
    let named = env.into_iter().flatten().map(|(name, _)| name.clone());
    referred
        .chain(named.filter(|name| names_a_secret(name)))
        .collect()
}

/// The environment. What is a secret by its name does not stand in the file in clear.
fn env(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Vec<(String, SecretText)>> {
    let mut all = Some(Vec::new());
    for (name, texts, _) in view.named_texts("env") {
        let resolved = texts
            .into_iter()
            .next()
            .and_then(|placed| reading.resolve_entry(view, "env", name, placed.text));
        if resolved.as_ref().is_some_and(|value| value.from.is_none())
            && names_a_secret(name)
            && !reading.clear_text
        {
            let entries = view.entries_view("env");
            let problem = format!("`{name}` is the name of a secret, and its value is written in clear");
            let fault = reading.fault_at(&entries, name, FaultKind::ClearText, problem);
            reading.faults.push(
                fault
                    .expected("env:NAME or file:PATH instead")
                    .hint("whoever reads this file could use it"),
            );
        }
        match (&mut all, resolved) {
            (Some(all), Some(value)) => all.push((name.to_owned(), value.into_secret())),
            (_, None) => all = None,
            (None, Some(_)) => {}
        }
    }
    all
}

fn sandbox(reading: &mut Reading<'_>, view: &View<'_>) -> Option<SandboxSettings> {
    let paths = |name: &str| -> Vec<PathBuf> {
        let written = view.texts(name).into_iter();
        written.map(|placed| reading.path(&placed.text)).collect()
    };
    let (read, write) = (paths("read"), paths("write"));
    let allow_degraded = view.truth("allow_degraded")?;
    if allow_degraded {
        let problem = "this server starts without its sandbox where the kernel has none";
        let warning = reading.fault_at(view, "allow_degraded", FaultKind::Unsafe, problem);
        reading
            .warnings
            .push(warning.hint("take `allow_degraded` out once every machine has Landlock"));
    }
    Some(SandboxSettings {
        read,
        write,
        network: view.truth("network")?,
        allow_degraded,
    })
}

fn restart(reading: &mut Reading<'_>, view: &View<'_>) -> Option<RestartSettings> {
    let (wait, wait_max) = (view.duration("restart_wait")?, view.duration("restart_wait_max")?);
    if wait > wait_max {
        let text = |duration: Duration| millis_text(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        let problem = format!(
            "`restart_wait` is {}, longer than `restart_wait_max`, which is {}",
            text(wait),
            text(wait_max)
        );
        let name = if view.has("restart_wait") {
            "restart_wait"
        } else {
            "restart_wait_max"
        };
        let fault = reading.fault_at(view, name, FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("change one of the two"));
    }
    Some(RestartSettings { wait, wait_max })
}

fn url(reading: &mut Reading<'_>, view: &View<'_>) -> Option<UrlSettings> {
    let url = reading.resolve(view, "url").map(|resolved| resolved.text);
    let (network, tls) = (network(view), tls(reading, view));
    let credential = credential::read_every(reading, view);
    if let Some(url) = url.as_deref().and_then(|url| Url::parse(url).ok()) {
        reachable(reading, view, "url", &url, &network);
        if view.has("credential") {
            clear_line(reading, view, "url", &url);
        }
    }
    Some(UrlSettings {
        url: url?,
        transport: view.parsed("transport", transport)?,
        network,
        tls,
        headers: headers(view),
        credential: credential?,
    })
}

/// What a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// What the server itself calls it.
    fn own_name(self, name: &str, view: &View<'_>) -> Option<String> {
        match self {
            Self::Tool | Self::Prompt => Some(view.text(self.word()).unwrap_or_else(|| name.to_owned())),
            Self::Resource => view.text("uri").or_else(|| view.text("template")),
        }
    }
}

fn offered(
    reading: &mut Reading<'_>,
    upstream: Option<&UpstreamName>,
    view: &View<'_>,
    kind: Kind,
) -> Option<Vec<ToolSettings>> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    let mut offered = Some(Vec::new());
    for (name, own_view) in view.named(kind.word()) {
        let own = kind.own_name(name, &own_view);
        if let Some(own) = &own
            && let Some(first) = known.insert(own.clone(), name)
        {
            let problem = format!(
                "`{name}` and `{first}` are the same {} of the server",
                kind.word()
            );
            let fault = reading.fault(own_view.header, &own_view.path, FaultKind::Conflict, problem);
            reading.faults.push(fault.hint("take one of them out"));
        }
        let read = own.and_then(|own| tool::of_server(reading, (upstream, view), (name, own), &own_view));
        match (&mut offered, read) {
            (Some(offered), Some(read)) => offered.push(read),
            (_, None) => offered = None,
            (None, Some(_)) => {}
        }
    }
    offered
}

/// Rules and the ledger know each thing by one name.
fn one_space(reading: &mut Reading<'_>, view: &View<'_>) {
    let mut known: BTreeMap<&str, Kind> = BTreeMap::new();
    for kind in Kind::ALL {
        for (name, own_view) in view.named(kind.word()) {
            if let Some(first) = known.insert(name, kind) {
                let problem = format!("`{name}` is the name of a {}, too", first.word());
                let fault = reading.fault(own_view.header, &own_view.path, FaultKind::Conflict, problem);
                let hint = match kind {
                    Kind::Tool | Kind::Prompt => format!(
                        "name one of them otherwise here, with `{} = \"{name}\"` in its table",
                        kind.word()
                    ),
                    Kind::Resource => "name one of them otherwise here".to_owned(),
                };
                reading.faults.push(fault.hint(&hint));
            }
        }
    }
}

fn sharing(text: &str) -> Result<Sharing, ()> {
    match text {
        "per-session" => Ok(Sharing::PerSession),
        "per-caller" => Ok(Sharing::PerCaller),
        "shared" => Ok(Sharing::Shared),
        _ => Err(()),
    }
}

fn asks(text: &str) -> Option<Asks> {
    match text {
        "elicitation" => Some(Asks::Elicitation),
        "sampling" => Some(Asks::Sampling),
        "roots" => Some(Asks::Roots),
        _ => None,
    }
}

fn transport(text: &str) -> Result<Transport, ()> {
    match text {
        "auto" => Ok(Transport::Auto),
        "streamable" => Ok(Transport::Streamable),
        "sse" => Ok(Transport::Sse),
        _ => Err(()),
    }
}
