//! What is echoed: the fields of a call, a running number, and padding where a large answer is wanted.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::count::Counts;

/// How the echo behaves, as the command line says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Tools and operations, at least one.
    pub(crate) tools: u16,
    /// The wait before each answer.
    pub(crate) delay: Duration,
    /// The length of the field `padding`; none where it is zero.
    pub(crate) padding_bytes: usize,
    /// Progress events before the result of a call that asks for progress.
    pub(crate) events: u32,
}

/// The arguments of a call.
#[derive(Deserialize)]
pub(crate) struct Asked<'a> {
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) nonce: Cow<'a, str>,
}

/// The answer: `{"text":"…","nonce":"…","seq":7}`, with `"padding":"xx…"` where the shape says so.
#[derive(Serialize)]
pub(crate) struct Echoed<'a> {
    text: &'a str,
    nonce: &'a str,
    seq: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    padding: &'a str,
}

/// The state that both faces share.
pub(crate) struct Echo {
    shape: Shape,
    padding: String,
    sequence: AtomicU64,
    sessions: AtomicU64,
    counts: Counts,
}

impl Echo {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            padding: "x".repeat(shape.padding_bytes),
            sequence: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn answer<'a>(&'a self, asked: &'a Asked<'a>) -> Echoed<'a> {
        Echoed {
            text: &asked.text,
            nonce: &asked.nonce,
            seq: self.sequence.fetch_add(1, Ordering::Relaxed),
            padding: &self.padding,
        }
    }

    /// Whether the n-th tool has this name: `echo` is the first, `echo2` the second.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        match name.strip_prefix("echo") {
            Some("") => true,
            Some(number) => {
                number
                    .parse()
                    .is_ok_and(|n: u16| (2..=self.shape.tools).contains(&n))
                    && !number.starts_with(['0', '+'])
            }
            None => false,
        }
    }

    /// Opens a session of the legacy era. A session is only a number that was given out, so that sessions cost nothing.
    pub(crate) fn open_session(&self) -> String {
        format!("echo-{}", self.sessions.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn has_session(&self, id: &str) -> bool {
        id.strip_prefix("echo-")
            .and_then(|number| number.parse::<u64>().ok())
            .is_some_and(|number| number < self.sessions.load(Ordering::Relaxed))
    }
}

/// The name of the n-th tool, counted from 1.
pub(crate) fn tool_name(n: u16) -> String {
    if n == 1 {
        "echo".to_owned()
    } else {
        format!("echo{n}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_exists_up_to_the_last_and_no_further() {
        let echo = Echo::new(Shape {
            tools: 3,
            ..Shape::default()
        });
        for n in 1..=3 {
            assert!(echo.has_tool(&tool_name(n)), "{n}");
        }
        for name in [
            "echo4", "echo1", "echo0", "echo02", "echo+2", "", "ech", "echo-1", "Echo",
        ] {
            assert!(!echo.has_tool(name), "{name}");
        }
    }

    #[test]
    fn a_session_exists_once_it_was_given_out() {
        let echo = Echo::new(Shape::default());
        assert!(!echo.has_session("echo-0"));
        let session = echo.open_session();
        assert!(echo.has_session(&session));
        assert!(!echo.has_session("echo-1"));
        assert!(!echo.has_session("other-0"));
    }
}
