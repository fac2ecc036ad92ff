//! What a child writes to standard error: the report of the launcher first, then lines for the log, cut, bounded by the
//! minute, and without the values of its environment (STDIO-03).

use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Hidden;
use crate::duplex::{Line, Lines, shown};
use crate::launch::{REPORT_BYTES_MAX, Report};

/// How long one allowance of bytes lasts.
const ALLOWANCE_LASTS: Duration = Duration::from_secs(60);

/// A value that is shorter stands in ordinary words, too, and to take it out would only show that.
const HIDDEN_BYTES_MIN: usize = 4;

/// The log of one child.
pub(super) struct Log {
    name: String,
    hidden: Vec<Hidden>,
    bytes_max: usize,
    /// Of this allowance: since when, how much is used, and how many lines were left out.
    since: Instant,
    used: usize,
    left_out: usize,
}

impl Log {
    /// `bytes_max`: what is written of a child in a minute.
    pub(super) fn new(name: String, hidden: impl Iterator<Item = Hidden>, bytes_max: usize) -> Self {
        let mut hidden: Vec<Hidden> = hidden
            .filter(|value| value.expose_secret().len() >= HIDDEN_BYTES_MIN)
            .collect();
        // The longest first: a value that has another one in it is taken out whole.
        hidden.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
        Self {
            name,
            hidden,
            bytes_max,
            since: Instant::now(),
            used: 0,
            left_out: 0,
        }
    }

    /// Reads to the end. The first line is the report of the launcher; where it is none, nobody is told anything.
    pub(super) async fn follow(mut self, pipe: impl AsyncRead + Unpin, report: oneshot::Sender<Report>) {
        let mut report = Some(report);
        let mut lines = Lines::new(pipe, REPORT_BYTES_MAX);
        loop {
            match lines.next().await {
                Line::Whole(line) => {
                    let first = report.take();
                    match (Report::read(&line), first) {
                        (Some(said), Some(report)) => {
                            let _ = report.send(said);
                        }
                        // The launcher could not become the command.
                        (Some(Report::Refused(why)), None) => self.write(why.as_bytes()),
                        (Some(Report::Ready(_)) | None, _) => self.write(&line),
                    }
                }
                Line::TooLong => self.write("a line that is too long".as_bytes()),
                Line::Endless { .. } => {}
                Line::End | Line::Fault(_) => return,
            }
        }
    }

    fn write(&mut self, line: &[u8]) {
        if let Some(text) = self.allowed(line, Instant::now()) {
            tracing::info!(upstream = %self.name, "{text}");
        }
    }

    /// What is logged of a line; nothing, where the allowance is used up.
    fn allowed(&mut self, line: &[u8], now: Instant) -> Option<String> {
        if now.duration_since(self.since) >= ALLOWANCE_LASTS {
            if self.left_out > 0 {
                let count = self.left_out;
                tracing::warn!(upstream = %self.name, count, "lines of a child were left out of the log");
            }
            (self.since, self.used, self.left_out) = (now, 0, 0);
        }
        let text = shown(self.redacted(line).as_bytes());
        if self.used.saturating_add(text.len()) > self.bytes_max {
            self.left_out += 1;
            return None;
        }
        self.used += text.len();
        Some(text)
    }

    fn redacted(&self, line: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(line).into_owned();
        for value in &self.hidden {
            let value = value.expose_secret();
            if text.contains(value) {
                text = text.replace(value, "***");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(hidden: &[&str], bytes_max: usize) -> Log {
        let hidden: Vec<Hidden> = hidden.iter().map(|value| Hidden::from(*value)).collect();
        Log::new("toy".to_owned(), hidden.into_iter(), bytes_max)
    }

    #[tokio::test]
    async fn values_of_the_environment_are_taken_out_before_a_line_is_cut() {
        let mut log = log(&["hunter2", "hunter2-long", "abc"], 1 << 20);
        let now = Instant::now();
        let mut said = |line: &str| log.allowed(line.as_bytes(), now).unwrap();
        assert_eq!(said("token hunter2 and hunter2-long"), "token *** and ***");
        // Too short to be told from a word.
        assert_eq!(said("abc"), "abc");
        let long = format!("{}hunter2", "x".repeat(196));
        assert!(!said(&long).contains("hunt"));
    }

    #[tokio::test(start_paused = true)]
    async fn stdio_03_a_minute_has_so_many_bytes_and_the_next_one_as_many_again() {
        let mut log = log(&[], 10);
        let now = Instant::now();
        assert!(log.allowed(b"12345", now).is_some());
        assert!(log.allowed(b"67890", now).is_some());
        assert_eq!(log.allowed(b"1", now), None);
        assert_eq!(log.left_out, 1);
        let later = now + ALLOWANCE_LASTS;
        assert!(log.allowed(b"1234567890", later).is_some());
        assert_eq!(log.allowed(b"1", later), None);
    }

    #[tokio::test]
    async fn only_the_first_line_can_be_the_report_of_the_launcher() {
        for (text, expected) in [
            ("tollhouse-launch {\"sandbox\":\"full\"}\nhello\n", true),
            ("hello\ntollhouse-launch {\"sandbox\":\"full\"}\n", false),
            ("", false),
        ] {
            let (report, reported) = oneshot::channel();
            log(&[], 1 << 20).follow(text.as_bytes(), report).await;
            assert_eq!(reported.await.is_ok(), expected, "{text}");
        }
    }
}
