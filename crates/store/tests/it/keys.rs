//! API keys: added, listed, revoked; and everybody notices.

use jiff::Timestamp;
use model::{CallerName, Digest, KeyId};
use store::{KeyRow, StoreFault};

use crate::engines::Engine;

fn key(id: &str) -> KeyRow {
    KeyRow {
        id: KeyId::parse(id).unwrap(),
        hash: Digest::of("test", &[id.as_bytes()]),
        caller: CallerName::parse("ada").unwrap(),
        added: Timestamp::from_microsecond(1_700_000_000_123_456).unwrap(),
        expires: None,
        revoked: None,
        note: None,
    }
}

#[tokio::test]
async fn keys_are_listed_as_they_were_added() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        assert_eq!(store.keys_list().await.unwrap(), []);
        let plain = key("abc");
        let full = KeyRow {
            expires: Some(Timestamp::from_microsecond(1_800_000_000_000_001).unwrap()),
            revoked: Some(Timestamp::from_microsecond(1_750_000_000_000_000).unwrap()),
            note: Some("laptop of Ada 'x' ü".to_owned()),
            ..key("abd")
        };
        store.keys_add(&full).await.unwrap();
        store.keys_add(&plain).await.unwrap();
        assert_eq!(
            store.keys_list().await.unwrap(),
            [plain.clone(), full],
            "{}",
            engine.name
        );
        assert!(matches!(
            store.keys_add(&plain).await,
            Err(StoreFault::Conflict(_))
        ));
    }
}

#[tokio::test]
async fn a_key_is_revoked_once_and_an_unknown_one_never() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        let key = key("abc");
        store.keys_add(&key).await.unwrap();
        let (first, second) = (
            Timestamp::from_second(1_800_000_000).unwrap(),
            Timestamp::from_second(1_900_000_000).unwrap(),
        );
        assert!(
            !store
                .keys_revoke(&KeyId::parse("abd").unwrap(), first)
                .await
                .unwrap()
        );
        assert_eq!(store.keys_list().await.unwrap()[0].revoked, None);
        assert!(store.keys_revoke(&key.id, first).await.unwrap());
        assert!(!store.keys_revoke(&key.id, second).await.unwrap());
        assert_eq!(
            store.keys_list().await.unwrap()[0].revoked,
            Some(first),
            "{}",
            engine.name
        );
    }
}

#[tokio::test]
async fn the_version_changes_with_every_change_by_whomever() {
    for engine in Engine::shared().await {
        let (store, other) = (engine.open().await, engine.open().await);
        let mut seen = vec![store.keys_version().await.unwrap()];
        let mut changed = async |what: &str| {
            let version = store.keys_version().await.unwrap();
            assert!(!seen.contains(&version), "{} {what}", engine.name);
            assert_eq!(
                version,
                store.keys_version().await.unwrap(),
                "asking changes nothing"
            );
            seen.push(version);
        };
        other.keys_add(&key("abc")).await.unwrap();
        changed("added").await;
        other.keys_add(&key("abd")).await.unwrap();
        changed("added another").await;
        other
            .keys_revoke(&key("abc").id, Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
        changed("revoked").await;
        engine
            .run("UPDATE api_key SET revoked = 1 WHERE id = 'abd'")
            .await;
        changed("revoked by hand").await;
        engine.run("DELETE FROM api_key WHERE id = 'abd'").await;
        changed("deleted by hand").await;
    }
}

#[tokio::test]
async fn a_row_that_is_no_key_fails_the_whole_list() {
    for engine in Engine::shared().await {
        let store = engine.open().await;
        store.keys_add(&key("abc")).await.unwrap();
        engine.run("UPDATE api_key SET caller = 'not a name'").await;
        let fault = store.keys_list().await.unwrap_err();
        assert!(
            matches!(&fault, StoreFault::Corrupt(text) if text.contains("`abc`")),
            "{fault:?}"
        );
    }
}
