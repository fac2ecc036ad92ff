//! The built binary. It is built by the tests themselves, so that they never test an old one.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The path of a program of the workspace, built in the profile of the tests.
pub fn path(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        // target/<profile>/deps/<this test>
        let exe = std::env::current_exe().expect("a test has a path");
        let folder = exe
            .parent()
            .and_then(|deps| deps.parent())
            .expect("target/<profile>")
            .to_owned();
        // The whole workspace, because building one package alone would choose other features for what they share.
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--workspace", "--bins", "--quiet"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        build.env("CARGO_TARGET_DIR", folder.parent().expect("the target folder"));
        build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        assert!(
            build.status().expect("cargo runs").success(),
            "the binaries of the workspace do not build"
        );
        folder
    });
    let path = folder.join(name);
    assert!(path.is_file(), "{} was not built", path.display());
    path
}

/// The command under test.
pub fn tollhouse() -> PathBuf {
    path("tollhouse")
}
