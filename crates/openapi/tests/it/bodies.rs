//! Bodies on the wire: forms field by field, parts with files, text, XML and bytes.

use model::Fault;
use openapi::{BlockerCause, BuildFault, Nesting, NoteKind, ToolOptions};
use serde_json::{Value, json};

use crate::support::{accepts, blockers, build, causes, document, note_kinds, request, tool, tool_with};

const FORM: &str = r##"
paths:
  /charges:
    post:
      requestBody:
        required: true
        content:
          application/x-www-form-urlencoded:
            schema:
              type: object
              required: [amount]
              properties:
                amount: {type: integer}
                live: {type: boolean}
                tags: {type: array, items: {type: string}}
                cols: {type: array, items: {type: string}}
                meta: {type: object, additionalProperties: {type: string}}
                address: {type: object, properties: {city: {type: string}}}
                expand: {type: array, items: {type: string}}
            encoding:
              cols: {style: form, explode: false}
              meta: {style: deepObject, explode: true}
              expand: {style: deepObject, explode: true}
"##;

#[test]
fn a_urlencoded_form_is_written_field_by_field() {
    let document = document("3.0.3", FORM);
    let charge = tool(&document, "POST /charges");
    // What deepObject means for a list is not defined.
    assert_eq!(
        charge.argument_names,
        ["amount", "live", "tags", "cols", "meta", "address"]
    );
    let kinds = note_kinds(&charge);
    assert!(kinds.contains(&NoteKind::BodyFieldLeftOut) && kinds.contains(&NoteKind::BodyFieldJson));
    assert_eq!(
        request(
            &charge,
            json!({"amount": 5, "live": true, "tags": ["a", "b c"], "cols": ["x", "y,z"], "meta": {"k&": "v+"}, "address": {"city": "Ä"}})
        )
        .unwrap(),
        "POST /charges\ncontent-type: application/x-www-form-urlencoded\n\namount=5&live=true&tags=a&tags=b%20c&cols=x,y%2Cz&meta%5Bk%26%5D=v%2B&address=%7B%22city%22%3A%22%C3%84%22%7D"
    );
    for (arguments, expected) in [
        (json!({"amount": null}), BuildFault::Null("amount".to_owned())),
        (
            json!({"amount": 1, "tags": []}),
            BuildFault::EmptyList("tags".to_owned()),
        ),
        (
            json!({"amount": 1, "meta": {"a": {"b": 1}}}),
            BuildFault::Kind("meta".to_owned()),
        ),
        (json!({"tags": ["a"]}), BuildFault::Missing("amount".to_owned())),
    ] {
        let fault = charge
            .plan
            .build(arguments.as_object().unwrap(), &Default::default());
        assert_eq!(fault.unwrap_err(), expected, "{arguments}");
    }
    let options = ToolOptions {
        nesting: Nesting::Indexed,
        ..ToolOptions::default()
    };
    let nested = tool_with(&document, "POST /charges", &options);
    assert_eq!(
        request(&nested, json!({"amount": 5, "expand": ["a", "b"]})).unwrap(),
        "POST /charges\ncontent-type: application/x-www-form-urlencoded\n\namount=5&expand%5B0%5D=a&expand%5B1%5D=b"
    );
    let must = FORM.replace("required: [amount]", "required: [expand]");
    let blocker = &blockers(&crate::support::document("3.0.3", &must), "POST /charges")[0];
    assert_eq!(blocker.cause, BlockerCause::BodyField);
    assert!(blocker.pointer.ends_with("/properties/expand"), "{blocker}");
}

#[test]
fn a_composed_form_is_one_argument_that_is_written_by_its_fields() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /f:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {allOf: [{type: object, properties: {a: {type: string}}}, {type: object, properties: {m: {type: object, properties: {k: {type: string}}}}}]}
            encoding: {m: {style: deepObject}}
  /free: {post: {requestBody: {content: {application/x-www-form-urlencoded: {}}}}}
  /text: {post: {requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: string}}}}}}
"##,
    );
    assert_eq!(
        request(
            &tool(&document, "POST /f"),
            json!({"body": {"a": "x", "m": {"k": "v"}}})
        )
        .unwrap(),
        "POST /f\ncontent-type: application/x-www-form-urlencoded\n\na=x&m%5Bk%5D=v"
    );
    assert_eq!(
        request(
            &tool(&document, "POST /free"),
            json!({"body": {"a": [1, 2], "b": {"c": null}}})
        )
        .unwrap(),
        "POST /free\ncontent-type: application/x-www-form-urlencoded\n\na=1&a=2&b=%7B%22c%22%3Anull%7D"
    );
    assert_eq!(causes(&document, "POST /text").0, [BlockerCause::BodyMalformed]);
}

const UPLOAD: &str = r##"
paths:
  /docs:
    post:
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: object
              required: [file]
              properties:
                file: {type: string, format: binary, description: The document.}
                meta: {type: object, properties: {t: {type: string}}}
                tags: {type: array, items: {type: string}}
                more: {type: array, items: {type: string, format: binary}}
                note: {type: string}
            encoding:
              file: {contentType: 'image/png, application/*'}
              meta: {contentType: application/json}
              note: {contentType: text/markdown}
