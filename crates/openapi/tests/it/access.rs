//! Who may call and where it goes, as a document says it: the table of access, credentials, servers, tags.

use std::collections::BTreeMap;

use openapi::{AccessFlag, Choice, Document, KeyPlace, Means, NoteKind, Server, ServerFault};

use crate::support::{document, note_kinds, tool};

const SECURED: &str = r##"
security: [{bearer: []}]
paths:
  /own: {get: {security: [{bearer: [read]}, {key: []}]}}
  /both: {get: {security: [{key: [], app: []}]}}
  /maybe: {post: {security: [{}, {bearer: []}]}}
  /open: {get: {security: []}, delete: {security: []}}
  /inherited: {get: {}}
  /scoped: {post: {security: [{o: [invoices.write, invoices.all]}]}}
  /gone: {get: {security: [{nowhere: []}]}}
  /odd: {get: {security: {bearer: []}}, put: {security: [7]}}
components:
  securitySchemes:
    bearer: {type: http, scheme: Bearer}
    key: {type: apiKey, in: header, name: K}
    app: {type: apiKey, in: query, name: a}
    pass: {type: http, scheme: basic}
    oidc: {type: openIdConnect, openIdConnectUrl: 'https://id.test/.well-known/openid-configuration'}
    cert: {type: mutualTLS}
    odd: {type: new}
    o: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://id.test/t', scopes: {invoices.read: r, invoices.write: w}}}}
"##;

fn row(document: &Document, key: &str) -> openapi::AccessRow {
    let rows = document.access();
    rows.into_iter()
        .find(|row| row.operation.to_string() == key)
        .unwrap()
}

#[test]
fn the_table_of_access_says_what_a_reviewer_should_look_at() {
    let document = document("3.1.0", SECURED);
    for (key, is_own, scopes, flags) in [
        ("GET /own", true, vec![vec!["read"], vec![]], vec![]),
        ("GET /both", true, vec![vec![]], vec![AccessFlag::KeyInQuery]),
        (
            "POST /maybe",
            true,
            vec![vec![], vec![]],
            vec![AccessFlag::OpenWrite],
        ),
        ("GET /open", true, vec![], vec![AccessFlag::Open]),
        ("DELETE /open", true, vec![], vec![AccessFlag::OpenWrite]),
        ("GET /inherited", false, vec![vec![]], vec![]),
        (
            "POST /scoped",
            true,
            vec![vec!["invoices.all", "invoices.write"]],
            vec![AccessFlag::ScopeUndeclared],
        ),
        (
            "GET /gone",
            true,
            vec![vec![]],
            vec![AccessFlag::SchemeUndeclared],
        ),
        (
            "GET /odd",
            true,
            vec![vec![]],
            vec![AccessFlag::SchemeUndeclared, AccessFlag::Malformed],
        ),
        (
            "PUT /odd",
            true,
            vec![vec![]],
            vec![AccessFlag::SchemeUndeclared, AccessFlag::Malformed],
        ),
    ] {
        let row = row(&document, key);
        assert_eq!((row.security.is_own, row.flags), (is_own, flags), "{key}");
        assert_eq!(row.caller_scopes, scopes, "{key}");
    }
    let silent = crate::support::document("3.1.0", "paths: {/a: {put: {}}}");
    assert_eq!(
        row(&silent, "PUT /a").flags,
        [AccessFlag::Unsaid, AccessFlag::OpenWrite]
    );
}

#[test]
fn the_first_alternative_that_can_be_satisfied_is_chosen_whole() {
    let document = document("3.1.0", SECURED);
    let chosen = |key: &str, has: &[&str]| -> String {
        match row(&document, key)
            .security
            .choose(&|scheme| has.contains(&scheme))
        {
            Choice::Nothing => "nothing".to_owned(),
            Choice::All(all) => all
                .iter()
                .map(|one| one.scheme.as_str())
                .collect::<Vec<_>>()
                .join("+"),
            Choice::Missing(missing) => format!("missing {}", missing.join("+")),
        }
    };
    for (key, has, expected) in [
        ("GET /own", vec!["bearer", "key"], "bearer"),
        ("GET /own", vec!["key"], "key"),
        ("GET /own", vec![], "missing bearer"),
        ("GET /both", vec!["key", "app"], "key+app"),
        ("GET /both", vec!["key"], "missing app"),
        ("POST /maybe", vec!["bearer"], "nothing"),
        ("GET /open", vec!["bearer"], "nothing"),
        ("GET /inherited", vec!["key"], "missing bearer"),
        // What cannot be read is not satisfied, whatever there is.
        ("GET /odd", vec!["bearer", "key"], "missing ?"),
        ("PUT /odd", vec!["bearer"], "missing ?"),
    ] {
        assert_eq!(chosen(key, &has), expected, "{key} {has:?}");
    }
}

