//! The lists: what a caller may use in some way, of each kind, in a stable order, a page at a time.
//!
//! The same rules decide here as at the call: something is left out only if every call of this caller would be refused.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::{ServerTool, Tool};
use identity::Principal;
use jiff::Timestamp;
use model::{ToolName, Value};
use wire::answer::Offers;
use wire::{Ask, Failure, ItemPage, Page, Surface};

use crate::house::Gateway;
use crate::mount::Mount;
use crate::wanted::Wanted;

/// What stands before the name in a cursor of a list, so that one of another list or another form can be told from it.
const fn form(surface: Surface) -> &'static str {
    match surface {
        Surface::Tools => "t1:",
        Surface::Prompts => "p1:",
        Surface::Resources => "r1:",
        Surface::Templates => "m1:",
    }
}

impl Gateway {
    /// One page of the tools that this caller may use, as far as `mount` shows them.
    ///
    /// `cursor` is what the last page gave (PAG-01). It names a place, not a right: a cursor of somebody else gives
    /// nothing that this caller could not list anyway.
    ///
    /// # Errors
    /// [`Failure::BadCursor`] for a text that was not given out here (PAG-03).
    pub fn list(&self, principal: &Principal, mount: &Mount, cursor: Option<&str>) -> Result<Page, Failure> {
        let (tools, next) = self.page(principal, mount, Surface::Tools, cursor)?;
        let tools = tools.into_iter().map(|tool| Arc::clone(tool.definition()));
        Ok(Page {
            tools: tools.collect(),
            next,
            left_out: mount.left_out(),
        })
    }

    /// The same of prompts, resources or templates.
    ///
    /// # Errors
    /// As of [`Self::list`].
    pub fn items(
        &self,
        principal: &Principal,
        mount: &Mount,
        surface: Surface,
        cursor: Option<&str>,
    ) -> Result<ItemPage, Failure> {
        let (offered, next) = self.page(principal, mount, surface, cursor)?;
        let items = offered
            .into_iter()
            .filter_map(|tool| tool.server_tool()?.item().map(Arc::clone));
        Ok(ItemPage {
            surface,
            items: items.collect(),
            next,
            left_out: mount.left_out(),
        })
    }

