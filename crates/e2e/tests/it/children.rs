//! Servers that the gate starts: what they get, what of them is heard, and that nothing of them is left behind.

use std::process::{Command, Stdio};
use std::time::Duration;

use config::SandboxSettings;
use e2e::binary;
use e2e::children::{SOON, Talk, of, processes, until};
use model::Limits;
use serde_json::json;
use tokio::time::Instant;
use upstream::{DuplexFault, End, Heard, Protection, StartFault, TooMany, Yard};

fn limits() -> Limits {
    Limits {
        upstream_body_bytes_max: 1 << 16,
        child_noise_lines_max: 10,
        ..Limits::default()
    }
}

fn yard() -> Yard {
    let variables = [
        ("PATH", "/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("SECRET_OF_THE_GATE", "x"),
        ("DECLARED", "y"),
    ];
    Yard::new(
        binary::tollhouse(),
        variables.map(|(name, value)| (name.into(), value.into())),
        &limits(),
    )
}

fn mark() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn all_gone(yard: &Yard, mark: &str) {
    until("the children are gone", || {
        yard.count() == 0 && processes(mark).is_empty()
    })
    .await;
}

// === what a child gets ===

#[tokio::test]
async fn a_child_gets_the_declared_environment_and_folder_and_nothing_else() {
    let (yard, mark) = (yard(), mark());
    let children = of(&yard, &["serve", &mark], |settings| {
        settings.env = vec![
            ("TOKEN".to_owned(), "hunter2".to_owned().into()),
            ("LD_PRELOAD".to_owned(), "/no/such.so".to_owned().into()),
        ];
        settings.pass_env = vec!["DECLARED".to_owned(), "NOT_SET".to_owned()];
        settings.cwd = "/usr".into();
    });
    let mut talk = Talk::start(&children).await;
    assert_eq!(talk.child.protection(), Protection::None);
    assert_eq!(
        talk.ask(&json!({ "do": "env" })).await,
        json!({
            "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "DECLARED": "y", "TOKEN": "hunter2", "LD_PRELOAD": "/no/such.so",
        })
    );
    assert_eq!(talk.ask(&json!({ "do": "cwd" })).await, json!({ "cwd": "/usr" }));
    // What is secret of the environment stands in no command line, which everybody can read.
    for pid in processes(&mark) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&line).contains("hunter2"));
    }
    drop(talk);
    all_gone(&yard, &mark).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_an_end_and_the_next_start_waits() {
    let (yard, mark) = (yard(), mark());
    for change in ["program", "folder"] {
        let children = of(&yard, &["serve", &mark], |settings| {
            settings.cwd = if change == "folder" {
                "/no/such/folder"
            } else {
                "/"
            }
            .into();
            if change == "program" {
                // A folder has a path, and cannot be run.
                settings.sandbox = None;
                settings.command = vec!["toy".to_owned(), "no-such-word".to_owned()];
            }
        });
        let mut talk = Talk::start(&children).await;
        let heard = talk.hear().await;
        let expected = if change == "folder" { 126 } else { 101 };
        assert_eq!(heard, Heard::Ended(End::Exited(expected)), "{change}");
        let next = children.start("ada").await.unwrap_err();
        assert!(
            matches!(next, StartFault::Waiting { wait } if wait > Duration::from_secs(50)),
            "{next}"
        );
        // The failures of one caller keep nobody else.
        assert!(children.start("bob").await.is_ok());
        all_gone(&yard, &mark).await;
    }
}

// === what is heard of it ===

