//! Tests only: framing, bounds, order, and what a sender learns when it does not wait.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;

const BOUNDS: LineBounds = LineBounds {
    line_bytes_max: 16,
    noise_lines_max: 3,
    write_timeout: Duration::from_millis(200),
};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Everything that is heard of a text.
async fn heard(text: &[u8]) -> Vec<Heard> {
    let (mut far, near) = duplex(1 << 20);
    far.write_all(text).await.unwrap();
    drop(far);
    let (_, cause) = watch::channel(Some(End::Exited(3)));
    let mut receiver = Receiver::of_lines(near, BOUNDS, "toy".to_owned(), cause);
    let mut all = Vec::new();
    loop {
        let next = receiver.next().await;
        let ended = matches!(next, Heard::Ended(_));
        all.push(next);
        if ended {
            // It stays ended.
            assert_eq!(Some(&receiver.next().await), all.last());
            return all;
        }
    }
}

fn message(text: &str) -> Heard {
    Heard::Message(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn stdio_01_each_line_is_one_message_whatever_ends_it() {
    let end = Heard::Ended(End::Exited(3));
    assert_eq!(
        heard(b"{\"a\":1}\n{\"b\":2}\r\n[1]\n").await,
        [
            message("{\"a\":1}"),
            message("{\"b\":2}"),
            message("[1]"),
            end.clone()
        ]
    );
    // What has no end is no message: its writer may have died in the middle.
    assert_eq!(heard(b"{}\n{\"half\":").await, [message("{}"), end.clone()]);
    assert_eq!(heard(b"").await, [end]);
}

#[tokio::test]
async fn stdio_01_a_line_that_is_not_utf_8_is_told_and_the_next_one_is_heard() {
    assert_eq!(
        heard(b"{\"\xff\"}\n{}\n").await,
        [
            Heard::Broken(DuplexFault::NotUtf8),
            message("{}"),
            Heard::Ended(End::Exited(3))
        ]
    );
}

#[tokio::test]
async fn a_line_is_taken_at_its_longest_and_skipped_one_past_it() {
    let longest = format!("{{{}}}", "x".repeat(14));
    let past = format!("{{{}}}", "x".repeat(15));
    let text = format!("{longest}\n{longest}\r\n{past}\n{{}}\n");
    assert_eq!(
        heard(text.as_bytes()).await,
        [
            message(&longest),
            message(&longest),
            Heard::Broken(DuplexFault::TooLong { max: 16 }),
            message("{}"),
            Heard::Ended(End::Exited(3))
        ]
    );
    let long = format!("{}\n{{}}\n", "x".repeat(16 * 16));
    assert_eq!(heard(long.as_bytes()).await.len(), 3);
    let endless = "x".repeat(16 * 16 + 1);
    assert_eq!(
        heard(endless.as_bytes()).await,
        [Heard::Ended(End::Endless { max: 256 })]
    );
}

#[tokio::test]
async fn stdio_02_noise_is_skipped_up_to_its_bound_and_ends_the_link_past_it() {
    let end = Heard::Ended(End::Exited(3));
    assert_eq!(
        heard(b"hello\n\n> ready\n{}\nx\nx\nx\n{}\n").await,
        [message("{}"), message("{}"), end]
    );
    assert_eq!(
        heard(b"{}\nx\nx\nx\nx\n{}\n").await,
        [message("{}"), Heard::Ended(End::Noise { max: 3 })]
    );
    // What is told to the reader counts as well: nobody floods with it.
    let broken = "\u{1}".repeat(17);
    let text = format!("{broken}\n{broken}\n{broken}\n{broken}\n");
    assert_eq!(
        heard(text.as_bytes()).await.last(),
        Some(&Heard::Ended(End::Noise { max: 3 }))
    );
}

#[tokio::test]
async fn a_question_that_is_cancelled_loses_nothing() {
    let (mut far, near) = duplex(64);
    let (_cause_known, cause) = watch::channel(None);
    let mut receiver = Receiver::of_lines(near, BOUNDS, "toy".to_owned(), cause);
    far.write_all(b"{\"a\"").await.unwrap();
    assert!(timeout(Duration::from_millis(20), receiver.next()).await.is_err());
    far.write_all(b":1}\n").await.unwrap();
    assert_eq!(receiver.next().await, message("{\"a\":1}"));
}

#[tokio::test]
async fn stdio_01_messages_leave_in_order_each_as_one_line() {
    let (sender, jobs) = sending();
    let (near, mut far) = duplex(1 << 10);
    let closing = CancellationToken::new();
    let writer = tokio::spawn(write_lines(near, jobs, closing, BOUNDS.write_timeout));
    for text in ["{\"a\":1}", "{\"b\":2}"] {
        sender.send(Bytes::from(text), soon()).await.unwrap();
    }
    for text in ["{\n}", "{}\n", "{\r}"] {
        let refused = sender.send(Bytes::from(text), soon()).await;
        assert_eq!(refused, Err(DuplexFault::LineBreak), "{text:?}");
    }
    drop(sender);
    assert_eq!(writer.await.unwrap(), None);
    let mut text = String::new();
    far.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "{\"a\":1}\n{\"b\":2}\n");
}

#[tokio::test]
async fn a_message_that_waits_at_its_deadline_does_not_leave_and_one_that_has_begun_may_have() {
    let (sender, jobs) = sending();
    let (near, mut far) = duplex(8);
    let closing = CancellationToken::new();
    let writer = tokio::spawn(write_lines(near, jobs, closing, Duration::from_secs(20)));
    let first = {
        let sender = sender.clone();
        let deadline = Instant::now() + Duration::from_millis(50);
        tokio::spawn(async move { sender.send(Bytes::from("{\"a\":\"long\"}"), deadline).await })
    };
    // Nobody reads, so the first message stands half in the pipe.
    assert_eq!(first.await.unwrap(), Err(DuplexFault::Late { sent: true }));
    let deadline = Instant::now() + Duration::from_millis(20);
    let second = sender.send(Bytes::from("{\"b\":2}"), deadline).await;
    assert_eq!(second, Err(DuplexFault::Late { sent: false }));
    // A sender that goes away takes its message along.
    let gone = sender.send(Bytes::from("{\"c\":3}"), soon());
    assert!(timeout(Duration::from_millis(20), gone).await.is_err());
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        text
    });
    sender.send(Bytes::from("{\"d\":4}"), soon()).await.unwrap();
    drop(sender);
    assert_eq!(writer.await.unwrap(), None);
    assert_eq!(reading.await.unwrap(), "{\"a\":\"long\"}\n{\"d\":4}\n");
}

#[tokio::test]
async fn a_message_that_is_not_taken_whole_ends_the_link() {
    let (sender, jobs) = sending();
    let (near, far) = duplex(4);
    let closing = CancellationToken::new();
    let writer = tokio::spawn(write_lines(near, jobs, closing, BOUNDS.write_timeout));
    let stuck = sender.send(Bytes::from("{\"a\":\"long\"}"), soon()).await;
    assert_eq!(stuck, Err(DuplexFault::Ended { sent: true }));
    assert_eq!(writer.await.unwrap(), Some(End::Stuck));
    let next = sender.send(Bytes::from("{}"), soon()).await;
    assert_eq!(next, Err(DuplexFault::Ended { sent: false }));
    drop(far);
}

#[test]
fn what_is_shown_of_a_line_is_short_and_moves_no_terminal() {
    assert_eq!(shown(b"plain"), "plain");
    assert_eq!(shown(b"\x1b[31mred\x07"), "\u{FFFD}[31mred\u{FFFD}");
    assert_eq!(shown("x".repeat(200).as_bytes()).chars().count(), 200);
    assert_eq!(shown("x".repeat(201).as_bytes()).chars().count(), 201);
    assert!(shown("x".repeat(201).as_bytes()).ends_with('…'));
}
