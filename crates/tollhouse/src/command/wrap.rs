//! `tollhouse wrap` and `tollhouse connect`: the gate in front of one MCP server, for its one client, in one line.
//!
//! Both make a folder with an ordinary configuration the first time, approve what the server has then, and serve it on
//! standard input and output by the server's own names. What has changed the next time is held. Whoever wants it tighter edits
//! that configuration; every other command works on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use catalog::{Abilities, ApprovedDefinition, Lock, Tool};
use config::{ServerSettings, Settings};
use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use model::{Class, Digest, Object, Value};
use openapi::infer_tool;
use store::CommandRow;
use wire::Surface;

use super::pins::{name_of, survey};
use super::serve;
use crate::cli::{ConfigPath, Connect, Serve, Wrap};
use crate::failure::Failure;
use crate::house::{self, command_line, lock};
use crate::log;
use crate::print::tell;
use crate::whole;

/// The name of the one upstream.
const SERVER: &str = "server";
/// For how many years an approval of the first use holds.
const YEARS: i64 = 10;
/// Names of variables that are passed on; a configuration takes no more.
const VARIABLES_MAX: usize = 256;

pub(crate) async fn wrap(args: Wrap) -> Result<(), Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server runs where its client would have run it"
    )]
    let folder = std::env::current_dir();
    let folder =
        folder.map_err(|error| Failure::Input(format!("the current folder cannot be read: {error}")))?;
    let mut upstream = format!(
        "command = {}\ncwd = {}\n",
        list(&args.command),
        text(&folder.display().to_string())
    );
    let variables = variables();
    let _ = writeln!(upstream, "pass_env = {}", list(&variables));
    let identity = format!("{}\n{}", folder.display(), list(&args.command));
    start(args.state, &identity, &upstream, "sandbox = { read = [\"…\"] }").await
}

pub(crate) async fn connect(args: Connect) -> Result<(), Failure> {
    let mut upstream = format!("url = {}\n", text(&args.url));
    if let Some(variable) = &args.bearer {
        let _ = writeln!(
            upstream,
            "credential = {{ bearer = {} }}",
            text(&format!("env:{variable}"))
        );
    }
    if !args.network.is_empty() {
        let _ = writeln!(upstream, "network = {{ allow = {} }}", list(&args.network));
    }
    let identity = format!("{}\n{}", args.url, list(&args.network));
    start(
        args.state,
        &identity,
        &upstream,
        "a `class` for each tool, and rules in policy/",
    )
    .await
}

/// Makes the folder where there is none, and serves from it.
async fn start(state: Option<PathBuf>, identity: &str, upstream: &str, tighter: &str) -> Result<(), Failure> {
    log::start_quiet();
    let digest = Digest::of("tollhouse/wrap/v1", &[identity.as_bytes()]);
    let folder = match state {
        Some(folder) => folder,
        None => states()?.join(digest.short()),
    };
    let config = folder.join("tollhouse.toml");
    if config.exists() {
        let settings = load(&config)?;
        tell!(
            "what has changed since the first use is held; see `tollhouse pins diff {SERVER} --config {}`",
            settings.path.display()
        );
    } else {
        first_use(&folder, &config, upstream).await?;
        tell!(
            "{SERVER} runs as freely as its client would have let it; tighten it in {}: {tighter}",
            config.display()
        );
    }
    let serve = Serve {
        path: ConfigPath { config },
        stdio: true,
        listen: None,
    };
    serve::serve(serve).await
}

/// Writes a configuration with all that the server has now, approved by whoever ran the command.
async fn first_use(folder: &Path, config: &Path, upstream: &str) -> Result<(), Failure> {
    let fault =
        |error: std::io::Error| Failure::Input(format!("`{}` cannot be made: {error}", folder.display()));
    fs::create_dir_all(folder.join("policy")).map_err(fault)?;
    private(folder).map_err(fault)?;
    whole::write(
        &folder.join("policy").join("all.cedar"),
        "// Whoever ran the command may call everything that is approved.\npermit (principal, action, resource);\n",
    )?;
    let made = make(folder, config, upstream).await;
    if made.is_err() {
        // Half a folder would be taken for a whole one the next time.
        let _ = fs::remove_file(config);
    }
    made
}