#[tokio::test]
async fn stdio_01_lines_come_as_they_were_said_in_order() {
    let (yard, mark) = (yard(), mark());
    let mut talk = Talk::start(&of(&yard, &["serve", &mark], |_| {})).await;
    for n in 0..100 {
        talk.send(&json!({ "do": "echo", "n": n })).await;
    }
    for n in 0..100 {
        let Heard::Message(line) = talk.hear().await else {
            panic!("{n}")
        };
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(line["n"], n);
    }
    let bytes = limits().upstream_body_bytes_max - "{\"text\":\"\"}".len();
    let longest = talk.ask(&json!({ "do": "long", "bytes": bytes })).await;
    assert_eq!(longest["text"].as_str().unwrap().len(), bytes);
    talk.send(&json!({ "do": "long", "bytes": bytes + 1 })).await;
    let too_long = DuplexFault::TooLong {
        max: limits().upstream_body_bytes_max,
    };
    assert_eq!(talk.hear().await, Heard::Broken(too_long));
    talk.ask(&json!({ "do": "echo" })).await;
}

#[tokio::test]
async fn stdio_02_noise_on_standard_output_ends_a_child_past_its_bound() {
    let (yard, mark) = (yard(), mark());
    let mut talk = Talk::start(&of(&yard, &["serve", &mark], |_| {})).await;
    assert_eq!(
        talk.ask(&json!({ "do": "noise", "lines": 10 })).await,
        json!({ "ok": true })
    );
    talk.send(&json!({ "do": "noise", "lines": 11 })).await;
    assert_eq!(talk.hear().await, Heard::Ended(End::Noise { max: 10 }));
    drop(talk);
    all_gone(&yard, &mark).await;
}

#[tokio::test]
async fn stdio_03_what_a_child_says_on_standard_error_does_not_hold_it_up() {
    let (yard, mark) = (yard(), mark());
    let mut talk = Talk::start(&of(&yard, &["serve", &mark], |_| {})).await;
    let flood = json!({ "do": "say", "lines": 20_000, "text": "a line that nobody asked for ".repeat(4) });
    assert_eq!(talk.ask(&flood).await, json!({ "ok": true }));
    assert_eq!(talk.child.ended(), None);
}

#[tokio::test]
async fn a_child_that_ends_by_itself_says_with_which_code() {
    let (yard, mark) = (yard(), mark());
    for code in [0, 3] {
        let children = of(&yard, &["serve", &mark], |_| {});
        let mut talk = Talk::start(&children).await;
        talk.ask(&json!({ "do": "fork" })).await;
        talk.send(&json!({ "do": "exit", "code": code })).await;
        assert_eq!(talk.hear().await, Heard::Ended(End::Exited(code)));
        // Also what it had started is gone, though the child is still held.
        all_gone(&yard, &mark).await;
        let late = talk.child.sender().send("{}".into(), Instant::now() + SOON).await;
        assert_eq!(late, Err(DuplexFault::Ended { sent: false }));
    }
}

// === what ends it ===

#[tokio::test]
async fn stdio_04_a_child_ends_when_its_input_does_and_nobody_waits() {
    let (yard, mark) = (yard(), mark());
    let children = of(&yard, &["serve", &mark], |settings| {
        settings.stop_timeout = SOON * 10
    });
    let talk = Talk::start(&children).await;
    assert_eq!((children.count(), yard.count()), (1, 1));
    drop(talk);
    all_gone(&yard, &mark).await;
    assert_eq!(children.count(), 0);
    // It did not fail, so the next one starts at once.
    assert!(children.start("ada").await.is_ok());
    yard.close().await;
    assert_eq!(children.start("ada").await.unwrap_err(), StartFault::Closing);
    assert_eq!((yard.count(), processes(&mark)), (0, Vec::new()));
}

#[tokio::test]
async fn stdio_04_a_stubborn_child_is_killed_with_all_that_it_started() {
    let (yard, mark) = (yard(), mark());
    let mut talk = Talk::start(&of(&yard, &["stubborn", &mark], |_| {})).await;
    assert!(matches!(talk.hear().await, Heard::Message(_)));
    // The warden, the child, one below it, and one that left the group.
    until("all four run", || processes(&mark).len() == 4).await;
    yard.close().await;
    assert_eq!(talk.hear().await, Heard::Ended(End::Stopped));
    assert_eq!((yard.count(), processes(&mark)), (0, Vec::new()));
}

