//! Upstreams, as configured: the document, the destination, the credential. The tools are in `tool.rs`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use model::UpstreamName;
use url::Url;

use crate::address;
use crate::amount::millis_text;
use crate::blocker::{self, BlockerSettings};
use crate::credential::{self, CredentialSettings};
use crate::fault::FaultKind;
use crate::identity::{NetworkSettings, TlsSettings, network, reachable, tls};
use crate::probe::{self, ProbeSettings};
use crate::reading::{DocumentFile, Reading};
use crate::server::{self, ServerSettings};
use crate::tool::{self, ToolSettings};
use crate::view::View;

/// `[upstream.<name>]`.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// Its name, the first part of its tools' public names.
    pub name: UpstreamName,
    /// The OpenAPI document, already read: at most `document_bytes_max` bytes.
    pub openapi: DocumentFile,
    /// Where its other files are.
    pub root: DocumentRoot,
    /// What is applied to the document before it is read, in this order; already read.
    pub overlays: Vec<DocumentFile>,
    /// Servers that its other files may be fetched from.
    pub references: Option<ReferenceSettings>,
    /// Where the service is, exactly as written: http or https, no user, query or fragment.
    pub destination: String,
    /// Where it may be, beyond the public internet.
    pub network: NetworkSettings,
    /// Whom to trust.
    pub tls: TlsSettings,
    /// Whether redirects are followed.
    pub redirects: Redirects,
    /// The deadline of calls whose tool sets none; at most `call_timeout_max`.
    pub timeout: Option<Duration>,
    /// Headers on every request, in the order of the file. None of them is reserved or the name of a credential.
    pub headers: Vec<(String, String)>,
    /// How Tollhouse identifies itself.
    pub credentials: CredentialSettings,
    /// Who clears what is in the way of operations.
    pub blockers: Vec<BlockerSettings>,
    /// What may be probed, and where.
    pub probe: Option<ProbeSettings>,
    /// The operations that are tools, in the order of the file.
    pub tools: Vec<ToolSettings>,
}

/// The folder that the relative references of a document stay inside of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRoot {
    /// The folder, as [`World::read_inside`](crate::World::read_inside) takes it.
    pub folder: PathBuf,
    /// The document in it, with `/` between the steps: `spec/billing.yaml`.
    pub document: String,
}

/// `[upstream.<name>.references]`.
#[derive(Debug, Clone)]
pub struct ReferenceSettings {
    /// URLs: one whose path ends with `/` allows everything below it, any other one file.
    pub from: Vec<Url>,
    /// Where these servers may be, beyond the public internet.
    pub network: NetworkSettings,
    /// Whom to trust.
    pub tls: TlsSettings,
}

impl ReferenceSettings {
    /// Whether a file may be fetched from a URL.
    #[must_use]
    pub fn allow(&self, url: &Url) -> bool {
        self.from.iter().any(|from| {
            from.scheme() == url.scheme()
                && from.host() == url.host()
                && from.port_or_known_default() == url.port_or_known_default()
                && if from.path().ends_with('/') {
                    url.path().starts_with(from.path())
                } else {
                    url.path() == from.path()
                }
        })
    }
}

/// Whether redirects of an upstream are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// A redirect is a fault of the upstream.
    None,
    /// Followed for reading calls, to the same scheme, host and port only.
    SameOrigin,
}

/// All upstreams: services, and MCP servers. Those that cannot be read are left out; their faults are known.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    root: &View<'_>,
) -> (Vec<UpstreamSettings>, Vec<ServerSettings>) {
    let (mut upstreams, mut servers) = (Vec::new(), Vec::new());
    let mut tools = 0_usize;
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (name, view) in root.named("upstream") {
        let written = view.named("tool");
        tools += written.len();
        for (tool, tool_view) in &written {
            distinct(reading, &mut names, &format!("{name}_{tool}"), tool_view);
        }
        if server::is_one(&view) {
            servers.extend(server::read(reading, name, &view));
            continue;
        }
        if written.is_empty() {
            let warning = reading.fault(
                view.header,
                &view.path,
                FaultKind::Ineffective,
                "this upstream has no tools",
            );
            reading.warnings.push(warning.hint(format!(
                "list the operations that may be called, as [upstream.{name}.tool.NAME]"
            )));
        }
        upstreams.extend(one(reading, name, &view));
    }
    if tools > reading.limits.tools_max {
        let max = reading.limits.tools_max;
        let fault = reading.fault_at(
            root,
            "upstream",
            FaultKind::OutOfRange,
            format!("there are {tools} tools; at most {max} are allowed"),
        );
        reading
            .faults
            .push(fault.hint("enable fewer, or raise `limits.tools_max`"));
    }
    (upstreams, servers)
}

/// Names that differ only in the case of letters are one name to a person, and to some clients.
fn distinct(reading: &mut Reading<'_>, names: &mut BTreeMap<String, String>, name: &str, view: &View<'_>) {
    if let Some(first) = names.insert(name.to_ascii_lowercase(), name.to_owned()) {
        let problem = format!("`{name}` and `{first}` are the same public name but for the case of letters");
        let fault = reading.fault(view.header, &view.path, FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("give one of them another name"));
    }
}

