//! The corpora of the fuzzer, replayed: whatever was once found or thought of must hold in every ordinary test run.

#[allow(unreachable_pub, reason = "they are public in the crate of the fuzzer")]
#[path = "../../../../fuzz/src/targets.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use targets::TARGETS;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_input_of_the_corpora_holds() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let folder = folder().join("corpus").join(name);
        let files = names(&folder);
        assert!(files.len() >= 10, "{name} has too little to start from");
        for file in files {
            let bytes = fs::read(folder.join(&file)).unwrap();
            // The panics say what is wrong, the list in which files.
            if std::panic::catch_unwind(|| target(&bytes)).is_err() {
                broken.push(format!("fuzz/corpus/{name}/{file}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_target_has_a_corpus_and_a_way_in_and_no_corpus_is_without_a_target() {
    let expected: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&folder().join("corpus")), expected);
    let entries: BTreeSet<String> = names(&folder().join("fuzz_targets"))
        .iter()
        .map(|file| file.trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(entries, expected);
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for name in expected {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not built"
        );
    }
}

#[test]
fn the_targets_notice_what_must_not_be() {
    // A ledger that somebody changed is not taken for sound, and one that nobody changed is.
    let verify = |name: &str| {
        let bytes = fs::read(folder().join("corpus/ledger").join(name)).unwrap();
        audit::verify(&*bytes, audit::VerifyOptions::default())
            .unwrap()
            .sound()
    };
    assert!(verify("sound"));
    for name in [
        "changed",
        "one-line-missing",
        "lines-swapped",
        "line-doubled",
        "last-line-half",
    ] {
        assert!(!verify(name), "{name}");
    }
    // The examples are read for what they are, so that the fuzzer starts behind the first fault.
    let read = |path: &str| fs::read(folder().join("corpus").join(path)).unwrap();
    let met = openapi::exercise(&read("openapi/example"), &openapi::DocumentLimits::default()).unwrap();
    assert_eq!((met.operations, met.tools), (8, 8));
    let rule = String::from_utf8(read("policy/owner")).unwrap();
    let loads = std::thread::Builder::new().stack_size(64 << 20);
    assert!(
        loads
            .spawn(move || policy::read_anything(&rule))
            .unwrap()
            .join()
            .unwrap()
    );
}
