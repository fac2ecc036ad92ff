//! Lock files name packages by version and content, not by the place that somebody downloaded them from.

use serde_json::Value;
use xtask::repository;

#[test]
fn lock_files_of_npm_record_no_download_address_and_every_digest() {
    let mut packages = 0;
    for path in repository::files().unwrap() {
        if !path.ends_with("package-lock.json") {
            continue;
        }
        let text = repository::read(&path).unwrap();
        assert!(
            !text.contains("\"resolved\""),
            "{path}: write it with `--omit-lockfile-registry-resolved`"
        );
        let lock: Value = serde_json::from_str(&text).unwrap();
        for (name, package) in lock["packages"].as_object().unwrap() {
            if name.is_empty() {
                continue;
            }
            packages += 1;
            let digest = package["integrity"].as_str().unwrap_or_default();
            assert!(digest.starts_with("sha512-"), "{path}: `{name}` has no digest");
        }
    }
    assert!(packages > 0, "no lock file was found");
}

#[test]
fn requirements_of_python_are_exact_and_have_digests() {
    let mut packages = 0;
    for path in repository::files().unwrap() {
        let name = path.rsplit('/').next().unwrap_or_default();
        if !name.starts_with("requirements") || !name.ends_with(".txt") {
            continue;
        }
        let text = repository::read(&path).unwrap().replace("\\\n", " ");
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            packages += 1;
            assert!(
                line.contains("==") && line.contains("--hash=sha256:"),
                "{path}: {line}"
            );
            assert!(!line.contains("://"), "{path}: {line}");
        }
    }
    assert!(packages > 0, "no requirements were found");
}
