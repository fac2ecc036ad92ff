//! The command line, as it is written. What it means is in `command`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

/// The gate between AI agents and the systems they act on.
///
/// Agents see one MCP server. Behind it every call is identified, matched to a tool that a person reviewed, checked,
/// authorised by rules, recorded, and only then let through.
#[derive(Debug, Parser)]
#[command(name = "tollhouse", version, about, long_about, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 wrong command line, 65 unsound ledger, 66 missing \
                        input, 69 unavailable, 70 defect, 78 faults in the configuration."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the configuration is.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigPath {
    /// The configuration file.
    #[arg(short, long, value_name = "FILE", default_value = "tollhouse.toml", env = "TOLLHOUSE_CONFIG", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

/// Whether the result is for a program.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Format {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The server, by its name in the configuration.
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Only show it.
    #[arg(long, conflicts_with_all = ["revoke", "note"])]
    pub(crate) show: bool,
    /// Take every approval of this server back.
    #[arg(long, conflicts_with = "note")]
    pub(crate) revoke: bool,
    /// A note for people, as who asked for it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// What one process of the launcher is to do. Only the gate writes this command line.
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// Which of the two processes.
    #[arg(value_parser = ["warden", "bailiff"])]
    pub(crate) role: String,
    /// The process that started it.
    #[arg(long)]
    pub(crate) parent: u32,
    /// The folder in which the command runs.
    #[arg(long)]
    pub(crate) cwd: PathBuf,
    /// Milliseconds between SIGTERM and SIGKILL.
    #[arg(long)]
    pub(crate) grace: u64,
    /// What the command may reach, as JSON.
    #[arg(long)]
    pub(crate) sandbox: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the worked example: a synthetic invoice service, the gate in front of it, three callers
    Demo(Demo),
    /// Serve agents, over HTTP or on standard input and output
    Serve(Serve),
    /// Put the gate in front of one MCP server that is started, for the client that runs this command
    Wrap(Wrap),
    /// Put the gate in front of one MCP server at a URL, for the client that runs this command
    Connect(Connect),
    /// Find every fault of the configuration, then see whether each upstream can be reached
    Check(Check),
    /// Say what an OpenAPI document offers, what of it is offered to whom, and what is in the way
    Review(Review),
    /// Show each step of a call and the request that would be sent; send nothing
    Explain(CallArgs),
    /// List the tools, or those that a caller may use
    Tools(Tools),
    /// Call tools with synthetic arguments in an environment that is marked for it, and see what they change
    Probe(Probe),
    /// Name every operation, and keep names from coming to mean another one
    Names(Names),
    /// Approve what MCP servers offer, and see what has changed since
    #[command(subcommand)]
    Pins(Pins),
    /// Call a tool as a caller of the configuration
    Call(CallArgs),
    /// Read, export and verify the ledger
    #[command(subcommand)]
    Audit(Audit),
    /// Show what the command of a server would start, and approve it; the gate starts nothing that is not approved
    Approve(Approve),
    /// Add, list and revoke API keys
    #[command(subcommand)]
    Keys(Keys),
    /// Print the JSON Schema of the configuration or of the readiness report, or the Cedar schema of the policies
    Schema(Schema),
    /// Write a first configuration and policy folder; for a document, every operation held, with the questions to answer
    Init(Init),
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Start the command of a server, shut into what it may reach; the gate calls this
    #[command(name = "__launch", hide = true)]
    Launch(Launch),
    /// Write the manual pages
    Man {
        /// The folder to write them to.
        #[arg(value_name = "FOLDER", default_value = "man", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Run the allowed and the denied cases against it, print each decision, and stop.
    #[arg(long)]
    pub(crate) once: bool,
    /// Where to listen for agents.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7300")]
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// Serve one client on standard input and output, as the caller that `stdio.caller` names.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,
    /// Listen here instead of at the configured address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct Wrap {
    /// Where its configuration, approvals and ledger are kept. Default: a folder of its own in the state of this user.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    /// The command of the server, as its client would have started it.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Where its configuration, approvals and ledger are kept. Default: a folder of its own in the state of this user.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    /// The variable of the environment that holds a bearer token for the server.
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) bearer: Option<String>,
    /// A network in which the server may be, beyond the public internet, as 127.0.0.0/8. May be repeated.
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Vec<String>,
    /// The endpoint of the server.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// Connect to nothing.
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Review {
    /// The OpenAPI document, in JSON or YAML.
    #[arg(value_name = "DOCUMENT", value_hint = ValueHint::FilePath)]
    pub(crate) document: PathBuf,
    /// The configuration that has the document; without it, nothing is reviewed.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// An overlay that is applied to the document before it is read; can be given more than once, in their order.
    #[arg(long = "overlay", value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub(crate) overlays: Vec<PathBuf>,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t = ReportForm::Table)]
    pub(crate) format: ReportForm,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Where to write the report; without it, standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// An earlier version of the document: say what changed since, and which approvals that takes away.
    #[arg(long, value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub(crate) diff: Option<PathBuf>,
}

