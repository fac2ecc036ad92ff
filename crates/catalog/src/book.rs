//! The catalogue: every tool by its public name, and every operation that is held.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use model::{Arguments, Caller, Digest, Object, ToolName, Value};
use wire::Surface;

use crate::admitted::{Admitted, NotAdmitted};
use crate::offer::URI;
use crate::tool::Tool;

/// The reviewed tools of all upstreams, in the order of their names.
#[derive(Debug, Default)]
pub struct Catalog {
    tools: BTreeMap<ToolName, Arc<Tool>>,
    held: HashMap<String, String>,
    root: Option<Digest>,
    ear: OnceLock<Ear>,
}

/// Whoever is told when something is held or comes back.
struct Ear(Box<Told>);

type Told = dyn Fn(&Arc<Tool>) + Send + Sync;

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ear(..)")
    }
}

/// An operation that no configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The public name that it would have.
    pub name: String,
    /// What it is and what would enable it, for the operator.
    pub why: String,
}

/// Why tools do not make a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogFault {
    /// Two tools with one name.
    #[error("two tools are called `{0}`")]
    Duplicate(ToolName),
}

impl Catalog {
    /// A catalogue of these tools; what is held is known by name only.
    ///
    /// # Errors
    /// [`CatalogFault`].
    pub fn new(
        tools: impl IntoIterator<Item = Tool>,
        held: impl IntoIterator<Item = Held>,
    ) -> Result<Self, CatalogFault> {
        let mut catalog = Self::default();
        for tool in tools {
            let name = tool.name().clone();
            if catalog.tools.insert(name.clone(), Arc::new(tool)).is_some() {
                return Err(CatalogFault::Duplicate(name));
            }
        }
        for held in held {
            if !catalog.tools.contains_key(held.name.as_str()) {
                catalog.held.insert(held.name, held.why);
            }
        }
        catalog.root = Some(catalog.digest());
        Ok(catalog)
    }

    /// The reviewed tool of this name, to look at. It is no permission: see [`Self::admit`].
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name).map(|tool| &**tool)
    }

    /// What a name stands for, for this caller at this time: a tool whose approvals are missing, have ended or are for
    /// others is held.
    ///
    /// # Errors
    /// [`NotAdmitted`]; the agent must not learn which.
    pub fn admit(&self, name: &str, caller: &Caller, now: Timestamp) -> Result<Admitted, NotAdmitted> {
        match self.tools.get(name) {
            Some(tool) => match tool.objection(Some(caller), now) {
                None => Ok(Admitted::new(Arc::clone(tool))),
                Some(objection) => Err(NotAdmitted::Held {
                    why: objection.to_string(),
                }),
            },
            None => Err(match self.held.get(name) {
                Some(why) => NotAdmitted::Held { why: why.clone() },
                None => NotAdmitted::Unknown,
            }),
        }
    }

    /// What a URI stands for, among what `shows` lets be seen: the arguments of the read, and the name of what is read.
    ///
    /// One resource fits better than a template, a longer template better than a shorter one.
    ///
    /// # Errors
    /// [`NotAdmitted::Unknown`] if nothing fits, and [`NotAdmitted::Held`] if what fits belongs to several servers: nobody
    /// could say which of them is meant.
    pub fn reads(
        &self,
        uri: &str,
        shows: impl Fn(&Tool) -> bool,
    ) -> Result<(ToolName, Arguments), NotAdmitted> {
        let mut best: Option<(usize, &Arc<Tool>, Object)> = None;
        let mut owner = None;
        for tool in self.tools.values().filter(|tool| shows(tool)) {
            let Some((exact, values)) = tool.server_tool().and_then(|own| own.reads(uri)) else {
                continue;
            };
            if *owner.get_or_insert(tool.upstream()) != tool.upstream() {
                return Err(NotAdmitted::Held {
                    why: format!(
                        "`{}` and another server have a resource with this URI; read it on the endpoint of one of them",
                        tool.upstream()
                    ),
                });
            }
            if best.as_ref().is_none_or(|(known, ..)| exact > *known) {
                best = Some((exact, tool, values));
            }
        }
        let (_, tool, values) = best.ok_or(NotAdmitted::Unknown)?;
        let mut arguments = Object::new();
        arguments.insert(URI.to_owned(), uri.into());
        arguments.extend(values);
        let arguments = Arguments::of_texts(&Value::Object(arguments)).ok_or(NotAdmitted::Unknown)?;
        Ok((tool.name().clone(), arguments))
    }

    /// The template with this text, among what `shows` lets be seen.
    ///
    /// # Errors
    /// As of [`Self::reads`].
    pub fn template(&self, text: &str, shows: impl Fn(&Tool) -> bool) -> Result<ToolName, NotAdmitted> {
        let is_it =
            |tool: &&Arc<Tool>| tool.surface() == Surface::Templates && tool.origin() == text && shows(tool);
        let mut found = self.tools.values().filter(is_it);
        match (found.next(), found.next()) {
            (Some(tool), None) => Ok(tool.name().clone()),
            (None, _) => Err(NotAdmitted::Unknown),
            (Some(_), Some(other)) => Err(NotAdmitted::Held {
                why: format!(
                    "`{}` and another server have this template; ask on the endpoint of one of them",
                    other.upstream()
                ),
            }),
        }
    }

    /// Every tool, in the order of names: the same order for everybody, always (TOOL-02).
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// The tools behind a name, which need not be there any more: where a page of a list goes on.
    pub fn tools_after(&self, name: Option<&str>) -> impl Iterator<Item = &Arc<Tool>> + use<'_> {
        use std::ops::Bound;
        let start = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.tools
            .range::<str, _>((start, Bound::Unbounded))
            .map(|(_, tool)| tool)
    }

    /// Has somebody told from now on when a server departs from what was approved, or comes back to it. Only the first is.
    pub fn on_news(&self, told: impl Fn(&Arc<Tool>) + Send + Sync + 'static) {
        let _ = self.ear.set(Ear(Box::new(told)));
    }

    /// Tells that what a server says of this tool is no longer, or again, what was approved.
    pub fn tell(&self, tool: &Arc<Tool>) {
        if let Some(Ear(told)) = self.ear.get() {
            told(tool);
        }
    }

    /// How many operations are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// A digest over all pins: one word for "the same tools".
    #[must_use]
    pub fn root(&self) -> Digest {
        self.root.unwrap_or_else(|| self.digest())
    }

    fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(self.tools.len() * 96);
        for (name, tool) in &self.tools {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(tool.pin().as_bytes());
        }
        Digest::of("tollhouse/catalog/v1", &[&bytes])
    }
}
