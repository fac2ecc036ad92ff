//! The one table of rooms: on which floor each stands, and what of the world it touches. Everything that a room does
//! not touch is closed to it by its `clippy.toml`, which is made here. It does not say what a room is for: that is in
//! `docs/architecture.md`, whose table the tests compare with this one.

use std::fmt::Write as _;

use crate::repository::Made;

/// A crate under `crates/` that is part of the product.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The folder under `crates/`, and the name that other rooms import it by.
    pub name: &'static str,
    /// Its rank: it may use rooms of lower floors, and no other.
    pub floor: u8,
    /// What of the world it touches, in the order of [`World::ALL`].
    pub touches: &'static [World],
}

/// A part of the world that code can touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// Reads or writes files.
    Files,
    /// Reads variables, arguments, the working folder.
    Environment,
    /// Starts other programs.
    Processes,
    /// Ends the process.
    ExitCode,
    /// Reads standard input, writes standard output and error.
    Terminal,
    /// Accepts connections.
    Listening,
    /// Makes connections and resolves names.
    Connecting,
    /// Opens databases.
    Databases,
    /// Knows what time of day it is.
    TimeOfDay,
    /// Measures how long something takes, and waits.
    Timers,
    /// Draws random numbers.
    Chance,
}

/// The rooms, lowest floor first.
pub const ROOMS: &[Room] = &[
    Room {
        name: "model",
        floor: 0,
        touches: &[],
    },
    Room {
        name: "wire",
        floor: 1,
        touches: &[],
    },
    Room {
        name: "identity",
        floor: 1,
        touches: &[World::Chance],
    },
    Room {
        name: "policy",
        floor: 1,
        touches: &[],
    },
    Room {
        name: "openapi",
        floor: 1,
        touches: &[],
    },
    Room {
        name: "config",
        floor: 1,
        touches: &[World::Files, World::Environment, World::TimeOfDay],
    },
    Room {
        name: "store",
        floor: 1,
        touches: &[World::Files, World::Databases, World::Timers],
    },
    Room {
        name: "audit",
        floor: 2,
        touches: &[World::TimeOfDay, World::Timers, World::Chance],
    },
    Room {
        name: "catalog",
        floor: 2,
        touches: &[],
    },
    Room {
        name: "egress",
        floor: 2,
        touches: &[World::Connecting, World::Timers],
    },
    Room {
        name: "upstream",
        floor: 3,
        touches: &[World::Processes, World::Timers],
    },
    Room {
        name: "gateway",
        floor: 4,
        touches: &[World::Timers, World::Chance],
    },
    Room {
        name: "server",
        floor: 5,
        touches: &[World::Listening, World::Timers],
    },
    Room {
        name: "review",
        floor: 5,
        touches: &[],
    },
    Room {
        name: "tollhouse",
        floor: 6,
        touches: &[
            World::Files,
            World::ExitCode,
            World::Terminal,
            World::TimeOfDay,
            World::Timers,
        ],
    },
];

/// Crates under `crates/` that are no rooms: they are not part of the product and may touch what they need.
pub const WORKSHOPS: &[&str] = &["e2e", "xtask"];

/// Outside crates that only some rooms may use, and why. A room that is named need not use it.
pub const KEPT: &[Kept] = &[
    Kept {
        package: "cedar-policy",
        rooms: &["policy"],
        because: "rules are judged in one place",
    },
    Kept {
        package: "sqlx",
        rooms: &["store"],
        because: "SQL has one door",
    },
    Kept {
        package: "rusqlite",
        rooms: &["store"],
        because: "SQL has one door",
    },
    Kept {
        package: "jsonwebtoken",
        rooms: &["identity"],
        because: "tokens are judged in one place",
    },
    Kept {
        package: "ed25519-dalek",
        rooms: &["audit"],
        because: "only the ledger signs",
    },
    Kept {
        package: "hyper-rustls",
        rooms: &["egress"],
        because: "there is one dialer",
    },
    Kept {
        package: "hyper",
        rooms: &["egress", "server"],
        because: "HTTP is spoken at two doors, and only one of them dials",
    },
    Kept {
        package: "axum",
        rooms: &["server"],
        because: "the ports have one room",
    },
    Kept {
        package: "toml",
        rooms: &["config"],
        because: "settings are read in one place",
    },
    Kept {
        package: "clap",
        rooms: &["tollhouse"],
        because: "the command line has one room",
    },
    Kept {
        package: "anyhow",
        rooms: &[],
        because: "every error of a room says by its type what failed",
    },
    Kept {
        package: "tokio",
        rooms: &[
            "store",
            "audit",
            "egress",
            "upstream",
            "gateway",
            "server",
            "tollhouse",
        ],
        because: "the rooms below are plain functions",
    },
];

