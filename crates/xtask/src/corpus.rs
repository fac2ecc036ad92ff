//! What comes of every OpenAPI document in a folder, counted: what is read, what is blocked and why, and what must never be.
//!
//! The counters are dumb on purpose and do not ask the room that made the tools: parameters are read from the raw document
//! again, references of schemas are looked up by hand, and a request is built for every tool from arguments that a
//! validator took. The folder is the reader's own; nothing of it is part of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use openapi::{
    Absent, Document, DocumentFault, DocumentLimits, Generated, NameLock, Nesting, NoteKind, OperationRef,
    Reading, Sources, TOOL_NAME_BYTES_MAX, ToolOptions, json_length, tool_names, valid_arguments,
};
use serde_json::{Map, Value};

/// What every name has before it: names are counted as they would be served.
const PREFIX: &str = "corpus_";
/// Places of one kind that are told one by one.
const TOLD_MAX: usize = 20;
/// Folders inside each other.
const DEPTH_MAX: usize = 16;

/// What is counted beside the documents themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice {
    /// How values inside of `deepObject` are written; without it they block.
    pub nesting: Nesting,
    /// The budget of each input schema, in bytes; without it, the usual one.
    pub input_bytes_max: Option<usize>,
    /// The budget of each output schema, in bytes.
    pub output_bytes_max: Option<usize>,
}

/// What was found in one document.
#[derive(Debug, Default)]
struct Found {
    version: String,
    operations: usize,
    tools: usize,
    list_bytes: usize,
    /// Operations by the cause of their first blocker.
    blocked: BTreeMap<String, usize>,
    requests: usize,
    /// Tools for which no arguments were found that their schema takes.
    untried: Vec<String>,
    /// What must never be, by its kind.
    broken: BTreeMap<&'static str, Vec<String>>,
}

/// What must never be.
const NAME: &str = "names that are too long or no names";
const REFERENCE: &str = "references of produced schemas that name nothing";
const SCHEMA: &str = "produced schemas that are no JSON Schema 2020-12";
const REQUEST: &str = "tools whose valid arguments make no request";
const PARAMETER: &str = "parameters that are in no request and in no note";
const BODY: &str = "bodies that are in no request and in no note";
const KINDS: [&str; 6] = [NAME, REFERENCE, SCHEMA, REQUEST, PARAMETER, BODY];

/// Counts what comes of the documents of a folder and of its folders, and gives the tables as Markdown.
///
/// # Errors
/// Where the folder cannot be read, holds no document, or holds one of which something comes that must never be.
pub fn corpus(folder: &Path, choice: Choice) -> Result<String> {
    let mut files = Vec::new();
    walk(folder, 0, &mut files)?;
    files.sort();
    let mut documents: Vec<(String, Found)> = Vec::new();
    let mut refused: Vec<(String, DocumentFault)> = Vec::new();
    for file in &files {
        let path = file.strip_prefix(folder)?.to_string_lossy().into_owned();
        let bytes = fs::read(file).with_context(|| format!("`{path}` cannot be read"))?;
        let sources = Folder(folder);
        let reading = Reading {
            limits: DocumentLimits::default(),
            path: &path,
            sources: &sources,
            overlays: &[],
        };
        match Document::read_with(&bytes, &reading) {
            Ok(document) => {
                eprintln!("{path}");
                documents.push((path, count(&document, choice)));
            }
            // Another file of a document, or something else altogether.
            Err(DocumentFault::NoVersion) => {}
            Err(fault) => refused.push((path, fault)),
        }
    }
    if documents.is_empty() {
        bail!("`{}` holds no OpenAPI document in JSON or YAML", folder.display());
    }
    let page = page(&documents, &refused);
    let broken = documents.iter().any(|(_, found)| !found.broken.is_empty());
    if broken || !refused.is_empty() {
        bail!("{page}\nsomething came of these documents that must never be");
    }
    Ok(page)
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("`{}` cannot be read", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        let ends = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        if kind.is_dir() {
            walk(&path, depth + 1, files)?;
        } else if kind.is_file() && ["json", "yaml", "yml"].contains(&ends) {
            files.push(path);
        }
    }
    Ok(())
}

/// The other files of a split document.
struct Folder<'f>(&'f Path);

