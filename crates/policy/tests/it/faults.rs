//! What does not load: each fault with its kind, its exact place, and the name that was probably meant.

use model::{Class, Limits};
use policy::{FAULTS_MAX, Place, Policy, PolicyFault, PolicyFaultKind as Kind, RULES_MAX};
use serde_json::json;

use crate::world::{EXAMPLE, action, file, fleet, load, tool};

fn faults(text: &str) -> Vec<PolicyFault> {
    match load(text) {
        Ok(_) => panic!("loads: {text}"),
        Err(faults) => faults,
    }
}

fn place(fault: &PolicyFault) -> (usize, usize) {
    match &fault.place {
        Place::File { path, line, column } => {
            assert_eq!(path, "policy/a.cedar");
            (*line, *column)
        }
        place @ (Place::Tool(_) | Place::Whole) => panic!("{place}"),
    }
}

/// One fault of this kind, at the place of `<here>` in `marked`, whose message holds all of `said`.
fn check(marked: &str, kind: Kind, said: &[&str]) {
    let at = marked
        .find("<here>")
        .unwrap_or_else(|| panic!("no mark in {marked}"));
    let text = marked.replacen("<here>", "", 1);
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].rsplit('\n').next().unwrap().chars().count() + 1;
    let faults = faults(&text);
    let shown: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 1, "{text}\n{shown:#?}");
    assert_eq!(faults[0].kind, kind, "{text}\n{shown:#?}");
    assert_eq!(place(&faults[0]), (line, column), "{text}\n{shown:#?}");
    for said in said {
        assert!(shown[0].contains(said), "{said:?} in {shown:#?}");
    }
}

fn when(condition: &str) -> String {
    format!("permit (principal, action, resource)\nwhen {{ {condition} }};")
}

fn search(condition: &str) -> String {
    format!("permit (principal, action == Action::\"tracker_search\", resource)\nwhen {{ {condition} }};")
}

#[test]
fn what_cedar_cannot_parse_is_a_fault_at_its_place() {
    check(
        "permit (principal, action, resource)<here>",
        Kind::Syntax,
        &["unexpected end of input"],
    );
    check("allow<here>", Kind::Syntax, &["unexpected end"]);
    check(
        "<here>\"x\" permit (principal, action, resource);",
        Kind::Syntax,
        &["unexpected token"],
    );
    check(
        "permit (principal, action, resource) when { 1 == <here>};",
        Kind::Syntax,
        &["unexpected token `}`", "expected"],
    );
    check(&when("<here>contxt.class == \"read\""), Kind::Syntax, &["contxt"]);
    check(
        &when("<here>unknown(\"x\")"),
        Kind::Syntax,
        &["not part of the language"],
    );
    check(&when("<here>!!!!!true"), Kind::Syntax, &["too many"]);
    check(
        "\n// é\n  permit (principal, action, resource); <here>/* no */",
        Kind::Syntax,
        &[],
    );
}

#[test]
fn a_fault_in_one_rule_hides_none_in_another() {
    let text = "permit (principal, action, resource) when { x };\n\npermit (principal is Callr, action, resource);\nforbid;";
    let found: Vec<_> = faults(text)
        .iter()
        .map(|fault| (place(fault).0, fault.kind))
        .collect();
    assert_eq!(
        found,
        [(1, Kind::Syntax), (3, Kind::UnknownName), (4, Kind::Syntax)]
    );
}

#[test]
fn names_that_stand_for_nothing_are_faults_with_what_was_probably_meant() {
    check(
        "permit (principal, action == Action::<here>\"billing_getInvoiceStatuss\", resource);",
        Kind::UnknownName,
        &[
            "no enabled tool is called `billing_getInvoiceStatuss`",
            "did you mean `billing_getInvoiceStatus`?",
        ],
    );
    check(
        "permit (principal, action in [Action::\"tracker_ping\", Action::<here>\"zzz\"], resource);",
        Kind::UnknownName,
        &["no enabled tool is called `zzz`"],
    );
    check(
        "permit (principal, action in Action::<here>\"class:reed\", resource);",
        Kind::UnknownName,
        &["`reed` is no class of tools", "did you mean `class:read`?"],
    );
    check(
        "permit (principal, action in Action::<here>\"upstream:biling\", resource);",
        Kind::UnknownName,
        &[
            "no upstream `biling` has an enabled tool",
            "did you mean `upstream:billing`?",
        ],
    );
    check(
        &when("action != Action::<here>\"tracker_pong\""),
        Kind::UnknownName,
        &["did you mean `tracker_ping`?"],
    );
    check(
        "permit (principal is <here>Callr, action, resource);",
        Kind::UnknownName,
        &["`Callr`", "did you mean `Caller`?"],
    );
    check(
        "permit (principal, action, resource is <here>Invoic);",
        Kind::UnknownName,
        &["did you mean `Invoice`?"],
    );
    check(
        &when("resource is <here>Invoic"),
        Kind::UnknownName,
        &["did you mean `Invoice`?"],
    );
    check(
        &when("principal == <here>User::\"ada\""),
        Kind::UnknownName,
        &["`User`"],
    );
    check(
        "permit (principal == <here>My::Caller::\"x\", action, resource);",
        Kind::UnknownName,
        &["`My::Caller`"],
    );
}

