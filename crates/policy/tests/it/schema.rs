//! The generated schema, word for word, and that Cedar takes it whatever a tool calls its arguments.

use model::{Class, Object};
use policy::{FactType, Policy};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{action, file, fleet};

#[test]
fn the_schema_is_exactly_this() {
    let policy = Policy::load(&[], &fleet()).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/schema.cedarschema");
        std::fs::write(path, policy.schema_text()).unwrap();
    }
    assert_eq!(policy.schema_text(), include_str!("schema.cedarschema"));
}

#[test]
fn the_schema_does_not_depend_on_the_order_of_tools_and_properties() {
    let property = |name: &str| (name.to_owned(), json!({"type": "string"}));
    let schema = |names: [&str; 2]| {
        let properties: Object = names.into_iter().map(property).collect();
        action(
            "x",
            "billing",
            Class::Read,
            None,
            json!({"properties": properties}),
        )
    };
    let other = action("y", "billing", Class::Read, None, json!({}));
    let one = Policy::load(&[], &[schema(["a", "b"]), other.clone()]).unwrap();
    let two = Policy::load(&[], &[other, schema(["b", "a"])]).unwrap();
    assert_eq!(one.schema_text(), two.schema_text());
    assert_eq!(one.version(), two.version());
}

proptest! {
    #[test]
    fn any_name_of_an_argument_or_fact_can_be_declared_and_read(name in any::<String>(), fact in any::<String>()) {
        let mut tool = action("x", "billing", Class::Read, None, json!({"properties": {&name: {"type": "string"}}, "required": [&name]}));
        tool.facts = vec![(fact.clone(), FactType::Text)];
        let rule = format!(
            "permit (principal, action, resource) when {{ context.arguments[\"{}\"] == \"1\" && context.facts[\"{}\"] == \"2\" }};",
            name.escape_default(), fact.escape_default(),
        );
        let policy = Policy::load(&[file("a.cedar", &rule)], &[tool]);
        prop_assert!(policy.is_ok(), "{rule}\n{policy:?}");
        let asked = |value: &str| crate::world::Asked {
            tool: crate::world::tool("x"),
            arguments: Object::from_iter([(name.clone(), json!(value))]),
            facts: vec![crate::world::fact(&fact, model::FactValue::Text("2".to_owned()))],
            ..crate::world::ping()
        };
        let policy = policy.unwrap();
        prop_assert!(asked("1").of(&policy).is_ok());
        prop_assert!(asked("2").of(&policy).is_err());
    }
}
