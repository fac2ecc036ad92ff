//! Arrays of messages, over HTTP: legal in exactly one revision, with bounds.

use e2e::client::{LEGACY, opening, verdict};
use e2e::desk::{Plan, list, look};
use e2e::house::close;
use e2e::schema::{assert_answer, assert_message};
use serde_json::{Value, json};

#[tokio::test]
async fn d23_base_07_base_10_arrays_are_served_in_exactly_one_revision() {
    let (desk, gate) = Plan::new().limit("batch_messages_max", 3).serve().await;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        let before = desk.service.count();
        let batch = json!([
            look(&client, 1),
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}},
            look(&client, "2"),
        ]);
        let answer = client.post(&batch).await;
        if revision != "2025-03-26" {
            assert_eq!(answer.status, 400, "{revision}");
            if !answer.body.is_empty() {
                assert_message(revision, &answer.json());
                assert_eq!(answer.code(), Some(-32600), "{revision}");
            }
            assert_eq!(
                desk.service.count(),
                before,
                "{revision}: nothing of it was carried out"
            );
            continue;
        }
        assert_eq!(answer.status, 200);
        let answers = answer.json();
        assert_message(revision, &answers);
        let mut ids: Vec<String> = Vec::new();
        for answer in answers.as_array().unwrap() {
            assert_answer(revision, "tools/call", answer);
            ids.push(answer["id"].to_string());
        }
        assert_eq!(ids, ["1", "\"2\""], "BASE-09");
        assert_eq!(desk.service.count() - before, 2);
        // For a reader of streams only: the same, as events.
        let streamed = client
            .post_with(&batch, &[("accept", Some("text/event-stream"))])
            .await;
        assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
        assert_message(revision, &streamed.json());
    }
    let ada = desk.modern(&gate, "ada");
    let answer = ada.post_bytes(&list(&ada), format!("[{}]", list(&ada))).await;
    assert_eq!(verdict(&answer), "400 -32600", "BASE-10");
    close(gate).await;
}

#[tokio::test]
async fn base_08_base_09_a_batch_has_bounds_and_never_opens_a_session() {
    let (desk, gate) = Plan::new().limit("batch_messages_max", 3).serve().await;
    let client = desk.legacy(&gate, "ada", "2025-03-26").await;
    let ping = |id: u64| json!({"jsonrpc":"2.0","id":id,"method":"ping"});
    let notice = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
    let response = json!({"jsonrpc":"2.0","id":9,"result":{}});
    let tell = async |batch: Value| {
        let answer = client.post(&batch).await;
        if answer.status == 200 {
            assert_message("2025-03-26", &answer.json());
        }
        let answers = if answer.body.is_empty() {
            0
        } else {
            answer.json().as_array().map_or(0, Vec::len)
        };
        (answer.status.as_u16(), answers)
    };
    assert_eq!(
        tell(json!([ping(1), ping(2), ping(3)])).await,
        (200, 3),
        "at the limit"
    );
    assert_eq!(
        tell(json!([ping(1), ping(2), ping(3), ping(4)])).await,
        (400, 0),
        "and one past it"
    );
    assert_eq!(tell(json!([])).await, (400, 0), "empty");
    assert_eq!(
        tell(json!([ping(1), opening("2025-03-26")])).await,
        (400, 0),
        "BASE-08"
    );
    assert_eq!(tell(json!([notice, notice])).await, (202, 0), "BASE-09");
    assert_eq!(tell(json!([response, response])).await, (202, 0), "BASE-09");
    assert_eq!(tell(json!([notice, ping(1)])).await, (200, 1));
    // What cannot be read gets no answer in this revision, which has no error without an id; what can be read does.
    assert_eq!(tell(json!([7, ping(1)])).await, (200, 1));
    assert_eq!(tell(json!([7, 8])).await, (400, 0), "nothing of it was a message");
    // Two requests with one id in one batch: the second is refused while the first runs, whichever that is.
    desk.service.hold();
    let (first, second) = (look(&client, 5), look(&client, 5));
    let batch = json!([first, second]);
    let both = client.post(&batch);
    let held = async {
        desk.service.until(1).await;
        desk.service.let_go();
    };
    let (answer, ()) = tokio::join!(both, held);
    let answers = answer.json();
    assert_message("2025-03-26", &answers);
    let errors = answers
        .as_array()
        .unwrap()
        .iter()
        .filter(|answer| answer["error"]["code"] == -32600);
    assert_eq!(
        (answers.as_array().unwrap().len(), errors.count()),
        (2, 1),
        "BASE-02"
    );
    close(gate).await;
}
