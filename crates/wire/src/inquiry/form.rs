//! Forms of elicitation: flat objects of primitives (ELIC-02), and whether a content is what one asks for.
//!
//! Only what the revisions let a form say is looked at; a keyword that none of them has decides nothing.

use model::{Object, Value};

/// Fields of one form.
const FIELDS_MAX: usize = 128;

/// Whether a form can be shown: an object whose fields are primitives, or arrays of choices.
pub(super) fn is_usable(schema: Option<&Value>) -> Result<(), String> {
    let fields = fields(schema).ok_or("`requestedSchema` is an object with `properties`")?;
    if fields.len() > FIELDS_MAX {
        return Err(format!("a form has at most {FIELDS_MAX} fields"));
    }
    for (name, field) in fields {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_known = match kind {
            "string" | "number" | "integer" | "boolean" => true,
            "array" => !choices(field.get("items")).is_empty(),
            _ => false,
        };
        if !is_known {
            let name: String = name.chars().take(64).collect();
            return Err(format!(
                "the field `{name}` of the form is of no kind that forms have"
            ));
        }
    }
    Ok(())
}

/// Whether a content fits the form.
///
/// # Errors
/// What does not fit, by the name of its field and without its value.
pub(super) fn fits(schema: Option<&Value>, content: &Value) -> Result<(), String> {
    let Value::Object(content) = content else {
        return Err("`content` is an object".to_owned());
    };
    let fields = fields(schema).ok_or("the form has no fields")?;
    let required = schema
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !content.contains_key(name) {
            return Err(format!("`content` lacks `{name}`"));
        }
    }
    for (name, value) in content {
        let Some(field) = fields.get(name) else {
            let name: String = name.chars().take(64).collect();
            return Err(format!("`content` has `{name}`, which the form does not ask for"));
        };
        if !is_of(field, value) {
            return Err(format!("`{name}` of `content` does not fit the form"));
        }
    }
    Ok(())
}

fn is_of(field: &Value, value: &Value) -> bool {
    let bound = |key: &str| field.get(key).and_then(Value::as_f64);
    let within = |number: f64, least: &str, most: &str| {
        bound(least).is_none_or(|least| number >= least) && bound(most).is_none_or(|most| number <= most)
    };
    let count = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
    let one_of = |of: Option<&Value>, value: &Value| {
        let choices = choices(of);
        choices.is_empty() || choices.contains(&value)
    };
    match (field.get("type").and_then(Value::as_str), value) {
        (Some("string"), Value::String(text)) => {
            within(count(text.chars().count()), "minLength", "maxLength") && one_of(Some(field), value)
        }
        (Some("integer"), Value::Number(number)) if number.as_f64().is_none_or(|n| n.fract() != 0.0) => false,
        (Some("integer" | "number"), Value::Number(number)) => number
            .as_f64()
            .is_some_and(|number| within(number, "minimum", "maximum")),
        (Some("boolean"), Value::Bool(_)) => true,
        (Some("array"), Value::Array(items)) => {
            within(count(items.len()), "minItems", "maxItems")
                && items
                    .iter()
                    .all(|item| item.is_string() && one_of(field.get("items"), item))
        }
        (_, _) => false,
    }
}

/// The choices of a field: `enum`, or the `const` of each of `oneOf` or `anyOf`.
fn choices(field: Option<&Value>) -> Vec<&Value> {
    let list = |key: &str| field.and_then(|field| field.get(key)).and_then(Value::as_array);
    let named = list("oneOf").or_else(|| list("anyOf"));
    match (list("enum"), named) {
        (Some(values), _) => values.iter().collect(),
        (None, Some(named)) => named.iter().filter_map(|choice| choice.get("const")).collect(),
        (None, None) => Vec::new(),
    }
}

/// Whether a field seems to ask for a secret, by its name or title.
pub(super) fn asks_for_a_secret(schema: Option<&Value>) -> bool {
    const WORDS: [&str; 7] = [
        "password", "passwd", "secret", "token", "api_key", "apikey", "cvv",
    ];
    let is_secret = |text: &str| {
        let text = text.to_ascii_lowercase().replace([' ', '-'], "_");
        WORDS.iter().any(|word| text.contains(word))
    };
    fields(schema).is_some_and(|fields| {
        fields.iter().any(|(name, field)| {
            is_secret(name) || field.get("title").and_then(Value::as_str).is_some_and(is_secret)
        })
    })
}

fn fields(schema: Option<&Value>) -> Option<&Object> {
    schema?.get("properties")?.as_object()
}
