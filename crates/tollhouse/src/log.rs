//! Where log messages go: always to standard error, because standard output belongs to results and to the protocol.

use std::io::IsTerminal as _;

use config::{LogFormat, LogSettings};
use tracing_subscriber::EnvFilter;

/// The variable that sets a filter by hand, in the form of the `tracing` crates: `gateway=debug,info`.
const VARIABLE: &str = "TOLLHOUSE_LOG";

/// Starts logging. The second call of a process does nothing.
pub(crate) fn start(settings: LogSettings) {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| {
        // Libraries say little at `info` that helps an operator.
        let level = settings.level.as_str();
        EnvFilter::new(format!("{level},hyper=warn,h2=warn,rustls=warn,sqlx=warn"))
    });
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A client may close its end of our standard error. The complaint about that would go there too, and panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    // An error means that logging was started before, which is just as well.
    let _ = match settings.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Logging for commands that answer a person: warnings only.
pub(crate) fn start_quiet() {
    start(LogSettings {
        level: config::LogLevel::Warn,
        format: LogFormat::Text,
    });
}
