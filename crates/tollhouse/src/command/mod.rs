//! What each command does. Reading the command line is in `cli`, putting the house together in `house`.

mod approve;
mod audit;
mod call;
mod check;
mod demo;
mod explain;
mod held;
mod init;
mod keys;
mod launch;
mod names;
mod pins;
mod probe;
mod review;
mod schema;
mod serve;
mod shell;
mod tools;
mod wrap;

use std::future::Future;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use ::gateway::{Asked, Gateway, Mount};
use config::{Settings, SystemWorld};
use identity::{Principal, configured};
use model::{Arguments, JsonLimits};

use crate::cli::{Audit, CallArgs, Cli, Command, ConfigPath, Keys, Pins};
use crate::failure::Failure;
use crate::house::document::Reach;
use crate::house::{self, Reviewed};

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Demo(args) => block_on(demo::demo(args)),
        Command::Serve(args) => block_on(serve::serve(args)),
        Command::Wrap(args) => block_on(wrap::wrap(args)),
        Command::Connect(args) => block_on(wrap::connect(args)),
        Command::Check(args) => block_on(check::check(args)),
        Command::Review(args) => block_on(review::review(args)),
        Command::Explain(args) => block_on(explain::explain(args)),
        Command::Tools(args) => block_on(tools::tools(args)),
        Command::Probe(args) => block_on(probe::probe(args)),
        Command::Names(args) => block_on(names::names(args)),
        Command::Pins(Pins::List(args)) => pins::list(&args),
        Command::Pins(Pins::Diff(args)) => block_on(pins::diff(args)),
        Command::Pins(Pins::Approve(args)) => block_on(pins::approve(args)),
        Command::Call(args) => block_on(call::call(args)),
        Command::Audit(Audit::Tail(args)) => block_on(audit::tail(args)),
        Command::Audit(Audit::Show(args)) => block_on(audit::show(args)),
        Command::Audit(Audit::Verify(args)) => block_on(audit::verify(args)),
        Command::Audit(Audit::Export(args)) => block_on(audit::export(args)),
        Command::Approve(args) => block_on(approve::approve(args)),
        Command::Keys(Keys::Add(args)) => block_on(keys::add(args)),
        Command::Keys(Keys::List(args)) => block_on(keys::list(args)),
        Command::Keys(Keys::Revoke(args)) => block_on(keys::revoke(args)),
        Command::Schema(args) => block_on(schema::schema(args)),
        Command::Init(args) => init::init(&args),
        // No runtime: what is shut in is the thread that asks for it.
        Command::Launch(args) => launch::launch(args),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { folder } => shell::manual(&folder),
    }
}

/// Runs a future on a runtime of its own.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Internal(format!("the runtime cannot be started: {error}")))?;
    let result = runtime.block_on(work);
    // Standard input is read by a thread that cannot be woken; it must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

/// Reads the configuration and everything that it names.
async fn review(path: &ConfigPath) -> Result<Reviewed, Failure> {
    house::review(&path.config, &SystemWorld, Reach::Configured).await
}

/// The same, for commands that start servers, or say whether they could be: none that nobody approved.
async fn review_approved(path: &ConfigPath, reach: Reach) -> Result<Reviewed, Failure> {
    let problems = house::command_line::unapproved(&settings(path)?).await?;
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    house::review(&path.config, &SystemWorld, reach).await
}

/// Reads the configuration alone: for commands that need no document and no rule.
fn settings(path: &ConfigPath) -> Result<Settings, Failure> {
    config::load(&path.config, &SystemWorld)
        .map(|loaded| loaded.settings)
        .map_err(|faults| Failure::Problems(faults.iter().map(crate::problem::Problem::from).collect()))
}

/// A gateway that records into memory: for commands that look and do not act.
struct Looking {
    settings: Settings,
    gateway: Arc<Gateway>,
    /// Which operation each name belongs to.
    names: house::names::Names,
}

impl Looking {
    async fn open(path: &ConfigPath) -> Result<Self, Failure> {
        let mut reviewed = review(path).await?;
        let names = std::mem::take(&mut reviewed.names);
        let sources = house::sources(&reviewed.settings)
            .await
            .map_err(Failure::Problems)?;
        let ledger = house::paper_ledger(&reviewed.settings).await?;
        let (settings, gateway) = house::gateway(reviewed, ledger, sources)?;
        Ok(Self {
            settings,
            gateway,
            names,
        })
    }

    /// Ends the ledger in memory. There is nothing in it that anybody could miss.
    async fn close(self) {
        let _ = self.gateway.ledger().clone().close().await;
    }
}

/// The caller of `--as`.
fn principal(settings: &Settings, name: &str) -> Result<Principal, Failure> {
    house::caller(settings, name).map(|caller| configured(&caller))
}

/// The arguments of a call on the command line.
fn arguments(settings: &Settings, args: &CallArgs) -> Result<Arguments, Failure> {
    let limits = &settings.limits;
    let text = if args.arguments == "-" {
        read_standard_input(limits.arguments_bytes_max)?
    } else {
        args.arguments.clone()
    };
    let json = JsonLimits {
        bytes_max: limits.arguments_bytes_max,
        depth_max: limits.json_depth_max,
    };
    Arguments::parse(text.as_bytes(), json).map_err(|fault| {
        Failure::Input(format!(
            "the arguments cannot be read: {fault}; write a JSON object, as '{{\"id\":\"x\"}}'"
        ))
    })
}

/// What a call on the command line asks for.
fn asked(gateway: &Gateway, args: &CallArgs, arguments: Arguments) -> Asked {
    Asked {
        wanted: gateway.meant(&args.tool, arguments),
        mount: Mount::All,
    }
}

fn read_standard_input(bytes_max: usize) -> Result<String, Failure> {
    let mut text = String::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_string(&mut text)
        .map_err(|error| Failure::Input(format!("standard input cannot be read: {error}")))?;
    Ok(text)
}
