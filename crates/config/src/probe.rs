//! Probes of an upstream: the environment that may be probed, what is called there, and who bears witness of its state.
//! It probes nothing.

use model::{SourceName, ToolName, UpstreamName};

use crate::fault::FaultKind;
use crate::reading::Reading;
use crate::view::View;

/// `[upstream.<name>.probe]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSettings {
    /// The environment that the operator owns and marked as synthetic, as `destination` of the upstream writes it.
    pub destination: String,
    /// What is called: a tool of this upstream, and its arguments as a JSON object.
    pub calls: Vec<(ToolName, String)>,
    /// Who bears witness, by name, in the order of the file. Never empty.
    pub witnesses: Vec<(String, WitnessSettings)>,
}

/// Something that shows the state of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WitnessSettings {
    /// The one value that a query gives.
    Sql {
        /// A source with `sql`.
        source: SourceName,
        /// The query.
        query: String,
    },
    /// The answer of a reading tool of this upstream.
    Tool {
        /// The tool.
        tool: ToolName,
        /// Its arguments, as a JSON object.
        arguments: String,
    },
    /// The names and contents of all files in a folder.
    Folder(String),
}

pub(crate) fn read(
    reading: &mut Reading<'_>,
    upstream: Option<&UpstreamName>,
    view: &View<'_>,
) -> Option<Option<ProbeSettings>> {
    let Some(probe) = view.table("probe") else {
        return Some(None);
    };
    let written = view.named("tool");
    let destination = probe.text("destination");
    // The mark itself; the check knows that it is there and which word it is.
    let _mark = probe.text("environment");
    let public = |reading: &mut Reading<'_>, of: &View<'_>, key: &str, name: &str| {
        if !written.iter().any(|(tool, _)| *tool == name) {
            let problem = format!("`{name}` is no tool of this upstream");
            let fault = reading.fault_at(of, key, FaultKind::WrongValue, problem);
            reading
                .faults
                .push(fault.hint("name one as it stands behind `tool.`"));
            return None;
        }
        ToolName::parse(&format!("{}_{name}", upstream?)).ok()
    };
    let calls: Vec<_> = probe
        .named_texts("call")
        .into_iter()
        .map(|(name, texts, _)| {
            let arguments = texts.into_iter().next()?.text;
            Some((public(reading, &probe, "call", name)?, arguments))
        })
        .collect();
    let mut witnesses = Vec::new();
    for (name, witness) in probe.named("witness") {
        let settings = if let Some(folder) = witness.text("folder") {
            Some(WitnessSettings::Folder(
                reading.path(&folder).display().to_string(),
            ))
        } else if let Some(tool) = witness.text("tool") {
            public(reading, &witness, "tool", &tool).and_then(|tool| {
                Some(WitnessSettings::Tool {
                    tool,
                    arguments: witness.text("arguments")?,
                })
            })
        } else {
            sql(reading, &witness)
        };
        witnesses.push(settings.map(|settings| (name.to_owned(), settings)));
    }
    Some(Some(ProbeSettings {
        destination: destination?,
        calls: calls.into_iter().collect::<Option<_>>()?,
        witnesses: witnesses.into_iter().collect::<Option<_>>()?,
    }))
}

fn sql(reading: &mut Reading<'_>, witness: &View<'_>) -> Option<WitnessSettings> {
    let source = witness.parsed("source", SourceName::parse)?;
    let Some(query) = witness.text("query") else {
        let fault = reading.fault(
            witness.header,
            &witness.key("query"),
            FaultKind::Missing,
            "this key is missing: a source is asked with a query",
        );
        reading
            .faults
            .push(fault.expected("it, as `query = \"select count(*) from invoice\"`"));
        return None;
    };
    Some(WitnessSettings::Sql { source, query })
}