async fn make(folder: &Path, config: &Path, upstream: &str) -> Result<(), Failure> {
    let head = format!(
        "# Written by the first use of `tollhouse wrap` or `connect`. It is an ordinary configuration: change what you like.\n\
         store = \"sqlite:tollhouse.db\"\n\n[caller.you]\nsubject = \"you\"\n\n[stdio]\ncaller = \"you\"\nupstream = \"{SERVER}\"\n\n\
         [policy]\nfolder = \"policy\"\n\n[upstream.{SERVER}]\nmay_ask = [\"elicitation\", \"sampling\", \"roots\"]\n{upstream}"
    );
    whole::write(config, &head)?;
    let settings = load(config)?;
    let server = only(&settings)?;
    permit(&settings).await?;
    let survey = survey(&settings, server).await?;
    let mut lock = Lock::default();
    let locked = lock.server_mut(&server.name);
    locked.set_abilities(survey.abilities());
    for kind in Surface::ALL {
        for item in survey.of(kind) {
            let approved = ApprovedDefinition::new(kind, item.clone(), Timestamp::now(), "first use");
            locked
                .of_mut(kind)
                .insert(name_of(kind, item).to_owned(), approved);
        }
    }
    let names = names(|kind| survey.of(kind));
    let tables = |needs: &BTreeMap<String, Vec<String>>| {
        tables(&survey.tools, &names, needs) + &beside(|kind| survey.of(kind), &names)
    };
    whole::write(config, &format!("{head}{}", tables(&BTreeMap::new())))?;
    let needs = needs(&load(config)?, &lock)?;
    whole::write(config, &format!("{head}{}", tables(&needs)))?;
    lock::write(&load(config)?, &lock)?;
    tell!(
        "{} tools, {} prompts, {} resources and {} templates are approved by this first use, in {}",
        survey.tools.len(),
        survey.prompts.len(),
        survey.resources.len(),
        survey.templates.len(),
        folder.display()
    );
    Ok(())
}

/// Whoever types a command line has approved it.
async fn permit(settings: &Settings) -> Result<(), Failure> {
    let (lines, problems) = command_line::all(settings);
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    let store = house::store(settings).await?;
    for line in lines {
        let row = CommandRow {
            server: line.server.clone(),
            digest: line.digest(),
            approved: Timestamp::now(),
            note: Some("first use".to_owned()),
        };
        let approved = store.command_approve(&row).await;
        approved.map_err(|fault| Failure::Unavailable(format!("the store cannot be used: {fault}")))?;
    }
    store.close().await;
    Ok(())
}

/// What each tool needs an approval for, by its key.
fn needs(settings: &Settings, lock: &Lock) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let server = only(settings)?;
    let mut needs = BTreeMap::new();
    for bounds in &server.tools {
        let known = lock
            .server(&server.name)
            .and_then(|locked| locked.of(Surface::Tools).get(&bounds.operation));
        if let Some(Ok(tool)) =
            known.map(|known| Tool::of_server(&server.name, bounds, known, Abilities::default()))
        {
            let what = tool.needs().iter().map(|need| need.what.to_string()).collect();
            needs.insert(bounds.operation.clone(), what);
        }
    }
    Ok(needs)
}

/// The names of everything that a server has, by its kind and what the server calls it.
type Names = BTreeMap<(Surface, String), String>;

