//! Where something stands: byte offsets to file, line and column. It reads no file.

use std::fmt;

use serde::Serialize;

/// A place in a file that a person wrote. Shown as `tollhouse.toml:12:9`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file, as it was named on the command line or found beside it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The line starts of one text. Holds no text, so that it can outlive the secrets that a text may hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    starts: Vec<usize>,
    /// The offsets of all bytes that start no character. Columns count characters, and a file may be one long line:
    /// two look-ups here cost the same wherever the place is.
    continuations: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let mut lines = Self {
            starts: vec![0],
            continuations: Vec::new(),
        };
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'\n' {
                lines.starts.push(at + 1);
            } else if byte & 0b1100_0000 == 0b1000_0000 {
                lines.continuations.push(at);
            }
        }
        lines
    }

    /// Line and column of a byte offset, both counted from 1. An offset past the end is on the last line.
    pub(crate) fn find(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied()
            .unwrap_or(0);
        let before = |at: usize| self.continuations.partition_point(|byte| *byte < at);
        let bytes = offset.saturating_sub(start);
        let column = bytes.saturating_sub(before(offset).saturating_sub(before(start))) + 1;
        (line.max(1), column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_columns_count_characters() {
        let text = "a = 1\n\nü = \"é\"x\r\nlast";
        let lines = Lines::of(text);
        for (needle, expected) in [
            ("a", (1, 1)),
            ("1", (1, 5)),
            ("ü", (3, 1)),
            ("é", (3, 6)),
            ("x", (3, 8)),
            ("last", (4, 1)),
        ] {
            assert_eq!(lines.find(text.find(needle).unwrap()), expected, "{needle}");
        }
        assert_eq!(lines.find(text.len()), (4, 5));
        assert_eq!(Lines::of("").find(0), (1, 1));
        assert_eq!(Lines::default().find(7), (1, 8));
    }
}
