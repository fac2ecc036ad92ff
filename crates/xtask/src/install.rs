//! What the tests need beside Rust: a few Debian packages, and clients and tools from npm and PyPI in exact versions, which
//! stand in `.peers/`. It installs what is missing and nothing else; what a test does with it is not its matter.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::command::{in_path, run};
use crate::repository::{read, root};

/// Something that the machine itself has to have.
struct Need {
    what: &'static str,
    there: fn() -> bool,
    /// The package of Debian and Ubuntu that brings it.
    package: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        what: "git",
        there: || in_path("git").is_some(),
        package: "git",
    },
    Need {
        what: "npm",
        there: || in_path("npm").is_some(),
        package: "npm",
    },
    Need {
        what: "Python 3 with venv and pip",
        there: python_with_venv,
        package: "python3-venv",
    },
    Need {
        what: "PostgreSQL's server",
        there: postgres,
        package: "postgresql",
    },
    Need {
        what: "strace",
        there: || in_path("strace").is_some(),
        package: "strace",
    },
    // Smaller images have it in their shell only.
    Need {
        what: "kill",
        there: || in_path("kill").is_some(),
        package: "procps",
    },
];

/// Programs that other people wrote, in a folder under `.peers/`.
struct Peers {
    folder: &'static str,
    /// What says exactly which versions, relative to the root.
    lock: &'static str,
    /// What else it is made of.
    sources: &'static [&'static str],
    install: fn(&Path) -> Result<()>,
}

/// What looks at the dependencies.
const TOOLS: Peers = Peers {
    folder: "tools",
    lock: "crates/xtask/requirements.txt",
    sources: &[],
    install: |folder| venv(folder, "crates/xtask/requirements.txt"),
};

const PEERS: &[Peers] = &[
    TOOLS,
    Peers {
        folder: "node",
        lock: "crates/e2e/peers/package-lock.json",
        sources: &[],
        install: |folder| npm(folder, "crates/e2e/peers"),
    },
    Peers {
        folder: "documents",
        lock: "crates/e2e/peers/documents/package-lock.json",
        sources: &[],
        install: |folder| npm(folder, "crates/e2e/peers/documents"),
    },
    Peers {
        folder: "python1",
        lock: "crates/e2e/peers/requirements-1.txt",
        sources: &[],
        install: |folder| venv(folder, "crates/e2e/peers/requirements-1.txt"),
    },
    Peers {
        folder: "python2",
        lock: "crates/e2e/peers/requirements-2.txt",
        sources: &[],
        install: |folder| venv(folder, "crates/e2e/peers/requirements-2.txt"),
    },
    Peers {
        folder: "source",
        lock: "crates/e2e/peers/requirements-source.txt",
        sources: &[],
        install: source,
    },
    Peers {
        folder: "rmcp",
        lock: "crates/e2e/peers/rmcp/Cargo.lock",
        sources: &[
            "crates/e2e/peers/rmcp/Cargo.toml",
            "crates/e2e/peers/rmcp/src/main.rs",
        ],
        install: rmcp,
    },
];

/// Installs what is missing.
///
/// # Errors
/// Where something is missing that cannot be installed; each thing is named.
pub fn install() -> Result<()> {
    machine()?;
    for peers in PEERS {
        peers.keep()?;
    }
    Ok(())
}

/// Where cargo-deny stands, installed if it is missing.
///
/// # Errors
/// Where it cannot be installed.
pub fn cargo_deny() -> Result<PathBuf> {
    TOOLS.keep()?;
    Ok(TOOLS.path().join("bin/cargo-deny"))
}

/// Sees to it that the machine has what it needs.
fn machine() -> Result<()> {
    let missing = || NEEDS.iter().filter(|need| !(need.there)()).collect::<Vec<_>>();
    let needs = missing();
    if needs.is_empty() {
        println!("what the machine has to have is there");
        return Ok(());
    }
    let whats = named(&needs);
    let packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
    let Some(apt) = Apt::find() else {
        bail!(
            "missing: {whats}; install them by what your system has for it (on Debian: apt-get install {})",
            packages.join(" ")
        );
    };
    println!("missing: {whats}");
    apt.run(&["update"])?;
    let mut words = vec!["install", "--yes", "--no-install-recommends"];
    words.extend(&packages);
    apt.run(&words)?;
    let still = missing();
    if !still.is_empty() {
        bail!(
            "{} was installed, and {} is still missing",
            packages.join(" "),
            named(&still)
        );
    }
    Ok(())
}