/// An outside crate that only some rooms may use.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Its name on the registry.
    pub package: &'static str,
    /// The rooms that may depend on it.
    pub rooms: &'static [&'static str],
    /// Why.
    pub because: &'static str,
}

// === impl Room ===

impl Room {
    /// The room with this folder name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        ROOMS.iter().find(|room| room.name == name)
    }

    /// The name of its package.
    #[must_use]
    pub fn package(&self) -> String {
        match self.name {
            "tollhouse" => self.name.to_owned(),
            name => format!("tollhouse-{name}"),
        }
    }

    /// What it touches, in words, as the last column of the table in `docs/architecture.md` has it.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.touches.is_empty() {
            return "nothing".to_owned();
        }
        let words: Vec<&str> = self.touches.iter().map(|world| world.words()).collect();
        words.join(", ")
    }

    /// Its `clippy.toml` as a file.
    #[must_use]
    pub fn clippy_file(&self) -> Made {
        Made {
            path: format!("crates/{}/clippy.toml", self.name),
            text: self.clippy_toml(),
            by: "cargo xtask rooms --write",
        }
    }

    /// What its `clippy.toml` holds.
    #[must_use]
    pub fn clippy_toml(&self) -> String {
        let mut text = format!(
            "# Made by `cargo xtask rooms --write` from crates/xtask/src/rooms.rs. Change it there.\n\
             # The room `{}` touches: {}. What stands below is closed to it.\n\n\
             allow-unwrap-in-tests = true\n\
             allow-expect-in-tests = true\n\
             allow-panic-in-tests = true\n\
             allow-indexing-slicing-in-tests = true\n",
            self.name,
            self.in_words()
        );
        let closed = || World::ALL.iter().filter(|world| !self.touches.contains(world));
        list(
            &mut text,
            "disallowed-methods",
            closed().map(|world| (*world, world.methods())),
        );
        list(
            &mut text,
            "disallowed-types",
            closed().map(|world| (*world, world.types())),
        );
        text
    }
}

/// Writes one list of closed paths.
fn list(text: &mut String, key: &str, closed: impl Iterator<Item = (World, &'static [&'static str])>) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\n{key} = [\n");
    for (world, paths) in closed {
        for path in paths {
            // A path of another crate is unknown to a room that does not use that crate, which is what we want.
            let foreign = if path.starts_with("std::") {
                ""
            } else {
                ", allow-invalid = true"
            };
            let _ = writeln!(
                text,
                "  {{ path = \"{path}\", reason = \"{}\"{foreign} }},",
                world.reason()
            );
        }
    }
    text.push_str("]\n");
}

// === impl World ===

