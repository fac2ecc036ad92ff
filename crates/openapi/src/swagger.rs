//! A document of Swagger 2.0 as the 3.0 view that the rest of this room reads, with a trace to what was written.
//!
//! It moves and renames; it judges nothing. What has no meaning in 2.0 is carried over as it is, so that whoever
//! reads the view later makes a finding of it. Source: OpenAPI 2.0; OpenAPI 3.0.4 for what it becomes.

use model::{Object, Value};
use serde_json::json;

use crate::operation::Method;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver, reference_of};
use crate::trace::Trace;

/// Media types of one operation that are carried over. A body is sent in one of them.
const MEDIA_TYPES_MAX: usize = 16;

/// The view and its trace; `None` where what references repeat adds up to more than `nodes_max` values.
pub(crate) fn upgrade(old: &Value, nodes_max: usize) -> Option<(Value, Trace)> {
    let mut upgrade = Upgrade {
        old: Resolver::new(old),
        trace: Trace::default(),
        left: nodes_max,
        consumes: names(old.get("consumes")),
        produces: names(old.get("produces")),
    };
    let mut new = upgrade.root(old.as_object()?)?;
    if upgrade.left == 0 {
        return None;
    }
    follow_moves(&mut new, &upgrade.trace);
    Some((new, upgrade.trace))
}

struct Upgrade<'d> {
    old: Resolver<'d>,
    trace: Trace,
    /// Values that may still be copied: one definition can be referred to a million times.
    left: usize,
    consumes: Vec<String>,
    produces: Vec<String>,
}

/// The parameters of an operation by what they become.
#[derive(Default)]
struct Sorted<'d> {
    /// Stay parameters, with their old places; already converted.
    kept: Vec<(Value, String)>,
    body: Option<Located<'d>>,
    form: Vec<Located<'d>>,
}

impl<'d> Upgrade<'d> {
    fn root(&mut self, old: &'d Object) -> Option<Value> {
        let root = Pointer::root();
        let mut new = Object::new();
        let mut components = Object::new();
        for (key, value) in old {
            let place = root.child(key);
            match key.as_str() {
                "host" | "basePath" | "schemes" | "consumes" | "produces" => {}
                "definitions" => {
                    let to = root.child("components").child("schemas");
                    self.trace.moved(&to, place.as_str());
                    components.insert("schemas".to_owned(), self.each(value, Self::schema));
                }
                "parameters" => {
                    let to = root.child("components").child("parameters");
                    self.trace.moved(&to, place.as_str());
                    let parameters = self.shared_parameters(value, &place, &to);
                    components.insert("parameters".to_owned(), parameters);
                }
                "responses" => {
                    let to = root.child("components").child("responses");
                    self.trace.moved(&to, place.as_str());
                    let produces = self.produces.clone();
                    let responses = self.responses(value, &produces, &place, &to);
                    components.insert("responses".to_owned(), responses);
                }
                "securityDefinitions" => {
                    let to = root.child("components").child("securitySchemes");
                    self.trace.moved(&to, place.as_str());
                    components.insert("securitySchemes".to_owned(), self.each(value, Self::scheme));
                }
                "paths" => {
                    let paths = self.paths(value, &place);
                    new.insert(key.clone(), paths);
                }
                _ => {
                    let copy = self.copy(value);
                    new.insert(key.clone(), copy);
                }
            }
        }
        let servers = servers(old, old.get("schemes"));
        if !servers.is_empty() {
            self.trace.moved(&root.child("servers"), "#/host");
            new.insert("servers".to_owned(), Value::Array(servers));
        }
        new.insert("components".to_owned(), Value::Object(components));
        Some(Value::Object(new))
    }

    fn paths(&mut self, paths: &'d Value, place: &Pointer) -> Value {
        let Some(paths) = paths.as_object() else {
            return self.copy(paths);
        };
        let mut new = Object::new();
        for (path, item) in paths {
            let place = place.child(path);
            let item = match item.as_object() {
                Some(object) if !path.starts_with("x-") => self.path_item(object, &place),
                _ => self.copy(item),
            };
            new.insert(path.clone(), item);
        }
        Value::Object(new)
    }

