//! Approved command lines: exactly what was approved, of exactly that server, and nothing after it was taken back.

use jiff::Timestamp;
use model::{Digest, UpstreamName};
use store::CommandRow;

use crate::engines::Engine;

fn row(server: &str, of: &str) -> CommandRow {
    CommandRow {
        server: UpstreamName::parse(server).unwrap(),
        digest: Digest::of("test", &[of.as_bytes()]),
        approved: Timestamp::from_microsecond(1_700_000_000_000_001).unwrap(),
        note: None,
    }
}

#[tokio::test]
async fn a_command_line_is_approved_for_its_server_alone_until_it_is_taken_back() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        let (files, changed, other) = (row("files", "a"), row("files", "b"), row("notes", "a"));
        let noted = CommandRow {
            note: Some("asked by Grace".to_owned()),
            ..files.clone()
        };
        let approved = |row: &CommandRow| {
            let (store, row) = (store.clone(), row.clone());
            async move { store.command_approval(&row.server, &row.digest).await.unwrap() }
        };
        assert_eq!(approved(&files).await, None, "{}", engine.name);
        store.command_approve(&noted).await.unwrap();
        assert_eq!(approved(&files).await, Some(noted.clone()), "{}", engine.name);
        assert_eq!((approved(&changed).await, approved(&other).await), (None, None));
        // Once more changes nothing, and another one beside it leaves the first.
        store.command_approve(&files).await.unwrap();
        store.command_approve(&changed).await.unwrap();
        store.command_approve(&other).await.unwrap();
        assert_eq!(approved(&files).await, Some(noted));
        assert_eq!(store.command_revoke(&files.server).await.unwrap(), 2);
        assert_eq!(store.command_revoke(&files.server).await.unwrap(), 0);
        assert_eq!((approved(&files).await, approved(&changed).await), (None, None));
        assert_eq!(approved(&other).await, Some(other), "{}", engine.name);
    }
}
