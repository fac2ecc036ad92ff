//! The command line of a server that is started: which program it really is, and the digest by which a person approves
//! it. Nothing is started here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use config::{CommandSettings, Reach, Settings};
use jiff::Timestamp;
use model::{Digest, UpstreamName};
use serde::Serialize;
use store::{Store, StoreFault};
use upstream::Far;

use crate::failure::Failure;
use crate::problem::Problem;

/// A command line, resolved: what would run on this machine.
///
/// As JSON: `{"server":"files","program":"/usr/bin/npx","file":"/usr/lib/…/npx-cli.js","arguments":["-y","…"],
/// "variables":["TOKEN"],"passed_on":[],"folder":"/srv","sandbox":null}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CommandLine {
    /// The server.
    pub(crate) server: UpstreamName,
    /// The program as it is started: an absolute path.
    pub(crate) program: PathBuf,
    /// The file behind it, every link followed.
    pub(crate) file: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The names of the variables that the configuration sets. Their values are not part of it, so that a token can be
    /// renewed.
    pub(crate) variables: Vec<String>,
    /// The names of the variables that are passed on, beyond those that always are.
    pub(crate) passed_on: Vec<String>,
    /// The folder in which it runs.
    pub(crate) folder: PathBuf,
    pub(crate) sandbox: Option<Sandbox>,
}

/// What it may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Sandbox {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) network: bool,
    pub(crate) allow_degraded: bool,
}

impl CommandLine {
    /// Resolves the command of one server. `path` is our own `PATH`, which the server gets, too.
    ///
    /// # Errors
    /// A sentence that says what is not there.
    pub(crate) fn resolve(
        server: &UpstreamName,
        settings: &CommandSettings,
        path: Option<&std::ffi::OsStr>,
    ) -> Result<Self, String> {
        let mut words = settings.command.iter();
        let word = words.next().map(String::as_str).unwrap_or_default();
        let program = program(word, &settings.folder, path)?;
        let file = std::fs::canonicalize(&program)
            .map_err(|error| format!("the program `{}` cannot be read: {error}", program.display()))?;
        let folder = std::fs::canonicalize(&settings.cwd).map_err(|error| {
            format!(
                "the folder `{}` cannot be read: {error}; name one as `cwd`",
                settings.cwd.display()
            )
        })?;
        let all = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect();
        let mut variables: Vec<String> = settings.env.iter().map(|(name, _)| name.clone()).collect();
        let mut passed_on = settings.pass_env.clone();
        variables.sort();
        passed_on.sort();
        Ok(Self {
            server: server.clone(),
            program,
            file,
            arguments: words.cloned().collect(),
            variables,
            passed_on,
            folder,
            sandbox: settings.sandbox.as_ref().map(|sandbox| Sandbox {
                read: all(&sandbox.read),
                write: all(&sandbox.write),
                network: sandbox.network,
                allow_degraded: sandbox.allow_degraded,
            }),
        })
    }

    /// By what a person approves it: anything else in it is another digest.
    pub(crate) fn digest(&self) -> Digest {
        // Fields in a fixed order, so that equal command lines have equal bytes.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Digest::of("tollhouse/command/v1", &[&bytes])
    }

    /// What is told of it while it is not approved.
    fn unapproved(&self, settings: &Settings) -> Problem {
        let key = format!("upstream.{}.command", self.server);
        let text = format!(
            "nobody approved what this starts, or it has changed since; look at it and approve it with `tollhouse \
             approve {}`",
            self.server
        );
        Problem::at(settings, &key, "approval", text)
    }

    /// Whether it is approved, and when.
    pub(crate) async fn approved(&self, store: &Store) -> Result<Option<Timestamp>, StoreFault> {
        let row = store.command_approval(&self.server, &self.digest()).await?;
        Ok(row.map(|row| row.approved))
    }
}

/// The command lines of all servers that are started. Faults are told at the server.
pub(crate) fn all(settings: &Settings) -> (Vec<CommandLine>, Vec<Problem>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program without a folder is looked for where the server would look"
    )]
    let path = std::env::var_os("PATH");
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for server in &settings.servers {
        let Reach::Command(command) = &server.reach else {
            continue;
        };
        match CommandLine::resolve(&server.name, command, path.as_deref()) {
            Ok(line) => lines.push(line),
            Err(text) => {
                let key = format!("upstream.{}.command", server.name);
                problems.push(Problem::at(settings, &key, "upstream", text));
            }
        }
    }
    (lines, problems)
}

/// Lets those servers be started whose command lines somebody approved; gives what is to be told of the others, which are
/// refused when they are called and stand in nobody's way.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn permit(
    settings: &Settings,
    store: &Store,
    upstreams: &HashMap<UpstreamName, Far>,
) -> Result<Vec<Problem>, Failure> {
    let (lines, mut problems) = all(settings);
    for line in lines {
        let Some(peer) = upstreams.get(&line.server).and_then(Far::peer) else {
            continue;
        };
        let approved = line
            .approved(store)
            .await
            .map_err(|fault| Failure::Unavailable(format!("the store cannot be read: {fault}")))?;
        match approved {
            Some(_) => peer.permit(line.program),
            None => problems.push(line.unapproved(settings)),
        }
    }
    Ok(problems)
}