    fn path_item(&mut self, item: &'d Object, place: &Pointer) -> Value {
        let shared = self.sort(item.get("parameters"), &place.child("parameters"));
        let mut new = Object::new();
        for (key, value) in item {
            let here = place.child(key);
            let value = match (key.as_str(), value.as_object()) {
                ("parameters", _) => match value.as_array() {
                    Some(_) => self.list(&shared, &here),
                    None => self.copy(value),
                },
                (_, Some(operation)) if Method::of_version_2(key) => {
                    self.operation(operation, &here, &shared)
                }
                _ => self.copy(value),
            };
            new.insert(key.clone(), value);
        }
        Value::Object(new)
    }

    fn operation(&mut self, operation: &'d Object, place: &Pointer, shared: &Sorted<'d>) -> Value {
        let own = self.sort(operation.get("parameters"), &place.child("parameters"));
        let consumes = own_or(operation.get("consumes"), &self.consumes);
        let produces = own_or(operation.get("produces"), &self.produces);
        let mut new = Object::new();
        for (key, value) in operation {
            let here = place.child(key);
            let value = match key.as_str() {
                "consumes" | "produces" | "schemes" | "requestBody" => continue,
                "parameters" => match value.as_array() {
                    Some(_) => self.list(&own, &here),
                    None => self.copy(value),
                },
                "responses" => self.responses(value, &produces, &here, &here),
                _ => self.copy(value),
            };
            new.insert(key.clone(), value);
        }
        if let Some(schemes) = operation.get("schemes") {
            let root = self.old.root().as_object();
            let servers = root.map(|root| servers(root, Some(schemes))).unwrap_or_default();
            self.trace
                .moved(&place.child("servers"), place.child("schemes").as_str());
            new.insert("servers".to_owned(), Value::Array(servers));
        }
        let here = place.child("requestBody");
        let form = merged(&own.form, &shared.form);
        let body = match own.body.as_ref().or(shared.body.as_ref()) {
            Some(body) => Some(self.body(body, &consumes, &here)),
            None if form.is_empty() => None,
            None => Some(self.form(&form, &consumes, &here)),
        };
        if let Some(body) = body {
            new.insert("requestBody".to_owned(), body);
        }
        Value::Object(new)
    }

    // === parameters ===

    fn sort(&mut self, list: Option<&'d Value>, place: &Pointer) -> Sorted<'d> {
        let mut sorted = Sorted::default();
        for (index, value) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let start = Located {
                pointer: place.item(index),
                value,
            };
            let Ok(found) = self.old.follow(start.clone()) else {
                // It leads nowhere; whoever reads the view will say so.
                let copy = self.copy(value);
                sorted.kept.push((copy, start.pointer.to_string()));
                continue;
            };
            match found.value.get("in").and_then(Value::as_str) {
                Some("body") if sorted.body.is_none() => sorted.body = Some(found),
                Some("formData") => sorted.form.push(found),
                _ => {
                    let is_shared = reference_of(value).is_some_and(|reference| {
                        reference.starts_with("#/parameters/") && reference.matches('/').count() == 2
                    });
                    let kept = if is_shared {
                        (self.copy(value), start.pointer.to_string())
                    } else {
                        (self.parameter(found.value), found.pointer.to_string())
                    };
                    sorted.kept.push(kept);
                }
            }
        }
        sorted
    }

    /// The parameters that stay, with their traces.
    fn list(&mut self, sorted: &Sorted<'_>, place: &Pointer) -> Value {
        let mut list = Vec::with_capacity(sorted.kept.len());
        for (index, (value, old)) in sorted.kept.iter().enumerate() {
            self.trace_parameter(&place.item(index), old);
            list.push(value.clone());
        }
        Value::Array(list)
    }

    fn trace_parameter(&mut self, new: &Pointer, old: &str) {
        self.trace.moved(new, old);
        // `type` and its like move one step down.
        self.trace.moved(&new.child("schema"), old);
    }