#[test]
fn every_kind_of_scheme_is_known_by_what_it_needs() {
    let schemes = ["bearer", "key", "app", "pass", "oidc", "cert", "odd", "o", "lost"];
    let all: String = schemes
        .iter()
        .map(|scheme| format!("{{{scheme}: []}}, "))
        .collect();
    let text = SECURED.replace(
        "/inherited: {get: {}}",
        &format!("/all: {{get: {{security: [{all}]}}}}"),
    );
    let document = document("3.1.0", &text);
    let row = row(&document, "GET /all");
    let means: Vec<&Means> = row
        .security
        .alternatives
        .iter()
        .map(|all| &all[0].means)
        .collect();
    assert_eq!(
        means[..7],
        [
            &Means::Bearer,
            &Means::ApiKey {
                place: KeyPlace::Header,
                name: "K".to_owned()
            },
            &Means::ApiKey {
                place: KeyPlace::Query,
                name: "a".to_owned()
            },
            &Means::Basic,
            &Means::OpenIdConnect("https://id.test/.well-known/openid-configuration".to_owned()),
            &Means::MutualTls,
            &Means::Unknown("new".to_owned()),
        ]
    );
    assert!(
        matches!(means[7], Means::OAuth2(flows) if flows[0].token_url.as_deref() == Some("https://id.test/t"))
    );
    assert_eq!(means[8], &Means::Undeclared);
}

#[test]
fn destinations_are_resolved_and_counted_and_an_own_server_is_noted() {
    let document = document(
        "3.1.0",
        r##"
servers: [{url: 'https://{region}.api.test/v1', variables: {region: {default: us, enum: [us, eu]}}}]
paths:
  /a: {get: {}, put: {}}
  /up:
    servers: [{url: 'https://upload.test/api'}]
    post: {servers: [{url: 'https://upload2.test/'}]}
    get: {}
"##,
    );
    let found: Vec<(String, usize)> = document
        .destinations()
        .into_iter()
        .map(|destination| (destination.url, destination.operations))
        .collect();
    assert_eq!(
        found,
        [
            ("https://us.api.test/v1".to_owned(), 2),
            ("https://upload.test/api".to_owned(), 1),
            ("https://upload2.test/".to_owned(), 1)
        ]
    );
    for (key, noted) in [("GET /a", false), ("GET /up", true), ("POST /up", true)] {
        assert_eq!(
            note_kinds(&tool(&document, key)).contains(&NoteKind::ServerOwn),
            noted,
            "{key}"
        );
    }
}

#[test]
fn variables_of_a_server_are_the_operators_within_what_the_document_offers() {
    let document = document(
        "3.1.0",
        "servers: [{url: 'https://{region}.api.test/{v}', variables: {region: {default: us, enum: [us, eu]}, v: {}}}, {url: 'https://{a'}]\npaths: {/a: {get: {}}}",
    );
    let servers: Vec<Server> = document.servers(&document.find("GET /a").unwrap());
    let resolve = |settings: &[(&str, &str)]| {
        let settings: BTreeMap<String, String> = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        servers[0].resolve(&settings)
    };
    assert_eq!(resolve(&[("v", "v2")]).unwrap(), "https://us.api.test/v2");
    assert_eq!(
        resolve(&[("region", "eu"), ("v", "1")]).unwrap(),
        "https://eu.api.test/1"
    );
    assert_eq!(resolve(&[]), Err(ServerFault::NoValue("v".to_owned())));
    assert!(matches!(
        resolve(&[("region", "evil.test/"), ("v", "1")]),
        Err(ServerFault::NotOffered { .. })
    ));
    assert_eq!(
        resolve(&[("v", "1"), ("x", "1")]),
        Err(ServerFault::Unknown("x".to_owned()))
    );
    assert!(matches!(
        servers[1].resolve(&BTreeMap::new()),
        Err(ServerFault::Braces(_))
    ));
}

#[test]
fn tags_of_version_3_2_bring_their_parents_and_a_circle_ends() {
    let document = document(
        "3.2.0",
        "tags: [{name: a, summary: A, kind: nav}, {name: b, parent: a}, {name: c, parent: d}, {name: d, parent: c}]\npaths: {/x: {get: {tags: [b, c, new]}}}",
    );
    assert_eq!(document.tags()[1].parent.as_deref(), Some("a"));
    let operation = document.find("GET /x").unwrap();
    assert_eq!(document.tags_of(&operation), ["b", "a", "c", "d", "new"]);
}