impl Sources for Folder<'_> {
    fn file(&self, path: &str) -> Result<Vec<u8>, Absent> {
        fs::read(self.0.join(path)).map_err(|error| Absent {
            text: format!("`{path}` cannot be read: {}", error.kind()),
            clears: "add the file".to_owned(),
        })
    }
}

// === counting ===

fn count(document: &Document, choice: Choice) -> Found {
    let operations: Vec<OperationRef> = document.operations().collect();
    let mut found = Found {
        version: document.version().to_owned(),
        operations: operations.len(),
        list_bytes: 2,
        ..Found::default()
    };
    let usual = ToolOptions::default();
    let options = ToolOptions {
        nesting: choice.nesting,
        input_bytes_max: choice.input_bytes_max.unwrap_or(usual.input_bytes_max),
        output_bytes_max: choice.output_bytes_max.unwrap_or(usual.output_bytes_max),
        ..usual
    };
    match tool_names(&operations, PREFIX, &NameLock::default()) {
        Ok(names) => {
            let all: BTreeSet<&str> = names.iter().map(|name| name.name.as_str()).collect();
            for name in &all {
                if name.len() > TOOL_NAME_BYTES_MAX || !openapi::is_tool_name(name) {
                    found.broken(NAME, (*name).to_owned());
                }
            }
            if all.len() != operations.len() {
                found.broken(
                    NAME,
                    format!("{} names for {} operations", all.len(), operations.len()),
                );
            }
        }
        Err(fault) => found.broken(NAME, fault.to_string()),
    }
    for operation in &operations {
        match document.tool(operation, &options) {
            Ok(tool) => look(document, operation, &tool, &mut found),
            Err(blockers) => {
                let cause = blockers
                    .first()
                    .map(|blocker| blocker.cause.as_str())
                    .unwrap_or("none");
                *found.blocked.entry(cause.to_owned()).or_default() += 1;
            }
        }
    }
    found
}

impl Found {
    fn broken(&mut self, kind: &'static str, what: String) {
        self.broken.entry(kind).or_default().push(what);
    }
}

fn look(document: &Document, operation: &OperationRef, tool: &Generated, found: &mut Found) {
    found.tools += 1;
    let words = serde_json::json!({"name": "", "title": tool.title, "description": tool.description});
    // The longest name that it may have, and the keys of both schemas.
    found.list_bytes += json_length(&words) + TOOL_NAME_BYTES_MAX + tool.schema_bytes + 32;
    let key = operation.key().to_string();
    for schema in std::iter::once(&tool.input_schema).chain(&tool.output_schema) {
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            found.broken(SCHEMA, format!("{key}: {error}"));
        }
        for reference in dangling(schema) {
            found.broken(REFERENCE, format!("{key}: {reference}"));
        }
    }
    // An empty list or object has no form in some places; what counts is that some valid arguments make a request.
    let mut fault = None;
    let built = valid_arguments(&tool.input_schema, &mut |arguments| match tool
        .plan
        .build(arguments, &Map::new())
    {
        Ok(_) => true,
        Err(why) => {
            fault = Some(why);
            false
        }
    });
    match (built, fault) {
        (Some(_), _) => found.requests += 1,
        (None, Some(fault)) => found.broken(REQUEST, format!("{key}: {fault}")),
        (None, None) => found.untried.push(key.clone()),
    }
    let written: BTreeSet<(String, String)> = tool
        .plan
        .parameters()
        .map(|(place, name)| (place.to_owned(), folded(place, name)))
        .collect();
    for parameter in parameters(document.raw(), operation) {
        let is_noted = tool.notes.iter().any(|note| {
            note.text.contains(&format!("`{}`", parameter.name))
                || note.kind == NoteKind::SchemaReferenceLeftOut
                    && note.pointer.starts_with(&document.origin(&parameter.pointer))
        });
        let place = (parameter.place.clone(), folded(&parameter.place, &parameter.name));
        if !written.contains(&place) && !is_noted {
            found.broken(
                PARAMETER,
                format!("{key}: {} `{}`", parameter.place, parameter.name),
            );
        }
    }
    let raw = document
        .raw()
        .pointer(operation.pointer().trim_start_matches('#'));
    let has_body = raw.is_some_and(|raw| raw.get("requestBody").is_some());
    let is_noted = || tool.notes.iter().any(|note| note.kind == NoteKind::BodyIgnored);
    if has_body && !tool.plan.has_body() && !is_noted() {
        found.broken(BODY, key);
    }
}

