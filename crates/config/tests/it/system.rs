//! The real world behind the trait: files, folders and variables of this machine.

use std::path::Path;

use config::{ReadFault, SystemWorld, World, load};

#[test]
fn a_file_is_read_at_its_limit_and_refused_one_past_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, [b'x'; 100]).unwrap();
    assert_eq!(SystemWorld.read(&path, 100).unwrap().len(), 100);
    assert_eq!(SystemWorld.read(&path, 99), Err(ReadFault::Long { max: 99 }));
}

#[test]
fn what_is_no_file_is_told_from_what_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        SystemWorld.read(folder.path(), 10),
        Err(ReadFault::Kind("a folder, not a file"))
    );
    assert_eq!(
        SystemWorld.read(&folder.path().join("no-such"), 10),
        Err(ReadFault::Missing)
    );
    assert_eq!(
        SystemWorld.list(&folder.path().join("no-such")),
        Err(ReadFault::Missing)
    );
    std::fs::write(folder.path().join("f"), "").unwrap();
    assert_eq!(
        SystemWorld.list(&folder.path().join("f")),
        Err(ReadFault::Kind("no folder"))
    );
    assert_eq!(SystemWorld.list(folder.path()), Ok(vec!["f".to_owned()]));
}

#[cfg(unix)]
#[test]
#[expect(
    clippy::disallowed_types,
    reason = "a test makes a pipe with the system's own tool"
)]
fn a_pipe_and_a_device_are_not_waited_for() {
    assert_eq!(
        SystemWorld.read(Path::new("/dev/zero"), 10),
        Err(ReadFault::Kind("no regular file"))
    );
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(
            SystemWorld.read(&pipe, 10),
            Err(ReadFault::Kind("no regular file"))
        );
    }
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_unicode_is_a_fault_and_not_left_out() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.cedar")), "").unwrap();
    assert_eq!(SystemWorld.list(folder.path()), Err(ReadFault::Name));
}

#[test]
fn variables_and_the_clock_are_those_of_the_process() {
    assert_eq!(SystemWorld.variable("PATH").unwrap(), std::env::var("PATH").ok());
    assert_eq!(SystemWorld.variable("TOLLHOUSE_NO_SUCH_VARIABLE"), Ok(None));
    assert!(SystemWorld.now() > "2026-01-01T00:00:00Z".parse().unwrap());
}

#[test]
fn a_configuration_on_disk_loads_and_its_paths_begin_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tollhouse.toml", config::template());
    write("openapi.yaml", "openapi: 3.1.0");
    std::fs::create_dir(folder.path().join("policy")).unwrap();
    write("policy/b.cedar", "// b");
    write("policy/a.cedar", "// a");
    let loaded = load(&folder.path().join("tollhouse.toml"), &SystemWorld)
        .unwrap_or_else(|faults| panic!("{faults:#?}"));
    let texts: Vec<&str> = loaded
        .settings
        .policy_files
        .iter()
        .map(|file| file.text.as_str())
        .collect();
    assert_eq!(texts, ["// a", "// b"]);
    assert_eq!(loaded.settings.upstreams[0].openapi.bytes, b"openapi: 3.1.0");
}
