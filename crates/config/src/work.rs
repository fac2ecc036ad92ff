//! Work that takes longer than one request, as a reviewer bounds it: how it is looked after, how its end is known, how it
//! is called off. Whether the document has these operations is known only to the room that reads documents.

use std::time::Duration;

use crate::amount::millis_text;
use crate::fault::FaultKind;
use crate::reading::Reading;
use crate::view::View;

/// `long_running` of a tool. JSONPaths are not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongRunningSettings {
    /// The operation that tells of the work: an `operationId`, or a method and a path.
    pub status: String,
    /// Where the answer to the start names the work.
    pub id: String,
    /// The argument of the other operations that names the work; `None`: the only one that they have.
    pub argument: Option<String>,
    /// Where the status stands in an answer of that operation.
    pub state: String,
    /// The states of work that is done. Never empty.
    pub done: Vec<String>,
    /// The states of work that failed.
    pub failed: Vec<String>,
    /// Where an answer says how much is done, in percent.
    pub progress: Option<String>,
    /// The operation that calls the work off.
    pub cancel: Option<String>,
    /// How long to wait between two looks.
    pub poll: Duration,
    /// How long the whole may take; at most `call_timeout_max`.
    pub deadline: Duration,
}

pub(crate) fn read(reading: &mut Reading<'_>, tool: &View<'_>) -> Option<Option<LongRunningSettings>> {
    let Some(view) = tool.table("long_running") else {
        return Some(None);
    };
    let texts = |name: &str| {
        let texts = view.texts(name).into_iter();
        texts.map(|placed| placed.text).collect::<Vec<_>>()
    };
    let (done, failed) = (texts("done"), texts("failed"));
    if let Some(both) = done.iter().find(|state| failed.contains(state)) {
        let problem = format!("`{both}` is a state of work that is done, and of work that failed");
        let fault = reading.fault_at(&view, "failed", FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("name it in one of the two"));
    }
    let deadline = view.duration("deadline")?;
    let max = reading.limits.call_timeout_max;
    if deadline > max {
        let text = |duration: Duration| millis_text(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        let problem = format!(
            "`{}` is longer than `limits.call_timeout_max`, which is {}",
            text(deadline),
            text(max)
        );
        let fault = reading.fault_at(&view, "deadline", FaultKind::OutOfRange, problem);
        reading.faults.push(fault.hint("shorten it, or raise the limit"));
    }
    Some(Some(LongRunningSettings {
        status: view.text("status")?,
        id: view.text("id")?,
        argument: view.text("argument"),
        state: view.text("state")?,
        done,
        failed,
        progress: view.text("progress"),
        cancel: view.text("cancel"),
        poll: view.duration("poll")?,
        deadline,
    }))
}
