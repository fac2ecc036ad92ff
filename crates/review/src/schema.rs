//! The JSON Schema of the report as JSON, which is published in `docs/review.schema.json`. The members that other programs
//! rely on are spelled out; more can come, so that objects are open.

use model::Value;
use serde_json::json;

/// The schema, in JSON Schema 2020-12.
#[must_use]
pub fn schema() -> Value {
    let text = json!({"type": "string"});
    let maybe = json!({"type": ["string", "null"]});
    let count = json!({"type": "integer", "minimum": 0});
    let texts = json!({"type": "array", "items": text});
    let class = json!({"enum": ["read", "sensitive-read", "write", "destructive", null]});
    let counts = json!({"type": "object", "additionalProperties": count});
    let whole = |properties: Value| {
        let required: Vec<String> = properties
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys().cloned())
            .collect();
        json!({"type": "object", "required": required, "properties": properties})
    };
    let list = |items: Value| json!({"type": "array", "items": items});
    let severity = json!({"enum": ["error", "warning"]});
    let exclusion = json!({"enum": model::Exclusion::ALL.map(model::Exclusion::as_str)});
    let block = whole(
        json!({"code": text, "severity": severity, "pointer": text, "text": text, "clears": text, "owner": maybe}),
    );
    let approval = whole(json!({
        "what": text, "by": text, "because": text, "until": text, "for": texts, "holds": {"type": "boolean"},
    }));
    let evidence = whole(json!({
        "kind": text, "says": {"type": "object"}, "strength": {"enum": ["weak", "strong"]}, "pointer": text, "quote": text,
    }));
    let row = whole(json!({
        "name": text, "also": texts, "operation_id": maybe, "method": text, "path": text, "pointer": text,
        "status": {"enum": ["exposed", "excluded", "blocked", "unreviewed"]},
        "class": whole(json!({"declared": class, "inferred": class, "observed": class})),
        "exclusions": list(exclusion), "evidence": list(evidence), "approvals": list(approval),
        "bytes": count, "tokens": count, "description_bytes": count, "schema_bytes": count,
        "blockers": list(block), "notes": texts, "request": {"type": ["object", "null"]}, "text": maybe, "decisive": texts,
        "undeclared": texts, "pin": maybe,
        "seen_by": texts, "contract": text, "observed": maybe,
    }));
    let verdict = whole(json!({
        "ready": {"type": "boolean"}, "reasons": texts, "until": maybe, "digest": text, "document": text,
        "configuration": maybe, "catalogue": maybe, "policy": maybe, "build": text,
    }));
    let subject = whole(json!({
        "path": text, "title": maybe, "version": text, "bytes": count, "files": texts, "overlaid": count,
        "upstream": maybe, "contact": maybe, "unreadable": texts,
    }));
    let summary = whole(json!({
        "operations": count, "exposed": count, "excluded": count, "blocked": count, "unreviewed": count,
        "counted": {"type": ["integer", "null"], "minimum": 0}, "uncounted": maybe, "overlays": {"type": "integer"},
        "reconciles": {"type": "boolean"}, "declared": counts, "inferred": counts, "observed": counts, "exclusions": counts,
    }));
    let group = whole(json!({
        "code": text, "severity": severity, "owner": maybe, "due": maybe, "overdue": {"type": "boolean"}, "text": text, "clears": text, "count": count,
        "operations": texts, "pointers": texts,
    }));
    let reconciliation = whole(json!({
        "document": count, "catalogue": texts, "callers": list(whole(json!({"caller": text, "sees": texts}))),
        "unseen": texts, "strays": texts,
    }));
    let access = whole(json!({
        "operation": text, "own": {"type": "boolean"}, "alternatives": list(texts.clone()), "scopes": list(texts.clone()),
        "flags": texts, "concerns": texts,
    }));
    let place = whole(json!({
        "url": text, "role": {"enum": ["operations", "tokens"]}, "operations": count, "approved": {"type": "boolean"},
    }));
    let measure = json!({"type": ["object", "null"], "properties": {"tool": text, "bytes": count}});
    let budget = whole(json!({
        "tools": count, "bytes": count, "tokens": count, "bytes_max": count, "fits": {"type": "boolean"},
        "bytes_of_all": count, "longest_description": measure, "largest_schema": measure,
    }));
    let marked = whole(json!({
        "pointer": text, "text": text, "marks": list(whole(json!({"kind": text, "quote": text}))),
    }));
    let change = whole(json!({"kind": text, "operation": text, "detail": text, "revokes": texts}));
    let mut report = whole(json!({
        "format": {"const": "tollhouse/review/v1"}, "verdict": verdict, "subject": subject, "summary": summary,
        "tools": list(row), "blockers": list(group), "reconciliation": reconciliation, "access": list(access),
        "destinations": list(place), "budget": budget, "texts": list(marked), "texts_marked": count,
        "changes": {"anyOf": [{"type": "null"}, list(change)]},
    }));
    if let Some(object) = report.as_object_mut() {
        object.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        object.insert("title".to_owned(), json!("Readiness report of tollhouse review"));
    }
    report
}
