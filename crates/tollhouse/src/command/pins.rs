//! `tollhouse pins`: what was approved of MCP servers, what they say now, and a person's yes to it.
//!
//! It connects to the server that is asked about and to nothing else. Texts of servers are shown so that nothing in them
//! is hidden; nothing is approved that was not named, or asked for with `--all`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use catalog::{ApprovedDefinition, LockedServer};
use config::{Reach, ServerSettings, Settings, SystemWorld};
use jiff::Timestamp;
use model::{Object, Value};
use serde::Serialize;
use tokio::time::Instant;
use upstream::{Far, Survey};
use wire::Surface;

use crate::cli::{PinsApprove, PinsDiff, PinsList};
use crate::failure::Failure;
use crate::house::{self, command_line, lock, servers};
use crate::log;
use crate::print::{self, say};
use crate::problem::Problem;

/// How long a server may take to say what it has.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(120);

/// One approved definition.
#[derive(Debug, Serialize)]
struct Row {
    server: String,
    kind: &'static str,
    /// The server's own name of it, its URI or its template.
    name: String,
    digest: String,
    by: String,
    at: String,
}

/// How one of a server's definitions stands to what was approved.
#[derive(Debug, Serialize)]
struct Difference {
    #[serde(serialize_with = "kind")]
    kind: Surface,
    name: String,
    state: State,
    /// Members of the definition that were added, taken away or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<Member>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    New,
    Changed,
    Same,
    Gone,
}

#[derive(Debug, Serialize)]
struct Member {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Value>,
}

pub(crate) fn list(args: &PinsList) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let lock = lock::read(&settings, &SystemWorld).map_err(|fault| Failure::Problems(vec![fault]))?;
    let rows: Vec<Row> = lock
        .servers()
        .flat_map(|(server, locked)| {
            let all = Surface::ALL.into_iter();
            let all = all.flat_map(|kind| {
                locked
                    .of(kind)
                    .iter()
                    .map(move |(name, known)| (kind, name, known))
            });
            all.map(move |(kind, name, known)| Row {
                server: server.to_string(),
                kind: servers::word(kind),
                name: name.clone(),
                digest: known.digest().to_string(),
                by: known.by.clone(),
                at: known.at.clone(),
            })
        })
        .collect();
    if args.format.json {
        print::json(&serde_json::json!({ "pins": rows }));
        return Ok(());
    }
    let cells = rows
        .into_iter()
        .map(|row| {
            let digest = row.digest.chars().skip("sha256:".len()).take(12).collect();
            vec![row.server, row.kind.to_owned(), row.name, digest, row.by, row.at]
        })
        .collect();
    print::table(&["server", "kind", "name", "pin", "approved by", "at"], cells);
    Ok(())
}

pub(crate) async fn diff(args: PinsDiff) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let server = find(&settings, &args.server)?;
    let lock = lock::read(&settings, &SystemWorld).map_err(|fault| Failure::Problems(vec![fault]))?;
    let survey = survey(&settings, server).await?;
    let none = LockedServer::default();
    let approved = lock.server(&server.name).unwrap_or(&none);
    let differences = differences(approved, &survey);
    if args.format.json {
        print::json(&serde_json::json!({ "server": server.name, "definitions": differences }));
    } else {
        differences.iter().for_each(show);
        let counted = |state: State| differences.iter().filter(|one| one.state == state).count();
        say!(
            "{} new, {} changed, {} gone, {} as approved",
            counted(State::New),
            counted(State::Changed),
            counted(State::Gone),
            counted(State::Same)
        );
    }
    if differences.iter().all(|one| one.state == State::Same) {
        Ok(())
    } else {
        Err(Failure::No)
    }
}

