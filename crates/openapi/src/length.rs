//! How long a value is as JSON, without writing it: limits of size are asked about every tool of a document.

use std::io::{self, Write};

use model::Value;

/// The length of a value as compact JSON, in bytes.
#[must_use]
pub fn json_length(value: &Value) -> usize {
    let mut length = Length(0);
    match serde_json::to_writer(&mut length, value) {
        Ok(()) => length.0,
        // A value always can be written; were it not so, it would be too long for every limit.
        Err(_) => usize::MAX,
    }
}

/// Counts what is written into it.
struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_length_is_that_of_the_text() {
        for value in [
            json!(null),
            json!([]),
            json!({"a": [1, 2.5, -3e300, true], "ü\u{1}\"\n": {"b": "漢字"}}),
        ] {
            assert_eq!(json_length(&value), value.to_string().len(), "{value}");
        }
    }
}
