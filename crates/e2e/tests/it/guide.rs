//! What README and the guide to rules show is real: the output of the demo, and rules that load. The commands of the guide are
//! run in `document.rs`.

use e2e::example::Example;
use e2e::house::House;

const GUIDE: &str = include_str!("../../../../docs/guides/policies.md");

const README: &str = include_str!("../../../../README.md");

/// The fenced blocks of a kind in a page, without their fences.
fn blocks<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let opening = format!("```{kind}\n");
    page.split(opening.as_str())
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[tokio::test]
async fn every_rule_of_the_guide_loads_beside_the_rules_of_the_worked_example() {
    let Example { house, .. } = &Example::start().await;
    let rules = blocks(GUIDE, "cedar");
    assert!(rules.len() >= 6, "{}", rules.len());
    // Together, so that an id that stands twice is found.
    house.write("policy/guide.cedar", rules.join("\n"));
    let output = house.run(["check", "--offline"]).await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn the_readmes_demo_is_the_demo() {
    let output = House::new()
        .run(["demo", "--once", "--listen", "127.0.0.1:0"])
        .await;
    let (command, expected) = blocks(README, "console")[0].split_once('\n').unwrap();
    assert_eq!(command, "$ cargo run -- demo --once");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
}