#[test]
fn a_group_is_not_a_tool() {
    check(
        "permit (principal, action == Action::<here>\"class:read\", resource);",
        Kind::Impossible,
        &[
            "`class:read` is a group of tools",
            "write action in Action::\"class:read\"",
        ],
    );
}

#[test]
fn attributes_that_cannot_exist_are_faults_with_what_was_probably_meant() {
    check(
        &when("<here>principal.tenent == \"x\""),
        Kind::Attribute,
        &["`tenent`", "did you mean `tenant`?"],
    );
    check(
        &search("<here>resource.ownr == \"x\""),
        Kind::Attribute,
        &["`ownr`", "did you mean `owner`?"],
    );
    check(
        &when("resource is Tool && <here>resource.owner == \"x\""),
        Kind::Attribute,
        &["`owner`"],
    );
    check(
        &search("<here>context.arguments.qery == \"x\""),
        Kind::Attribute,
        &["did you mean `query`?"],
    );
    check(&when("<here>context.tool == \"x\""), Kind::Attribute, &["`tool`"]);
    check(
        &search("<here>context.facts.frozen"),
        Kind::Attribute,
        &["`facts.frozen`"],
    );
    check(
        &search("<here>context.arguments.limit > 1"),
        Kind::Attribute,
        &["context.arguments has limit"],
    );
}

#[test]
fn an_argument_that_rules_cannot_read_is_a_fault_with_the_reason() {
    check(
        &search("<here>context.arguments.score == \"x\""),
        Kind::Attribute,
        &["`tracker_search` has it", "need not be whole"],
    );
    check(
        &search("<here>context.arguments.callback == \"x\""),
        Kind::Attribute,
        &["it may be null"],
    );
    // To Cedar these are simply false, so the permit would not see the argument.
    check(
        &search("!(context.arguments has <here>callback)"),
        Kind::Attribute,
        &["cannot read `context.arguments.callback`", "it may be null"],
    );
    check(
        &search("!(context.arguments has <here>\"score\")"),
        Kind::Attribute,
        &["need not be whole"],
    );
}

#[test]
fn asking_for_what_cannot_be_there_is_a_fault() {
    check(
        &search("!(context.arguments has <here>qery)"),
        Kind::Attribute,
        &["no attribute `qery`", "did you mean `query`?"],
    );
    check(
        &search("!(context.arguments has filter.<here>dept)"),
        Kind::Attribute,
        &["did you mean `depth`?"],
    );
    check(
        &search("!(context has <here>clas)"),
        Kind::Attribute,
        &["did you mean `class`?"],
    );
    check(
        &search("!(context.facts has <here>frozen)"),
        Kind::Attribute,
        &["`frozen`"],
    );
    check(
        &when("!(principal has <here>tenent)"),
        Kind::Attribute,
        &["did you mean `tenant`?"],
    );
    check(
        &when("!(resource has <here>tenant)"),
        Kind::Attribute,
        &["no attribute `tenant`"],
    );
    check(
        &when("!(Caller::\"a\" has <here>nam)"),
        Kind::Attribute,
        &["no attribute `nam`"],
    );
    // One of two tools has the argument, so asking for it makes sense.
    load("permit (principal, action in Action::\"upstream:billing\", resource) unless { context.arguments has cents };").unwrap();
}