    fn page<'g>(
        &'g self,
        principal: &'g Principal,
        mount: &'g Mount,
        surface: Surface,
        cursor: Option<&str>,
    ) -> Result<(Vec<&'g Arc<Tool>>, Option<String>), Failure> {
        let after = cursor.map(|cursor| parse(surface, cursor)).transpose()?;
        let mut visible = self
            .visible(principal, mount, after)
            .filter(|tool| tool.surface() == surface);
        let page: Vec<&Arc<Tool>> = visible.by_ref().take(self.limits.tools_per_page).collect();
        let next = match (page.last(), visible.next()) {
            (Some(last), Some(_)) => Some(write(surface, last.name())),
            (Some(_) | None, _) => None,
        };
        Ok((page, next))
    }

    /// Whether `mount` has anything for what is asked, whoever asks; if not, the method is not served there.
    #[must_use]
    pub fn serves(&self, mount: &Mount, ask: &Ask) -> bool {
        self.serves_method(mount, ask.method())
    }

    /// The same of a method of the era in which it is asked for.
    #[must_use]
    pub fn serves_method(&self, mount: &Mount, method: &str) -> bool {
        let has = |is_it: fn(&Tool) -> bool| {
            let mut tools = self.catalog.tools();
            tools.any(|tool| is_it(tool) && mount.shows(tool))
        };
        match method {
            "prompts/list" | "prompts/get" => has(|tool| tool.surface() == Surface::Prompts),
            "resources/list" | "resources/templates/list" | "resources/read" => has(is_read),
            "completion/complete" => has(|tool| tool.server_tool().is_some_and(ServerTool::completes)),
            "resources/subscribe" | "resources/unsubscribe" => {
                has(|tool| tool.server_tool().is_some_and(ServerTool::subscribes))
            }
            "logging/setLevel" => self.logs(mount),
            // SUB-09.
            "subscriptions/listen" => has(|tool| tool.server_tool().is_some()),
            _ => true,
        }
    }

    /// The schema of a tool by its name on `mount`, where arguments of it have to stand in headers too (HM-17). `None` also
    /// where this caller is shown no such tool.
    #[must_use]
    pub fn schema_with_headers(
        &self,
        principal: &Principal,
        mount: &Mount,
        name: &str,
    ) -> Option<Arc<Value>> {
        // Most tools want none, and nothing is asked of the rules for those.
        let tool = self.catalog.tool(&mount.public(name))?;
        let wants = tool.server_tool().is_some_and(ServerTool::mirrors);
        let is_shown = wants && self.is_shown(tool, principal, mount, self.now());
        is_shown.then(|| Arc::clone(&tool.definition().input_schema))
    }

    /// What there is beside tools for this caller, as far as `mount` shows it.
    #[must_use]
    pub fn offers(&self, principal: &Principal, mount: &Mount) -> Offers {
        let is_of_a_server = |tool: &&Arc<Tool>| tool.server_tool().is_some() && mount.shows(tool);
        let mut offers = Offers {
            // What comes from documents changes with a restart only.
            changes: self.catalog.tools().any(|tool| is_of_a_server(&tool)),
            logs: self.logs(mount),
            ..Offers::default()
        };
        // Where there is nothing but tools, nothing is asked of the rules.
        let beside = |tool: &&Arc<Tool>| tool.surface() != Surface::Tools;
        if !self.catalog.tools().any(|tool| beside(&tool)) {
            return offers;
        }
        for tool in self.visible(principal, mount, None).filter(beside) {
            match tool.surface() {
                Surface::Tools => {}
                Surface::Prompts => offers.prompts = true,
                Surface::Resources | Surface::Templates => offers.resources = true,
            }
            offers.updates |= tool.server_tool().is_some_and(ServerTool::subscribes);
            offers.completions |= tool.server_tool().is_some_and(ServerTool::completes);
        }
        offers
    }

    /// Whether a server that `mount` shows something of logs to its clients (LOG-01).
    #[must_use]
    pub fn logs(&self, mount: &Mount) -> bool {
        let mut tools = self.catalog.tools();
        tools.any(|tool| mount.shows(tool) && tool.server_tool().is_some_and(ServerTool::logs))
    }

    /// Whether the server of what is wanted may log to this caller meanwhile. What he may not use reads as not there.
    #[must_use]
    pub fn may_log(&self, principal: &Principal, mount: &Mount, wanted: &Wanted) -> bool {
        let name = match wanted {
            Wanted::Tool { name, .. } | Wanted::Prompt { name, .. } => mount.public(name),
            Wanted::Resource { uri } => match self.catalog.reads(uri, |tool| mount.shows(tool)) {
                Ok((name, _)) => name.to_string().into(),
                Err(_) => return false,
            },
            Wanted::Follow { .. } | Wanted::Completion(_) => return false,
        };
        self.catalog.tool(&name).is_some_and(|tool| {
            tool.server_tool().is_some_and(ServerTool::logs)
                && self.is_shown(tool, principal, mount, self.now())
        })
    }

    fn visible<'g>(
        &'g self,
        principal: &'g Principal,
        mount: &'g Mount,
        after: Option<ToolName>,
    ) -> impl Iterator<Item = &'g Arc<Tool>> {
        let now = self.now();
        self.catalog
            .tools_after(after.as_ref().map(ToolName::as_str))
            .filter(move |tool| self.is_shown(tool, principal, mount, now))
    }

    /// Whether this caller is shown a tool on `mount`; one that he is not shown is not there for him.
    fn is_shown(&self, tool: &Tool, principal: &Principal, mount: &Mount, now: Timestamp) -> bool {
        mount.shows(tool)
            && tool.objection(Some(principal.caller()), now).is_none()
            && self.policy.listable(principal.caller(), tool.name())
    }
}

/// Whether it is read by its URI.
fn is_read(tool: &Tool) -> bool {
    matches!(tool.surface(), Surface::Resources | Surface::Templates)
}

fn write(surface: Surface, name: &ToolName) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{name}", form(surface)))
}

fn parse(surface: Surface, cursor: &str) -> Result<ToolName, Failure> {
    // The longest cursor that is given out has 90 characters; a longer text is not decoded.
    let bytes = if cursor.len() > 128 {
        None
    } else {
        URL_SAFE_NO_PAD.decode(cursor).ok()
    };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.strip_prefix(form(surface)))
        .and_then(|name| ToolName::parse(name).ok())
        .ok_or(Failure::BadCursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pag_03_a_cursor_is_read_back_and_no_other_text_is_one() {
        let name = ToolName::parse("billing_getInvoiceStatus").unwrap();
        for surface in Surface::ALL {
            let cursor = write(surface, &name);
            assert_eq!(parse(surface, &cursor), Ok(name.clone()));
            for other in Surface::ALL.into_iter().filter(|other| *other != surface) {
                assert_eq!(
                    parse(other, &cursor),
                    Err(Failure::BadCursor),
                    "{surface:?} {other:?}"
                );
            }
        }
        for text in [
            "",
            "x",
            "dDE6",
            "dDI6YQ",
            "!!",
            &"a".repeat(200),
            &URL_SAFE_NO_PAD.encode("t1:no name"),
        ] {
            assert_eq!(parse(Surface::Tools, text), Err(Failure::BadCursor), "{text}");
        }
    }
}
