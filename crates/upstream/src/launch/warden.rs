//! The warden: starts the bailiff, waits for its end, and leaves nothing of it behind.
//!
//! On Linux it is the parent of everything that the command leaves orphaned, also of what left its process group, and so
//! finds all of it. Elsewhere it ends the process group.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::time::Instant;

use super::{Launch, Role};

/// How long what was killed may take to be gone. A process in a system call that cannot be broken off may take for ever.
const KILLED_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the gate is looked for where the system does not tell of its end.
const GATE_INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn run(launch: Launch) -> Result<u8, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the warden cannot wait: {error}"))?;
    runtime.block_on(watch(launch))
}

async fn watch(launch: Launch) -> Result<u8, String> {
    let fault = |error: std::io::Error| format!("the warden cannot watch: {error}");
    let mut ended = signal(SignalKind::child()).map_err(fault)?;
    // Both are for the whole group, as a terminal sends them, and the command has got its own.
    let mut asked = signal(SignalKind::terminate()).map_err(fault)?;
    let mut _interrupted = signal(SignalKind::interrupt()).map_err(fault)?;
    adopt()?;
    let gate = Gate::of(launch.parent)?;
    let command = start(&launch)?;
    let mut code = None;
    tokio::select! {
        () = gate.gone() => {}
        _ = asked.recv() => {
            terminate(command);
            let grace = tokio::time::sleep(launch.grace);
            tokio::pin!(grace);
            tokio::select! {
                () = &mut grace => {}
                () = gate.gone() => {}
                found = exit(&mut ended, command) => code = Some(found),
            }
        }
        found = exit(&mut ended, command) => code = Some(found),
    }
    let deadline = Instant::now() + KILLED_TIMEOUT;
    while left_over(&mut code, command) && Instant::now() < deadline {
        // A process that was just orphaned becomes a child of the warden only now.
        tokio::select! {
            _ = ended.recv() => {}
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    Ok(code.unwrap_or(KILLED))
}

/// The exit code of a command that was killed, as a shell has it.
const KILLED: u8 = 137;

/// Everything that is orphaned below becomes a child of this process.
fn adopt() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("the warden cannot adopt: {error}"))?;
    Ok(())
}

/// Starts the bailiff, which becomes the command.
fn start(launch: &Launch) -> Result<Pid, String> {
    let own = rustix::process::getpid();
    #[expect(
        clippy::disallowed_methods,
        reason = "the launcher starts itself, in a process of its own"
    )]
    let program = std::env::current_exe().map_err(|error| format!("the launcher has no path: {error}"))?;
    let mut command = Command::new(program);
    command.args(launch.command_line(Role::Bailiff, own.as_raw_pid().unsigned_abs()));
    let child = command
        .spawn()
        .map_err(|error| format!("the launcher cannot start itself: {error}"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Only the command has the pipes, so that their end is its end.
    release();
    pid.ok_or_else(|| "the command has no process id".to_owned())
}

/// Lets go of the pipes of the command.
fn release() {
    #[expect(
        clippy::disallowed_types,
        reason = "the empty device, in a process of the launcher"
    )]
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        // Where this fails the gate only learns later that its pipe has closed.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

// === the gate ===

/// The process that wants the command.
struct Gate {
    parent: u32,
    /// Told by a thread that waits for its end, where the system has a handle for that.
    #[cfg(target_os = "linux")]
    gone: Option<tokio::sync::watch::Receiver<bool>>,
}

impl Gate {
    fn of(parent: u32) -> Result<Self, String> {
        let gate = Self {
            parent,
            #[cfg(target_os = "linux")]
            gone: wait_for(parent),
        };
        // Looked at only now, so that a gate that ends from here on is noticed by the handle.
        if gate.is_there() {
            Ok(gate)
        } else {
            Err("the gate is gone".to_owned())
        }
    }

    fn is_there(&self) -> bool {
        rustix::process::getppid().is_some_and(|parent| parent.as_raw_pid().unsigned_abs() == self.parent)
    }

    /// Waits until it is gone.
    async fn gone(&self) {
        #[cfg(target_os = "linux")]
        if let Some(gone) = &self.gone {
            let mut gone = gone.clone();
            if gone.wait_for(|gone| *gone).await.is_ok() {
                return;
            }
        }
        while self.is_there() {
            tokio::time::sleep(GATE_INTERVAL).await;
        }
    }
}

/// Waits for the end of a process that is no child of this one, on a thread of its own.
#[cfg(target_os = "linux")]
fn wait_for(process: u32) -> Option<tokio::sync::watch::Receiver<bool>> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let (tell, gone) = tokio::sync::watch::channel(false);
    let waiting = move || {
        while let Err(error) = poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) {
            if error != rustix::io::Errno::INTR {
                // The other way to notice is left.
                return;
            }
        }
        let _ = tell.send(true);
    };
    // Not joined: it lasts until the gate ends, and with this process.
    std::thread::Builder::new().spawn(waiting).ok()?;
    Some(gone)
}

// === the command ===

/// Waits for the end of the command, and buries what else ends.
async fn exit(ended: &mut Listener, command: Pid) -> u8 {
    loop {
        let mut code = None;
        bury(&mut code, command);
        if let Some(code) = code {
            return code;
        }
        ended.recv().await;
    }
}

/// Takes note of every child that has ended. `true` where there are children that have not.
fn bury(code: &mut Option<u8>, command: Pid) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => {
                let signalled = status.terminating_signal().map(|signal| 128 + signal);
                let found = status.exit_status().or(signalled).unwrap_or(i32::from(KILLED));
                *code = Some(u8::try_from(found).unwrap_or(KILLED));
            }
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Asks the command and everything below it to end.
fn terminate(command: Pid) {
    let all = below();
    for pid in all.iter().copied().chain([command]) {
        // What is gone already needs no signal.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Kills whatever is left. `true` where something was.
fn left_over(code: &mut Option<u8>, command: Pid) -> bool {
    if !bury(code, command) {
        return false;
    }
    #[cfg(target_os = "linux")]
    for pid in below() {
        let _ = kill_process(pid, Signal::KILL);
    }
    // Elsewhere the group is all there is; this process is in it, and ends with it.
    #[cfg(not(target_os = "linux"))]
    let _ = rustix::process::kill_current_process_group(Signal::KILL);
    true
}

/// Every process below this one.
#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "the warden looks for the processes below it, in a process of its own"
)]
fn below() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_pid();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes: Vec<(i32, i32)> = entries
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name of the program is in brackets and may hold anything; the parent is the second word behind it.
            let parent = status.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            Some((pid, parent.parse().ok()?))
        })
        .collect();
    let mut found = vec![own];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            processes
                .iter()
                .filter(|(pid, of)| *of == parent && *pid != parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

#[cfg(not(target_os = "linux"))]
fn below() -> Vec<Pid> {
    Vec::new()
}