#[test]
fn a_tool_that_may_get_undeclared_arguments_cannot_be_asked_for_them() {
    let mut tools = fleet();
    tools[3].input_schema = json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}});
    let asks = "permit (principal, action in Action::\"upstream:tracker\", resource) unless { context.arguments has limit };";
    let faults = Policy::load(&[file("policy/a.cedar", asks)], &tools).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].to_string().contains("does not rule it out"),
        "{}",
        faults[0]
    );
    Policy::load(&[file("policy/a.cedar", asks)], &fleet()).unwrap();
}

#[test]
fn a_record_is_not_compared_as_a_whole() {
    check(
        &search("context.<here>arguments == {query: \"x\"}"),
        Kind::Attribute,
        &["`context.arguments` is used as a whole", "one by one"],
    );
    check(
        &search("[context.<here>arguments].contains(context.arguments)"),
        Kind::Attribute,
        &["as a whole"],
    );
    check(
        &search("context.arguments has filter && context.arguments.<here>filter == {from: \"x\"}"),
        Kind::Attribute,
        &["`context.arguments.filter` is used as a whole"],
    );
}

#[test]
fn types_that_do_not_fit_are_faults() {
    check(
        &search("<here>context.arguments.query == 3"),
        Kind::Type,
        &["String", "Long"],
    );
    check(&when("<here>1"), Kind::Type, &["expected Bool but saw Long"]);
    check(&when("<here>principal.roles > 3"), Kind::Type, &[]);
    check(
        &when("context.now < <here>datetime(\"yesterday\")"),
        Kind::Type,
        &["datetime"],
    );
    check(
        &when("<here>principal.roles like \"a*\""),
        Kind::Type,
        &["expected String"],
    );
}

#[test]
fn a_rule_that_can_never_apply_is_a_fault() {
    check(
        "\n <here>permit (principal, action, resource) when { false };",
        Kind::Impossible,
        &["never"],
    );
    check(
        "<here>permit (principal, action == Action::\"tracker_ping\", resource is Invoice);",
        Kind::Impossible,
        &["no tool"],
    );
    check(
        "<here>permit (principal, action in [], resource);",
        Kind::Impossible,
        &[],
    );
    check(
        "<here>permit (principal == Invoice::\"x\", action, resource);",
        Kind::Impossible,
        &["never"],
    );
    check(
        "<here>permit (principal, action, resource == Tool::\"billing_refund\");",
        Kind::Impossible,
        &[],
    );
    check(
        "<here>permit (principal, action == Action::\"tracker_ping\", resource) when { resource is Invoice };",
        Kind::Impossible,
        &[],
    );
    check(
        "<here>permit (principal, action == Action::\"tracker_ping\", resource) when { action == Action::\"tracker_search\" };",
        Kind::Impossible,
        &[],
    );
    check(
        "<here>forbid (principal, action == Action::\"billing_refund\", resource) unless { context.facts has frozen };",
        Kind::Impossible,
        &[],
    );
}

#[test]
fn templates_are_refused() {
    check(
        "permit (principal == <here>?principal, action, resource);",
        Kind::Template,
        &["?principal"],
    );
    check(
        "permit (principal, action, resource in <here>?resource);",
        Kind::Template,
        &["?resource"],
    );
}

#[test]
fn tags_are_refused() {
    check(
        &when("!resource.<here>hasTag(\"x\")"),
        Kind::Attribute,
        &["no tags"],
    );
}

#[test]
fn a_rule_id_is_printable_and_stands_once() {
    check(
        "@<here>id permit (principal, action, resource);",
        Kind::RuleId,
        &["rule id is empty", "@id("],
    );
    check(
        "@id(<here>\"two words\") permit (principal, action, resource);",
        Kind::RuleId,
        &["two words"],
    );
    check(
        &format!("@id(\"a\") {EXAMPLE}\n @id(<here>\"a\") permit (principal, action, resource);"),
        Kind::RuleId,
        &[
            "the rule id `a` stands twice",
            "the other rule is at policy/a.cedar:1:5",
        ],
    );
    check(
        "@id(\"a.cedar#1\") permit (principal, action, resource);\n<here>permit (principal, action, resource);",
        Kind::RuleId,
        &["`a.cedar#1` stands twice"],
    );
    check(
        "@id(\"a\") <here>@id(\"b\") permit (principal, action, resource);",
        Kind::Syntax,
        &["duplicate annotation"],
    );
    let files = [file("x/a.cedar", EXAMPLE), file("y/a.cedar", EXAMPLE)];
    let faults = Policy::load(&files, &fleet()).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0]
            .to_string()
            .starts_with("y/a.cedar:2:1: the rule id `a.cedar#0` stands twice"),
        "{}",
        faults[0]
    );
    let spaced = Policy::load(&[file("my rules.cedar", EXAMPLE)], &fleet()).unwrap_err();
    assert_eq!(spaced[0].kind, Kind::RuleId);
}

