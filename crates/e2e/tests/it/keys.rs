//! `tollhouse keys`: shown once, stored nowhere, ended at once.

use e2e::client::Mcp;
use e2e::example::Example;
use e2e::house::{House, id_of, secret_of, until};
use e2e::said::{Said, run};
use serde_json::{Value, json};

/// Every byte that a house has on disk.
fn bytes_of(house: &House) -> Vec<u8> {
    e2e::example::everything_in(house)
        .into_iter()
        .filter(|path| std::path::Path::new(path).is_file())
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn has(haystack: &[u8], needle: &str) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle.as_bytes())
}

async fn listed(house: &House) -> Vec<Value> {
    let said = run(house, ["keys", "list", "--json"]).await.ended(0);
    said.json().as_array().unwrap().clone()
}

#[tokio::test]
async fn a_key_is_shown_once_and_stored_nowhere() {
    let Example { house, .. } = Example::start().await;
    let none = run(&house, ["keys", "list"]).await.ended(0);
    none.told("there are no keys; make one with `tollhouse keys add CALLER`");
    assert_eq!(listed(&house).await, [json!(null); 0]);

    // Standard output is the key and nothing else, so that a script can take it.
    let Said { out, err, .. } = run(&house, ["keys", "add", "ada", "--note", "laptop"])
        .await
        .ended(0);
    let key = out.strip_suffix('\n').unwrap();
    let (id, secret) = (id_of(key), secret_of(key));
    assert!(!key.contains(char::is_whitespace), "{key}");
    assert!(err.contains(id) && !err.contains(secret), "{err}");

    let made = run(&house, ["keys", "add", "bob", "--expires", "12h", "--json"])
        .await
        .ended(0)
        .json();
    let keys: Vec<&String> = made.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "caller", "expires", "key"]);
    let other = made["key"].as_str().unwrap();

    let disk = bytes_of(&house);
    assert!(has(&disk, id), "the search finds what is there");
    for key in [key, other] {
        let secret = secret_of(key);
        assert!(!has(&disk, key) && !has(&disk, secret));
        for arguments in [
            &["keys", "list"][..],
            &["keys", "list", "--json"],
            &["audit", "export"],
        ] {
            let said = run(&house, arguments).await.ended(0);
            assert!(
                !said.out.contains(secret) && !said.err.contains(secret),
                "{arguments:?}"
            );
        }
    }
    let rows = listed(&house).await;
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["id", "caller", "state", "added", "expires", "revoked", "note"]
    );
    let ada = rows.iter().find(|row| row["caller"] == "ada").unwrap();
    assert_eq!(
        (&ada["id"], &ada["state"], &ada["expires"], &ada["note"]),
        (&json!(id), &json!("good"), &json!(null), &json!("laptop"))
    );
    run(&house, ["keys", "list"]).await.ended(0).printed("laptop");
}

#[tokio::test]
async fn a_key_is_made_for_a_caller_that_there_is_and_an_end_that_will_come() {
    let Example { house, .. } = Example::start().await;
    for (arguments, expected) in [
        (
            ["nobody", "--expires", "1d"],
            "`nobody` is no caller of `tollhouse.toml`; write one of ada, bob, eve, ines",
        ),
        (["ada", "--expires", "soon"], "`soon` is no end; write a time as"),
        (["ada", "--expires", "0d"], "`0d` is no end"),
        (["ada", "--expires", "2001-01-01T00:00:00Z"], "2001"),
    ] {
        let line = ["keys", "add"].into_iter().chain(arguments);
        let said = run(&house, line).await.ended(66).told(expected);
        assert_eq!(said.out, "");
    }
    assert!(!house.path("tollhouse.db").exists());
}

#[tokio::test]
async fn a_revoked_key_ends_and_what_is_no_key_is_not_revoked() {
    let example = Example::start().await;
    let house = &example.house;
    let key = house.key("ada").await;
    let id = id_of(&key).to_owned();
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    assert!(!ada.tools().await.is_empty());

    for (text, expected) in [
        (
            "abcdef",
            "there is no key `abcdef` that was not revoked; see `tollhouse keys list`",
        ),
        ("a-b", "key id `a-b` has the character"),
        (key.as_str(), "this is a key and not its id; write `"),
    ] {
        let said = run(house, ["keys", "revoke", text])
            .await
            .ended(66)
            .told(expected);
        assert!(!said.err.contains(secret_of(&key)), "{said:?}");
    }
    run(house, ["keys", "revoke", &id])
        .await
        .ended(0)
        .printed(&format!(
            "key `{id}` is revoked; running servers refuse it within 1000 ms"
        ));
    until("the running gate refuses the key", async || {
        let list = ada.request(1, "tools/list", json!({}));
        ada.post(&list).await.status == 401
    })
    .await;
    run(house, ["keys", "revoke", &id])
        .await
        .ended(66)
        .told("that was not revoked");
    assert_eq!(listed(house).await[0]["state"], "revoked");
}

#[tokio::test]
async fn a_key_whose_caller_has_gone_is_told() {
    let Example { house, .. } = Example::start().await;
    house.key("bob").await;
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    house.write("tollhouse.toml", config.replace("[caller.bob]", "[caller.rob]"));
    assert_eq!(listed(&house).await[0]["state"], "no such caller");
}
