//! Lines of a pipe, each with a longest length. What a line says is not known here.

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How many times its longest length a line is skipped over before it counts as one that does not end.
const SKIPPED_LENGTHS_MAX: usize = 16;

/// A pipe, read line by line.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    pipe: R,
    buffer: BytesMut,
    /// How much of the buffer is known to have no line break.
    searched: usize,
    bytes_max: usize,
    /// How much was skipped of a line that is too long.
    skipped: Option<usize>,
}

/// What the pipe gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end.
    Whole(Bytes),
    /// A line that is longer than the longest. It was skipped whole.
    TooLong,
    /// A line that goes on and on.
    Endless {
        /// How long it was waited for.
        max: usize,
    },
    /// The pipe is closed. What came behind the last line break is no line, and is dropped.
    End,
    /// The system refused.
    Fault(String),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// `bytes_max`: the longest line, without its end.
    pub(crate) fn new(pipe: R, bytes_max: usize) -> Self {
        Self {
            pipe,
            buffer: BytesMut::new(),
            searched: 0,
            bytes_max,
            skipped: None,
        }
    }

    /// The next line. Nothing is lost where this is cancelled.
    pub(crate) async fn next(&mut self) -> Line {
        loop {
            if let Some(line) = self.buffered() {
                return line;
            }
            match self.pipe.read_buf(&mut self.buffer).await {
                Ok(0) => return Line::End,
                Ok(_) => {}
                Err(error) => return Line::Fault(error.to_string()),
            }
        }
    }

    /// The next line out of what was read.
    fn buffered(&mut self) -> Option<Line> {
        let unread = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', unread).map(|at| self.searched + at) else {
            return self.unended();
        };
        let mut line = self.buffer.split_to(at);
        self.buffer.advance(1);
        self.searched = 0;
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        let was_skipped = self.skipped.take().is_some();
        if was_skipped || line.len() > self.bytes_max {
            return Some(Line::TooLong);
        }
        Some(Line::Whole(line.freeze()))
    }

    /// What has no line break yet: kept, skipped, or too much of it.
    fn unended(&mut self) -> Option<Line> {
        self.searched = self.buffer.len();
        // One byte more, because the last one may be half of the end of the line.
        if self.skipped.is_none() && self.buffer.len() <= self.bytes_max.saturating_add(1) {
            return None;
        }
        let skipped = self.skipped.unwrap_or(0).saturating_add(self.buffer.len());
        self.skipped = Some(skipped);
        self.buffer.clear();
        self.searched = 0;
        let max = self.bytes_max.saturating_mul(SKIPPED_LENGTHS_MAX);
        (skipped > max).then_some(Line::Endless { max })
    }
}
