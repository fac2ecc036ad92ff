//! What a server has: its lists, read whole, and held against what was approved.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{Abilities, Catalog, ServerTool, Tool};
use model::{Object, Value};
use tokio::time::Instant;
use wire::client::{Opened, Surface};

use crate::peer::conversation::Conversation;
use crate::peer::fault::PeerFault;
use crate::peer::lanes::LaneKey;
use crate::peer::{Far, Peer};

/// What a server is and has, as it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// What it says of itself.
    pub opened: Opened,
    /// Its tools, whole.
    pub tools: Vec<Object>,
    /// Its prompts, whole.
    pub prompts: Vec<Object>,
    /// Its resources, whole.
    pub resources: Vec<Object>,
    /// Its templates of resources, whole.
    pub templates: Vec<Object>,
}

impl Survey {
    /// Whether it says that it completes arguments. In the oldest revision there is no word for it; what completes there is
    /// found out by asking.
    fn completes(&self) -> bool {
        self.opened.capabilities.contains_key("completions") || !self.opened.revision.has_completions()
    }

    /// What it says that it does beside lists and calls.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        let capabilities = &self.opened.capabilities;
        let resources = capabilities.get("resources");
        Abilities {
            completes: self.completes(),
            logs: capabilities.contains_key("logging"),
            subscribes: resources.and_then(|resources| resources.get("subscribe"))
                == Some(&Value::Bool(true)),
        }
    }

    /// What it has of a kind.
    #[must_use]
    pub fn of(&self, surface: Surface) -> &[Object] {
        match surface {
            Surface::Tools => &self.tools,
            Surface::Prompts => &self.prompts,
            Surface::Resources => &self.resources,
            Surface::Templates => &self.templates,
        }
    }
}

impl Peer {
    /// Holds what the server has now against what was approved, in a conversation of our own.
    ///
    /// # Errors
    /// [`PeerFault`]; nothing is noted then.
    pub async fn check(self: &Arc<Self>, catalog: &Catalog, deadline: Instant) -> Result<(), PeerFault> {
        let conversation = self.ready(&LaneKey::Own, deadline, catalog).await?;
        self.read_lists(&conversation, deadline, catalog).await
    }

    /// Waits until the server tells, in any conversation, that a list has changed. Dropping the future loses nothing.
    pub async fn changed(&self) {
        self.opener.guard.1.notified().await;
    }

    /// What the server is and has.
    ///
    /// # Errors
    /// [`PeerFault`].
    pub async fn survey(self: &Arc<Self>, deadline: Instant) -> Result<Survey, PeerFault> {
        let conversation = self.ready(&LaneKey::Own, deadline, &Catalog::default()).await?;
        Ok(Survey {
            opened: conversation.opened().clone(),
            tools: self.list(&conversation, Surface::Tools, deadline).await?,
            prompts: self.list(&conversation, Surface::Prompts, deadline).await?,
            resources: self.list(&conversation, Surface::Resources, deadline).await?,
            templates: self.templates(&conversation, deadline).await?,
        })
    }

    async fn list(
        &self,
        conversation: &Conversation,
        surface: Surface,
        deadline: Instant,
    ) -> Result<Vec<Object>, PeerFault> {
        if conversation.opened().lists(surface) {
            conversation.list(surface, deadline).await
        } else {
            Ok(Vec::new())
        }
    }

    /// Its templates. Templates have no capability of their own, and a server that has only resources may not know the
    /// method.
    async fn templates(
        &self,
        conversation: &Conversation,
        deadline: Instant,
    ) -> Result<Vec<Object>, PeerFault> {
        match self.list(conversation, Surface::Templates, deadline).await {
            Err(PeerFault::NotListed { error, .. }) if error.code == -32_601 => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Reads the lists of what was approved, and notes in the catalogue what departs from it.
    pub(super) async fn read_lists(
        &self,
        conversation: &Conversation,
        deadline: Instant,
        catalog: &Catalog,
    ) -> Result<(), PeerFault> {
        let asked = Instant::now();
        for surface in Surface::ALL {
            // A list of which nothing was approved is not asked for, except that of tools: it shows that the server answers.
            if surface != Surface::Tools && !self.has_approved(surface, catalog) {
                continue;
            }
            let listed = match surface {
                Surface::Templates => self.templates(conversation, deadline).await?,
                Surface::Tools | Surface::Prompts | Surface::Resources => {
                    self.list(conversation, surface, deadline).await?
                }
            };
            // HM-17: headers count over HTTP in the stateless era.
            let has_headers = matches!(self.far, Far::Url { .. }) && conversation.opened().is_stateless();
            self.compare(surface, &listed, has_headers, catalog);
        }
        conversation.is_listed(asked);
        Ok(())
    }

    fn has_approved(&self, surface: Surface, catalog: &Catalog) -> bool {
        let mut own = catalog.tools().filter(|tool| *tool.upstream() == self.name);
        own.any(|tool| tool.surface() == surface)
    }

    fn compare(&self, surface: Surface, listed: &[Object], has_headers: bool, catalog: &Catalog) {
        let by_name: HashMap<&str, &Object> = listed
            .iter()
            .filter_map(|item| Some((item.get(surface.key()).and_then(Value::as_str)?, item)))
            .collect();
        for tool in catalog.tools().filter(|tool| *tool.upstream() == self.name) {
            if let Some(offered) = tool.server_tool()
                && offered.surface() == surface
                && offered.compare(by_name.get(offered.name()).copied(), has_headers)
            {
                heard_of(tool, offered);
                catalog.tell(tool);
            }
        }
    }
}

fn heard_of(tool: &Tool, server_tool: &ServerTool) {
    match server_tool.drift() {
        Some(drift) => tracing::warn!(tool = %tool.name(), %drift, "a tool is held"),
        None => tracing::info!(tool = %tool.name(), "the server says again what was approved"),
    }
}