/// Why servers of this configuration must not be started: commands that are not there, or that nobody approved.
///
/// Opens the store only where a server is started.
pub(crate) async fn unapproved(settings: &Settings) -> Result<Vec<Problem>, Failure> {
    let (lines, mut problems) = all(settings);
    if lines.is_empty() {
        return Ok(problems);
    }
    let store = super::store(settings).await?;
    for line in lines {
        let approved = line
            .approved(&store)
            .await
            .map_err(|fault| Failure::Unavailable(format!("the store cannot be read: {fault}")))?;
        if approved.is_none() {
            problems.push(line.unapproved(settings));
        }
    }
    store.close().await;
    Ok(problems)
}

/// Where a program is. One without a folder is looked for in `PATH`, one with a relative folder in that of the
/// configuration.
fn program(word: &str, folder: &Path, path: Option<&std::ffi::OsStr>) -> Result<PathBuf, String> {
    if word.contains('/') {
        let program = absolute(&folder.join(word));
        return if runs(&program) {
            Ok(program)
        } else {
            Err(format!(
                "`{}` is no program that can be run; correct the path",
                program.display()
            ))
        };
    }
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    folders
        // An empty entry means the working folder, which anybody may have written to.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(word))
        .find(|program| runs(program))
        .ok_or_else(|| format!("there is no program `{word}` in `PATH`; install it, or write its path"))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(unix)]
fn runs(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn runs(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    use config::{RestartSettings, SandboxSettings};

    use super::*;

    fn settings(folder: &Path, command: &[&str]) -> CommandSettings {
        CommandSettings {
            secrets: std::collections::BTreeSet::new(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            env: vec![("TOKEN".to_owned(), "a".to_owned().into())],
            pass_env: vec!["HTTPS_PROXY".to_owned()],
            cwd: folder.to_owned(),
            folder: folder.to_owned(),
            sandbox: None,
            start_timeout: Duration::from_secs(1),
            stop_timeout: Duration::from_secs(1),
            idle_stop: Duration::from_secs(1),
            restart: RestartSettings {
                wait: Duration::from_secs(1),
                wait_max: Duration::from_secs(1),
            },
            children_max: 1,
            children_per_caller_max: 1,
        }
    }

    fn name() -> UpstreamName {
        UpstreamName::parse("files").unwrap()
    }

    /// A folder with a program, a file that cannot be run, and a link to the program.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, mode) in [("server", 0o755), ("text", 0o644), ("other", 0o755)] {
            let path = folder.path().join(file);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("server", folder.path().join("link")).unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        folder
    }

    #[test]
    fn a_program_is_found_where_it_would_be_started_and_nowhere_else() {
        let folder = folder();
        let path = format!(":inner:{}", folder.path().display());
        let resolve = |word: &str, path: Option<&str>| {
            CommandLine::resolve(&name(), &settings(folder.path(), &[word]), path.map(OsStr::new))
                .map(|line| line.program)
        };
        let server = folder.path().join("server");
        assert_eq!(resolve("server", Some(&path)), Ok(server.clone()));
        assert_eq!(resolve("./server", None), Ok(folder.path().join("./server")));
        assert_eq!(resolve(&server.display().to_string(), None), Ok(server));
        // The working folder of this test has no programs, and `:` would mean it.
        for (word, path) in [
            ("server", None),
            ("server", Some("")),
            ("server", Some(":.")),
            ("text", Some(path.as_str())),
            ("./text", None),
            ("./inner", None),
            ("./missing", None),
        ] {
            assert!(resolve(word, path).is_err(), "{word} {path:?}");
        }
    }

    #[test]
    fn whatever_changes_what_would_run_changes_the_digest_and_a_renewed_token_does_not() {
        let folder = folder();
        let digest = |change: &dyn Fn(&mut CommandSettings)| {
            let mut settings = settings(folder.path(), &["./link", "a", "b"]);
            change(&mut settings);
            CommandLine::resolve(&name(), &settings, None).unwrap().digest()
        };
        let same = digest(&|_| {});
        let sandbox = |read: &str, network, allow_degraded| SandboxSettings {
            read: vec![read.into()],
            write: Vec::new(),
            network,
            allow_degraded,
        };
        let changes: [&dyn Fn(&mut CommandSettings); 12] = [
            &|settings| settings.command[0] = "./server".to_owned(),
            &|settings| settings.command[2] = "c".to_owned(),
            &|settings| settings.command.truncate(2),
            &|settings| settings.command = ["./link", "a b"].map(str::to_owned).to_vec(),
            &|settings| {
                settings
                    .env
                    .push(("LD_PRELOAD".to_owned(), "x".to_owned().into()))
            },
            &|settings| settings.env.clear(),
            &|settings| settings.pass_env.push("HTTP_PROXY".to_owned()),
            &|settings| settings.cwd.push("inner"),
            &|settings| settings.sandbox = Some(sandbox("/srv", false, false)),
            &|settings| settings.sandbox = Some(sandbox("/", false, false)),
            &|settings| settings.sandbox = Some(sandbox("/srv", true, false)),
            &|settings| settings.sandbox = Some(sandbox("/srv", false, true)),
        ];
        let mut seen = vec![same];
        for (at, change) in changes.iter().enumerate() {
            let changed = digest(*change);
            assert!(!seen.contains(&changed), "change {at}");
            seen.push(changed);
        }
        assert_eq!(
            digest(&|settings| settings.env[0].1 = "b".to_owned().into()),
            same
        );
        assert_eq!(digest(&|settings| settings.idle_stop *= 2), same);
        // A link that leads elsewhere starts something else under the same path.
        std::fs::remove_file(folder.path().join("link")).unwrap();
        symlink("other", folder.path().join("link")).unwrap();
        assert_ne!(digest(&|_| {}), same);
    }
}
