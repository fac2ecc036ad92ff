//! Which part of the catalogue an endpoint shows, and by which names: all of it, one upstream, or a view that was put
//! together by hand.
//!
//! It only ever leaves out. What a mount does not show is unknown there, like a tool that does not exist; what it shows is
//! decided by the same rules as everywhere.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::Tool;
use model::{ToolName, UpstreamName};

/// A part of the catalogue. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Mount {
    /// All tools, by their public names.
    #[default]
    All,
    /// The tools of one upstream, by their names without its own in front.
    Upstream(UpstreamName),
    /// These tools, by their public names.
    View(Arc<BTreeSet<ToolName>>),
}

impl Mount {
    /// The public name of what is called by a name here.
    #[must_use]
    pub fn public<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self {
            Self::All | Self::View(_) => Cow::Borrowed(name),
            Self::Upstream(upstream) => Cow::Owned(format!("{upstream}_{name}")),
        }
    }

    /// Whether a tool is shown here.
    #[must_use]
    pub fn shows(&self, tool: &Tool) -> bool {
        match self {
            Self::All => true,
            Self::Upstream(upstream) => tool.upstream() == upstream,
            Self::View(names) => names.contains(tool.name()),
        }
    }

    /// Whether tools of several upstreams may be shown here.
    #[must_use]
    pub const fn shows_several(&self) -> bool {
        match self {
            Self::All | Self::View(_) => true,
            Self::Upstream(_) => false,
        }
    }

    /// How much of a public name is left out in front, in bytes.
    #[must_use]
    pub fn left_out(&self) -> usize {
        match self {
            Self::All | Self::View(_) => 0,
            Self::Upstream(upstream) => upstream.as_str().len() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_on_the_endpoint_of_an_upstream_is_its_public_name_without_the_front() {
        let mount = Mount::Upstream(UpstreamName::parse("far").unwrap());
        let public = mount.public("echo");
        assert_eq!(public, "far_echo");
        assert_eq!(public.get(mount.left_out()..), Some("echo"));
        for whole in [Mount::All, Mount::View(Arc::default())] {
            assert_eq!(whole.public("far_echo"), "far_echo");
            assert_eq!(whole.left_out(), 0);
        }
    }
}