/// A legal name for each, its own where that is one. Tools come first, so that a prompt never takes the name of one.
fn names<'s>(of: impl Fn(Surface) -> &'s [Object]) -> Names {
    // The public name has the server's in front and at most 64 characters.
    const LENGTH_MAX: usize = 64 - SERVER.len() - 1;
    let mut taken = BTreeSet::new();
    let mut names = Names::new();
    let all = Surface::ALL.into_iter();
    let all = all.flat_map(|kind| of(kind).iter().map(move |item| (kind, item)));
    for (kind, item) in all {
        let own = name_of(kind, item);
        // A URI is no name; what people call the resource may be.
        let called = match kind {
            Surface::Tools | Surface::Prompts => own,
            Surface::Resources | Surface::Templates => {
                item.get("name").and_then(Value::as_str).unwrap_or(own)
            }
        };
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut name: String = called
            .chars()
            .map(|c| if is_legal(c) { c } else { '_' })
            .take(LENGTH_MAX)
            .collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name = format!("_{name}").chars().take(LENGTH_MAX).collect();
        }
        let whole = name.clone();
        let mut number = 2;
        while !taken.insert(name.to_ascii_lowercase()) {
            let end = format!("_{number}");
            let front: String = whole.chars().take(LENGTH_MAX - end.len()).collect();
            name = format!("{front}{end}");
            number += 1;
        }
        names.insert((kind, own.to_owned()), name);
    }
    names
}

/// The tables of everything but tools. What has no URI that a configuration takes is told, and left out.
fn beside<'s>(of: impl Fn(Surface) -> &'s [Object], names: &Names) -> String {
    let mut written = String::new();
    for (kind, table, key) in [
        (Surface::Prompts, "prompt", "prompt"),
        (Surface::Resources, "resource", "uri"),
        (Surface::Templates, "resource", "template"),
    ] {
        for item in of(kind) {
            let own = name_of(kind, item);
            if kind != Surface::Prompts && !config::is_resource_uri(own) {
                tell!("`{}` is no URI, and is not offered", own.escape_debug());
                continue;
            }
            if let Some(name) = names.get(&(kind, own.to_owned())) {
                let _ = write!(
                    written,
                    "\n[upstream.{SERVER}.{table}.{name}]\n{key} = {}\n",
                    text(own)
                );
            }
        }
    }
    written
}

fn tables(tools: &[Object], names: &Names, needs: &BTreeMap<String, Vec<String>>) -> String {
    let until = Offset::UTC
        .to_datetime(Timestamp::now())
        .date()
        .saturating_add(Span::new().years(YEARS));
    let why = format!("by = \"you\", because = \"first use\", until = \"{until}\"");
    let mut written = String::new();
    for tool in tools {
        let own = name_of(Surface::Tools, tool);
        let Some(name) = names.get(&(Surface::Tools, own.to_owned())) else {
            continue;
        };
        let class = class(tool);
        let _ = write!(
            written,
            "\n[upstream.{SERVER}.tool.{name}]\ntool = {}\nclass = \"{class}\"\n",
            text(own)
        );
        if class.changes_state() {
            let waiver = "waived_by = \"you\", because = \"first use\"";
            let _ = writeln!(written, "consent = {{ {waiver}, until = \"{until}\" }}");
        }
        for what in needs.get(own).into_iter().flatten() {
            let _ = writeln!(written, "approval.{what} = {{ {why}, for = [\"everyone\"] }}");
        }
    }
    written
}

/// The class of a tool, from what its name and its hints show; one that says nothing may change something.
fn class(tool: &Object) -> Class {
    let shown = infer_tool(tool).class();
    let reads = tool
        .get("annotations")
        .and_then(|hints| hints.get("readOnlyHint"))
        == Some(&Value::Bool(true));
    match (shown, reads) {
        (Some(class), _) => class,
        (None, true) => Class::Read,
        (None, false) => Class::Write,
    }
}

fn load(config: &Path) -> Result<Settings, Failure> {
    super::settings(&ConfigPath {
        config: config.to_owned(),
    })
}

fn only(settings: &Settings) -> Result<&ServerSettings, Failure> {
    settings.servers.first().ok_or_else(|| {
        Failure::Input(format!(
            "`{}` has no MCP server; remove the folder to begin anew",
            settings.path.display()
        ))
    })
}