/// Names of headers have no case.
fn folded(place: &str, name: &str) -> String {
    match place {
        "header" => name.to_ascii_lowercase(),
        _ => name.to_owned(),
    }
}

/// References in a schema that name nothing in it. Under `properties` a key is a name and no keyword.
fn dangling(schema: &Value) -> Vec<String> {
    let mut dangling = Vec::new();
    let mut open = vec![(schema, false)];
    while let Some((value, is_named)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, false))),
            Value::Object(object) => {
                if !is_named && let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                    let target = reference
                        .strip_prefix('#')
                        .and_then(|place| schema.pointer(place));
                    if target.is_none() {
                        dangling.push(reference.to_owned());
                    }
                }
                for (key, value) in object {
                    // What values are is no schema.
                    if is_named || !["const", "enum", "default", "examples"].contains(&key.as_str()) {
                        open.push((
                            value,
                            !is_named && ["properties", "$defs"].contains(&key.as_str()),
                        ));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    dangling
}

struct RawParameter {
    pointer: String,
    place: String,
    name: String,
}

/// The parameters of an operation as they are written: its own, and those of its path.
fn parameters(root: &Value, operation: &OperationRef) -> Vec<RawParameter> {
    let own = operation.pointer().trim_start_matches('#').to_owned();
    let path = format!(
        "/paths/{}",
        operation.path().replace('~', "~0").replace('/', "~1")
    );
    let around = own.rsplit_once('/').map_or("", |(around, _)| around).to_owned();
    let mut places = vec![own, around, path];
    places.dedup();
    let mut found = Vec::new();
    for place in places {
        let Some((place, item)) = followed(root, &place) else {
            continue;
        };
        let list = item.get("parameters").and_then(Value::as_array);
        for index in 0..list.map_or(0, Vec::len) {
            let Some((pointer, parameter)) = followed(root, &format!("{place}/parameters/{index}")) else {
                continue;
            };
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).map(str::to_owned);
            if let (Some(name), Some(place)) = (text("name"), text("in")) {
                let pointer = format!("#{pointer}");
                found.push(RawParameter { pointer, place, name });
            }
        }
    }
    found
}

/// What stands at a place, and where it really stands where that is a reference.
fn followed<'v>(root: &'v Value, place: &str) -> Option<(String, &'v Value)> {
    let mut place = place.to_owned();
    for _ in 0..32 {
        let value = root.pointer(&place)?;
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => place = percent_decoded(reference.strip_prefix('#')?)?,
            None => return Some((place, value)),
        }
    }
    None
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

// === the page ===

fn page(documents: &[(String, Found)], refused: &[(String, DocumentFault)]) -> String {
    let mut page =
        "| document | version | operations | tools | blocked | list, bytes |\n|---|---|--:|--:|--:|--:|\n"
            .to_owned();
    let all = |of: &dyn Fn(&Found) -> usize| documents.iter().map(|(_, found)| of(found)).sum::<usize>();
    let blocked = |found: &Found| found.blocked.values().sum::<usize>();
    // Writing to a String cannot fail, here and below.
    for (path, found) in documents {
        let _ = writeln!(
            page,
            "| {path} | {} | {} | {} | {} | {} |",
            found.version,
            found.operations,
            found.tools,
            blocked(found),
            found.list_bytes
        );
    }
    let operations = all(&|found| found.operations);
    let held = all(&blocked);
    let _ = writeln!(
        page,
        "| all {} | | {operations} | {} | {held} ({}) | {} |\n",
        documents.len(),
        all(&|found| found.tools),
        share(held, operations),
        all(&|found| found.list_bytes)
    );
    page.push_str("| blocked by | operations | in |\n|---|--:|---|\n");
    let mut causes: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (path, found) in documents {
        for (cause, count) in &found.blocked {
            causes.entry(cause).or_default().push((*count, path));
        }
    }
    for (cause, places) in causes {
        let total: usize = places.iter().map(|(count, _)| count).sum();
        let places: Vec<String> = places
            .iter()
            .map(|(count, path)| format!("{count} {path}"))
            .collect();
        let _ = writeln!(page, "| {cause} | {total} | {} |", places.join(", "));
    }
    page.push_str("\n| what must never be | found |\n|---|--:|\n");
    let _ = writeln!(page, "| documents that were refused | {} |", refused.len());
    for kind in KINDS {
        let count = all(&|found| found.broken.get(kind).map_or(0, Vec::len));
        let _ = writeln!(page, "| {kind} | {count} |");
    }
    let _ = writeln!(
        page,
        "\n{} requests were built from arguments that the schema of their tool takes; for {} tools no such arguments were found.",
        all(&|found| found.requests),
        all(&|found| found.untried.len())
    );
    for (path, fault) in refused {
        let _ = writeln!(page, "refused: {path}: {fault}");
    }
    for (path, found) in documents {
        for (kind, places) in &found.broken {
            for place in places.iter().take(TOLD_MAX) {
                let _ = writeln!(page, "{kind}: {path}: {place}");
            }
        }
        for key in found.untried.iter().take(TOLD_MAX) {
            let _ = writeln!(page, "no arguments found: {path}: {key}");
        }
    }
    page
}

