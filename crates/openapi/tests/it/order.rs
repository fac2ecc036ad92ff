//! What is converted once for a document and copied for each tool: no tool depends on which was made before it.

use openapi::{Document, DocumentLimits, Generated, ToolOptions};

/// Schemas that meet in several ways: closed, as a part, as a condition, in inputs and answers, too large for some tools,
/// with patterns, cycles, a choice, hidden fields and names that no definition can have.
const TEXT: &str = r##"
openapi: 3.1.0
info: {title: T, version: '1'}
paths:
  /a: {post: {operationId: a, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Whole'}}}},
    responses: {'200': {description: d, content: {application/json: {schema: {$ref: '#/components/schemas/Whole'}}}}}}}
  /b: {post: {operationId: b, requestBody: {content: {application/json: {schema: {allOf: [{$ref: '#/components/schemas/Whole'}, {$ref: '#/components/schemas/Large'}]}}}},
    responses: {'200': {description: d, content: {application/json: {schema: {$ref: '#/components/schemas/Large'}}}}}}}
  /c: {post: {operationId: c, requestBody: {content: {application/json: {schema: {type: object, not: {$ref: '#/components/schemas/Part'}, properties: {p: {$ref: '#/components/schemas/Part'}, q: {$ref: '#/components/schemas/a b'}}}}}},
    responses: {'200': {description: d, content: {application/json: {schema: {type: object, properties: {p: {$ref: '#/components/schemas/Unlucky'}}}}}}}}}
  /d: {post: {operationId: d, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Unlucky'}}}}, responses: {'204': {description: d}}}}
  /e: {post: {operationId: e, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Choice'}}}}, responses: {'204': {description: d}}}}
components:
  schemas:
    Whole:
      type: object
      properties:
        id: {type: string, readOnly: true}
        secret: {type: string, writeOnly: true}
        part: {$ref: '#/components/schemas/Part'}
        odd: {$ref: '#/components/schemas/a b'}
        again: {$ref: '#/components/schemas/Whole'}
        choice: {$ref: '#/components/schemas/Choice'}
    Part: {type: object, properties: {code: {type: string, pattern: '^[A-Z]{3}$'}, name: {type: string, strange: 1, description: "hid\u200bden"}}}
    a b: {type: object, properties: {x: {$ref: '#/components/schemas/Part'}}}
    Unlucky: {type: object, properties: {u: {type: string, pattern: '(?=x)y'}, part: {$ref: '#/components/schemas/Part'}}}
    Large: {type: object, properties: {
      l1: {type: string, description: LONG}, l2: {$ref: '#/components/schemas/Larger'}}}
    Larger: {type: object, properties: {m1: {type: string, description: LONG}, m2: {$ref: '#/components/schemas/Whole'}}}
    Cat: {type: object, properties: {kind: {type: string}, part: {$ref: '#/components/schemas/Part'}}}
    Dog: {type: object, properties: {kind: {type: string}, friend: {$ref: '#/components/schemas/Cat'}}}
    Choice: {discriminator: {propertyName: kind}, oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}
"##;

fn read() -> Document {
    let text = TEXT.replace("LONG", &"word ".repeat(200));
    Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap()
}

/// Everything of a tool that a caller or a reviewer sees.
fn seen(made: Result<Generated, Vec<openapi::Blocker>>) -> String {
    match made {
        Ok(tool) => format!(
            "{}\n{:?}\n{:?}\n{}",
            tool.input_schema, tool.output_schema, tool.notes, tool.schema_bytes
        ),
        Err(blockers) => format!("{blockers:?}"),
    }
}

#[test]
fn a_tool_is_the_same_whichever_was_made_before_it() {
    let sizes = [usize::MAX >> 8, 3_000, 1_200, 500].map(|schema_bytes_max| ToolOptions {
        schema_bytes_max,
        output_bytes_max: schema_bytes_max / 2,
        ..ToolOptions::default()
    });
    let ids = ["a", "b", "c", "d", "e"];
    let alone = |id: &str, options: &ToolOptions| {
        let document = read();
        let operation = document.find(id).unwrap();
        seen(document.tool(&operation, options))
    };
    let mut different = std::collections::BTreeSet::new();
    for first in 0..ids.len() {
        let shared = read();
        for turn in 0..ids.len() {
            let id = ids[(first + turn) % ids.len()];
            for options in &sizes {
                let operation = shared.find(id).unwrap();
                let made = seen(shared.tool(&operation, options));
                assert_eq!(
                    made,
                    alone(id, options),
                    "{id} after {turn} others, from {first}, in {} bytes",
                    options.schema_bytes_max
                );
                different.insert(made);
            }
        }
    }
    // The sizes do make a difference, and the pattern that no gateway can match blocks its operation each time.
    assert!(different.len() > 10, "{}", different.len());
    assert!(
        alone("d", &sizes[0]).contains("pattern"),
        "{}",
        alone("d", &sizes[0])
    );
}