fn one(reading: &mut Reading<'_>, name: &str, view: &View<'_>) -> Option<UpstreamSettings> {
    let path = reading.resolve(view, "openapi").map(|path| path.text);
    let max = reading.limits.document_bytes_max;
    let document = path
        .as_deref()
        .and_then(|path| reading.file_of(view, "openapi", path, max, FaultKind::Unreadable));
    let root = path.as_deref().and_then(|path| root(reading, view, path));
    let overlays = overlays(reading, view);
    let references = view.table("references").map(|view| references(reading, &view));
    let destination = reading.resolve(view, "destination").map(|resolved| resolved.text);
    let (network, tls) = (network(view), tls(reading, view));
    let credentials = credential::read(reading, view);
    if let Some(url) = destination
        .as_deref()
        .and_then(|destination| Url::parse(destination).ok())
    {
        reachable(reading, view, "destination", &url, &network);
        if view.has("credential") || view.has("credentials") {
            clear_line(reading, view, "destination", &url);
        }
    }
    let timeout = timeout(reading, view);
    let headers = headers(view);
    let upstream = UpstreamName::parse(name).ok();
    let probe = probe::read(reading, upstream.as_ref(), view);
    let written = view.named("tool");
    let tools = written
        .iter()
        .map(|(tool, tool_view)| tool::read(reading, (upstream.as_ref(), view), tool, tool_view))
        .collect::<Vec<_>>();
    Some(UpstreamSettings {
        name: upstream?,
        openapi: document?,
        root: root?,
        overlays: overlays?,
        references: references.map_or(Some(None), |references| references.map(Some))?,
        destination: destination?,
        network,
        tls,
        redirects: view.parsed("redirects", redirects)?,
        timeout,
        headers,
        credentials: credentials?,
        blockers: blocker::read(view)?,
        probe: probe?,
        tools: tools.into_iter().collect::<Option<_>>()?,
    })
}

/// Where the other files of a document are.
fn root(reading: &mut Reading<'_>, view: &View<'_>, document: &str) -> Option<DocumentRoot> {
    let path = reading.path(document);
    let Some(written) = view.text("openapi_root") else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        return Some(DocumentRoot {
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            document: name.unwrap_or_default(),
        });
    };
    let plain = |path: &Path| {
        path.components()
            .filter(|step| *step != Component::CurDir)
            .collect::<PathBuf>()
    };
    let folder = plain(&reading.path(&written));
    let inside = plain(&path).strip_prefix(&folder).ok().and_then(|inside| {
        inside
            .components()
            .map(|step| match step {
                Component::Normal(name) => name.to_str().map(str::to_owned),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
            })
            .collect::<Option<Vec<String>>>()
    });
    let Some(steps) = inside.filter(|steps| !steps.is_empty()) else {
        let problem = format!("the document `{document}` is not inside `{written}`");
        let fault = reading.fault_at(view, "openapi_root", FaultKind::Conflict, problem);
        reading
            .faults
            .push(fault.hint("name a folder above the document, spelled as in `openapi`"));
        return None;
    };
    Some(DocumentRoot {
        folder,
        document: steps.join("/"),
    })
}

fn overlays(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Vec<DocumentFile>> {
    let max = reading.limits.document_bytes_max;
    view.texts("overlays")
        .into_iter()
        .map(|path| reading.file_of(view, "overlays", &path.text, max, FaultKind::Unreadable))
        .collect()
}

fn references(reading: &mut Reading<'_>, view: &View<'_>) -> Option<ReferenceSettings> {
    let network = network(view);
    let mut from = Vec::new();
    for placed in view.texts("from") {
        let url = Url::parse(&placed.text).ok()?;
        reachable(reading, view, "from", &url, &network);
        from.push(url);
    }
    Some(ReferenceSettings {
        from,
        network,
        tls: tls(reading, view),
    })
}

/// The `headers` of an upstream.
pub(crate) fn headers(view: &View<'_>) -> Vec<(String, String)> {
    let headers = view.named_texts("headers").into_iter();
    headers
        .filter_map(|(header, texts, _)| {
            texts
                .into_iter()
                .next()
                .map(|value| (header.to_owned(), value.text))
        })
        .collect()
}

fn redirects(text: &str) -> Result<Redirects, ()> {
    match text {
        "none" => Ok(Redirects::None),
        "same-origin" => Ok(Redirects::SameOrigin),
        _ => Err(()),
    }
}

/// The `timeout` of an upstream or a tool.
pub(crate) fn timeout(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Duration> {
    let timeout = view.duration("timeout")?;
    let max = reading.limits.call_timeout_max;
    if timeout > max {
        let text = |duration: Duration| millis_text(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        let problem = format!(
            "`{}` is longer than `limits.call_timeout_max`, which is {}",
            text(timeout),
            text(max)
        );
        let fault = reading.fault_at(view, "timeout", FaultKind::OutOfRange, problem);
        reading.faults.push(fault.hint("shorten it, or raise the limit"));
    }
    Some(timeout)
}

/// A credential over a line that anybody on the way can read is worth a word, though inside one machine or one
/// network it is common.
pub(crate) fn clear_line(reading: &mut Reading<'_>, view: &View<'_>, key: &str, url: &Url) {
    if url.scheme() == "http" && !address::is_loopback(url) {
        let problem = "the credential is sent to this destination without TLS";
        let warning = reading.fault_at(view, key, FaultKind::Unsafe, problem);
        reading
            .warnings
            .push(warning.hint("use https where the service has it"));
    }
}
