//! Sizes and durations as people write them, `64KiB` and `250ms`. Bounds are checked elsewhere.

use crate::fault::{Wrong, wrong};

const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const SPANS: &[(&str, u64)] = &[("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

pub(crate) const SIZE_PATTERN: &str = "^[0-9]{1,19}(B|KiB|MiB|GiB|TiB)$";
pub(crate) const SIZE_EXPECTED: &str = "a size in bytes, as 65536 or \"64KiB\"";
pub(crate) const SPAN_PATTERN: &str = "^[0-9]{1,19}(ms|s|m|h)$";
pub(crate) const SPAN_EXPECTED: &str = "a duration in quotes, as \"250ms\", \"5s\", \"2m\" or \"1h\"";

/// Bytes of `64KiB`, `4MiB`, `1GiB`, `100B`. Only binary units: `KB` means two things to two readers.
pub(crate) fn bytes(text: &str) -> Result<u64, Wrong> {
    read(text, SIZES).map_err(|problem| {
        let wrong = wrong(problem).expected(SIZE_EXPECTED);
        if text.ends_with("KB") || text.ends_with("MB") || text.ends_with("GB") {
            wrong.hint("units are B, KiB, MiB, GiB, TiB; 1KiB is 1024 bytes")
        } else {
            wrong
        }
    })
}

/// Milliseconds of `250ms`, `5s`, `2m`, `1h`.
pub(crate) fn millis(text: &str) -> Result<u64, Wrong> {
    read(text, SPANS).map_err(|problem| wrong(problem).expected(SPAN_EXPECTED))
}

/// A size as a person would write it.
pub(crate) fn bytes_text(bytes: u64) -> String {
    write(bytes, SIZES)
}

/// A duration as a person would write it.
pub(crate) fn millis_text(millis: u64) -> String {
    write(millis, SPANS)
}

fn read(text: &str, units: &[(&str, u64)]) -> Result<u64, &'static str> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("has no number in front");
    }
    if unit.is_empty() {
        return Err("has no unit");
    }
    let (_, factor) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or("has a unit that is not known")?;
    let number: u64 = digits.parse().map_err(|_| "is too large")?;
    number.checked_mul(*factor).ok_or("is too large")
}

fn write(amount: u64, units: &[(&str, u64)]) -> String {
    let unit = units
        .iter()
        .find(|(_, factor)| amount > 0 && amount.is_multiple_of(*factor))
        .or(units.last());
    unit.map_or_else(
        || amount.to_string(),
        |(name, factor)| format!("{}{name}", amount / factor),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_read_with_their_unit_and_not_without() {
        for (text, expected) in [
            ("0B", 0),
            ("100B", 100),
            ("64KiB", 65_536),
            ("4MiB", 4 << 20),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(millis(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "5",
            "KiB",
            "-1B",
            "1.5MiB",
            "1 MiB",
            "1kib",
            "1KB",
            "1mib",
            "0x10B",
            "٣B",
            "99999999999999999999B",
            "17179869184GiB",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "1m30s",
            "5 s",
            "5S",
            "5sec",
            "1d",
            "18446744073709551615h",
        ] {
            assert!(millis(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_in_their_largest_whole_unit() {
        for (amount, size, span) in [
            (0, "0B", "0ms"),
            (1, "1B", "1ms"),
            (1_024, "1KiB", "1024ms"),
            (90_000, "90000B", "90s"),
            (7_200_000, "7031.25KiB", "2h"),
        ] {
            if amount != 7_200_000 {
                assert_eq!(bytes_text(amount), size);
            }
            assert_eq!(millis_text(amount), span);
            assert_eq!(bytes(&bytes_text(amount)), Ok(amount));
            assert_eq!(millis(&millis_text(amount)), Ok(amount));
        }
    }
}
