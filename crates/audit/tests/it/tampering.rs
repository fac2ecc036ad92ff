//! Whatever is changed in an export is found, but for the end of the newest chain, and that is said.

use std::sync::LazyLock;

use audit::{HoleKind, VerifyFault, VerifyOptions};
use model::{Class, Digest};
use proptest::prelude::*;

use crate::desk::{Desk, call, intend, known, refuse, verify};

/// An export of three chains: one of a process that ended well, one of one that did not, one that still runs.
static EXPORT: LazyLock<Vec<String>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let export = runtime.block_on(async {
        let desk = Desk::new();
        for round in 0..3 {
            let ledger = desk.ledger().await;
            for _ in 0..6 {
                call(&ledger, Class::Write).await.unwrap();
                refuse(&ledger, &known(Class::Read)).await.unwrap();
            }
            let open = intend(&ledger, &known(Class::Read)).await.unwrap();
            if round == 0 {
                drop(open);
                ledger.close().await.unwrap();
            } else {
                // Neither an outcome nor a stop: as if it had been killed.
                std::mem::forget(open);
                std::mem::forget(ledger);
            }
        }
        desk.export().await
    });
    let lines = std::str::from_utf8(&export)
        .unwrap()
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect();
    assert!(verify(&export).sound(), "{}", verify(&export));
    lines
});

/// The newest chain stands first.
fn newest() -> usize {
    EXPORT
        .iter()
        .skip(1)
        .position(|line| line.contains("\"kind\":\"start\""))
        .unwrap()
        + 1
}

fn found(lines: &[String]) -> Vec<HoleKind> {
    verify(lines.concat().as_bytes())
        .faults
        .iter()
        .map(|hole| hole.kind)
        .collect()
}

/// Whether the verifier objects in any way.
fn is_found(bytes: &[u8]) -> bool {
    match audit::verify(bytes, VerifyOptions::default()) {
        Ok(report) => !report.sound(),
        Err(VerifyFault::Empty | VerifyFault::Read(_) | VerifyFault::LineLong { .. }) => true,
    }
}

/// Takes a line apart, lets its body be changed, and puts it together with the hash that then is right.
fn rehashed(line: &str, prev: Digest, change: impl FnOnce(&str) -> String) -> (String, Digest) {
    let body = line.strip_prefix("{\"body\":").unwrap();
    let body = change(&body[..body.len() - 164]);
    let hash = Digest::of("tollhouse/ledger/v1", &[prev.as_bytes(), body.as_bytes()]);
    (
        format!("{{\"body\":{body},\"hash\":\"{hash}\",\"prev\":\"{prev}\"}}\n"),
        hash,
    )
}

fn hash_of(line: &str) -> Digest {
    line[line.len() - 164 + 9..][..71].parse().unwrap()
}

