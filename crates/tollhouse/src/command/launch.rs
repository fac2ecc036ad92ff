//! `tollhouse __launch`: what the gate starts in place of a server's command. What it does is in `upstream`.

use std::time::Duration;

use upstream::{Launch, Role};

use crate::cli;
use crate::failure::Failure;

pub(crate) fn launch(args: cli::Launch) -> Result<(), Failure> {
    let mut command = args.command.into_iter();
    let role = if args.role == Role::Warden.as_str() {
        Role::Warden
    } else {
        Role::Bailiff
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the launcher hands on the environment that the gate made for the command"
    )]
    let variables = std::env::vars_os().collect();
    let launch = Launch {
        role,
        parent: args.parent,
        cwd: args.cwd,
        sandbox: args.sandbox,
        grace: Duration::from_millis(args.grace),
        program: command.next().unwrap_or_default(),
        arguments: command.collect(),
        variables,
    };
    match launch.run() {
        0 => Ok(()),
        code => Err(Failure::Launched(code)),
    }
}
