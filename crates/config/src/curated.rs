//! Views: endpoints that show some tools of several upstreams, put together by hand.

use std::collections::BTreeSet;

use model::{ToolName, UpstreamName};

use crate::fault::FaultKind;
use crate::lookup::unknown_in;
use crate::reading::Reading;
use crate::view::View;

/// `[view.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewSettings {
    /// Its name: its endpoint is `/mcp/view/<name>`.
    pub name: UpstreamName,
    /// The public names of the tools that it shows. Never empty.
    pub tools: BTreeSet<ToolName>,
}

/// All views; `known` are the public names of all tools of the configuration.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    root: &View<'_>,
    known: &BTreeSet<ToolName>,
) -> Vec<ViewSettings> {
    let mut views = Vec::new();
    for (name, view) in root.named("view") {
        let mut tools = BTreeSet::new();
        for written in view.texts("tools") {
            let Ok(tool) = ToolName::parse(&written.text) else {
                continue;
            };
            let is_known = known.contains(&tool);
            if tools.insert(tool) {
                if !is_known {
                    let names = known.iter().map(ToolName::as_str);
                    unknown_in(reading, (&view, "tools"), "tool", &written.text, names);
                }
            } else {
                let problem = format!("`{}` stands twice", written.text);
                let fault = reading.fault_at(&view, "tools", FaultKind::Conflict, problem);
                reading.faults.push(fault.hint("take one of them out"));
            }
        }
        if let Ok(name) = UpstreamName::parse(name) {
            views.push(ViewSettings { name, tools });
        }
    }
    views
}
