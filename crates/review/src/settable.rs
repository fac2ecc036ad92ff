//! Fields of a request body that a caller sets and that services often mean to decide themselves: roles, owners, balances;
//! and objects in it that take fields which nobody declared. It looks at the schema that a caller is held to, so that a
//! field that is hidden, fixed or `readOnly` is none of them. It is a word to a reviewer, and holds nothing.
//!
//! Source: OWASP API Security Top 10 (2023), API3.

use std::collections::BTreeSet;

use model::{Object, Value};
use openapi::RequestPlan;

/// Names of one kind that are said of one operation.
const NAMED_MAX: usize = 8;
/// Fields that are looked at in one body.
const FIELDS_MAX: usize = 2_000;
/// Objects inside each other that are gone through.
const DEPTH_MAX: usize = 12;

/// Names of fields that decide about rights, owners or money, without case, `_` and `-`.
const DECISIVE: [&str; 34] = [
    "role",
    "roles",
    "admin",
    "isadmin",
    "issuperuser",
    "superuser",
    "isstaff",
    "permission",
    "permissions",
    "privilege",
    "privileges",
    "accesslevel",
    "scopes",
    "owner",
    "owners",
    "ownerid",
    "ownedby",
    "tenant",
    "tenantid",
    "organizationid",
    "organisationid",
    "orgid",
    "createdby",
    "balance",
    "credit",
    "credits",
    "creditlimit",
    "verified",
    "isverified",
    "emailverified",
    "approved",
    "isapproved",
    "approvedby",
    "siteadmin",
];

/// What a caller can set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settable {
    /// Places of decisive fields, as `user.role`. At most eight.
    pub(crate) decisive: Vec<String>,
    /// Places of objects that take fields which nobody declared, as `user`. At most eight.
    pub(crate) undeclared: Vec<String>,
}

/// Looks at the body of a tool, by its input schema.
pub(crate) fn settable(schema: &Value, plan: &RequestPlan) -> Settable {
    let mut look = Look {
        root: schema,
        found: Settable::default(),
        seen: BTreeSet::new(),
        left: FIELDS_MAX,
    };
    for (argument, wire) in plan.body_arguments() {
        let Some(argument) = schema.get("properties").and_then(|all| all.get(argument)) else {
            continue;
        };
        match wire {
            Some(wire) => look.field(&mut String::new(), wire, argument, 0),
            None => look.schema(&mut String::new(), argument, 0),
        }
    }
    look.found
}

struct Look<'v> {
    root: &'v Value,
    found: Settable,
    /// Definitions that were looked into: once is enough.
    seen: BTreeSet<&'v str>,
    left: usize,
}

impl<'v> Look<'v> {
    fn field(&mut self, place: &mut String, name: &str, schema: &'v Value, depth: usize) {
        if self.left == 0 || schema == &Value::Bool(false) {
            return;
        }
        self.left -= 1;
        let before = place.len();
        if !place.is_empty() {
            place.push('.');
        }
        place.push_str(name);
        if is_decisive(name) {
            note(&mut self.found.decisive, place);
        }
        self.schema(place, schema, depth + 1);
        place.truncate(before);
    }

    fn schema(&mut self, place: &mut String, schema: &'v Value, depth: usize) {
        let Some(object) = schema.as_object().filter(|_| depth <= DEPTH_MAX) else {
            return;
        };
        if let Some(name) = definition(object)
            && self.seen.insert(name)
            && let Some(definition) = self.root.get("$defs").and_then(|all| all.get(name))
        {
            self.schema(place, definition, depth + 1);
        }
        for (name, field) in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            self.field(place, name, field, depth);
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            match object.get(keyword) {
                None | Some(Value::Bool(false)) => {}
                Some(Value::Bool(true)) => note(&mut self.found.undeclared, place),
                Some(rest) if rest.as_object().is_some_and(Object::is_empty) => {
                    note(&mut self.found.undeclared, place);
                }
                Some(rest) => self.schema(place, rest, depth + 1),
            }
        }
        if let Some(items) = object.get("items") {
            self.schema(place, items, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in object
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.schema(place, part, depth + 1);
            }
        }
    }
}

fn definition(object: &Object) -> Option<&str> {
    object.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn note(places: &mut Vec<String>, place: &str) {
    if places.len() < NAMED_MAX && !places.iter().any(|known| known == place) {
        places.push(place.to_owned());
    }
}

fn is_decisive(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect();
    DECISIVE.contains(&plain.as_str())
}

#[cfg(test)]
mod tests {
    use openapi::{Document, DocumentLimits, ToolOptions};

    use super::*;

    fn found(body: &str) -> (Vec<String>, Vec<String>) {
        let text = format!(
            "openapi: 3.1.0\ninfo: {{title: T, version: '1'}}\npaths:\n  /{{role}}: {{patch: {{operationId: x, parameters: \
             [{{name: role, in: path, required: true, schema: {{type: string}}}}], requestBody: {{content: {{application/json: \
             {{schema: {body}}}}}}}}}}}\ncomponents: {{schemas: {{User: {{type: object, properties: {{role: {{type: string}}, \
             boss: {{$ref: '#/components/schemas/User'}}, given: {{type: string}}}}}}}}}}\n"
        );
        let document = Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap();
        let operation = document.find("x").unwrap();
        let tool = document.tool(&operation, &ToolOptions::default()).unwrap();
        let found = settable(&tool.input_schema, &tool.plan);
        (found.decisive, found.undeclared)
    }

    #[test]
    fn a_decisive_field_of_the_body_is_named_and_a_parameter_or_a_read_only_field_is_not() {
        for (body, decisive, undeclared) in [
            (
                "{type: object, properties: {name: {type: string}, is_admin: {type: boolean}}}",
                vec!["is_admin"],
                vec![],
            ),
            (
                "{type: object, properties: {is_admin: {type: boolean, readOnly: true}}}",
                vec![],
                vec![],
            ),
            (
                "{type: object, properties: {user: {$ref: '#/components/schemas/User'}}}",
                vec!["user.role"],
                vec![],
            ),
            (
                "{type: array, items: {type: object, properties: {ownerId: {type: string}}}}",
                vec!["ownerId"],
                vec![],
            ),
            (
                "{type: object, properties: {meta: {type: object, additionalProperties: true}}}",
                vec![],
                vec!["meta"],
            ),
            (
                "{type: object, properties: {meta: {type: object, additionalProperties: {type: string}}}}",
                vec![],
                vec![],
            ),
            (
                "{oneOf: [{type: object, properties: {balance: {type: number}}}, {type: object, properties: {text: {type: string}}}]}",
                vec!["balance"],
                vec![],
            ),
        ] {
            assert_eq!(
                found(body),
                (
                    decisive.into_iter().map(str::to_owned).collect(),
                    undeclared.into_iter().map(str::to_owned).collect()
                ),
                "{body}"
            );
        }
    }

    #[test]
    fn fields_are_named_up_to_the_limit_and_not_past_it() {
        for (count, expected) in [(NAMED_MAX, NAMED_MAX), (NAMED_MAX + 1, NAMED_MAX)] {
            let fields: Vec<String> = (0..count)
                .map(|n| format!("f{n}: {{type: object, properties: {{role: {{type: string}}}}}}"))
                .collect();
            let body = format!("{{type: object, properties: {{{}}}}}", fields.join(", "));
            assert_eq!(found(&body).0.len(), expected);
        }
    }
}