"##;

/// A multipart body with its boundary as `B`.
fn multipart(tool: &openapi::Generated, arguments: Value) -> Result<String, BuildFault> {
    let request = tool
        .plan
        .build(arguments.as_object().unwrap(), &Default::default())?;
    let body = request.body.unwrap();
    let boundary = body
        .content_type
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap()
        .to_owned();
    assert!(boundary.len() <= 70 && boundary.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    Ok(String::from_utf8_lossy(&body.bytes).replace(&boundary, "B"))
}

#[test]
fn a_multipart_body_has_a_part_for_each_field_item_and_file() {
    let document = document("3.0.3", UPLOAD);
    let upload = tool(&document, "POST /docs");
    assert!(note_kinds(&upload).contains(&NoteKind::BodyFile));
    let arguments = json!({
        "file": {"base64": "iVBORw==", "filename": "ä.png", "media_type": "image/png"},
        "meta": {"t": "x"}, "tags": ["a", "b\r\n--"], "note": "hi",
        "more": [{"base64": "", "filename": "e"}],
    });
    assert!(accepts(&upload, &arguments));
    let png = String::from_utf8_lossy(&[0x89, b'P', b'N', b'G']).into_owned();
    assert_eq!(
        multipart(&upload, arguments.clone()).unwrap(),
        format!(
            "--B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"ä.png\"\r\ncontent-type: image/png\r\n\r\n{png}\r\n\
             --B\r\ncontent-disposition: form-data; name=\"meta\"\r\ncontent-type: application/json\r\n\r\n{{\"t\":\"x\"}}\r\n\
             --B\r\ncontent-disposition: form-data; name=\"tags\"\r\n\r\na\r\n\
             --B\r\ncontent-disposition: form-data; name=\"tags\"\r\n\r\nb\r\n--\r\n\
             --B\r\ncontent-disposition: form-data; name=\"more\"; filename=\"e\"\r\ncontent-type: application/octet-stream\r\n\r\n\r\n\
             --B\r\ncontent-disposition: form-data; name=\"note\"\r\ncontent-type: text/markdown\r\n\r\nhi\r\n\
             --B--\r\n"
        )
    );
    // The same call makes the same request.
    let twice = [(); 2].map(|()| build(&upload, arguments.clone(), json!({})).unwrap());
    assert!(twice[0] == twice[1]);
    let file = |file: Value| multipart(&upload, json!({ "file": file })).unwrap_err();
    let base64 = BuildFault::Base64("file".to_owned());
    for text in ["iVBORw", "iVBORw=", "iVBO\nRw==", "iVBORx==", "-_-_"] {
        assert_eq!(
            file(json!({"base64": text, "filename": "a", "media_type": "image/png"})),
            base64,
            "{text}"
        );
    }
    for name in ["", "..", "a/b", "a\\b", "a\"b", "a\r\nb", &"x".repeat(256)] {
        let fault = file(json!({"base64": "", "filename": name, "media_type": "image/png"}));
        assert_eq!(fault, BuildFault::FileName("file".to_owned()), "{name}");
        assert_eq!(fault.fault(), Fault::Caller);
    }
    for media in ["image/gif", "image/png\r\nx: y", "application/*", "*/*"] {
        let fault = file(json!({"base64": "", "filename": "a", "media_type": media}));
        assert_eq!(fault, BuildFault::MediaType("file".to_owned()), "{media}");
    }
    // Two types are taken, so that one has to be said.
    assert_eq!(
        file(json!({"base64": "", "filename": "a"})),
        BuildFault::MediaType("file".to_owned())
    );
}

#[test]
fn version_3_1_says_by_a_media_type_what_a_file_is() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /f:
    post:
      requestBody:
        content:
          multipart/form-data:
            schema:
              type: object
              properties:
                raw: {contentMediaType: image/png}
                inline: {type: string, contentMediaType: image/png, contentEncoding: base64}
                either: {anyOf: [{type: string, format: binary}, {type: array, items: {type: string, format: binary}}]}
"##,
    );
    let tool = tool(&document, "POST /f");
    let properties = &tool.input_schema["properties"];
    assert_eq!(properties["raw"]["required"], json!(["base64", "filename"]));
    assert_eq!(properties["inline"]["type"], "string");
    assert_eq!(properties["either"]["anyOf"][1]["type"], "array");
    let file = json!({"base64": "YQ==", "filename": "a"});
    let text = multipart(&tool, json!({"inline": "YQ==", "either": [file, file]})).unwrap();
    assert!(text.contains("name=\"inline\"\r\n\r\nYQ==\r\n"), "{text}");
    assert_eq!(text.matches("filename=\"a\"").count(), 2);
}