    fn shared_parameters(&mut self, value: &'d Value, place: &Pointer, to: &Pointer) -> Value {
        let Some(parameters) = value.as_object() else {
            return self.copy(value);
        };
        let mut new = Object::new();
        for (name, value) in parameters {
            let is_body = matches!(value.get("in").and_then(Value::as_str), Some("body" | "formData"));
            if is_body {
                continue;
            }
            self.trace_parameter(&to.child(name), place.child(name).as_str());
            let parameter = self.parameter(value);
            new.insert(name.clone(), parameter);
        }
        Value::Object(new)
    }

    /// A parameter whose type stands beside its name, as one with a schema.
    fn parameter(&mut self, old: &'d Value) -> Value {
        let Some(object) = old.as_object() else {
            return self.copy(old);
        };
        let mut new = Object::new();
        let mut schema = Object::new();
        for (key, value) in object {
            match key.as_str() {
                "collectionFormat" => {}
                "schema" => new.extend([(key.clone(), self.schema(value))]),
                "name" | "in" | "description" | "required" | "allowEmptyValue" | "deprecated" | "$ref" => {
                    new.extend([(key.clone(), self.copy(value))]);
                }
                "x-nullable" => schema.extend([("nullable".to_owned(), self.copy(value))]),
                key if key.starts_with("x-") => new.extend([(key.to_owned(), self.copy(value))]),
                _ => schema.extend([(key.clone(), self.copy(value))]),
            }
        }
        let is_list = object.get("type").and_then(Value::as_str) == Some("array");
        if is_list && !new.contains_key("$ref") {
            let place = object.get("in").and_then(Value::as_str).unwrap_or_default();
            let (style, explode) = collection(object, place == "query");
            new.insert("style".to_owned(), Value::from(style));
            new.insert("explode".to_owned(), Value::Bool(explode));
        }
        if !schema.is_empty() && !new.contains_key("schema") {
            let schema = self.schema_object(&schema);
            new.insert("schema".to_owned(), schema);
        }
        Value::Object(new)
    }

    // === bodies and answers ===

    fn body(&mut self, body: &Located<'d>, consumes: &[String], place: &Pointer) -> Value {
        self.trace.moved(place, body.pointer.as_str());
        let mut content = Object::new();
        for media in or_json(consumes) {
            let mut here = Object::new();
            if let Some(schema) = body.value.get("schema") {
                let new = place.child("content").child(&media).child("schema");
                self.trace.moved(&new, body.pointer.child("schema").as_str());
                here.insert("schema".to_owned(), self.schema(schema));
            }
            content.insert(media, Value::Object(here));
        }
        let mut new = Object::new();
        for key in ["description", "required"] {
            if let Some(value) = body.value.get(key) {
                new.insert(key.to_owned(), self.copy(value));
            }
        }
        new.insert("content".to_owned(), Value::Object(content));
        Value::Object(new)
    }

