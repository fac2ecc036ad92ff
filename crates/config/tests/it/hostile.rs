//! Texts that nobody would write, files that cannot be read, and limits at their edge.

use std::path::Path;

use config::{ConfigFault, FaultKind, PaperWorld, ReadFault, load};
use proptest::prelude::*;

use crate::world::world;

const SHORT: &str = "[upstream.api]\nopenapi = \"billing.yaml\"\ndestination = \"https://api.example.com\"\n";
const MIB: usize = 1 << 20;

fn faults_in(world: &PaperWorld) -> Vec<ConfigFault> {
    load(Path::new("tollhouse.toml"), world).err().unwrap_or_default()
}

fn faults_of(text: impl Into<Vec<u8>>) -> Vec<ConfigFault> {
    faults_in(&world().with_file("tollhouse.toml", text))
}

#[track_caller]
fn only(faults: &[ConfigFault], expected: &str) {
    assert_eq!(
        faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [expected]
    );
}

/// A configuration of exactly this many bytes.
fn padded(text: &str, bytes: usize) -> String {
    format!("{text}#{}", "x".repeat(bytes - text.len() - 1))
}

#[test]
fn a_file_that_cannot_be_read_is_one_fault_that_says_why() {
    only(
        &faults_in(&PaperWorld::default()),
        "tollhouse.toml: this file is not there; check its path, or write a first one with `tollhouse init`",
    );
    let mut denied = world();
    denied
        .unreadable
        .insert("tollhouse.toml".into(), ReadFault::Denied);
    only(
        &faults_in(&denied),
        "tollhouse.toml: this file may not be read by this user",
    );
    denied
        .unreadable
        .insert("tollhouse.toml".into(), ReadFault::Kind("a folder, not a file"));
    only(
        &faults_in(&denied),
        "tollhouse.toml: this file is a folder, not a file",
    );
    only(
        &faults_of(b"listen = \"a\"\n\xc3\x28".to_vec()),
        "tollhouse.toml:2:1: this file is not UTF-8",
    );
    only(
        &faults_of("a = \"x\0\""),
        "tollhouse.toml:1:7: invalid basic string, expected non-double-quote visible characters, `\\`",
    );
    assert_eq!(faults_of("\0")[0].kind, FaultKind::Syntax);
}

#[test]
fn an_empty_file_is_told_what_is_missing() {
    only(
        &faults_of(""),
        "tollhouse.toml: upstream: this key is missing; write a table [upstream.<name>]",
    );
    let nothing = PaperWorld::default().with_file("tollhouse.toml", "# nothing\n");
    let faults: Vec<String> = faults_in(&nothing).iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "tollhouse.toml: upstream: this key is missing; write a table [upstream.<name>]",
            "tollhouse.toml: policy.folder: `policy` is not there; make the folder and put rules into it; what no rule permits is refused",
        ]
    );
}

#[test]
fn the_file_is_taken_at_its_limit_and_refused_one_past_it() {
    assert_eq!(faults_of(padded(SHORT, MIB)), []);
    only(
        &faults_of(padded(SHORT, MIB + 1)),
        "tollhouse.toml: this file has 1048577 bytes; at most 1048576 are read; raise `limits.config_bytes_max` in it",
    );
    let raised = format!("{SHORT}[limits]\nconfig_bytes_max = {}\n", MIB + 10);
    assert_eq!(faults_of(padded(&raised, MIB + 10)), []);
    only(
        &faults_of(padded(&raised, MIB + 11)),
        "tollhouse.toml: this file has 1048587 bytes; at most 1048586 are read; raise `limits.config_bytes_max` in it",
    );
    let lowered = format!("{SHORT}[limits]\nconfig_bytes_max = 1024\n");
    assert_eq!(faults_of(padded(&lowered, 1_024)), []);
    assert_eq!(faults_of(padded(&lowered, 1_025)).len(), 1);
    // Nothing of a file that is too long is parsed: it would have a fault on every line.
    assert_eq!(faults_of("=\n".repeat(MIB)).len(), 1);
    // The word alone lets a large file be read; it does not let it be used.
    let spoken = format!("{SHORT}# config_bytes_max\n");
    assert_eq!(faults_of(padded(&spoken, MIB + 1)).len(), 1);
}

