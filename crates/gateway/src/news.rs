//! Which lists have changed, for whoever listens: what a server offers is held, or comes back, while clients are there.
//!
//! Nobody is told of what he could not see anyway. Whoever reads slowly misses single news and learns that something
//! changed, which is all that there is to learn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use catalog::Tool;
use identity::Principal;
use model::Refusal;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};
use wire::{Surface, Wants};

use crate::house::Gateway;
use crate::mount::Mount;
use crate::slots::Slot;

/// News that wait for a slow listener.
const WAITING: usize = 1_024;
/// Between two pieces of news for one listener, at least.
const PACE: Duration = Duration::from_millis(50);

/// Where news come from.
#[derive(Debug)]
pub(crate) struct News(Sender<Arc<Tool>>);

impl News {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(WAITING).0)
    }

    pub(crate) fn sender(&self) -> Sender<Arc<Tool>> {
        self.0.clone()
    }
}

/// What one client hears.
#[derive(Debug)]
pub struct Listener {
    gateway: Arc<Gateway>,
    principal: Arc<Principal>,
    mount: Mount,
    wants: Wants,
    news: Receiver<Arc<Tool>>,
    /// A place among the subscriptions, where it is one.
    _slot: Option<Slot>,
}

impl Gateway {
    /// Listens for a session, which hears of every list.
    #[must_use]
    pub fn listen(self: &Arc<Self>, principal: &Arc<Principal>, mount: &Mount) -> Listener {
        let wants = Wants {
            tools: true,
            prompts: true,
            resources: true,
        };
        self.listener(principal, mount, wants, None)
    }

    /// Listens for a subscription. Gives also what of its wants is honoured.
    ///
    /// # Errors
    /// [`Refusal`]: too many are open.
    pub fn subscribe(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        mount: &Mount,
        wants: Wants,
    ) -> Result<(Listener, Wants), Refusal> {
        let slot = self.subscriptions.take(principal.key())?;
        let offers = self.offers(principal, mount);
        let honoured = wants.and(Wants {
            tools: offers.changes,
            prompts: offers.changes && offers.prompts,
            resources: offers.changes && offers.resources,
        });
        Ok((self.listener(principal, mount, honoured, Some(slot)), honoured))
    }

    fn listener(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        mount: &Mount,
        wants: Wants,
        slot: Option<Slot>,
    ) -> Listener {
        Listener {
            gateway: Arc::clone(self),
            principal: Arc::clone(principal),
            mount: mount.clone(),
            wants,
            news: self.news.sender().subscribe(),
            _slot: slot,
        }
    }
}

impl Listener {
    /// Waits until lists have changed, and gives them: [`Surface::Templates`] counts as [`Surface::Resources`]. Empty: the
    /// gate is gone.
    ///
    /// Dropping the future may lose news.
    pub async fn next(&mut self) -> BTreeSet<Surface> {
        loop {
            let mut changed = BTreeSet::new();
            match self.news.recv().await {
                Ok(tool) => self.hear(&tool, &mut changed),
                Err(RecvError::Lagged(_)) => self.hear_all(&mut changed),
                Err(RecvError::Closed) => return changed,
            }
            // What a server changes it mostly changes at once.
            tokio::time::sleep(PACE).await;
            loop {
                match self.news.try_recv() {
                    Ok(tool) => self.hear(&tool, &mut changed),
                    Err(broadcast::error::TryRecvError::Lagged(_)) => self.hear_all(&mut changed),
                    Err(_) => break,
                }
            }
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    fn hear(&self, tool: &Tool, changed: &mut BTreeSet<Surface>) {
        let surface = match tool.surface() {
            Surface::Templates => Surface::Resources,
            other => other,
        };
        let concerns = self.wants.of(surface)
            && self.mount.shows(tool)
            && self.gateway.policy.listable(self.principal.caller(), tool.name());
        if concerns {
            changed.insert(surface);
        }
    }

    fn hear_all(&self, changed: &mut BTreeSet<Surface>) {
        let all = [Surface::Tools, Surface::Prompts, Surface::Resources];
        changed.extend(all.into_iter().filter(|surface| self.wants.of(*surface)));
    }
}