/// A form of the readiness report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportForm {
    /// A short table for a terminal.
    Table,
    /// One page that needs nothing else.
    Html,
    /// For a pull request.
    Markdown,
    /// Everything, for programs; its schema is docs/review.schema.json.
    Json,
    /// For code scanning.
    Sarif,
    /// One line for each operation.
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The caller, by its name in the configuration.
    #[arg(long = "as", value_name = "CALLER")]
    pub(crate) caller: String,
    /// The public name of the tool.
    pub(crate) tool: String,
    /// The arguments, as a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}", value_name = "ARGUMENTS")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Names {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// Add the names that are not locked yet to the file `tollhouse.names`.
    #[arg(long, conflicts_with = "json")]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// Only what this caller may use, as its client would see it.
    #[arg(long = "as", value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// The operations of the documents that are no tools, and what keeps one from becoming a tool.
    #[arg(long, conflicts_with = "caller")]
    pub(crate) held: bool,
    /// For every operation: what the document asks for, which credential is attached, who is let through.
    #[arg(long, conflicts_with_all = ["caller", "held"])]
    pub(crate) access: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Probe {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The caller, by its name in the configuration.
    #[arg(long = "as", value_name = "CALLER")]
    pub(crate) caller: String,
    /// The public names of the tools; without any, every one that has a call in `[upstream.NAME.probe]`.
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pins {
    /// List what was approved, by whom and when
    List(PinsList),
    /// Connect to a server and show what is not as it was approved; exit 1 if anything is not
    Diff(PinsDiff),
    /// Connect to a server, show what is new or changed, and approve it
    Approve(PinsApprove),
}

#[derive(Debug, Args)]
pub(crate) struct PinsList {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct PinsDiff {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The MCP server, as `[upstream.SERVER]` names it.
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct PinsApprove {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The MCP server, as `[upstream.SERVER]` names it.
    pub(crate) server: String,
    /// The tools to approve, by the server's own names.
    #[arg(required_unless_present = "all")]
    pub(crate) tools: Vec<String>,
    /// Approve everything that is new or changed, and take out what is gone.
    #[arg(long, conflicts_with = "tools")]
    pub(crate) all: bool,
    /// Who approves. Default: whoever runs the command.
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        default_value = "somebody",
        hide_env_values = true
    )]
    pub(crate) by: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the newest entries, and follow what comes
    Tail(Tail),
    /// Show every entry of one call
    Show(Show),
    /// Check an export: chain, gaps, signatures, calls without an outcome. Needs nothing but the export
    Verify(Verify),
    /// Write the whole ledger as JSON Lines
    Export(Export),
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// How many entries.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) lines: u32,
    /// Go on with what is written from now on, until interrupted.
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The id of the call, as entries and logs show it.
    pub(crate) call: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The export; `-` reads standard input. Without it, the ledger of the configuration is exported and checked.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The public key that every checkpoint must be signed with, as `audit export` prints it.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The export is a part of a ledger: what stands outside it is no fault.
    #[arg(long)]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// Where to write; without it, standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Entries of this time or later, as 2026-11-30T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<jiff::Timestamp>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a key for a caller; it is shown once
    Add(KeysAdd),
    /// List keys, without their secrets
    List(KeysList),
    /// End a key; running servers take notice within `keys_refresh_interval`
    Revoke(KeysRevoke),
}

#[derive(Debug, Args)]
pub(crate) struct KeysAdd {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The caller that the key stands for, by its name in the configuration.
    pub(crate) caller: String,
    /// When it ends by itself: a time as 2027-01-31T00:00:00Z, or a duration as 90d, 12h.
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
    /// A note for people, as where it is used.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct KeysList {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct KeysRevoke {
    #[command(flatten)]
    pub(crate) path: ConfigPath,
    /// The id of the key.
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The schema that the policies of the configuration are checked against, in Cedar's own notation.
    #[arg(long)]
    pub(crate) policy: bool,
    /// The JSON Schema of the readiness report, as `tollhouse review` prints it for programs.
    #[arg(long, conflicts_with = "policy")]
    pub(crate) review: bool,
    #[command(flatten)]
    pub(crate) path: ConfigPath,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The folder to write to; nothing that is there is overwritten. Or an OpenAPI document: its operations are added to
    /// the configuration, each held, with the questions that a reviewer has to answer.
    #[arg(value_name = "FOLDER_OR_DOCUMENT", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub(crate) target: PathBuf,
    /// The configuration to add a document to; written if it is not there.
    #[arg(short, long, value_name = "FILE", default_value = "tollhouse.toml", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// The name of the upstream for a document; by default made of its title.
    #[arg(long, value_name = "NAME")]
    pub(crate) upstream: Option<String>,
}

/// Reads the command line; a wrong one is explained, and the process ends with 2.
pub(crate) fn parse() -> Cli {
    Cli::parse()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed_and_every_part_of_it_is_explained() {
        fn explained(command: &clap::Command) {
            for part in command.get_subcommands() {
                assert!(part.get_about().is_some(), "{}", part.get_name());
                for argument in part.get_arguments() {
                    assert!(
                        argument.get_help().is_some(),
                        "{} {}",
                        part.get_name(),
                        argument.get_id()
                    );
                }
                explained(part);
            }
        }
        Cli::command().debug_assert();
        explained(&Cli::command());
    }
}
