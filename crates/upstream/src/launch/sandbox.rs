//! The sandbox of a command, applied to the process that becomes it: Landlock for files, seccomp for sockets,
//! and none of the powers of the super-user.
//!
//! Files: what was declared, and what programs need to start. Sockets: where the network is off, none can be made at
//! all, not even to a program of this machine, because one of those may do what the command may not. Pairs of sockets
//! between the command's own processes are not concerned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use serde_json::Value;

use super::Protection;

/// What a sandbox needs of the kernel to be whole: files can be neither read, changed, moved nor cut outside of it. Newer
/// kernels can do more, which is taken where it is there.
const NEEDED: ABI = ABI::V3;
const WANTED: ABI = ABI::V6;

/// Read and run by nearly every program: its libraries, and what they are configured with. Nothing of a user is here.
const READ_BY_ALL: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
];

/// Devices that hold nothing.
const WRITTEN_BY_ALL: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What was declared.
#[derive(Debug, PartialEq, Eq)]
struct Declared {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: bool,
    allow_degraded: bool,
}

/// Applies what was declared to this thread, for good. `text` is JSON, as [`crate::Children`] writes it.
pub(super) fn apply(text: &str, program: &Path) -> Result<Protection, String> {
    let declared = Declared::read(text).ok_or("the sandbox cannot be read")?;
    let powers = powers();
    let files = files(&declared, program)?;
    let sockets = if declared.network {
        Protection::Full
    } else {
        sockets()
    };
    let protection = match (files, sockets) {
        _ if !powers && files != Protection::None => Protection::Partial,
        (Protection::Full, Protection::Full) => Protection::Full,
        (Protection::None, Protection::None) => Protection::None,
        // The network was left on, so there is nothing but the files.
        (Protection::None, Protection::Full) if declared.network => Protection::None,
        _ => Protection::Partial,
    };
    if protection == Protection::Full || declared.allow_degraded {
        return Ok(protection);
    }
    Err(format!(
        "this kernel can apply the sandbox {} (files: {}, sockets: {}); use one with Landlock and seccomp, or write \
         `sandbox.allow_degraded = true`",
        if protection == Protection::None {
            "not at all"
        } else {
            "only in part"
        },
        files.as_str(),
        sockets.as_str(),
    ))
}

impl Declared {
    fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let paths = |name: &str| -> Option<Vec<PathBuf>> {
            let list = value.get(name)?.as_array()?.iter();
            list.map(|path| path.as_str().map(PathBuf::from)).collect()
        };
        Some(Self {
            read: paths("read")?,
            write: paths("write")?,
            network: value.get("network")?.as_bool()?,
            allow_degraded: value.get("allow_degraded")?.as_bool()?,
        })
    }
}

// === powers ===

/// What the super-user keeps: rights to files, which Landlock bounds.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Takes the powers of the super-user away, where there are any, for good: one of them reads the memory of any process,
/// whatever Landlock says (CAP_PERFMON). `false` where that did not work.
fn powers() -> bool {
    let Ok(held) = capabilities(None) else {
        return false;
    };
    if held.permitted.is_empty() {
        return true;
    }
    for capability in CapabilitySet::all()
        .iter_names()
        .map(|(_, one)| one)
        .filter(|one| !KEPT.contains(*one))
    {
        match remove_capability_from_bounding_set(capability) {
            // This kernel does not know it.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(_) => return false,
        }
    }
    let sets = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: held.permitted & KEPT,
        inheritable: held.inheritable & KEPT,
    };
    clear_ambient_capability_set().is_ok() && set_capabilities(None, sets).is_ok()
}

// === files ===

