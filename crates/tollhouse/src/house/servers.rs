//! The MCP servers of the configuration: peers that are connected to when they are needed, and the tools that were approved.

use catalog::{ApprovedDefinition, Held, Lock, ReviewFault, Tool};
use config::{Reach, ServerSettings, Settings, ToolSettings};
use gateway::usable_schema;
use upstream::{Peer, Yard};
use wire::{Identity, Revision, Surface};

use crate::problem::Problem;

/// What comes of one server.
pub(crate) struct Served {
    pub(crate) peer: Option<Peer>,
    pub(crate) tools: Vec<Tool>,
    /// Tools of the configuration that are not offered, because nobody has approved them yet or they cannot be used.
    pub(crate) held: Vec<Held>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

/// How this program names itself to servers.
pub(crate) fn identity() -> Identity {
    Identity {
        name: "tollhouse".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// A server, and its tools as they were approved.
pub(crate) fn serve(settings: &Settings, server: &ServerSettings, yard: &Yard, lock: &Lock) -> Served {
    let mut served = Served {
        peer: None,
        tools: Vec::new(),
        held: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    if let Some(problem) = unspoken(settings, server) {
        served.problems.push(problem);
    }
    match peer(settings, server, yard) {
        Ok(peer) => served.peer = Some(peer),
        Err(problem) => served.problems.push(problem),
    }
    let approved = lock.server(&server.name);
    let abilities = approved.map(catalog::LockedServer::abilities).unwrap_or_default();
    for (surface, bounds) in offered(server) {
        let known = approved.and_then(|locked| locked.of(surface).get(&bounds.operation));
        let made = |known: &ApprovedDefinition| match surface {
            Surface::Tools => Tool::of_server(&server.name, bounds, known, abilities),
            Surface::Prompts | Surface::Resources | Surface::Templates => {
                Tool::of_offer(&server.name, bounds, surface, known, abilities)
            }
        };
        let why = match known {
            None => Some(format!(
                "nobody has approved `{}` of `{}` yet; look at `tollhouse pins diff {}`, then approve it",
                bounds.operation, server.name, server.name
            )),
            Some(known) => match made(known) {
                // One tool that cannot be used never keeps the rest of the house closed.
                Ok(tool) => match unusable(&tool) {
                    None => {
                        served.tools.push(tool);
                        None
                    }
                    Some(why) => Some(why),
                },
                Err(ReviewFault::Unusable { why, .. }) => {
                    Some(format!("its definition cannot be used: {why}"))
                }
                Err(fault) => {
                    let text = fault.to_string();
                    let text = text
                        .strip_prefix(&format!("`{}`: ", fault.key()))
                        .unwrap_or(&text);
                    served
                        .problems
                        .push(Problem::at(settings, &fault.key(), "pins", text));
                    continue;
                }
            },
        };
        if let Some(why) = why {
            let text = format!("the {} is held: {why}", word(surface));
            served
                .warnings
                .push(Problem::at(settings, &bounds.key, "pins", text));
            served.held.push(Held {
                name: bounds.name.to_string(),
                why,
            });
        }
    }
    served
}

/// Everything that is offered of a server.
pub(crate) fn offered(server: &ServerSettings) -> impl Iterator<Item = (Surface, &ToolSettings)> {
    let all = [
        (Surface::Tools, &server.tools),
        (Surface::Prompts, &server.prompts),
        (Surface::Resources, &server.resources),
        (Surface::Templates, &server.templates),
    ];
    all.into_iter()
        .flat_map(|(surface, settings)| settings.iter().map(move |one| (surface, one)))
}

/// A kind, for people.
pub(crate) const fn word(surface: Surface) -> &'static str {
    match surface {
        Surface::Tools => "tool",
        Surface::Prompts => "prompt",
        Surface::Resources => "resource",
        Surface::Templates => "template",
    }
}

/// Where the servers are that are started. None is yet.
pub(crate) fn yard(settings: &Settings) -> Result<Yard, Problem> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the launcher of servers is a part of this program"
    )]
    let launcher = std::env::current_exe();
    let launcher = launcher.map_err(|error| {
        let text = format!("this program does not know where it is, and so cannot start another: {error}");
        Problem::at(settings, "upstream", "upstream", text)
    })?;
    #[expect(
        clippy::disallowed_methods,
        reason = "what is passed on to servers is chosen by name where they are started"
    )]
    let variables = std::env::vars_os();
    Ok(Yard::new(launcher, variables, &settings.limits))
}

/// The server, connected to nothing yet.
pub(crate) fn peer(settings: &Settings, server: &ServerSettings, yard: &Yard) -> Result<Peer, Problem> {
    match &server.reach {
        Reach::Url(url) => Peer::at_url(server, url, identity(), &settings.limits).map_err(|fault| {
            let text = fault.to_string();
            let text = text
                .strip_prefix(&format!("`{}`: ", fault.key()))
                .unwrap_or(&text);
            Problem::at(settings, fault.key(), "upstream", text)
        }),
        Reach::Command(command) => Ok(Peer::started(server, command, yard, identity(), &settings.limits)),
    }
}

/// Why nothing could be held against the schemas of a tool.
fn unusable(tool: &Tool) -> Option<String> {
    let output = tool.definition().output_schema.as_deref();
    std::iter::once(("inputSchema", tool.arguments_schema()))
        .chain(output.map(|schema| ("outputSchema", schema)))
        .find_map(|(which, schema)| {
            usable_schema(schema)
                .err()
                .map(|why| format!("its `{which}` cannot be used: {why}"))
        })
}

/// A revision that nobody speaks.
fn unspoken(settings: &Settings, server: &ServerSettings) -> Option<Problem> {
    let text = server.revision.as_ref()?;
    if Revision::parse(text).is_some() {
        return None;
    }
    let spoken: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    let text = format!(
        "`{text}` is no revision that Tollhouse speaks; write auto, or one of {}",
        spoken.join(", ")
    );
    let key = format!("upstream.{}.revision", server.name);
    Some(Problem::at(settings, &key, "upstream", text))
}
