//! "Did you mean": the known word closest to one that is not known. It only advises.

/// Longer words are nobody's typing error, and the comparison is quadratic.
const LENGTH_MAX: usize = 64;

/// The candidate that is closest to `word`, if one is close enough to be meant.
pub(crate) fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.is_empty() || word.len() > LENGTH_MAX {
        return None;
    }
    let lower = word.to_ascii_lowercase().replace('-', "_");
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other = candidate.to_ascii_lowercase().replace('-', "_");
            let distance = strsim::damerau_levenshtein(&lower, &other);
            // A third of the letters may differ; a word and its longer form (`host`, `hosts_allowed`) is meant, too.
            let near = distance <= (other.chars().count().max(3) / 3)
                || (lower.len() >= 4 && (other.starts_with(&lower) || lower.starts_with(&other)));
            near.then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let keys = [
            "listen",
            "public_url",
            "store",
            "store_bytes_max",
            "allowed_hosts",
            "log",
        ];
        for (word, expected) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("public-url", Some("public_url")),
            ("publicurl", Some("public_url")),
            ("stroe", Some("store")),
            ("allowed_host", Some("allowed_hosts")),
            ("logs", Some("log")),
            ("telemetry", None),
            ("", None),
        ] {
            assert_eq!(closest(word, keys), expected, "{word}");
        }
        assert_eq!(closest(&"l".repeat(65), keys), None);
    }
}
