//! API keys on a running gate: they open, end, are revoked, and are good for one store only.

use std::time::Duration;

use e2e::house::{House, id_of, text, until};
use e2e::issuer::Issuer;
use e2e::orders;
use e2e::service::Service;
use jiff::Timestamp;
use serde_json::Value;

use super::{EXPIRED, MALFORMED, REFUSED, assert_served, assert_turned_away, call};

/// A gate with API keys that looks at them often.
async fn keyed() -> (Service, House) {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let config = format!(
        "{}\n[limits]\nkeys_refresh_interval = \"100ms\"\n",
        orders::CONFIG
    );
    house.write("tollhouse.toml", config);
    (service, house)
}

async fn keys_of(house: &House) -> Vec<(String, String)> {
    let output = house.run(["keys", "list", "--json"]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let keys: Value = serde_json::from_slice(&output.stdout).unwrap();
    keys.as_array()
        .unwrap()
        .iter()
        .map(|key| {
            (
                key["caller"].as_str().unwrap().to_owned(),
                key["state"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_key_opens_and_closes_on_a_running_gate() {
    let (service, house) = keyed().await;
    let gate = house.serve().await;
    let present = async |key: &str| call(&gate.url, &[&format!("Bearer {key}")]).await;
    let key = house.key("ada").await;
    until("the new key is read", async || present(&key).await.status == 200).await;
    let other = house.key("ada").await;
    until("the other key is read", async || {
        present(&other).await.status == 200
    })
    .await;
    let revoked = house.run(["keys", "revoke", id_of(&key)]).await;
    assert!(revoked.status.success(), "{}", text(&revoked.stderr));
    until("the key ends", async || present(&key).await.status == 401).await;
    let served = service.count();
    for _ in 0..3 {
        assert_turned_away("revoked", &present(&key).await, Some(REFUSED));
    }
    assert_eq!(service.count(), served);
    assert_served("the other one goes on", &present(&other).await);
    assert_eq!(
        keys_of(&house).await,
        [
            ("ada".to_owned(), "revoked".to_owned()),
            ("ada".to_owned(), "good".to_owned())
        ]
    );
    let again = house.run(["keys", "revoke", id_of(&key)]).await;
    assert_eq!(again.status.code(), Some(66));
    gate.close().await;
}

#[tokio::test]
async fn a_key_ends_by_itself() {
    let (service, house) = keyed().await;
    let gate = house.serve().await;
    let ends = Timestamp::now() + Duration::from_secs(15);
    let output = house
        .run(["keys", "add", "ada", "--expires", &ends.to_string()])
        .await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let bearer = format!("Bearer {}", text(&output.stdout).trim());
    let mut served = false;
    until("the key ends", async || {
        let answer = call(&gate.url, &[&bearer]).await;
        served |= answer.status == 200;
        answer.text().contains(EXPIRED)
    })
    .await;
    assert!(served, "it worked before");
    assert!(Timestamp::now() >= ends, "and not until its end");
    let count = service.count();
    assert_turned_away("expired", &call(&gate.url, &[&bearer]).await, Some(EXPIRED));
    assert_eq!(service.count(), count);
    assert_eq!(keys_of(&house).await, [("ada".to_owned(), "expired".to_owned())]);
    gate.close().await;
    let past = house
        .run(["keys", "add", "ada", "--expires", "2020-01-01T00:00:00Z"])
        .await;
    assert_eq!(past.status.code(), Some(66), "{}", text(&past.stderr));
}

#[tokio::test]
async fn a_key_is_good_for_one_store_one_secret_and_a_caller_who_is_there() {
    let (service, house) = keyed().await;
    let (_, elsewhere) = keyed().await;
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let foreign = elsewhere.key("ada").await;
    let gate = house.serve().await;
    let secret = |key: &str| key.rsplit_once(&format!("{}_", id_of(key))).unwrap().1.to_owned();
    assert_served("ada", &call(&gate.url, &[&format!("Bearer {ada}")]).await);
    let mut last = ada.clone();
    let end = if last.ends_with('A') { 'B' } else { 'A' };
    last.pop();
    last.push(end);
    for (what, key, description) in [
        ("a key of another store", foreign.clone(), REFUSED),
        (
            "ada's id with bob's secret",
            format!("th_{}_{}", id_of(&ada), secret(&bob)),
            REFUSED,
        ),
        (
            "ada's id with a foreign secret",
            format!("th_{}_{}", id_of(&ada), secret(&foreign)),
            REFUSED,
        ),
        (
            "an unknown id with ada's secret",
            format!("th_0123456789abcdef_{}", secret(&ada)),
            REFUSED,
        ),
        ("the id alone", format!("th_{}", id_of(&ada)), MALFORMED),
        ("the secret alone", format!("th__{}", secret(&ada)), MALFORMED),
        ("capitals", ada.to_uppercase().replace("TH_", "th_"), MALFORMED),
        ("one more character", format!("{ada}A"), MALFORMED),
        ("one less", ada[..ada.len() - 1].to_owned(), MALFORMED),
    ] {
        let answer = call(&gate.url, &[&format!("Bearer {key}")]).await;
        assert_eq!(answer.status, 401, "{what}");
        if what != "capitals" {
            assert_turned_away(what, &answer, Some(description));
        }
    }
    assert_eq!(
        call(&gate.url, &[&format!("Bearer {last}")]).await.status,
        401,
        "another last character"
    );
    assert_eq!(service.count(), 1);
    gate.close().await;

    // Bob goes, his key stays behind.
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    house.write(
        "tollhouse.toml",
        config.replace("[caller.bob]\ntenant = \"south\"\nroles = [\"member\"]\n", ""),
    );
    let gate = house.serve().await;
    let answer = call(&gate.url, &[&format!("Bearer {bob}")]).await;
    assert_turned_away("nobody's key", &answer, Some(REFUSED));
    gate.logged("bob").await;
    assert_served("ada", &call(&gate.url, &[&format!("Bearer {ada}")]).await);
    assert_eq!(
        keys_of(&house).await,
        [
            ("ada".to_owned(), "good".to_owned()),
            ("bob".to_owned(), "no such caller".to_owned())
        ]
    );
    gate.close().await;

    // Keys are switched off altogether.
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    let issuer = Issuer::start().await;
    house.write(
        "tollhouse.toml",
        format!(
            "{config}\n[identity]\napi_keys = false\n{}",
            issuer.config("corp")
        ),
    );
    let gate = house.serve().await;
    let answer = call(&gate.url, &[&format!("Bearer {ada}")]).await;
    assert_turned_away("switched off", &answer, Some(MALFORMED));
    gate.close().await;
    assert_eq!(service.count(), 2);
}