#[test]
fn invisible_characters_are_refused_wherever_they_stand() {
    check(
        &format!("// a <here>\u{202E}comment\n{EXAMPLE}"),
        Kind::Hidden,
        &["\\u{202e}"],
    );
    check(
        &when("principal.roles.contains(\"adm<here>\u{200B}in\")"),
        Kind::Hidden,
        &["\\u{200b}", "escape"],
    );
    load(&when("principal.roles.contains(\"a\\u{202e}b\")")).unwrap();
    load(&when("principal.roles.contains(\"Отдел IT\")")).unwrap();
}

#[test]
fn two_files_cannot_have_one_path() {
    let files = [file("policy/a.cedar", EXAMPLE), file("policy/a.cedar", "")];
    let faults = Policy::load(&files, &fleet()).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].kind, Kind::Path);
}

#[test]
fn tools_that_rules_could_not_tell_apart_are_refused() {
    let with = |kind: &str| action("x", "billing", Class::Read, Some(kind), json!({}));
    for kind in [
        "Caller", "Tool", "Action", "String", "Set", "datetime", "if", "like", "true",
    ] {
        let faults = Policy::load(&[], &[with(kind)]).unwrap_err();
        assert_eq!((faults.len(), faults[0].kind), (1, Kind::Tool), "{kind}");
        assert_eq!(faults[0].place, Place::Tool(tool("x")));
    }
    assert!(Policy::load(&[], &[with("Strings")]).is_ok());
    let faults = Policy::load(&[], &[with("Invoice"), with("Ticket")]).unwrap_err();
    assert!(
        faults[0].to_string().contains("two enabled tools"),
        "{}",
        faults[0]
    );
    let mut doubled = with("Invoice");
    doubled.facts = vec![
        ("a".to_owned(), policy::FactType::Text),
        ("a".to_owned(), policy::FactType::Truth),
    ];
    let faults = Policy::load(&[file("policy/a.cedar", "x")], &[doubled]).unwrap_err();
    let kinds: Vec<_> = faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [Kind::Tool, Kind::Syntax], "a bad tool hides no bad file");
}

#[test]
fn files_and_rules_load_at_their_limit_and_not_past_it() {
    let limits = Limits {
        config_bytes_max: 1_000,
        ..Limits::default()
    };
    let sized = |bytes: usize| {
        [file(
            "a.cedar",
            &format!("{EXAMPLE}//{}", "x".repeat(bytes - EXAMPLE.len() - 2)),
        )]
    };
    assert!(Policy::load_within(&sized(1_000), &fleet(), &limits).is_ok());
    let faults = Policy::load_within(&sized(1_001), &fleet(), &limits).unwrap_err();
    assert_eq!(faults[0].kind, Kind::Limit);
    assert!(
        faults[0].to_string().contains("has 1001 bytes; at most 1000"),
        "{}",
        faults[0]
    );

    // Statements that do not parse are quickly done with; what counts is whether anyone tried.
    let many = |count: usize| file("a.cedar", &";".repeat(count));
    let kind = |files: &[policy::PolicyFile]| Policy::load(files, &fleet()).unwrap_err()[0].kind;
    assert_eq!(kind(&[many(RULES_MAX)]), Kind::Syntax);
    assert_eq!(kind(&[many(RULES_MAX + 1)]), Kind::Limit);
    assert_eq!(Policy::load(&[many(RULES_MAX + 1)], &[]).unwrap_err().len(), 1);
    assert_eq!(
        kind(&[file("0.cedar", EXAMPLE), many(RULES_MAX)]),
        Kind::Limit,
        "of all files together"
    );
}

#[test]
fn at_most_a_hundred_faults_are_shown_and_the_rest_is_counted() {
    let bad = |count: usize| faults(&";".repeat(count));
    assert_eq!(bad(FAULTS_MAX).len(), FAULTS_MAX);
    let more = bad(FAULTS_MAX + 7);
    assert_eq!(more.len(), FAULTS_MAX);
    assert!(
        more[FAULTS_MAX - 1].to_string().ends_with("and 7 more faults"),
        "{}",
        more[FAULTS_MAX - 1]
    );
}
