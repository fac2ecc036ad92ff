//! Documents that are made from the code equal it, and links between documents lead somewhere.

use std::path::Path;

use model::{LIMITS, RefusalCode};
use xtask::repository;

#[test]
fn every_generated_document_equals_its_source() {
    let faults: Vec<String> = xtask::documents::all()
        .unwrap()
        .iter()
        .filter_map(xtask::repository::Made::fault)
        .collect();
    super::none(&faults);
}

#[test]
fn every_limit_and_every_refusal_is_in_the_documents() {
    let config = repository::read("docs/config.md").unwrap();
    for limit in LIMITS {
        assert!(
            config.contains(&format!("| `{}` |", limit.name)),
            "{}",
            limit.name
        );
        assert!(config.contains(limit.doc), "{}", limit.name);
    }
    let refusals = repository::read("docs/refusals.md").unwrap();
    for code in RefusalCode::ALL {
        assert!(refusals.contains(&format!("| `{code}` |")), "{code}");
    }
}

/// The targets of Markdown links in a text, without those inside code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every other piece between backticks is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
        let mut rest = prose.as_str();
        while let Some((_, behind)) = rest.split_once("](") {
            let Some((target, after)) = behind.split_once(')') else {
                break;
            };
            found.push(target.to_owned());
            rest = after;
        }
    }
    found
}

#[test]
fn every_link_between_documents_leads_to_a_file() {
    let mut faults = Vec::new();
    for path in repository::files().unwrap() {
        if !path.ends_with(".md") {
            continue;
        }
        let folder = Path::new(&path).parent().unwrap();
        for link in links(&repository::read(&path).unwrap()) {
            let target = link.split('#').next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !repository::root().join(folder).join(target).exists() {
                faults.push(format!("{path}: the link to `{link}` leads nowhere"));
            }
        }
    }
    super::none(&faults);
}

#[test]
fn links_are_found_in_prose_and_not_in_code() {
    let text =
        "see [a](a.md) and [b](b.md#part), not `[c](c.md)`\n```\n[d](d.md)\n```\n[e](https://e.example)";
    assert_eq!(links(text), ["a.md", "b.md#part", "https://e.example"]);
}
