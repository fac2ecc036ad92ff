//! Redirects: none followed unless asked for, and then only within the origin.

use bytes::Bytes;
use egress::{EgressFault, RedirectFault};
use http::{Method, Request};
use http_body_util::Full;

use crate::server::{Act, Server, answer, client, get, post, redirect, soon};

#[tokio::test]
async fn a_redirect_is_an_answer_where_following_was_not_asked_for() {
    let server = Server::start(|_| Act::Say(redirect(302, "/there"))).await;
    let client = client();
    let answer = client.send(get(&server.url("/here")), soon()).await.unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(answer.headers["location"], "/there");
    assert_eq!((server.heads().len(), client.requests()), (1, 1));
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed_with_their_headers() {
    let server = Server::start(|target| match target {
        "/1" => Act::Say(redirect(301, "/2")),
        "/2" => Act::Say(redirect(302, "3?x=1")),
        "/3?x=1" => Act::Say(redirect(303, "?x=2")),
        "/3?x=2" => Act::Say(redirect(307, "./a/../4#fragment")),
        "/4" => Act::Say(redirect(308, "/5")),
        "/5" => Act::Say(answer("there")),
        other => panic!("{other}"),
    })
    .await;
    let client = client();
    let mut request = get(&server.url("/1"));
    request
        .headers_mut()
        .insert("authorization", "Bearer x".parse().unwrap());
    let further = std::cell::Cell::new(0);
    let count = || further.set(further.get() + 1);
    let answer = client.send_following(request, 5, soon(), count).await.unwrap();
    assert_eq!(answer.read(5, soon()).await.unwrap(), "there");
    assert_eq!((client.requests(), further.get()), (6, 5));
    for head in server.heads() {
        assert!(
            head.to_ascii_lowercase().contains("authorization: bearer x"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn as_many_redirects_as_allowed_are_followed_and_not_one_more() {
    let server = Server::start(|target| {
        let n: usize = target[1..].parse().unwrap();
        if n == 0 {
            Act::Say(answer("there"))
        } else {
            Act::Say(redirect(302, &format!("/{}", n - 1)))
        }
    })
    .await;
    let client = client();
    for (hops, good) in [(3, true), (2, false), (0, false)] {
        let before = client.requests();
        let outcome = client
            .send_following(get(&server.url("/3")), hops, soon(), || {})
            .await;
        match outcome {
            Ok(answer) => assert!(good && answer.status == 200),
            Err(fault) => {
                assert!(!good);
                assert_eq!(
                    fault,
                    EgressFault::Redirect {
                        status: 302,
                        why: RedirectFault::TooMany { max: hops }
                    }
                );
                assert!(fault.sent());
            }
        }
        assert_eq!(client.requests() - before, u64::from(hops) + 1);
    }
}

#[tokio::test]
async fn a_loop_ends() {
    let server = Server::start(|_| Act::Say(redirect(302, "/"))).await;
    let fault = client()
        .send_following(get(&server.url("/")), 10, soon(), || {})
        .await
        .unwrap_err();
    assert!(matches!(
        fault,
        EgressFault::Redirect {
            why: RedirectFault::TooMany { max: 10 },
            ..
        }
    ));
    assert_eq!(server.heads().len(), 11);
}

#[tokio::test]
async fn nothing_is_sent_to_another_origin() {
    let other = Server::start(|_| Act::Say(answer("secret"))).await;
    let port = other.address.port();
    for location in [
        format!("http://127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("\\\\127.0.0.1:{port}\\"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "http://[::1]/".to_owned(),
        "http://example.com/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let server = Server::start({
            let location = location.clone();
            move |_| Act::Say(redirect(302, &location))
        })
        .await;
        let client = client();
        let fault = client
            .send_following(get(&server.url("/")), 5, soon(), || {})
            .await
            .unwrap_err();
        assert!(
            matches!(
                fault,
                EgressFault::Redirect {
                    status: 302,
                    why: RedirectFault::OtherOrigin { .. }
                }
            ),
            "{location}: {fault:?}"
        );
        assert_eq!(client.requests(), 1, "{location}");
        // The same host on https is another origin too.
        let secure = format!("https://{}/", server.address);
        let up = Server::start(move |_| Act::Say(redirect(301, &secure))).await;
        let fault = client
            .send_following(get(&up.url("/")), 5, soon(), || {})
            .await
            .unwrap_err();
        assert!(matches!(fault, EgressFault::Redirect { .. }), "{fault:?}");
    }
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_redirect_without_a_location_is_a_fault() {
    let server =
        Server::start(|_| Act::Say(b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_vec())).await;
    let fault = client()
        .send_following(get(&server.url("/")), 5, soon(), || {})
        .await
        .unwrap_err();
    assert_eq!(
        fault,
        EgressFault::Redirect {
            status: 302,
            why: RedirectFault::NoLocation
        }
    );
}

#[tokio::test]
async fn only_reading_requests_are_repeated_elsewhere() {
    let server = Server::start(|target| match target {
        "/there" => Act::Say(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        _ => Act::Say(redirect(307, "/there")),
    })
    .await;
    let client = client();
    let fault = client
        .send_following(post(&server.url("/"), "x"), 5, soon(), || {})
        .await
        .unwrap_err();
    assert_eq!(
        fault,
        EgressFault::Redirect {
            status: 307,
            why: RedirectFault::Method {
                method: "POST".to_owned()
            }
        }
    );
    assert_eq!(server.heads().len(), 1);
    let head: Request<Full<Bytes>> = Request::builder()
        .method(Method::HEAD)
        .uri(server.url("/"))
        .body(Full::default())
        .unwrap();
    let answer = client.send_following(head, 5, soon(), || {}).await.unwrap();
    assert_eq!(answer.status, 204);
    // Without a redirect, any method is sent.
    let answer = client
        .send_following(post(&server.url("/there"), "x"), 0, soon(), || {})
        .await
        .unwrap();
    assert_eq!(answer.status, 204);
}

#[tokio::test]
async fn statuses_that_are_no_redirects_are_answers() {
    for status in [300, 304, 305, 306, 399] {
        let server = Server::start(move |_| Act::Say(redirect(status, "http://10.0.0.1/"))).await;
        let answer = client()
            .send_following(get(&server.url("/")), 5, soon(), || {})
            .await
            .unwrap();
        assert_eq!(answer.status.as_u16(), status);
    }
}
