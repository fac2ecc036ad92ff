//! The proof that a name stands for an approved tool, and what it is when it does not.

use std::sync::Arc;

use model::{Digest, ToolName};

use crate::tool::Tool;

/// Proof that this tool's live definition is the one that a person approved.
///
/// Only [`Catalog::admit`](crate::Catalog::admit) makes one.
///
/// It cannot be written down by hand:
/// ```compile_fail,E0451
/// let forged = catalog::Admitted { tool: unimplemented!() };
/// ```
/// nor copied:
/// ```compile_fail,E0308
/// fn twice(one: &catalog::Admitted) -> catalog::Admitted { one.clone() }
/// ```
/// nor made of nothing:
/// ```compile_fail,E0277
/// let forged: catalog::Admitted = Default::default();
/// ```
/// What it holds can be looked at:
/// ```
/// fn look(one: &catalog::Admitted) -> model::Digest { one.pin() }
/// ```
#[must_use = "a tool that was admitted was asked for"]
#[derive(Debug)]
pub struct Admitted {
    /// Invariant: in the catalogue, and not held for the caller at the time of asking.
    tool: Arc<Tool>,
}

/// Why a name is not admitted. The two read the same to an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// Nothing has this name.
    #[error("no tool and no operation has this name")]
    Unknown,
    /// Something has this name, and a person has not approved it.
    #[error("held: {why}")]
    Held {
        /// What it is and what would enable it, for the operator.
        why: String,
    },
}

impl Admitted {
    pub(crate) const fn new(tool: Arc<Tool>) -> Self {
        Self { tool }
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// The tool, to be kept beside the call.
    #[must_use]
    pub fn shared(&self) -> Arc<Tool> {
        Arc::clone(&self.tool)
    }

    /// Its public name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        self.tool.name()
    }

    /// What was approved.
    #[must_use]
    pub fn pin(&self) -> Digest {
        self.tool.pin()
    }
}
