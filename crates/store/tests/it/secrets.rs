//! Named secrets: the first one made is everybody's.

use model::SecretBytes;
use secrecy::ExposeSecret;

use crate::engines::Engine;

fn bytes(n: u8) -> SecretBytes {
    SecretBytes::new(Box::new(vec![n; 32]))
}

#[tokio::test]
async fn a_secret_is_made_once_and_kept() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        assert!(store.secret_get("digest").await.unwrap().is_none());
        let made = store.secret_get_or_create("digest", || bytes(1)).await.unwrap();
        assert_eq!(made.expose_secret(), bytes(1).expose_secret());
        let kept = store
            .secret_get_or_create("digest", || panic!("it is there"))
            .await
            .unwrap();
        assert_eq!(kept.expose_secret(), bytes(1).expose_secret(), "{}", engine.name);
        let other = store.secret_get_or_create("signing", || bytes(2)).await.unwrap();
        assert_eq!(other.expose_secret(), bytes(2).expose_secret());
    }
}

#[tokio::test]
async fn processes_that_race_get_the_same_secret() {
    for engine in Engine::shared().await {
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..8 {
            let store = engine.open().await;
            tasks.spawn(async move {
                let secret = store.secret_get_or_create("race", || bytes(n)).await.unwrap();
                secret.expose_secret().clone()
            });
        }
        let secrets = tasks.join_all().await;
        assert!(
            secrets.iter().all(|secret| *secret == secrets[0]),
            "{} {secrets:?}",
            engine.name
        );
    }
}