impl World {
    /// Every part.
    pub const ALL: &'static [Self] = &[
        Self::Files,
        Self::Environment,
        Self::Processes,
        Self::ExitCode,
        Self::Terminal,
        Self::Listening,
        Self::Connecting,
        Self::Databases,
        Self::TimeOfDay,
        Self::Timers,
        Self::Chance,
    ];

    /// The part in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Environment => "environment",
            Self::Processes => "processes",
            Self::ExitCode => "exit code",
            Self::Terminal => "terminal",
            Self::Listening => "listens",
            Self::Connecting => "connects",
            Self::Databases => "databases",
            Self::TimeOfDay => "time of day",
            Self::Timers => "timers",
            Self::Chance => "random numbers",
        }
    }

    /// Why it is closed, and what to do instead.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Files => {
                "this room touches no files; take the content as a value, or read it through config::World"
            }
            Self::Environment => {
                "this room does not read the environment; take the value, config resolves `env:`"
            }
            Self::Processes => "this room starts no programs",
            Self::ExitCode => "this room does not end the process; give back an error",
            Self::Terminal => {
                "this room does not speak to the terminal; give back what there is to say, or trace it"
            }
            Self::Listening => "this room does not listen; server does",
            Self::Connecting => "this room makes no connections; egress does, which judges every address",
            Self::Databases => "this room opens no databases; store does",
            Self::TimeOfDay => "this room does not ask what time it is; take the time as a value",
            Self::Timers => "this room does not measure time; take the deadline as a value",
            Self::Chance => "this room draws no random numbers; take the value",
        }
    }

    /// The functions that touch it.
    #[must_use]
    pub const fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Files => &[
                "std::fs::canonicalize",
                "std::fs::copy",
                "std::fs::create_dir",
                "std::fs::create_dir_all",
                "std::fs::exists",
                "std::fs::hard_link",
                "std::fs::metadata",
                "std::fs::read",
                "std::fs::read_dir",
                "std::fs::read_link",
                "std::fs::read_to_string",
                "std::fs::remove_dir",
                "std::fs::remove_dir_all",
                "std::fs::remove_file",
                "std::fs::rename",
                "std::fs::set_permissions",
                "std::fs::symlink_metadata",
                "std::fs::write",
                "std::path::Path::canonicalize",
                "std::path::Path::exists",
                "std::path::Path::is_dir",
                "std::path::Path::is_file",
                "std::path::Path::is_symlink",
                "std::path::Path::metadata",
                "std::path::Path::read_dir",
                "std::path::Path::read_link",
                "std::path::Path::symlink_metadata",
                "std::path::Path::try_exists",
                "tempfile::tempdir",
                "tempfile::tempfile",
                "tokio::fs::read",
                "tokio::fs::read_to_string",
                "tokio::fs::write",
            ],
            Self::Environment => &[
                "std::env::args",
                "std::env::args_os",
                "std::env::current_dir",
                "std::env::current_exe",
                "std::env::home_dir",
                "std::env::set_current_dir",
                "std::env::temp_dir",
                "std::env::var",
                "std::env::var_os",
                "std::env::vars",
                "std::env::vars_os",
            ],
            Self::Processes => &[],
            Self::ExitCode => &["std::process::abort", "std::process::exit"],
            Self::Terminal => &[
                "std::io::stderr",
                "std::io::stdin",
                "std::io::stdout",
                "tokio::io::stderr",
                "tokio::io::stdin",
                "tokio::io::stdout",
            ],
            Self::Listening | Self::Databases => &[],
            Self::Connecting => &[
                "std::net::ToSocketAddrs::to_socket_addrs",
                "tokio::net::lookup_host",
            ],
            Self::TimeOfDay => &[
                "std::time::SystemTime::elapsed",
                "std::time::SystemTime::now",
                "jiff::Timestamp::now",
                "jiff::Zoned::now",
                "uuid::Uuid::now_v7",
            ],
            Self::Timers => &[
                "std::time::Instant::elapsed",
                "std::time::Instant::now",
                "std::thread::sleep",
                "tokio::time::Instant::elapsed",
                "tokio::time::Instant::now",
                "tokio::time::interval",
                "tokio::time::interval_at",
                "tokio::time::sleep",
                "tokio::time::sleep_until",
                "tokio::time::timeout",
                "tokio::time::timeout_at",
            ],
            Self::Chance => &["getrandom::fill", "uuid::Uuid::new_v4"],
        }
    }

    /// The types that touch it.
    #[must_use]
    pub const fn types(self) -> &'static [&'static str] {
        match self {
            Self::Files => &[
                "std::fs::File",
                "std::fs::OpenOptions",
                "tokio::fs::File",
                "tokio::fs::OpenOptions",
            ],
            Self::Processes => &["std::process::Command", "tokio::process::Command"],
            Self::Listening => &[
                "std::net::TcpListener",
                "std::os::unix::net::UnixListener",
                "tokio::net::TcpListener",
                "tokio::net::UnixListener",
            ],
            Self::Connecting => &[
                "std::net::TcpStream",
                "std::net::UdpSocket",
                "std::os::unix::net::UnixStream",
                "hyper_util::client::legacy::connect::HttpConnector",
                "tokio::net::TcpSocket",
                "tokio::net::TcpStream",
                "tokio::net::UdpSocket",
                "tokio::net::UnixStream",
            ],
            Self::Databases => &[
                "sqlx::PgConnection",
                "sqlx::PgPool",
                "sqlx::SqliteConnection",
                "sqlx::SqlitePool",
            ],
            Self::Environment
            | Self::ExitCode
            | Self::Terminal
            | Self::TimeOfDay
            | Self::Timers
            | Self::Chance => &[],
        }
    }
}