#[test]
fn the_parts_of_a_line_are_where_these_tests_take_them() {
    let mut prev = Digest::ZERO;
    for line in &EXPORT[..newest()] {
        let (same, hash) = rehashed(line, prev, str::to_owned);
        assert_eq!((&same, hash), (line, hash_of(line)));
        prev = hash;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_bit_is_found(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = EXPORT.concat().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(is_found(&bytes), "byte {at}, bit {bit}");
    }

    #[test]
    fn a_byte_more_or_less_is_found(at in any::<prop::sample::Index>(), byte in any::<u8>(), more in any::<bool>()) {
        let mut bytes = EXPORT.concat().into_bytes();
        let at = at.index(bytes.len());
        if more { bytes.insert(at, byte) } else { bytes.remove(at); }
        prop_assert!(is_found(&bytes), "byte {at}");
    }

    #[test]
    fn two_lines_that_change_places_are_found(one in any::<prop::sample::Index>(), two in any::<prop::sample::Index>()) {
        let mut lines = EXPORT.clone();
        let (one, two) = (one.index(lines.len()), two.index(lines.len()));
        lines.swap(one, two);
        prop_assert_eq!(is_found(lines.concat().as_bytes()), one != two, "{} and {}", one, two);
    }

    #[test]
    fn a_line_that_is_moved_is_found(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let mut lines = EXPORT.clone();
        let (from, to) = (from.index(lines.len()), to.index(lines.len()));
        let line = lines.remove(from);
        lines.insert(to, line);
        prop_assert_eq!(is_found(lines.concat().as_bytes()), from != to, "{} to {}", from, to);
    }

    #[test]
    fn a_changed_field_is_found_even_with_the_hash_that_fits(at in any::<prop::sample::Index>(), what in 0..6_usize) {
        let (from, to) = [
            ("\"ada\"", "\"bob\""), ("\"north\"", "\"south\""), ("\"write\"", "\"read\""), ("done", "failed"),
            ("not-permitted", "held"), ("\"seq\":", "\"seq\": "),
        ][what];
        let mut lines = EXPORT.clone();
        let at = at.index(lines.len());
        prop_assume!(lines[at].contains(from));
        let prev = lines[at][lines[at].len() - 2 - 72..][..71].parse().unwrap();
        (lines[at], _) = rehashed(&EXPORT[at], prev, |body| body.replace(from, to));
        // The last entry of the chain that still runs has no one behind it who could tell.
        prop_assume!(at != newest() - 1);
        prop_assert!(is_found(lines.concat().as_bytes()), "line {at}: {from}");
    }
}

#[test]
fn a_missing_line_is_found_wherever_it_was_but_for_the_unsigned_end_of_the_newest_chain() {
    for at in 0..EXPORT.len() {
        let mut lines = EXPORT.clone();
        let line = lines.remove(at);
        let last_of_newest = at == newest() - 1;
        assert_eq!(
            is_found(lines.concat().as_bytes()),
            !last_of_newest,
            "line {at}: {line}"
        );
    }
}

#[test]
fn a_line_that_stands_twice_is_found_wherever_it_was() {
    for at in 0..EXPORT.len() {
        for to in [at, at + 1, EXPORT.len()] {
            let mut lines = EXPORT.clone();
            lines.insert(to, EXPORT[at].clone());
            assert!(found(&lines).contains(&HoleKind::Order), "line {at} at {to}");
        }
    }
}

#[test]
fn the_end_of_the_newest_chain_can_be_cut_off_behind_its_last_checkpoint_and_the_report_says_so() {
    let newest = newest();
    let checkpoint = EXPORT[..newest]
        .iter()
        .rposition(|line| line.contains("\"kind\":\"checkpoint\""))
        .unwrap();
    for end in checkpoint + 1..=newest {
        let lines = [&EXPORT[..end], &EXPORT[newest..]].concat();
        let report = verify(lines.concat().as_bytes());
        assert!(report.sound(), "{end}: {report}");
        let behind = u64::try_from(end - checkpoint - 1).unwrap();
        assert_eq!(report.chains[0].after_last_checkpoint, behind);
        assert!(!report.chains[0].named);
        assert_eq!(
            report.to_string().contains("after the last checkpoint"),
            behind > 0,
            "{report}"
        );
    }
    // The other chains are named by a later one to their very last entry.
    for chain in &verify(EXPORT.concat().as_bytes()).chains[1..] {
        assert!(chain.named);
    }
}

#[test]
fn a_chain_that_is_missing_is_named() {
    let starts: Vec<usize> = (0..EXPORT.len())
        .filter(|at| EXPORT[*at].contains("\"kind\":\"start\""))
        .collect();
    let [_, second, third] = starts[..] else {
        panic!("{starts:?}")
    };
    assert_eq!(
        found(&[&EXPORT[..second], &EXPORT[third..]].concat()),
        [HoleKind::MissingChain]
    );
    assert_eq!(found(&EXPORT[..third]), [HoleKind::MissingChain]);
    // Nobody names the newest; this is what pinned exports are for.
    assert_eq!(found(&EXPORT[second..]), []);
    // In another order a reader could not have checked what names what.
    let turned = [&EXPORT[second..third], &EXPORT[..second], &EXPORT[third..]].concat();
    assert!(found(&turned).contains(&HoleKind::Order));
    let twice = [&EXPORT[..], &EXPORT[third..]].concat();
    assert!(found(&twice).contains(&HoleKind::Order));
    // As a part, in which beginnings may be missing, a chain still cannot stand in two places.
    let torn = [
        &EXPORT[third..third + 3],
        &EXPORT[second + 2..third],
        &EXPORT[third + 3..],
    ]
    .concat();
    let partial = VerifyOptions {
        partial: true,
        ..VerifyOptions::default()
    };
    let report = audit::verify(torn.concat().as_bytes(), partial).unwrap();
    let kinds: Vec<_> = report.faults.iter().map(|hole| hole.kind).collect();
    assert_eq!(kinds, [HoleKind::Order]);
}

#[test]
fn a_chain_that_was_written_anew_is_found_by_signature_or_by_name() {
    // Somebody without the key changes one entry and all hashes behind it.
    let newest = newest();
    let mut lines = EXPORT.clone();
    let mut prev = Digest::ZERO;
    for (at, line) in lines[..newest].iter_mut().enumerate() {
        let (next, hash) = rehashed(&EXPORT[at], prev, |body| {
            if at == 4 {
                body.replace("\"ada\"", "\"bob\"")
            } else {
                body.to_owned()
            }
        });
        (*line, prev) = (next, hash);
    }
    assert!(lines[4].contains("bob"), "{}", lines[4]);
    assert_eq!(found(&lines), [HoleKind::BadSignature]);
    // The chain before it has a later start that names its last entry, signature or not.
    let mut lines = EXPORT.clone();
    let last = EXPORT.len() - 1;
    let prev = hash_of(&EXPORT[last - 1]);
    (lines[last], _) = rehashed(&EXPORT[last], prev, |body| body.replace("Z\"", "Y\""));
    assert!(!found(&lines).is_empty());
}

#[test]
fn calls_without_outcome_and_outcomes_without_call_are_told_apart() {
    let report = verify(EXPORT.concat().as_bytes());
    assert_eq!(
        (report.calls, report.refused, report.unknown_total),
        (21, 18, 3),
        "{report}"
    );
    let recorded: Vec<bool> = report.unknown.iter().map(|call| call.recorded).collect();
    assert_eq!(recorded, [true, false, false]);
    assert!(report.unknown.windows(2).all(|pair| pair[0].time <= pair[1].time));
}

#[test]
fn an_outcome_that_is_recorded_twice_or_without_an_intent_is_found_though_the_chain_is_whole() {
    // A ledger that is signed and chained in order, and says things that cannot be: made from the one that still runs, cut
    // behind its first checkpoint, where no signature covers what follows.
    let forge = |kinds: &[&str]| {
        let mut lines = EXPORT[..2].to_vec();
        let mut prev = hash_of(&EXPORT[1]);
        for (at, kind) in kinds.iter().enumerate() {
            let template = EXPORT
                .iter()
                .find(|line| line.contains(&format!("\"kind\":\"{kind}\"")))
                .unwrap();
            let (line, hash) = rehashed(template, prev, |body| {
                let mut value: model::Value = serde_json::from_str(body).unwrap();
                value["seq"] = (at + 2).into();
                value["chain"] =
                    serde_json::from_str::<model::Value>(&EXPORT[0]).unwrap()["body"]["chain"].clone();
                value["call"] = "0198e7a2-3c4d-7e5f-8a6b-112233445566".into();
                String::from_utf8(model::canonical(&value)).unwrap()
            });
            lines.push(line);
            prev = hash;
        }
        lines.extend_from_slice(&EXPORT[newest()..]);
        found(&lines)
    };
    assert_eq!(forge(&["intent", "outcome"]), []);
    assert_eq!(forge(&["intent"]), []);
    assert_eq!(
        forge(&["intent", "outcome", "outcome"]),
        [HoleKind::DuplicateOutcome]
    );
    assert_eq!(forge(&["outcome"]), [HoleKind::OutcomeWithoutIntent]);
    assert_eq!(
        forge(&["outcome", "outcome"]),
        [HoleKind::DuplicateOutcome, HoleKind::OutcomeWithoutIntent]
    );
    assert_eq!(forge(&["intent", "intent"]), [HoleKind::DuplicateIntent]);
    assert_eq!(
        forge(&["intent", "outcome", "intent"]),
        [HoleKind::DuplicateIntent]
    );
    assert_eq!(forge(&["start"]), [HoleKind::Order, HoleKind::Truncated]);
    assert_eq!(forge(&["stop", "refusal"]), [HoleKind::Order]);
    assert_eq!(forge(&["stop"]), [HoleKind::Truncated]);
}

proptest! {
    #[test]
    fn any_text_is_verified_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), partial in any::<bool>()) {
        let options = VerifyOptions { pinned_key: None, partial };
        if let Ok(report) = audit::verify(&bytes[..], options) {
            prop_assert!(!report.sound());
        }
    }
}