pub(crate) async fn approve(args: PinsApprove) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let server = find(&settings, &args.server)?;
    let mut lock = lock::read(&settings, &SystemWorld).map_err(|fault| Failure::Problems(vec![fault]))?;
    let survey = survey(&settings, server).await?;
    let wanted: BTreeSet<&str> = args.tools.iter().map(String::as_str).collect();
    let all = Surface::ALL.into_iter();
    let all: Vec<String> = all
        .flat_map(|kind| {
            survey
                .of(kind)
                .iter()
                .map(move |item| typed(kind, name_of(kind, item)))
        })
        .collect();
    let missing: Vec<String> = wanted
        .iter()
        .filter(|name| !all.iter().any(|known| known == **name))
        .map(|name| format!("`{name}`"))
        .collect();
    if !missing.is_empty() {
        let known: Vec<String> = all
            .iter()
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        return Err(Failure::Input(format!(
            "`{}` has no {}; it has {}",
            server.name,
            missing.join(", "),
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        )));
    }
    let by = args.by;
    let now = Timestamp::now();
    let locked = lock.server_mut(&server.name);
    let before = differences(locked, &survey);
    let mut approved = 0_usize;
    for one in &before {
        if !args.all && !wanted.contains(one.typed().as_str()) {
            continue;
        }
        locked.set_abilities(survey.abilities());
        match one.state {
            State::Same => {}
            State::Gone => {
                locked.of_mut(one.kind).remove(&one.name);
                say!(
                    "{}: taken out, the server no longer has it",
                    one.typed().escape_debug()
                );
            }
            State::New | State::Changed => {
                let mut now_there = survey.of(one.kind).iter();
                let Some(definition) = now_there.find(|item| name_of(one.kind, item) == one.name) else {
                    continue;
                };
                show(one);
                let known = ApprovedDefinition::new(one.kind, definition.clone(), now, &by);
                say!(
                    "{}: approved by {by}, pin {}",
                    one.typed().escape_debug(),
                    known.digest().short()
                );
                locked.of_mut(one.kind).insert(one.name.clone(), known);
                approved += 1;
            }
        }
    }
    lock::write(&settings, &lock)?;
    say!(
        "{}: {} approved",
        lock::path(&settings).display(),
        print::counted(approved, "definition", "definitions")
    );
    let offered: BTreeSet<(Surface, &str)> = servers::offered(server)
        .map(|(kind, bounds)| (kind, bounds.operation.as_str()))
        .collect();
    let unnamed: Vec<&Difference> = before
        .iter()
        .filter(|one| args.all || wanted.contains(one.typed().as_str()))
        .filter(|one| !offered.contains(&(one.kind, one.name.as_str())))
        .collect();
    if let Some(first) = unnamed.first() {
        let table = match first.kind {
            Surface::Tools => format!("tool.{}] with a `class`", first.name.escape_debug()),
            Surface::Prompts => format!("prompt.{}]", first.name.escape_debug()),
            Surface::Resources => format!("resource.NAME] with `uri = \"{}\"`", first.name.escape_debug()),
            Surface::Templates => format!(
                "resource.NAME] with `template = \"{}\"`",
                first.name.escape_debug()
            ),
        };
        say!(
            "{} not offered yet: add [upstream.{}.{table} to {}",
            if unnamed.len() == 1 { "one is" } else { "some are" },
            server.name,
            settings.path.display()
        );
    }
    Ok(())
}

fn find<'s>(settings: &'s Settings, name: &str) -> Result<&'s ServerSettings, Failure> {
    settings
        .servers
        .iter()
        .find(|server| server.name.as_str() == name)
        .ok_or_else(|| {
            let known: Vec<&str> = settings
                .servers
                .iter()
                .map(|server| server.name.as_str())
                .collect();
            let hint = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("write one of {}", known.join(", "))
            };
            Failure::Input(format!(
                "`{name}` is no MCP server of `{}`; {hint}",
                settings.path.display()
            ))
        })
}

pub(super) async fn survey(settings: &Settings, server: &ServerSettings) -> Result<Survey, Failure> {
    let faulty = |problem| Failure::Problems(vec![problem]);
    let yard = servers::yard(settings).map_err(faulty)?;
    let peer = Arc::new(servers::peer(settings, server, &yard).map_err(faulty)?);
    if let Reach::Command(_) = server.reach {
        let store = house::store(settings).await?;
        let upstreams = HashMap::from([(server.name.clone(), Far::Peer(Arc::clone(&peer)))]);
        let told = command_line::permit(settings, &store, &upstreams).await;
        store.close().await;
        let key = format!("upstream.{}.command", server.name);
        let own = told?
            .into_iter()
            .filter(|problem| problem.key.as_deref() == Some(&key));
        let own: Vec<Problem> = own.collect();
        if !own.is_empty() {
            return Err(Failure::Problems(own));
        }
    }
    let survey = peer.survey(Instant::now() + SURVEY_TIMEOUT).await;
    peer.close().await;
    yard.close().await;
    survey.map_err(|fault| Failure::Unavailable(format!("`{}`: {fault}", server.name)))
}

/// What the server itself calls it.
pub(super) fn name_of(kind: Surface, item: &Object) -> &str {
    item.get(kind.key()).and_then(Value::as_str).unwrap_or_default()
}