#[test]
fn every_file_that_is_named_is_taken_at_its_limit_and_refused_one_past_it() {
    let text = "[upstream.api]\nopenapi = \"api.yaml\"\ndestination = \"https://api.example.com\"\ntls = { ca = \"own.pem\" }\ncredential = { bearer = \"file:token\" }\n\
                [source.o]\nfile = \"o.json\"\n[identity.issuer.i]\nissuer = \"https://i.example\"\nkey_set = \"file:k.json\"\n\
                [limits]\nconfig_bytes_max = 2048\ndocument_bytes_max = 2000\nkey_set_bytes_max = 1500\n";
    let files = |openapi: usize, ca: usize, token: usize, owners: usize, keys: usize, rule: usize| {
        world()
            .with_file("tollhouse.toml", text)
            .with_file("api.yaml", " ".repeat(openapi))
            .with_file("own.pem", padded("-----BEGIN CERTIFICATE-----\n", ca))
            .with_file("token", "t".repeat(token))
            .with_file("o.json", format!("{}{{}}", " ".repeat(owners - 2)))
            .with_file("k.json", " ".repeat(keys))
            .with_file("policy/a.cedar", " ".repeat(rule))
    };
    assert_eq!(faults_in(&files(2_000, 2_048, 2_048, 2_048, 1_500, 2_048)), []);
    let faults = faults_in(&files(2_001, 2_049, 2_049, 2_049, 1_501, 2_049));
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "tollhouse.toml:2:11: upstream.api.openapi: `api.yaml` is longer than 2000 bytes",
            "tollhouse.toml:4:14: upstream.api.tls.ca: `own.pem` is longer than 2048 bytes",
            "tollhouse.toml:5:25: upstream.api.credential.bearer: `token` is longer than 2048 bytes",
            "tollhouse.toml:7:8: source.o.file: `o.json` is longer than 2048 bytes",
            "tollhouse.toml:10:11: identity.issuer.i.key_set: `k.json` is longer than 1500 bytes",
            "policy/a.cedar: policy.folder: this file is longer than 2048 bytes; split it, or raise `limits.config_bytes_max`",
        ]
    );
}

#[test]
fn a_policy_folder_is_taken_with_a_thousand_rule_files_and_not_with_one_more() {
    let mut full = PaperWorld::default()
        .with_file("tollhouse.toml", SHORT)
        .with_file("billing.yaml", "");
    for n in 0..1_000 {
        full.files
            .insert(format!("policy/{n:04}.cedar").into(), Vec::new());
    }
    assert_eq!(faults_in(&full), []);
    full.files.insert("policy/more.cedar".into(), Vec::new());
    only(
        &faults_in(&full),
        "tollhouse.toml: policy.folder: `policy` holds 1001 rule files; at most 1000 are read",
    );
}

#[test]
fn tools_are_taken_up_to_their_limit_and_one_more_is_a_fault() {
    let tools = |count: usize| -> String {
        let tool = |n| format!("[upstream.api.tool.t{n}]\noperation = \"x\"\nclass = \"read\"\n");
        format!(
            "{SHORT}{}[limits]\ntools_max = 3\n",
            (0..count).map(tool).collect::<String>()
        )
    };
    assert_eq!(faults_of(tools(3)), []);
    only(
        &faults_of(tools(4)),
        "tollhouse.toml:1:2: upstream: there are 4 tools; at most 3 are allowed; enable fewer, or raise `limits.tools_max`",
    );
}

