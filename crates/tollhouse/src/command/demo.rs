//! `tollhouse demo`: the worked example. A synthetic invoice service, the gate in front of it, callers with keys.
//!
//! Everything is real but the data: the gate is the one that `serve` runs, and `--once` goes through its HTTP port.

mod cases;
mod town;

use std::io::IsTerminal as _;

use model::CallerName;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::cli::Demo;
use crate::failure::Failure;
use crate::log;
use crate::print::{self, say};
use town::Town;

/// The callers whose keys are shown: two members of different tenants, and one who was a member.
const SHOWN: [&str; 3] = ["ada", "bob", "eve"];

pub(crate) async fn demo(args: Demo) -> Result<(), Failure> {
    log::start_quiet();
    if args.once {
        // Any free port: the demo is over before anybody could connect to a fixed one.
        let town = Town::build(std::net::SocketAddr::new(args.listen.ip(), 0)).await?;
        let came_out_right = cases::run(&town).await?;
        town.close().await?;
        return if came_out_right { Ok(()) } else { Err(Failure::No) };
    }
    let town = Town::build(args.listen).await?;
    let shutdown = town.shutdown().clone();
    super::serve::spawn_signals(shutdown.clone());
    introduce(&town);
    follow(&town, &shutdown).await;
    town.close().await
}

/// Says what there is and how to use it.
fn introduce(town: &Town) {
    let endpoint = town.endpoint();
    say!("the gate is open at      {endpoint}");
    say!(
        "the invoice service is at {} (behind the gate; agents do not go there)\n",
        town.service_url()
    );
    let rows = SHOWN
        .iter()
        .filter_map(|name| {
            let key = town.key(name)?;
            Some(vec![(*name).to_owned(), who(name).to_owned(), key.to_owned()])
        })
        .collect();
    print::table(&["caller", "who", "API key"], rows);
    let Some(key) = town.key("ada") else { return };
    say!("\nClaude Code:");
    say!("  claude mcp add --transport http tollhouse {endpoint} --header \"Authorization: Bearer {key}\"");
    say!("\nCursor, in .cursor/mcp.json:");
    say!(
        "  {{\"mcpServers\":{{\"tollhouse\":{{\"url\":\"{endpoint}\",\"headers\":{{\"Authorization\":\"Bearer {key}\"}}}}}}}}"
    );
    say!("\nVS Code, in .vscode/mcp.json:");
    say!(
        "  {{\"servers\":{{\"tollhouse\":{{\"type\":\"http\",\"url\":\"{endpoint}\",\"headers\":{{\"Authorization\":\"Bearer {key}\"}}}}}}}}"
    );
    say!("\nAsk for the status of invoice inv-1001, which is Ada's, and of inv-2001, which is not.");
    let stop = if std::io::stdin().is_terminal() {
        "; press Ctrl-C to stop"
    } else {
        ""
    };
    say!("The ledger, as it grows{stop}:\n");
}

fn who(name: &str) -> &'static str {
    match name {
        "ada" => "member of north",
        "bob" => "member of south",
        "eve" => "was a member of north; her key still works",
        _ => "",
    }
}

/// Prints the ledger's entries as they are written.
async fn follow(town: &Town, shutdown: &CancellationToken) {
    let mut entries = town.ledger();
    loop {
        let entry = tokio::select! {
            () = shutdown.cancelled() => return,
            entry = entries.recv() => entry,
        };
        match entry {
            Ok(entry) => say!("{entry}"),
            Err(RecvError::Lagged(lost)) => say!("({lost} entries came too fast to be shown)"),
            Err(RecvError::Closed) => return,
        }
        if print::lost() {
            return;
        }
    }
}

/// The names under which [`SHOWN`] are configured.
pub(super) fn caller_name(name: &str) -> Result<CallerName, Failure> {
    CallerName::parse(name).map_err(|fault| Failure::Internal(fault.to_string()))
}