fn files(declared: &Declared, program: &Path) -> Result<Protection, String> {
    let read = AccessFs::from_read(WANTED);
    let all = AccessFs::from_all(WANTED);
    let fault = |error: &dyn std::fmt::Display| format!("the sandbox for files cannot be made: {error}");
    let (ruleset, whole) = ruleset(declared.network).map_err(|error| fault(&error))?;
    let mut ruleset = ruleset;
    // A read-only file system may lack any of these.
    for (paths, access) in [(READ_BY_ALL, read), (WRITTEN_BY_ALL, read | AccessFs::WriteFile)] {
        for path in paths {
            if let Ok(opened) = PathFd::new(path) {
                ruleset = add(ruleset, opened, Path::new(path), access).map_err(|error| fault(&error))?;
            }
        }
    }
    let declared = declared
        .read
        .iter()
        .map(|path| (path.as_path(), read))
        .chain(declared.write.iter().map(|path| (path.as_path(), all)))
        .chain([(program, read)]);
    for (path, access) in declared {
        let opened = PathFd::new(path).map_err(|_| {
            format!(
                "`{}` of the sandbox cannot be opened; make it, or take it out",
                path.display()
            )
        })?;
        ruleset = add(ruleset, opened, path, access).map_err(|error| fault(&error))?;
    }
    let status = ruleset.restrict_self().map_err(|error| fault(&error))?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => Protection::None,
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if whole && status.no_new_privs => {
            Protection::Full
        }
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Protection::Partial,
    })
}

/// The rules, still empty, and whether the kernel knows all that is needed.
fn ruleset(network: bool) -> Result<(RulesetCreated, bool), landlock::RulesetError> {
    let whole = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .is_ok();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        // Processes outside, the gate among them, get no signals from in here, and no abstract socket leads to them.
        .scope(BitFlags::from(Scope::Signal) | Scope::AbstractUnixSocket)?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(WANTED))?;
    }
    Ok((ruleset.create()?, whole))
}

/// Opens one path. A file takes only the rights that files have.
fn add(
    ruleset: RulesetCreated,
    opened: PathFd,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the launcher looks at the paths that it opens for the command, in a process of its own"
    )]
    let folder = path.is_dir();
    let access = if folder {
        access
    } else {
        access & AccessFs::from_file(WANTED)
    };
    ruleset.add_rule(PathBeneath::new(opened, access))
}

// === sockets ===

/// Numbers of system calls, by architecture. `X32` is the bit by which an x86-64 kernel tells calls of its third mode,
/// which would pass a filter that knows only the plain numbers.
#[cfg(target_arch = "x86_64")]
const CALLS: &[i64] = &[41, 425, X32 | 41, X32 | 425];
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
#[cfg(target_arch = "aarch64")]
const CALLS: &[i64] = &[198, 425];
#[cfg(target_arch = "riscv64")]
const CALLS: &[i64] = &[198, 425];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const CALLS: &[i64] = &[];

/// EACCES: what a program expects of a socket that it may not have.
const REFUSED: u32 = 13;

/// Refuses `socket`, and `io_uring_setup`, by which sockets are made without it.
fn sockets() -> Protection {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Protection::None;
    };
    if CALLS.is_empty() {
        return Protection::None;
    }
    let rules: BTreeMap<_, _> = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let applied = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(REFUSED), arch)
        .and_then(BpfProgram::try_from)
        .map(|program| apply_filter(&program).is_ok());
    match applied {
        Ok(true) => Protection::Full,
        Ok(false) | Err(_) => Protection::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_declared_is_read_whole_or_not_at_all() {
        let text = r#"{"read":["/srv"],"write":[],"network":true,"allow_degraded":false}"#;
        let expected = Declared {
            read: vec![PathBuf::from("/srv")],
            write: Vec::new(),
            network: true,
            allow_degraded: false,
        };
        assert_eq!(Declared::read(text), Some(expected));
        for text in [
            "",
            "{}",
            r#"{"read":["/srv"],"write":[],"network":true}"#,
            r#"{"read":[1],"write":[],"network":true,"allow_degraded":false}"#,
            r#"{"read":"/srv","write":[],"network":true,"allow_degraded":false}"#,
        ] {
            assert_eq!(Declared::read(text), None, "{text}");
        }
    }
}