#[tokio::test]
async fn nothing_is_left_of_the_children_of_a_gate_that_was_killed() {
    let mark = mark();
    let mut gate = Command::new(binary::path("toy"))
        .args(["gate".as_ref(), binary::tollhouse().as_os_str(), mark.as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the gate and its child run", || processes(&mark).len() == 5).await;
    gate.kill().unwrap();
    gate.wait().unwrap();
    until("the children are gone", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_child_whose_warden_was_killed_ends() {
    let (yard, mark) = (yard(), mark());
    let mut talk = Talk::start(&of(&yard, &["serve", &mark], |_| {})).await;
    let warden = talk.ask(&json!({ "do": "parent" })).await["parent"]
        .as_u64()
        .unwrap();
    let warden = i32::try_from(warden)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .unwrap();
    rustix::process::kill_process(warden, rustix::process::Signal::KILL).unwrap();
    assert!(matches!(talk.hear().await, Heard::Ended(End::Io(_))));
    all_gone(&yard, &mark).await;
}

#[tokio::test]
async fn a_child_that_nobody_uses_is_stopped_and_one_that_is_busy_is_not() {
    let (yard, mark) = (yard(), mark());
    let children = of(&yard, &["serve", &mark], |settings| {
        settings.idle_stop = Duration::from_millis(300);
    });
    let (mut used, mut unused) = (Talk::start(&children).await, Talk::start(&children).await);
    let busy = used.child.busy();
    assert_eq!(unused.hear().await, Heard::Ended(End::Stopped));
    used.ask(&json!({ "do": "echo" })).await;
    assert_eq!(used.child.ended(), None);
    drop(busy);
    assert_eq!(used.hear().await, Heard::Ended(End::Stopped));
    all_gone(&yard, &mark).await;
}

// === how many ===

#[tokio::test]
async fn there_are_as_many_children_as_may_be_and_no_more() {
    let mark = mark();
    let limits = Limits {
        children_max: 3,
        ..limits()
    };
    let yard = Yard::new(binary::tollhouse(), [], &limits);
    let children = of(&yard, &["serve", &mark], |settings| {
        settings.children_max = 2;
        settings.children_per_caller_max = 1;
    });
    let others = of(&yard, &["serve", &mark], |_| {});
    let too_many = |fault| Some(StartFault::TooMany(fault));
    let ada = children.start("ada").await.unwrap();
    assert_eq!(children.start("ada").await.err(), too_many(TooMany::Caller));
    let _bob = children.start("bob").await.unwrap();
    assert_eq!(children.start("eve").await.err(), too_many(TooMany::Server));
    let _other = others.start("eve").await.unwrap();
    assert_eq!(others.start("eve").await.err(), too_many(TooMany::Gate));
    drop(ada);
    until("a place is free", || yard.count() == 2).await;
    assert!(children.start("ada").await.is_ok());
    yard.close().await;
    assert_eq!(processes(&mark), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn children_opened_and_abandoned_leave_no_process_no_zombie_and_no_descriptor() {
    let (yard, mark) = (yard(), mark());
    let children = std::sync::Arc::new(of(&yard, &["serve", &mark], |_| {}));
    // Once before anything is counted, so that what the runtime keeps is there.
    Talk::start(&children).await;
    all_gone(&yard, &mark).await;
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    for _ in 0..10 {
        let mut wave = tokio::task::JoinSet::new();
        for n in 0..20 {
            let children = children.clone();
            wave.spawn(async move {
                let mut talk = Talk::start(&children).await;
                // Some are abandoned before they said anything, and some with what they started.
                if n % 2 == 0 {
                    talk.ask(&json!({ "do": "fork" })).await;
                }
            });
        }
        wave.join_all().await;
    }
    all_gone(&yard, &mark).await;
    assert_eq!(children.count(), 0);
    until("the descriptors are back", || descriptors() <= before).await;
    // Other tests of this process have children, too, and bury them.
    until("the dead are buried", || zombies() == 0).await;
}

/// Children of this process that are dead and not buried.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            let rest = stat.rsplit_once(')').unwrap().1;
            let mut words = rest.split_whitespace();
            words.next() == Some("Z") && words.next() == Some(&own)
        })
        .count()
}

// === what it may reach ===

fn sandbox(read: &std::path::Path, write: &std::path::Path, network: bool) -> SandboxSettings {
    SandboxSettings {
        read: vec![read.to_owned()],
        write: vec![write.to_owned()],
        network,
        allow_degraded: false,
    }
}

#[tokio::test]
async fn a_sandbox_opens_what_was_declared_and_closes_everything_else() {
    let folder = tempfile::tempdir().unwrap();
    let (read, write, other) = (
        folder.path().join("read"),
        folder.path().join("write"),
        folder.path().join("other"),
    );
    for path in [&read, &write, &other] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("file"), "x").unwrap();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let outside = other.join("socket");
    let _unix = std::os::unix::net::UnixListener::bind(&outside).unwrap();
    let own = format!("/proc/{}/environ", std::process::id());
    let questions = [
        // What is asked; whether a child with the network, one without, and one without a sandbox may have it.
        (
            json!({ "do": "read", "path": read.join("file") }),
            [true, true, true],
        ),
        (json!({ "do": "list", "path": read }), [true, true, true]),
        (
            json!({ "do": "write", "path": read.join("file") }),
            [false, false, true],
        ),
        (
            json!({ "do": "write", "path": write.join("new") }),
            [true, true, true],
        ),
        (
            json!({ "do": "read", "path": other.join("file") }),
            [false, false, true],
        ),
        (
            json!({ "do": "list", "path": folder.path() }),
            [false, false, true],
        ),
        (json!({ "do": "list", "path": "/" }), [false, false, true]),
        (
            json!({ "do": "read", "path": "/etc/shadow" }),
            [false, false, true],
        ),
        (
            json!({ "do": "read", "path": "/usr/bin/env" }),
            [true, true, true],
        ),
        (
            json!({ "do": "run", "program": "/usr/bin/env" }),
            [true, true, true],
        ),
        // The environment of the gate has secrets of others.
        (json!({ "do": "read", "path": own }), [false, false, true]),
        (json!({ "do": "connect", "to": address }), [true, false, true]),
        (
            json!({ "do": "connect-unix", "to": outside }),
            [true, false, true],
        ),
        (
            json!({ "do": "listen-unix", "to": write.join("socket") }),
            [true, false, true],
        ),
        (json!({ "do": "pair" }), [true, true, true]),
    ];
    for (which, sandbox) in [
        Some(sandbox(&read, &write, true)),
        Some(sandbox(&read, &write, false)),
        None,
    ]
    .into_iter()
    .enumerate()
    {
        let (yard, mark) = (yard(), mark());
        let expected = if sandbox.is_some() {
            Protection::Full
        } else {
            Protection::None
        };
        let children = of(&yard, &["serve", &mark], |settings| settings.sandbox = sandbox);
        let mut talk = Talk::start(&children).await;
        assert_eq!(talk.child.protection(), expected);
        let _ = std::fs::remove_file(write.join("socket"));
        for (question, may) in &questions {
            // What the file system of this user refuses to everybody proves nothing.
            if question["path"] == "/etc/shadow" && std::fs::File::open("/etc/shadow").is_err() {
                continue;
            }
            let answer = talk.ask(question).await;
            assert_eq!(
                answer == json!({ "ok": true }),
                may[which],
                "{which}: {question}: {answer}"
            );
        }
        // It can be ended from outside all the same.
        drop(talk);
        all_gone(&yard, &mark).await;
    }
}

#[tokio::test]
async fn a_sandbox_with_a_path_that_is_not_there_starts_nothing() {
    let (yard, mark) = (yard(), mark());
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let children = of(&yard, &["serve", &mark], |settings| {
        settings.sandbox = Some(sandbox(folder.path(), &missing, false));
    });
    let fault = children.start("ada").await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!(
            "the server is not started: `{}` of the sandbox cannot be opened; make it, or take it out",
            missing.display()
        )
    );
    all_gone(&yard, &mark).await;
}
