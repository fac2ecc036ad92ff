//! What README and the guide to rules show is what the command does: rules load, and outputs are real.

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
async fn the_guides_outputs_are_the_commands_outputs() {
    let Example { house, .. } = &Example::start().await;
    let shown = blocks(GUIDE, "console");
    let [fault, explained] = shown.as_slice() else {
        panic!("{shown:?}");
    };

    let arguments = [
        "explain",
        "--as",
        "ada",
        "billing_getInvoiceStatus",
        r#"{"invoice_id": "inv-2001"}"#,
    ];
    let output = house.run(arguments).await;
    let (command, expected) = explained.split_once('\n').unwrap();
    assert_eq!(
        command,
        r#"$ tollhouse explain --as ada billing_getInvoiceStatus '{"invoice_id": "inv-2001"}'"#
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(1));

    let rule = blocks(GUIDE, "cedar")[0].replace("principal.tenant", "principal.tenent");
    house.write("policy/more.cedar", two_lines(&rule));
    let output = house.run(["check", "--offline"]).await;
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        fault.split_once('\n').unwrap().1
    );
    assert_eq!(output.status.code(), Some(78));
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

/// A rule with its head on one line and its condition on the next, as the guide's fault has it.
fn two_lines(rule: &str) -> String {
    let one_line = rule.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    one_line.replace(" when", "\nwhen")
}
