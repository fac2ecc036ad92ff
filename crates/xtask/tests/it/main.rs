//! The rules that the repository keeps: floors, closed doors, headers, generated files, words.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod clippy_toml;
mod documents;
mod floors;
mod headers;
mod lockfiles;
mod openapi_faults;
mod revisions;
mod rules;
mod sizes;
mod threats;
mod words;

/// Fails with every fault at once.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// A source file before its tests, which stand last.
fn before_tests(text: &str) -> &str {
    let Some(module) = text.find("\nmod tests {") else {
        return text;
    };
    // Between the condition and the module there may be other attributes.
    let condition = text[..=module].rfind("#[cfg(test)]\n");
    &text[..condition.unwrap_or(text.len())]
}

#[test]
fn tests_are_cut_off_with_their_attributes_and_what_stands_before_them_is_kept() {
    let code = "#[cfg(test)]\nfn a() {}\nfn b() {}\n";
    for attributes in ["", "#[allow(x)]\n"] {
        let text = format!("{code}#[cfg(test)]\n{attributes}mod tests {{\n}}\n");
        assert_eq!(before_tests(&text), code);
    }
    assert_eq!(before_tests(code), code);
}
