//! What a configuration means: one value in which everything fits together, or every reason why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use model::{CallerName, Digest, Limits, SourceName, Unit, UpstreamName};
use url::Url;

use crate::address;
use crate::amount::millis_text;
use crate::caller::{self, CallerSettings};
use crate::check::place;
use crate::curated::{self, ViewSettings};
use crate::fault::FaultKind;
use crate::identity::{self, IdentitySettings};
use crate::load::too_long;
use crate::lookup::{Known, unknown_name};
use crate::place::{Lines, Place};
use crate::policy::{self, PolicyText};
use crate::reading::Reading;
use crate::server::ServerSettings;
use crate::source::{self, SourceSettings, StoreSetting};
use crate::table::LIMITS_AT;
use crate::upstream::{self, UpstreamSettings};
use crate::view::View;

/// A whole configuration. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file, as it was named.
    pub path: PathBuf,
    /// The folder that relative paths begin in; `.` for a bare file name.
    pub folder: PathBuf,
    /// Where agents are listened to.
    pub listen: SocketAddr,
    /// The URL under which agents reach this server, without a slash at its end (but for the bare host, where a
    /// [`Url`] always has one).
    pub public_url: Url,
    public_url_follows: bool,
    /// What tokens must be made for: `public_url` with `/mcp` behind it.
    pub resource: String,
    /// The database of Tollhouse.
    pub store: StoreSetting,
    /// The size past which the SQLite file does not grow.
    pub store_bytes_max: Option<u64>,
    /// Further values of `Host`, in lower case.
    pub allowed_hosts: Vec<String>,
    /// Web origins whose pages may call, exactly as browsers spell them.
    pub allowed_origins: Vec<String>,
    /// What is written to standard error.
    pub log: LogSettings,
    /// Who calls over standard input and output; `None` closes that way.
    pub stdio: Option<StdioSettings>,
    /// Callers that the file names.
    pub callers: BTreeMap<CallerName, CallerSettings>,
    /// How callers over HTTP show who they are.
    pub identity: IdentitySettings,
    /// The texts of the rules, in the order of their names.
    pub policy_files: Vec<PolicyText>,
    /// How records are written.
    pub ledger: LedgerSettings,
    /// Where facts come from.
    pub sources: BTreeMap<SourceName, SourceSettings>,
    /// The OpenAPI services behind the gate, in the order of the file. Empty only where there are servers.
    pub upstreams: Vec<UpstreamSettings>,
    /// The MCP servers behind the gate, in the order of the file. Their names are in one space with those of `upstreams`.
    pub servers: Vec<ServerSettings>,
    /// Endpoints that show some tools, in the order of the file.
    pub views: Vec<ViewSettings>,
    /// The limits in force.
    pub limits: Limits,
    /// The digest of the text of the file; not of the files that it names.
    pub digest: Digest,
    places: Places,
}

/// `[log]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// The least important message that is written.
    pub level: LogLevel,
    /// For people or for programs.
    pub format: LogFormat,
}

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level as the configuration and log filters write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[stdio]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioSettings {
    /// A caller of the same configuration.
    pub caller: CallerName,
    /// The only upstream that is shown, by its own names. `None`: all of them, by their public names.
    pub upstream: Option<UpstreamName>,
}

/// `[ledger]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSettings {
    /// For calls that change nothing.
    pub read: Durability,
    /// For calls that change state. [`Durability::Process`] was spelled out as a danger.
    pub write: Durability,
    /// A signed checkpoint is written after this many entries.
    pub checkpoint_every: u64,
}

/// How safely a record is written before a call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a killed process.
    Process,
    /// It survives a power failure.
    Disk,
}

// === meaning ===