/// Where folders of this kind are: `$XDG_STATE_HOME/tollhouse/wrap`, else below the home of whoever runs the command.
fn states() -> Result<PathBuf, Failure> {
    let folder = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
    };
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local").join("state")));
    match state {
        Some(state) => Ok(state.join("tollhouse").join("wrap")),
        None => Err(Failure::Input(
            "there is no home folder; name one with `--state FOLDER`".to_owned(),
        )),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "where state is kept, and what the client gave to its server, stands in the environment"
)]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// The names of the variables that the client gave to its server.
#[expect(
    clippy::disallowed_methods,
    reason = "the server gets what its client gave it"
)]
fn variables() -> Vec<String> {
    let is_name = |name: &String| {
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.len() <= 256
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names
        .filter(is_name)
        .filter(|name| !upstream::PASSED_ON.contains(&name.as_str()) && !name.starts_with("TOLLHOUSE_"))
        .collect();
    names.sort();
    names.truncate(VARIABLES_MAX);
    names
}

/// Nobody else on this machine reads it.
fn private(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// A text as TOML writes it.
fn text(value: &str) -> String {
    toml_edit::Value::from(value).to_string()
}

fn list<T: AsRef<str>>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(|value| text(value.as_ref())).collect();
    format!("[{}]", values.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Object {
        let Value::Object(tool) = json!({ "name": name, "inputSchema": {} }) else {
            panic!()
        };
        tool
    }

    #[test]
    fn every_tool_gets_a_legal_name_and_no_two_the_same() {
        let long = "x".repeat(100);
        let tools: Vec<Object> = ["read", "Read", "a.b", "a/b", "1st", "ünï", "", long.as_str()]
            .map(tool)
            .into();
        let Value::Object(resource) = json!({ "uri": "a:b/c", "name": "read" }) else {
            panic!()
        };
        let none: &[Object] = &[];
        let names = names(|kind| match kind {
            Surface::Tools => &tools,
            Surface::Prompts => tools.get(..1).unwrap(),
            Surface::Resources => std::slice::from_ref(&resource),
            Surface::Templates => none,
        });
        assert_eq!(names[&(Surface::Tools, "read".to_owned())], "read");
        assert_eq!(names[&(Surface::Prompts, "read".to_owned())], "read_3");
        assert_eq!(names[&(Surface::Resources, "a:b/c".to_owned())], "read_4");
        assert_eq!(names.len(), tools.len() + 2);
        let mut seen = BTreeSet::new();
        for name in names.values() {
            assert!(
                model::ToolName::parse(&format!("{SERVER}_{name}")).is_ok(),
                "{name}"
            );
            assert!(model::ToolName::parse(name).is_ok(), "{name}");
            assert!(seen.insert(name.to_ascii_lowercase()), "{name}");
        }
    }

    #[test]
    fn a_text_of_a_server_is_a_value_and_never_a_line_of_the_configuration() {
        let odd = tool("a\"\n[policy]\nfolder = \"x");
        let Value::Object(resource) = json!({ "uri": "a:\"]\n[policy]", "name": "\n[policy]\n" }) else {
            panic!()
        };
        let Value::Object(template) = json!({ "uriTemplate": "a:\"]{x}[policy]", "name": "x" }) else {
            panic!()
        };
        let all = |kind| {
            std::slice::from_ref(match kind {
                Surface::Tools | Surface::Prompts => &odd,
                Surface::Resources => &resource,
                Surface::Templates => &template,
            })
        };
        let names = names(all);
        let written = tables(all(Surface::Tools), &names, &BTreeMap::new()) + &beside(all, &names);
        let parsed: toml_edit::DocumentMut = written.parse().unwrap();
        assert!(parsed.get("policy").is_none(), "{written}");
        let server = &parsed["upstream"][SERVER];
        assert_eq!(server["resource"].as_table().unwrap().len(), 1, "{written}");
        assert_eq!(server["prompt"].as_table().unwrap().len(), 1, "{written}");
    }
}
