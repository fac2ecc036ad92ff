//! `tollhouse approve`: what a server's command would start, and the word of a person that it may.

use jiff::Timestamp;
use model::UpstreamName;
use serde_json::json;
use store::{CommandRow, StoreFault};

use crate::cli::Approve;
use crate::failure::Failure;
use crate::house::command_line::{self, CommandLine};
use crate::print::{self, say, tell};
use crate::{house, log};

pub(crate) async fn approve(args: Approve) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let unavailable = |fault: StoreFault| Failure::Unavailable(format!("the store cannot be used: {fault}"));
    if args.revoke {
        // Also of a server that is no longer configured, or whose program is gone.
        let server = UpstreamName::parse(&args.server).map_err(|fault| Failure::Input(fault.to_string()))?;
        let store = house::store(&settings).await?;
        let count = store.command_revoke(&server).await.map_err(unavailable)?;
        store.close().await;
        if count == 0 {
            return Err(Failure::Input(format!(
                "there is no approved command of `{server}`"
            )));
        }
        say!("`{server}` has no approved command any more; a gate that runs keeps what it started");
        return Ok(());
    }
    let (lines, problems) = command_line::all(&settings);
    let Some(line) = lines.iter().find(|line| line.server.as_str() == args.server) else {
        let key = format!("upstream.{}.command", args.server);
        let mine: Vec<_> = problems
            .into_iter()
            .filter(|problem| problem.key.as_deref() == Some(&key))
            .collect();
        if !mine.is_empty() {
            return Err(Failure::Problems(mine));
        }
        return Err(Failure::Input(format!(
            "there is no server `{}` that is started; servers have `command` in the configuration",
            args.server
        )));
    };
    let store = house::store(&settings).await?;
    let before = line.approved(&store).await.map_err(unavailable)?;
    if !args.format.json {
        show(line);
    }
    let approved = if args.show {
        before
    } else {
        let row = CommandRow {
            server: line.server.clone(),
            digest: line.digest(),
            approved: Timestamp::now(),
            note: args.note.clone(),
        };
        store.command_approve(&row).await.map_err(unavailable)?;
        Some(before.unwrap_or(row.approved))
    };
    store.close().await;
    if args.format.json {
        print::json(&json!({ "command": line, "digest": line.digest(), "approved": approved }));
    } else {
        match (approved, before.is_some()) {
            (Some(time), true) => tell!("approved since {time:.0}"),
            (Some(_), false) => tell!("approved; whatever changes above needs a new approval"),
            (None, _) => tell!(
                "not approved; approve it with `tollhouse approve {}`",
                args.server
            ),
        }
    }
    Ok(())
}

/// What would start, word by word: nothing in it is left to a reader's guess about spaces and quotes.
fn show(line: &CommandLine) {
    let words = |words: &[String]| {
        if words.is_empty() {
            "-".to_owned()
        } else {
            words
                .iter()
                .map(|word| format!("{word:?}"))
                .collect::<Vec<_>>()
                .join(" ")
        }
    };
    let paths = |paths: &[std::path::PathBuf]| {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        words(&paths)
    };
    say!("server      {}", line.server);
    say!("program     {:?}", line.program.display().to_string());
    if line.file != line.program {
        say!("  which is  {:?}", line.file.display().to_string());
    }
    say!("arguments   {}", words(&line.arguments));
    say!("folder      {:?}", line.folder.display().to_string());
    say!("variables   {}", words(&line.variables));
    say!(
        "passed on   {} {}",
        upstream::PASSED_ON.join(" "),
        line.passed_on.join(" ")
    );
    match &line.sandbox {
        None => say!("sandbox     none: it may do whatever its user may; declare `sandbox` to bound it"),
        Some(sandbox) => {
            say!("reads       {}", paths(&sandbox.read));
            say!("writes      {}", paths(&sandbox.write));
            say!("network     {}", if sandbox.network { "yes" } else { "no" });
            if sandbox.allow_degraded {
                say!("degraded    yes: it starts also where the kernel cannot hold this");
            }
        }
    }
    say!("digest      {}", line.digest());
}