pub(crate) fn read(
    reading: &mut Reading<'_>,
    root: &View<'_>,
    path: &Path,
    text: &str,
    offsets: BTreeMap<String, usize>,
) -> Option<Settings> {
    limits(reading, root);
    if text.len() > reading.limits.config_bytes_max {
        let fault = too_long(&reading.file, text.len(), reading.limits.config_bytes_max);
        reading.faults.push(fault);
    }
    dangers(reading, root);
    let listen = reading
        .resolve(root, "listen")
        .and_then(|resolved| address::listen(&resolved.text).ok());
    let public_url = public_url(reading, root, listen);
    let resource = public_url.as_ref().map(resource_of);
    let store = source::database(reading, root, "store");
    let callers = caller::read(root);
    let identity = identity::read(reading, root, resource.as_deref());
    ways_in(reading, root, listen, public_url.as_ref());
    let stdio = root.table("stdio").map(|view| stdio(reading, root, &view));
    let policy_files = policy::read(reading, root);
    let ledger = ledger(reading, root);
    let sources = source::read(reading, root);
    reading.known = Known {
        sources: source::kinds(root),
        claims: claims(&callers, identity.as_ref()),
    };
    let (upstreams, servers) = upstream::read(reading, root);
    let of_documents = upstreams.iter().flat_map(|upstream| &upstream.tools);
    let of_servers = servers.iter().flat_map(|server| {
        let tools = server.tools.iter().chain(&server.prompts);
        tools.chain(&server.resources).chain(&server.templates)
    });
    let known = of_documents
        .chain(of_servers)
        .map(|tool| tool.name.clone())
        .collect();
    let views = curated::read(reading, root, &known);
    let log = root.table_or_defaults("log").and_then(|view| {
        Some(LogSettings {
            level: view.parsed("level", level)?,
            format: view.parsed("format", format)?,
        })
    });
    Some(Settings {
        path: path.to_owned(),
        folder: if reading.folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            reading.folder.clone()
        },
        listen: listen?,
        public_url: public_url?,
        public_url_follows: !root.has("public_url"),
        resource: resource?,
        store: store?,
        store_bytes_max: root.count("store_bytes_max"),
        allowed_hosts: root
            .texts("allowed_hosts")
            .into_iter()
            .map(|placed| placed.text)
            .collect(),
        allowed_origins: root
            .texts("allowed_origins")
            .into_iter()
            .map(|placed| placed.text)
            .collect(),
        log: log?,
        stdio: stdio.map_or(Some(None), |stdio| stdio.map(Some))?,
        callers,
        identity: identity?,
        policy_files: policy_files?,
        ledger: ledger?,
        sources,
        upstreams,
        servers,
        views,
        limits: reading.limits.clone(),
        digest: Digest::of("tollhouse/configuration/v1", &[text.as_bytes()]),
        places: Places {
            file: reading.file.clone(),
            lines: reading.lines.clone(),
            offsets,
        },
    })
}