/// How a person names it on the command line: tools by their names alone, all else with its kind in front.
fn typed(kind: Surface, name: &str) -> String {
    match kind {
        Surface::Tools => name.to_owned(),
        Surface::Prompts | Surface::Resources | Surface::Templates => {
            format!("{}:{name}", servers::word(kind))
        }
    }
}

impl Difference {
    fn typed(&self) -> String {
        typed(self.kind, &self.name)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde hands over")]
fn kind<S: serde::Serializer>(kind: &Surface, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(servers::word(*kind))
}

fn differences(approved: &LockedServer, now: &Survey) -> Vec<Difference> {
    let all = Surface::ALL.into_iter();
    all.flat_map(|kind| of_kind(kind, approved.of(kind), now.of(kind)))
        .collect()
}

fn of_kind(
    kind: Surface,
    approved: &BTreeMap<String, ApprovedDefinition>,
    now: &[Object],
) -> Vec<Difference> {
    let mut all: Vec<Difference> = now
        .iter()
        .map(|item| {
            let name = name_of(kind, item).to_owned();
            match approved.get(&name) {
                None => Difference {
                    kind,
                    name,
                    state: State::New,
                    members: members(&Object::new(), item),
                },
                Some(known) if known.is(kind, item) => Difference {
                    kind,
                    name,
                    state: State::Same,
                    members: Vec::new(),
                },
                Some(known) => Difference {
                    kind,
                    name,
                    state: State::Changed,
                    members: members(&known.definition, item),
                },
            }
        })
        .collect();
    let gone = approved
        .keys()
        .filter(|name| !now.iter().any(|item| name_of(kind, item) == *name));
    all.extend(gone.map(|name| Difference {
        kind,
        name: name.clone(),
        state: State::Gone,
        members: Vec::new(),
    }));
    all
}

fn members(approved: &Object, now: &Object) -> Vec<Member> {
    let names: BTreeSet<&String> = approved.keys().chain(now.keys()).collect();
    names
        .into_iter()
        .filter(|name| approved.get(*name) != now.get(*name))
        .map(|name| Member {
            name: name.clone(),
            approved: approved.get(name).cloned(),
            now: now.get(name).cloned(),
        })
        .collect()
}

fn show(one: &Difference) {
    let word = match one.state {
        State::New => "new",
        State::Changed => "changed",
        State::Same => return,
        State::Gone => "gone",
    };
    say!("{}: {word}", one.typed().escape_debug());
    for member in &one.members {
        let name = member.name.escape_debug();
        if let Some(approved) = &member.approved {
            say!("  - {name}: {}", visible(approved));
        }
        if let Some(now) = &member.now {
            say!("  + {name}: {}", visible(now));
        }
    }
}

/// A value as JSON in which nothing is hidden: everything beyond printable ASCII is written as an escape.
fn visible(value: &Value) -> String {
    let text = value.to_string();
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_graphic() || character == ' ' || character.is_alphanumeric() {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!() };
        object
    }

    #[test]
    fn every_tool_is_new_changed_gone_or_the_same() {
        let at = Timestamp::UNIX_EPOCH;
        let mut approved = BTreeMap::new();
        for (name, text) in [("same", "a"), ("changed", "a"), ("gone", "a")] {
            let definition = object(json!({ "name": name, "description": text, "inputSchema": {} }));
            let known = ApprovedDefinition::new(Surface::Tools, definition, at, "x");
            approved.insert(name.to_owned(), known);
        }
        let now = [
            object(json!({ "inputSchema": {}, "name": "same", "description": "a" })),
            object(json!({ "name": "changed", "description": "b", "inputSchema": {}, "vendor": 1 })),
            object(json!({ "name": "new", "inputSchema": {} })),
        ];
        let found = of_kind(Surface::Tools, &approved, &now);
        let states: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.state)).collect();
        assert_eq!(
            states,
            [
                ("same", State::Same),
                ("changed", State::Changed),
                ("new", State::New),
                ("gone", State::Gone)
            ]
        );
        let changed: Vec<_> = found[1]
            .members
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        assert_eq!(changed, ["description", "vendor"]);
    }

    #[test]
    fn nothing_is_hidden_in_what_is_shown() {
        let hidden = visible(&json!("a\u{200b}b\u{202e}c\u{e0041}d é"));
        assert_eq!(hidden, r#""a\u{200b}b\u{202e}c\u{e0041}d é""#);
    }
}