#[test]
fn deep_and_long_texts_end_in_a_fault_and_not_in_a_crash() {
    let dotted = ["a"; 60].join(".");
    for text in [
        "[".repeat(200_000),
        format!("x = {}", "[".repeat(200_000)),
        format!("x = {}{}", "[".repeat(79), "]".repeat(79)),
        format!("x = {}", "{a = ".repeat(100_000)),
        format!("x = {}1{}", format!("{{{dotted} = ").repeat(79), "}".repeat(79)),
        vec!["a"; 300_000].join("."),
        "[[a]]\n".repeat(100_000),
        "\"".repeat(200_001),
        "=".repeat(100_000),
        "\u{FEFF}".repeat(1_000),
    ] {
        let faults = faults_of(text.clone());
        assert!(
            !faults.is_empty() && faults.len() <= 501,
            "{} faults of {text:.40}",
            faults.len()
        );
    }
}

#[test]
fn huge_lists_and_tables_are_one_fault_each() {
    let list = format!(
        "{SHORT}[limits]\n[identity.issuer.i]\nissuer = \"https://i.example\"\nkey_set = \"file:keys.json\"\naudience = [{}]\n",
        "1, ".repeat(100_000)
    );
    only(
        &faults_of(list),
        "tollhouse.toml:8:12: identity.issuer.i.audience: this has 100000 items; at most 16 are allowed",
    );
    let headers: String = (0..10_000).map(|n| format!("X-H{n} = 1\n")).collect();
    only(
        &faults_of(format!("{SHORT}[upstream.api.headers]\n{headers}")),
        "tollhouse.toml:4:1: upstream.api.headers: this has 10000 entries; at most 64 are allowed",
    );
    let unknown = format!("{SHORT}zzz = [{}]\n", "[1, {a = 2}], ".repeat(50_000));
    assert_eq!(faults_of(unknown).len(), 1);
}

#[test]
fn a_text_with_a_byte_order_mark_or_windows_line_ends_is_read_as_any_other() {
    assert_eq!(faults_of(format!("\u{FEFF}{SHORT}")), []);
    assert_eq!(faults_of(SHORT.replace('\n', "\r\n")), []);
    let faults = faults_of(format!("{SHORT}clas = 1\n").replace('\n', "\r\n"));
    assert_eq!((faults[0].line, faults[0].column), (Some(4), Some(1)));
}

/// Pieces of configurations, so that random texts get past the parser.
fn piece() -> impl Strategy<Value = String> {
    let complete = include_str!("complete.toml");
    let lines: Vec<String> = complete
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let values = [
        "\"\"",
        "\"env:\"",
        "\"env:EMPTY\"",
        "\"file:binary\"",
        "-1",
        "99999999999999999999",
        "1e400",
        "nan",
        "true",
        "[]",
        "{}",
        "[[]]",
        "2027-01-31",
        "\"\\u0000\"",
        "\"\u{202E}\"",
        "'''\n'''",
    ];
    prop_oneof![
        4 => proptest::sample::select(lines.clone()),
        2 => (proptest::sample::select(lines), proptest::sample::select(values.to_vec()))
            .prop_map(|(line, value)| line.split_once(" = ").map_or(line.clone(), |(key, _)| format!("{key} = {value}"))),
        1 => "[\\[\\]{}=.,\"'#a-z0-9 _-]{0,20}",
        1 => any::<String>(),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(pieces in proptest::collection::vec(piece(), 0..40)) {
        let text = pieces.join("\n");
        match load(Path::new("tollhouse.toml"), &world().with_file("tollhouse.toml", text)) {
            Ok(loaded) => prop_assert!(!loaded.settings.upstreams.is_empty()),
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                for fault in &faults {
                    prop_assert_ne!(fault.kind, FaultKind::Internal, "{}", fault);
                    let line = fault.to_string();
                    prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(!faults_of(bytes).is_empty());
    }

    /// One line of a right file taken out or changed: the result is right, or every fault has a place in a file.
    #[test]
    fn a_changed_line_gives_settings_or_faults_with_places(at in 0_usize..120, replacement in piece()) {
        let mut lines: Vec<&str> = include_str!("complete.toml").lines().collect();
        let at = at % lines.len();
        lines[at] = &replacement;
        for fault in faults_of(lines.join("\n")) {
            prop_assert_ne!(fault.kind, FaultKind::Internal, "{}", fault);
            prop_assert!(fault.line.is_some() || fault.key == "upstream", "{}", fault);
        }
    }
}