/// The limits, which hold for the rest of the reading.
fn limits(reading: &mut Reading<'_>, root: &View<'_>) {
    let Some(view) = root.table_or_defaults(LIMITS_AT) else {
        return;
    };
    for limit in model::LIMITS {
        let value = match limit.unit {
            Unit::Bytes | Unit::Count => view.count(limit.name),
            Unit::Millis => view.millis(limit.name),
        };
        // A value out of bounds was refused by the check, with the same bounds.
        let _ = value.map(|value| limit.set(&mut reading.limits, value));
    }
    let (timeout, max) = (reading.limits.call_timeout, reading.limits.call_timeout_max);
    if timeout > max {
        let text = |duration: std::time::Duration| {
            millis_text(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        };
        let problem = format!(
            "`call_timeout` is {}, longer than `call_timeout_max`, which is {}",
            text(timeout),
            text(max)
        );
        let name = if view.has("call_timeout") {
            "call_timeout"
        } else {
            "call_timeout_max"
        };
        let fault = reading.fault_at(&view, name, FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("change one of the two"));
    }
}

fn dangers(reading: &mut Reading<'_>, root: &View<'_>) {
    reading.clear_text = root.truth("danger_clear_text_credential").unwrap_or(false);
    if reading.clear_text {
        let warning = reading.fault_at(
            root,
            "danger_clear_text_credential",
            FaultKind::Unsafe,
            "credentials may stand in this file in clear",
        );
        reading
            .warnings
            .push(warning.hint("move them to env: or file: and take this key out"));
    }
}

fn public_url(reading: &mut Reading<'_>, root: &View<'_>, listen: Option<SocketAddr>) -> Option<Url> {
    if root.has("public_url") {
        let resolved = reading.resolve(root, "public_url")?;
        return address::public_url(&resolved.text).ok();
    }
    let listen = listen?;
    let url = Url::parse(&format!("http://{listen}"))
        .ok()
        .filter(|_| !listen.ip().is_unspecified());
    if url.is_none() {
        let problem = format!("this key is missing: agents cannot be told to connect to `{listen}`");
        let fault = reading.fault(root.at("listen"), "public_url", FaultKind::Missing, problem);
        reading
            .faults
            .push(fault.expected("it, as `public_url = \"https://mcp.example.com\"`"));
    }
    url
}

fn resource_of(public_url: &Url) -> String {
    format!("{}/mcp", public_url.as_str().trim_end_matches('/'))
}

/// Who can come in over HTTP, and over which kind of line.
fn ways_in(reading: &mut Reading<'_>, root: &View<'_>, listen: Option<SocketAddr>, public_url: Option<&Url>) {
    let Some(identity) = root.table_or_defaults("identity") else {
        return;
    };
    let nobody = identity.truth("api_keys") == Some(false) && identity.named("issuer").is_empty();
    let beyond = listen.is_some_and(|listen| !listen.ip().to_canonical().is_loopback());
    if nobody && beyond {
        let fault = reading.fault_at(
            root,
            "listen",
            FaultKind::Unsafe,
            "this address can be reached from other machines, and nobody can identify themselves",
        );
        reading
            .faults
            .push(fault.hint("set `identity.api_keys = true`, add an issuer, or listen on 127.0.0.1"));
    } else if nobody && !root.has("stdio") {
        let warning = reading.fault_at(
            &identity,
            "api_keys",
            FaultKind::Ineffective,
            "nobody can call: no API keys, no issuer, no [stdio]",
        );
        reading
            .warnings
            .push(warning.hint("set `identity.api_keys = true`, or add an issuer or [stdio]"));
    }
    let Some(url) = public_url.filter(|url| url.scheme() == "http") else {
        return;
    };
    if beyond || !address::is_loopback(url) {
        let problem = format!(
            "agents reach `{}` without TLS, and anybody on the way can read their tokens",
            url.as_str().trim_end_matches('/')
        );
        let name = if root.has("public_url") {
            "public_url"
        } else {
            "listen"
        };
        let warning = reading.fault_at(root, name, FaultKind::Unsafe, problem);
        reading
            .warnings
            .push(warning.hint("put a TLS proxy in front and write its https URL as `public_url`"));
    }
}

fn stdio(reading: &mut Reading<'_>, root: &View<'_>, view: &View<'_>) -> Option<StdioSettings> {
    let name = view.text("caller")?;
    let caller = CallerName::parse(&name).ok()?;
    let callers = root.named("caller");
    if !callers.iter().any(|(known, _)| *known == name) {
        unknown_name(
            reading,
            view,
            "caller",
            &name,
            callers.iter().map(|(known, _)| *known),
        );
    }
    let upstream = view.text("upstream");
    if let Some(name) = &upstream {
        let known = root.named("upstream");
        if !known.iter().any(|(known, _)| known == name) {
            let names = known.iter().map(|(known, _)| *known);
            unknown_name(reading, view, "upstream", name, names);
        }
    }
    Some(StdioSettings {
        caller,
        upstream: upstream.and_then(|name| UpstreamName::parse(&name).ok()),
    })
}

fn ledger(reading: &mut Reading<'_>, root: &View<'_>) -> Option<LedgerSettings> {
    let view = root.table_or_defaults("ledger")?;
    let (read, write) = (
        view.parsed("read", durability)?,
        view.parsed("write", durability)?,
    );
    if write == Durability::Process {
        let problem = "after a power failure, a change that was made can be missing from the ledger";
        let fault = reading.fault_at(&view, "write", FaultKind::Unsafe, problem);
        if view.truth("danger_write_without_disk") == Some(true) {
            reading
                .warnings
                .push(fault.hint("take `danger_write_without_disk` out for `write = \"disk\"`"));
        } else {
            reading.faults.push(
                fault
                    .expected("\"disk\"")
                    .hint("or add `danger_write_without_disk = true`"),
            );
        }
    }
    Some(LedgerSettings {
        read,
        write,
        checkpoint_every: view.count("checkpoint_every")?,
    })
}

/// The claims that some caller can have.
fn claims(
    callers: &BTreeMap<CallerName, CallerSettings>,
    identity: Option<&IdentitySettings>,
) -> BTreeSet<String> {
    let configured = callers.values().flat_map(|caller| caller.claims.keys());
    let issuers = identity.into_iter().flat_map(|identity| &identity.issuers);
    configured
        .chain(issuers.flat_map(|issuer| &issuer.claims.extra))
        .cloned()
        .collect()
}

fn durability(text: &str) -> Result<Durability, ()> {
    match text {
        "process" => Ok(Durability::Process),
        "disk" => Ok(Durability::Disk),
        _ => Err(()),
    }
}

fn level(text: &str) -> Result<LogLevel, ()> {
    let all = [
        LogLevel::Error,
        LogLevel::Warn,
        LogLevel::Info,
        LogLevel::Debug,
        LogLevel::Trace,
    ];
    all.into_iter().find(|level| level.as_str() == text).ok_or(())
}

fn format(text: &str) -> Result<LogFormat, ()> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(()),
    }
}

// === impl Settings ===

impl Settings {
    /// Where a key stands, so that a fault that is found later can be reported at its line.
    ///
    /// `key` is a path as faults show it: `upstream.billing.tool.getInvoiceStatus.operation`. Of a key that is not
    /// written, the nearest table around it that is; `None` where there is none.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<Place> {
        self.places.find(key)
    }

    /// Takes over the address that was really bound: `listen` may have asked for port 0.
    ///
    /// Where no `public_url` is written, it follows, and with it the resource and the audiences that follow it.
    pub fn listening_on(&mut self, address: SocketAddr) {
        self.listen = address;
        if !self.public_url_follows {
            return;
        }
        if let Ok(url) = Url::parse(&format!("http://{address}")) {
            self.resource = resource_of(&url);
            self.public_url = url;
            for issuer in self
                .identity
                .issuers
                .iter_mut()
                .filter(|issuer| issuer.audience_follows)
            {
                issuer.audience = vec![self.resource.clone()];
            }
        }
    }
}

/// Where every written key stands.
#[derive(Debug, Clone, Default)]
struct Places {
    file: String,
    lines: Lines,
    offsets: BTreeMap<String, usize>,
}

impl Places {
    fn find(&self, key: &str) -> Option<Place> {
        let mut key = key;
        loop {
            if let Some(offset) = self.offsets.get(key) {
                return Some(place(&self.file, &self.lines, *offset));
            }
            key = key.rsplit_once('.')?.0;
        }
    }
}
