//! The keeper of one child: a task that lasts as long as the process, and the only one that ends it.
//!
//! Its road: run until the process ends, somebody asks for its end, it is idle too long, or it takes nothing; then close
//! its input, wait, ask the warden to end everything, wait, kill. The place of the child is free only when it is gone.

use std::future::Future;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::Child as Process;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::Failures;
use super::place::Place;
use crate::duplex::End;

/// How much longer than its own patience the warden has.
const WARDEN_MARGIN: Duration = Duration::from_secs(8);

pub(super) struct Keeper<W, L> {
    pub(super) process: Process,
    pub(super) name: String,
    pub(super) closing: CancellationToken,
    pub(super) busy: watch::Receiver<usize>,
    pub(super) idle_stop: Duration,
    pub(super) stop_timeout: Duration,
    pub(super) writer: W,
    pub(super) log: L,
    pub(super) cause: watch::Sender<Option<End>>,
    pub(super) failures: Failures,
    pub(super) places: (Place, Place),
}

impl<W, L> Keeper<W, L>
where
    W: Future<Output = Option<End>>,
    L: Future<Output = ()>,
{
    pub(super) async fn keep(self) {
        let Self {
            mut process,
            name,
            closing,
            mut busy,
            idle_stop,
            stop_timeout,
            writer,
            log,
            cause,
            failures,
            places,
        } = self;
        let mut writer = std::pin::pin!(writer);
        let mut log = std::pin::pin!(log);
        let (mut writing, mut logging) = (true, true);
        let end = {
            let mut idle = std::pin::pin!(idle(&mut busy, idle_stop));
            loop {
                tokio::select! {
                    status = process.wait() => break ended(status),
                    () = closing.cancelled() => break End::Stopped,
                    () = &mut idle => {
                        tracing::info!(upstream = %name, "a child that nobody used was stopped");
                        break End::Stopped;
                    }
                    end = &mut writer, if writing => {
                        writing = false;
                        if let Some(end) = end {
                            break end;
                        }
                    }
                    () = &mut log, if logging => logging = false,
                }
            }
        };
        // From here on nothing is written any more, and the pipe of the writer closes.
        closing.cancel();
        if writing {
            writer.await;
        }
        let mut stopping = std::pin::pin!(stop(&mut process, &name, stop_timeout));
        loop {
            tokio::select! {
                () = &mut stopping => break,
                // A child whose standard error is full does not end.
                () = &mut log, if logging => logging = false,
            }
        }
        if matches!(end, End::Stopped) {
            failures.ended_well();
        } else {
            tracing::warn!(upstream = %name, cause = %end, "a child ended");
            failures.failed();
        }
        drop(places);
        // Nobody may listen any more.
        let _ = cause.send(Some(end));
        if logging {
            // What it said last is read to its end: nobody has the other end of the pipe.
            let _ = timeout(stop_timeout, log).await;
        }
    }
}

/// Waits until nobody has used the child for so long.
async fn idle(busy: &mut watch::Receiver<usize>, idle_stop: Duration) {
    loop {
        // The sender lives in the child; without it, `closing` is already called.
        if busy.wait_for(|busy| *busy == 0).await.is_err() {
            return std::future::pending().await;
        }
        tokio::select! {
            () = sleep(idle_stop) => return,
            changed = busy.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
            }
        }
    }
}

/// Ends the process, its input closed already: waits, asks, kills.
///
/// Source: MCP, basic/lifecycle, shutdown over stdio (STDIO-04).
async fn stop(process: &mut Process, name: &str, stop_timeout: Duration) {
    if timeout(stop_timeout, process.wait()).await.is_ok() {
        return;
    }
    signal(process, Ask::End);
    if timeout(stop_timeout + WARDEN_MARGIN, process.wait())
        .await
        .is_ok()
    {
        return;
    }
    tracing::warn!(upstream = %name, "a child did not end, and is killed with its group");
    signal(process, Ask::Kill);
    let _ = process.wait().await;
}

/// What a signal asks for.
enum Ask {
    /// The warden, to end everything.
    End,
    /// The system, to end the whole group.
    Kill,
}

#[cfg(unix)]
fn signal(process: &mut Process, ask: Ask) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    // Not reaped yet, so the number is still that of this process.
    let Some(pid) = process
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw)
    else {
        return;
    };
    // What is gone already needs no signal.
    let _ = match ask {
        Ask::End => kill_process(pid, Signal::TERM),
        Ask::Kill => kill_process_group(pid, Signal::KILL),
    };
}

#[cfg(not(unix))]
fn signal(process: &mut Process, _ask: Ask) {
    let _ = process.start_kill();
}

fn ended(status: std::io::Result<ExitStatus>) -> End {
    match status {
        Ok(status) => match status.code() {
            Some(code) => End::Exited(code),
            // The warden itself was killed.
            None => End::Io("its warden was killed".to_owned()),
        },
        Err(error) => End::Io(error.to_string()),
    }
}