#[test]
fn a_style_of_a_part_counts_from_3_1_on_and_only_where_it_leaves_no_doubt() {
    let form = |version: &str, encoding: &str| {
        document(
            version,
            &format!(
                "paths:\n  /f: {{post: {{requestBody: {{content: {{multipart/form-data: {{schema: {{type: object, properties: {{list: {{type: array, items: {{type: string}}}}, meta: {{type: object, additionalProperties: {{type: string}}}}, one: {{type: string}}}}}}, encoding: {encoding}}}}}}}}}}}\n"
            ),
        )
    };
    let deep = form(
        "3.1.0",
        "{meta: {style: deepObject, explode: true}, list: {style: form}, one: {style: form, explode: false}}",
    );
    let deep = tool(&deep, "POST /f");
    assert_eq!(
        multipart(
            &deep,
            json!({"meta": {"a": "x y&z", "b]": "1"}, "list": ["p", "q"], "one": "o"})
        )
        .unwrap()
        .replace("\r\n", "\n"),
        "--B\ncontent-disposition: form-data; name=\"list\"\n\np\n--B\ncontent-disposition: form-data; name=\"list\"\n\nq\n\
         --B\ncontent-disposition: form-data; name=\"meta[a]\"\n\nx y&z\n--B\ncontent-disposition: form-data; name=\"meta[b]]\"\n\n1\n\
         --B\ncontent-disposition: form-data; name=\"one\"\n\no\n--B--\n"
    );
    for key in ["a\"b", "a\r\nx: y", "a\\"] {
        let mut meta = json!({});
        meta[key] = json!("v");
        assert!(multipart(&deep, json!({ "meta": meta })).is_err(), "{key:?}");
    }
    assert!(multipart(&deep, json!({"meta": {}})).is_err());
    // How several values stand in one part is not defined.
    for encoding in [
        "{meta: {style: form}}",
        "{meta: {style: form, explode: false}}",
        "{meta: {style: pipeDelimited}}",
    ] {
        let left = tool(&form("3.1.0", encoding), "POST /f");
        assert_eq!(left.argument_names, ["list", "one"], "{encoding}");
        assert!(note_kinds(&left).contains(&NoteKind::BodyFieldLeftOut));
    }
    let joined = tool(&form("3.1.0", "{list: {style: form, explode: false}}"), "POST /f");
    assert_eq!(joined.argument_names, ["meta", "one"]);
    // In version 3.0 a style is none of the parts'.
    let old = tool(
        &form("3.0.3", "{meta: {style: deepObject, explode: true}}"),
        "POST /f",
    );
    assert!(
        multipart(&old, json!({"meta": {"a": "1"}}))
            .unwrap()
            .contains("name=\"meta\"\r\ncontent-type: application/json\r\n\r\n{\"a\":\"1\"}")
    );
}

#[test]
fn text_xml_and_bytes_are_one_argument() {
    let document = document(
        "3.0.3",
        r##"
paths:
  /text: {put: {requestBody: {required: true, content: {text/plain; charset=utf-8: {schema: {type: string, maxLength: 5}}}}}}
  /xml: {put: {requestBody: {required: true, content: {application/xml: {schema: {type: object, properties: {a: {type: string}}}}}}}}
  /csv: {put: {requestBody: {required: true, content: {text/csv: {}, application/zip: {}}}}}
  /bytes: {put: {requestBody: {required: true, content: {application/octet-stream: {schema: {type: string, format: binary}}}}}}
"##,
    );
    let text = tool(&document, "PUT /text");
    assert_eq!(text.input_schema["properties"]["body"]["maxLength"], 5);
    assert_eq!(
        request(&text, json!({"body": "true"})).unwrap(),
        "PUT /text\ncontent-type: text/plain; charset=utf-8\n\ntrue"
    );
    let xml = tool(&document, "PUT /xml");
    assert_eq!(xml.input_schema["properties"]["body"]["type"], "string");
    assert!(note_kinds(&xml).contains(&NoteKind::BodyRaw));
    assert_eq!(
        request(&xml, json!({"body": "<a>1</a>"})).unwrap(),
        "PUT /xml\ncontent-type: application/xml\n\n<a>1</a>"
    );
    let csv = tool(&document, "PUT /csv");
    assert!(note_kinds(&csv).contains(&NoteKind::BodyMediaTypeChosen));
    assert_eq!(
        request(&csv, json!({"body": "a,b"})).unwrap(),
        "PUT /csv\ncontent-type: text/csv\n\na,b"
    );
    let bytes = tool(&document, "PUT /bytes");
    assert_eq!(
        bytes.input_schema["properties"]["body"]["contentEncoding"],
        "base64"
    );
    let body = build(&bytes, json!({"body": "AP+A"}), json!({}))
        .unwrap()
        .body
        .unwrap();
    assert_eq!(
        (body.content_type.as_str(), body.bytes.as_ref()),
        ("application/octet-stream", [0, 0xff, 0x80].as_slice())
    );
    for text in ["AP+", "AP-A", "AP+A\n", " AP+A"] {
        assert!(
            build(&bytes, json!({"body": text}), json!({}))
                .unwrap_err()
                .contains("base64"),
            "{text:?}"
        );
    }
}
