//! Upstreams, as configured: the document, the destination, the credential. The tools are in `tool.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::UpstreamName;
use url::Url;

use crate::address;
use crate::amount::millis_text;
use crate::credential::{self, CredentialSettings};
use crate::fault::FaultKind;
use crate::identity::{NetworkSettings, TlsSettings, network, reachable, tls};
use crate::probe::{self, ProbeSettings};
use crate::reading::{DocumentFile, Reading};
use crate::tool::{self, ToolSettings};
use crate::view::View;

/// `[upstream.<name>]`.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// Its name, the first part of its tools' public names.
    pub name: UpstreamName,
    /// The OpenAPI document, already read: at most `document_bytes_max` bytes.
    pub openapi: DocumentFile,
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
    /// What may be probed, and where.
    pub probe: Option<ProbeSettings>,
    /// The operations that are tools, in the order of the file.
    pub tools: Vec<ToolSettings>,
}

/// Whether redirects of an upstream are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// A redirect is a fault of the upstream.
    None,
    /// Followed for reading calls, to the same scheme, host and port only.
    SameOrigin,
}

/// All upstreams. Those that cannot be read are left out; their faults are known.
pub(crate) fn read(reading: &mut Reading<'_>, root: &View<'_>) -> Vec<UpstreamSettings> {
    let mut upstreams = Vec::new();
    let mut tools = 0_usize;
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (name, view) in root.named("upstream") {
        let written = view.named("tool");
        tools += written.len();
        for (tool, tool_view) in &written {
            distinct(reading, &mut names, &format!("{name}_{tool}"), tool_view);
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
    upstreams
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
    let document = reading.resolve(view, "openapi").and_then(|path| {
        let max = reading.limits.document_bytes_max;
        reading.file_of(view, "openapi", &path.text, max, FaultKind::Unreadable)
    });
    let destination = reading.resolve(view, "destination").map(|resolved| resolved.text);
    let (network, tls) = (network(view), tls(reading, view));
    let credentials = credential::read(reading, view);
    if let Some(url) = destination
        .as_deref()
        .and_then(|destination| Url::parse(destination).ok())
    {
        reachable(reading, view, "destination", &url, &network);
        if view.has("credential") || view.has("credentials") {
            clear_line(reading, view, &url);
        }
    }
    let timeout = timeout(reading, view);
    let headers = view
        .named_texts("headers")
        .into_iter()
        .filter_map(|(header, texts, _)| {
            texts
                .into_iter()
                .next()
                .map(|value| (header.to_owned(), value.text))
        });
    let headers = headers.collect();
    let upstream = UpstreamName::parse(name).ok();
    let probe = probe::read(reading, upstream.as_ref(), view);
    let tools = view
        .named("tool")
        .iter()
        .map(|(tool, view)| tool::read(reading, upstream.as_ref(), tool, view))
        .collect::<Vec<_>>();
    Some(UpstreamSettings {
        name: upstream?,
        openapi: document?,
        destination: destination?,
        network,
        tls,
        redirects: view.parsed("redirects", redirects)?,
        timeout,
        headers,
        credentials: credentials?,
        probe: probe?,
        tools: tools.into_iter().collect::<Option<_>>()?,
    })
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
fn clear_line(reading: &mut Reading<'_>, view: &View<'_>, url: &Url) {
    if url.scheme() == "http" && !address::is_loopback(url) {
        let problem = "the credential is sent to this destination without TLS";
        let warning = reading.fault_at(view, "destination", FaultKind::Unsafe, problem);
        reading
            .warnings
            .push(warning.hint("use https where the service has it"));
    }
}