/// A share in per cent, with two places.
fn share(part: usize, whole: usize) -> String {
    let hundredths = (part * 20_000 / whole.max(1)).div_ceil(2);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    const SOUND: &str = "openapi: 3.1.0\npaths:\n  /a/{id}:\n    parameters: [{$ref: 'parts/p.yaml#/Id'}]\n    get: {parameters: [{name: Authorization, in: header, schema: {type: string}}]}\n    trace: {}\n";
    const PART: &str = "Id: {name: id, in: path, required: true, schema: {type: string, minLength: 3}}\n";

    #[test]
    fn a_folder_is_counted_with_its_other_files_and_causes() {
        let folder = folder(&[("api.yaml", SOUND), ("parts/p.yaml", PART), ("note.txt", "x")]);
        let page = corpus(folder.path(), Choice::default()).unwrap();
        for line in [
            "| all 1 | | 2 | 1 | 1 (50.00 %) |",
            "| operation.method-unsupported | 1 | 1 api.yaml |",
            "| parameters that are in no request and in no note | 0 |",
            "1 requests were built",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn a_document_that_is_refused_and_a_folder_without_one_are_faults() {
        let refused = folder(&[
            ("api.yaml", SOUND),
            ("bad.yaml", "openapi: 3.1.0\nopenapi: 3.1.0\n"),
        ]);
        let fault = corpus(refused.path(), Choice::default()).unwrap_err().to_string();
        assert!(fault.contains("| documents that were refused | 1 |"), "{fault}");
        assert!(fault.contains("refused: bad.yaml"), "{fault}");
        let none = folder(&[("note.yaml", "a: 1\n")]);
        assert!(corpus(none.path(), Choice::default()).is_err());
    }

    #[test]
    fn what_must_never_be_is_found_by_the_dumb_counters() {
        let schema = serde_json::json!({"properties": {"$ref": {"$ref": "#/$defs/Gone"}}, "enum": [{"$ref": "#/none"}]});
        assert_eq!(dangling(&schema), ["#/$defs/Gone"]);
        // A tool without the parameters of its document: as if they were dropped without a word.
        let read = |text: &str| Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap();
        let with = read(
            "openapi: 3.1.0\npaths:\n  /a: {get: {parameters: [{name: q, in: query, schema: {type: string}}]}, post: {requestBody: {content: {text/plain: {}}}}}\n",
        );
        let without = read("openapi: 3.1.0\npaths:\n  /a: {get: {}, post: {}}\n");
        let mut found = Found::default();
        for key in ["GET /a", "POST /a"] {
            let tool = without
                .tool(&without.find(key).unwrap(), &ToolOptions::default())
                .unwrap();
            look(&with, &with.find(key).unwrap(), &tool, &mut found);
        }
        assert_eq!(found.broken[PARAMETER], ["GET /a: query `q`"]);
        assert_eq!(found.broken[BODY], ["POST /a"]);
    }

    #[test]
    fn a_share_is_rounded_to_hundredths_of_a_per_cent() {
        for (part, whole, text) in [
            (0, 0, "0.00 %"),
            (1, 3, "33.33 %"),
            (2, 3, "66.67 %"),
            (127, 20_738, "0.61 %"),
        ] {
            assert_eq!(share(part, whole), text);
        }
    }
}
