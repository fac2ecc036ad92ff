//! A PostgreSQL server for the tests: its own data in a folder of its own, on a Unix socket in that folder, so that it
//! meets no other server of the machine and needs no port.
//!
//! It is the machine's own PostgreSQL, as Debian packages it or as it stands in the path. A server ends with the process
//! that started it, however that ends.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;

use crate::peer;

/// The superuser of the server.
const ROLE: &str = "tollhouse";

/// Keeps the server company: whatever happens to the process that started it, its end of the pipe closes, and the
/// server is stopped at once. The folder goes with it.
const KEEPER: &str = r#"
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=200 >"$2/log" 2>&1 &
server=$!
echo started
read -r word
kill -QUIT "$server"
wait "$server"
rm -rf "$2"
"#;

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    keeper: Child,
    /// Closed, it stops the server.
    word: Option<ChildStdin>,
}

impl Postgres {
    /// The server that all tests of a process share; `None`, and a word about it, where the machine has none.
    pub async fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        // Many tests ask at once, and starting takes a while: not on a thread that drives other tests.
        tokio::task::spawn_blocking(|| SHARED.get_or_init(Self::start).as_ref())
            .await
            .unwrap()
    }

    /// A server of one test.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            peer::missing("PostgreSQL", "apt-get install postgresql");
            return None;
        };
        let folder = TempDir::with_prefix("tollhouse-pg-").unwrap();
        // It refuses to run as root.
        let user = unprivileged();
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).unwrap();
        }
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let command = |program: &Path| {
            let mut command = Command::new(program);
            command
                .current_dir(folder.path())
                .env("LC_ALL", "C")
                .env("HOME", folder.path());
            if let Some((uid, gid)) = user {
                command.gid(gid).uid(uid);
            }
            command
        };
        let made = command(&programs.join("initdb"))
            .args([
                "--no-sync",
                "--no-instructions",
                "--auth=trust",
                "--encoding=UTF8",
            ])
            .arg(format!("--username={ROLE}"))
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "initdb: {}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        // Whoever has a password must know it; only the superuser of the tests comes in without.
        let rules = format!("local all {ROLE} trust\nlocal all all scram-sha-256\n");
        std::fs::write(folder.path().join("data/pg_hba.conf"), rules).unwrap();
        let mut keeper = command(Path::new("sh"))
            .arg("-c")
            .arg(KEEPER)
            .arg("keeper")
            .arg(&programs)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A signal to the tests' group must not end it before it has ended the server.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let word = keeper.stdin.take();
        let server = Self { folder, keeper, word };
        server.wait(&programs);
        Some(server)
    }

    /// Waits until it answers.
    fn wait(&self, programs: &Path) {
        let began = std::time::Instant::now();
        loop {
            let ready = Command::new(programs.join("pg_isready"))
                .arg("--quiet")
                .arg("--host")
                .arg(self.folder.path())
                .status()
                .unwrap();
            if ready.success() {
                return;
            }
            if began.elapsed() > crate::house::PATIENCE {
                let log = std::fs::read_to_string(self.folder.path().join("log"));
                panic!("PostgreSQL does not get ready:\n{}", log.unwrap_or_default());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// The URL of the superuser, for the database that is always there.
    pub fn url(&self) -> String {
        self.url_of(ROLE, None, "postgres")
    }

    /// A URL of a role and a database.
    pub fn url_of(&self, role: &str, password: Option<&str>, database: &str) -> String {
        let password = password.map_or_else(String::new, |password| format!(":{password}"));
        format!(
            "postgres://{role}{password}@localhost/{database}?host={}",
            self.folder.path().display()
        )
    }

    /// A database of its own, with these statements run in it; its name.
    pub async fn database(&self, statements: &str) -> String {
        let name = format!("t_{}", uuid::Uuid::now_v7().simple());
        self.run(&self.url(), &format!("CREATE DATABASE {name}")).await;
        self.run(&self.url_of(ROLE, None, &name), statements).await;
        name
    }

    /// Runs statements.
    pub async fn run(&self, url: &str, statements: &str) {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
    }

    /// Stops the server, as a failing machine would.
    pub fn stop(&mut self) {
        drop(self.word.take());
        self.keeper.wait().unwrap();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.word.take());
        let _ = self.keeper.wait();
    }
}

/// The folder of the server's programs: the newest that Debian has, or the one in the path.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = debian
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian
        .map(|(_, folder)| folder)
        .into_iter()
        .chain(std::env::split_paths(&path))
        .find(|folder| {
            ["initdb", "postgres", "pg_isready"]
                .iter()
                .all(|name| folder.join(name).is_file())
        })
}

/// Whom to run the server as, if the tests run as root: the user that the package made, or nobody.
fn unprivileged() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    if own.and_then(|line| line.split_whitespace().nth(1)) != Some("0") {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody"))
}
