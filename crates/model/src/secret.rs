//! Secrets: texts and bytes that no log, error or serialiser can print.
//!
//! The types are those of the `secrecy` crate (zeroed on drop, no `Display`, a `Debug` that hides); this file only
//! gives them the names that the rooms use. Whoever calls `expose_secret` is easy to find by that word.

pub use secrecy::SecretString as SecretText;

/// Secret bytes, such as a key for keyed digests.
pub type SecretBytes = secrecy::SecretBox<Vec<u8>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let text = SecretText::from("canary-77".to_owned());
        let bytes = SecretBytes::new(Box::new(b"canary-77".to_vec()));
        for shown in [
            format!("{text:?}"),
            format!("{bytes:?}"),
            format!("{:?}", Some(&text)),
        ] {
            assert!(!shown.contains("canary"), "{shown}");
        }
    }
}