    fn form(&mut self, fields: &[Located<'d>], consumes: &[String], place: &Pointer) -> Value {
        const URLENCODED: &str = "application/x-www-form-urlencoded";
        const MULTIPART: &str = "multipart/form-data";
        let is = |field: &Located<'_>, key: &str, value: &Value| field.value.get(key) == Some(value);
        let has_file = fields.iter().any(|field| is(field, "type", &json!("file")));
        let takes = |media: &str| {
            consumes
                .iter()
                .any(|consumed| consumed.trim().to_ascii_lowercase().starts_with(media))
        };
        let media = if has_file || takes(MULTIPART) && !takes(URLENCODED) {
            MULTIPART
        } else {
            URLENCODED
        };
        let here = place.child("content").child(media);
        let mut properties = Object::new();
        let mut required = Vec::new();
        let mut encoding = Object::new();
        if let Some(first) = fields.first() {
            self.trace.moved(place, first.pointer.as_str());
        }
        for field in fields {
            let Some(name) = field.value.get("name").and_then(Value::as_str) else {
                continue;
            };
            let new = here.child("schema").child("properties").child(name);
            self.trace.moved(&new, field.pointer.as_str());
            let parameter = self.parameter(field.value);
            let mut schema = parameter.get("schema").cloned().unwrap_or_else(|| json!({}));
            if let Some(schema) = schema.as_object_mut()
                && let Some(description) = field.value.get("description")
            {
                schema.insert("description".to_owned(), description.clone());
            }
            if is(field, "type", &json!("array"))
                && let Some(object) = field.value.as_object()
            {
                let (style, explode) = collection(object, true);
                encoding.insert(name.to_owned(), json!({"style": style, "explode": explode}));
            }
            if is(field, "required", &Value::Bool(true)) {
                required.push(Value::from(name));
            }
            properties.insert(name.to_owned(), schema);
        }
        let is_required = !required.is_empty();
        let mut schema = Object::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if is_required {
            schema.insert("required".to_owned(), Value::Array(required));
        }
        json!({"required": is_required, "content": {media: {"schema": schema, "encoding": encoding}}})
    }

    fn responses(&mut self, value: &'d Value, produces: &[String], old: &Pointer, new: &Pointer) -> Value {
        let Some(responses) = value.as_object() else {
            return self.copy(value);
        };
        let mut converted = Object::new();
        for (status, response) in responses {
            let response = match response.as_object() {
                Some(object) if !object.contains_key("$ref") => {
                    self.response(object, produces, &old.child(status), &new.child(status))
                }
                _ => self.copy(response),
            };
            converted.insert(status.clone(), response);
        }
        Value::Object(converted)
    }

    fn response(&mut self, response: &'d Object, produces: &[String], old: &Pointer, new: &Pointer) -> Value {
        let mut converted = Object::new();
        for (key, value) in response {
            match key.as_str() {
                "examples" => {}
                "schema" => {
                    let mut content = Object::new();
                    for media in or_json(produces) {
                        let here = new.child("content").child(&media).child("schema");
                        self.trace.moved(&here, old.child("schema").as_str());
                        let schema = self.schema(value);
                        content.insert(media, json!({ "schema": schema }));
                    }
                    converted.insert("content".to_owned(), Value::Object(content));
                }
                _ => converted.extend([(key.clone(), self.copy(value))]),
            }
        }
        Value::Object(converted)
    }

    // === schemas ===

    fn schema(&mut self, schema: &Value) -> Value {
        match schema.as_object() {
            Some(object) => self.schema_object(object),
            None => self.copy(schema),
        }
    }

    fn schema_object(&mut self, object: &Object) -> Value {
        self.count();
        let mut new = Object::new();
        let is_file = object.get("type").and_then(Value::as_str) == Some("file");
        for (key, value) in object {
            match key.as_str() {
                "x-nullable" | "collectionFormat" => {}
                "properties" | "patternProperties" => {
                    new.extend([(key.clone(), self.each(value, Self::schema))]);
                }
                "allOf" | "anyOf" | "oneOf" | "items" => {
                    let converted = match value.as_array() {
                        Some(list) => list.iter().map(|schema| self.schema(schema)).collect(),
                        None => self.schema(value),
                    };
                    new.insert(key.clone(), converted);
                }
                "additionalProperties" | "not" => new.extend([(key.clone(), self.schema(value))]),
                // The value of the field names the definition; there is no mapping.
                "discriminator" if value.is_string() => {
                    new.insert(key.clone(), json!({ "propertyName": value }));
                }
                "type" if is_file => {
                    new.insert(key.clone(), Value::from("string"));
                    new.insert("format".to_owned(), Value::from("binary"));
                }
                "format" if is_file => {}
                _ => new.extend([(key.clone(), self.copy(value))]),
            }
        }
        if let Some(nullable) = object.get("x-nullable") {
            new.insert("nullable".to_owned(), nullable.clone());
        }
        Value::Object(new)
    }

    fn scheme(&mut self, scheme: &Value) -> Value {
        let mut new = self.copy(scheme);
        let Some(object) = new.as_object_mut() else {
            return new;
        };
        match object.get("type").and_then(Value::as_str) {
            Some("basic") => {
                object.insert("type".to_owned(), Value::from("http"));
                object.insert("scheme".to_owned(), Value::from("basic"));
            }
            Some("oauth2") => {
                let flow = match object.get("flow").and_then(Value::as_str) {
                    Some("application") => "clientCredentials",
                    Some("accessCode") => "authorizationCode",
                    Some(other) => other,
                    None => return new,
                }
                .to_owned();
                let described: Object = ["authorizationUrl", "tokenUrl", "scopes"]
                    .iter()
                    .filter_map(|key| object.get(*key).map(|value| ((*key).to_owned(), value.clone())))
                    .collect();
                object.insert("flows".to_owned(), json!({ flow: described }));
            }
            _ => {}
        }
        new
    }

    // === copies ===

    fn each(&mut self, value: &Value, convert: fn(&mut Self, &Value) -> Value) -> Value {
        match value.as_object() {
            Some(object) => object
                .iter()
                .map(|(key, value)| (key.clone(), convert(self, value)))
                .collect(),
            None => self.copy(value),
        }
    }

    fn copy(&mut self, value: &Value) -> Value {
        self.count();
        if self.left == 0 {
            return Value::Null;
        }
        match value {
            Value::Array(items) => items.iter().map(|item| self.copy(item)).collect(),
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| (key.clone(), self.copy(value)))
                .collect(),
            single => single.clone(),
        }
    }

    fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// Lets every reference name the place where its target is now.
fn follow_moves(value: &mut Value, trace: &Trace) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| follow_moves(item, trace)),
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(text) if key == "$ref" => {
                        if let Some(old) = text.strip_prefix('#').and_then(Pointer::parse) {
                            let new = trace.after(old.as_str());
                            if new != old.as_str() {
                                *text = fragment(&new);
                            }
                        }
                    }
                    value => follow_moves(value, trace),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A pointer as a reference writes it: a `%` in a key would else be read as an escape.
pub(crate) fn fragment(pointer: &str) -> String {
    pointer.replace('%', "%25")
}

/// The style of a list. What 3.0 has no name for keeps its own, which nothing offers.
fn collection(parameter: &Object, may_repeat: bool) -> (&str, bool) {
    match parameter.get("collectionFormat").and_then(Value::as_str) {
        None | Some("csv") if may_repeat => ("form", false),
        None | Some("csv") => ("simple", false),
        Some("multi") if may_repeat => ("form", true),
        Some("ssv") if may_repeat => ("spaceDelimited", false),
        Some("pipes") if may_repeat => ("pipeDelimited", false),
        Some(other) => (other, false),
    }
}

fn names(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(MEDIA_TYPES_MAX)
        .map(str::to_owned)
        .collect()
}

fn own_or(own: Option<&Value>, shared: &[String]) -> Vec<String> {
    match own {
        Some(_) => names(own),
        None => shared.to_vec(),
    }
}

fn or_json(media: &[String]) -> Vec<String> {
    if media.is_empty() {
        vec!["application/json".to_owned()]
    } else {
        media.to_vec()
    }
}

/// The operation's fields, and those of the path that it does not replace.
fn merged<'d>(own: &[Located<'d>], shared: &[Located<'d>]) -> Vec<Located<'d>> {
    let mut all = own.to_vec();
    for field in shared {
        if !own
            .iter()
            .any(|other| other.value.get("name") == field.value.get("name"))
        {
            all.push(field.clone());
        }
    }
    all
}

fn servers(root: &Object, schemes: Option<&Value>) -> Vec<Value> {
    let text = |key: &str| root.get(key).and_then(Value::as_str);
    let base = text("basePath").unwrap_or_default().trim_end_matches('/');
    let Some(host) = text("host") else {
        return if base.is_empty() {
            Vec::new()
        } else {
            vec![json!({ "url": base })]
        };
    };
    let schemes = names(schemes);
    if schemes.is_empty() {
        return vec![json!({"url": format!("//{host}{base}")})];
    }
    schemes
        .iter()
        .map(|scheme| json!({"url": format!("{scheme}://{host}{base}")}))
        .collect()
}