fn named(needs: &[&Need]) -> String {
    needs.iter().map(|need| need.what).collect::<Vec<_>>().join(", ")
}

/// Debian's installer, and whether it has to be asked for through sudo.
struct Apt {
    sudo: bool,
}

// === impl Apt ===

impl Apt {
    /// The installer, where there is one and this user may use it.
    fn find() -> Option<Self> {
        in_path("apt-get")?;
        if is_root() {
            return Some(Self { sudo: false });
        }
        in_path("sudo").map(|_| Self { sudo: true })
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(if self.sudo { "sudo" } else { "env" });
        if self.sudo {
            command.arg("env");
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]);
        command.args(words).stdin(Stdio::null());
        run(&mut command)
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Debian has Python without what makes a venv.
fn python_with_venv() -> bool {
    let imported = Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .stderr(Stdio::null())
        .status();
    imported.is_ok_and(|status| status.success())
}

/// Where `crates/e2e` looks for it: where Debian puts it, which is not in the path, and in the path.
fn postgres() -> bool {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = debian.filter_map(|entry| Some(entry.ok()?.path().join("bin/initdb")));
    debian.chain(in_path("initdb")).any(|program| program.is_file())
}

// === impl Peers ===

impl Peers {
    fn path(&self) -> PathBuf {
        root().join(".peers").join(self.folder)
    }

    /// Installs them, unless exactly these are there.
    fn keep(&self) -> Result<()> {
        let folder = self.path();
        let mut lock = read(self.lock)?;
        for source in self.sources {
            lock.push_str(&read(source)?);
        }
        // Written last, so that a run that was interrupted is not taken for a whole one.
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
            println!(".peers/{} is as {} says", self.folder, self.lock);
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("`{}` cannot be removed", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
        (self.install)(&folder).with_context(|| format!("`{}` cannot be installed", self.lock))?;
        fs::write(&stamp, lock).with_context(|| format!("`{}` cannot be written", stamp.display()))
    }
}

/// Installs the packages of the lock file. Their install scripts are not run: they are not needed, and are anybody's code.
fn npm(folder: &Path, lock: &str) -> Result<()> {
    for name in ["package.json", "package-lock.json"] {
        let from = root().join(lock).join(name);
        fs::copy(&from, folder.join(name))
            .with_context(|| format!("`{}` cannot be copied", from.display()))?;
    }
    let mut command = Command::new("npm");
    command
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(folder);
    run(&mut command)
}

/// Makes a virtual environment with the packages of a file of requirements.
fn venv(folder: &Path, requirements: &str) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let python: PathBuf = folder.join("bin/python");
    let words = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--requirement",
    ];
    run(Command::new(python)
        .args(words.map(OsStr::new))
        .arg(root().join(requirements))
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1"))
}

/// Unpacks a source package. Pip builds its metadata before it keeps it; what builds that is exact too.
fn source(folder: &Path) -> Result<()> {
    venv(folder, "crates/e2e/peers/requirements-build.txt")?;
    let python: PathBuf = folder.join("bin/python");
    let words = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary=:all:",
        "--no-build-isolation",
        "--require-hashes",
        "--requirement",
    ];
    run(Command::new(&python)
        .args(words.map(OsStr::new))
        .arg(root().join("crates/e2e/peers/requirements-source.txt"))
        .arg("--dest")
        .arg(folder)
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1"))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let words = ["-m", "tarfile", "--extract"];
            run(Command::new(&python).args(words).arg(&path).arg(folder))?;
        }
    }
    Ok(())
}

/// Builds the program on the Rust SDK; what it is built from is not kept.
fn rmcp(folder: &Path) -> Result<()> {
    let target = folder.join("target");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(root().join("crates/e2e/peers/rmcp/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    run(&mut command)?;
    let (built, kept) = (target.join("debug/peer-rmcp"), folder.join("peer-rmcp"));
    fs::copy(&built, &kept).with_context(|| format!("`{}` cannot be copied", built.display()))?;
    fs::remove_dir_all(&target).with_context(|| format!("`{}` cannot be removed", target.display()))
}
