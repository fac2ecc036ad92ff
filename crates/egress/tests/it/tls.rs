//! Certificates: the right name of a known authority, and everything that is not that.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use egress::{Client, ClientOptions, EgressFault, Resolve};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::dialing::Script;
use crate::server::{Act, Server, a_while, answer, get, in_time, options, post, soon};

/// An authority that can sign certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server's configuration with a certificate for these names, changed as `change` says.
    fn server(
        &self,
        names: &[&str],
        alpn: &[&str],
        change: impl Fn(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// The server names that clients asked for, as they came in.
type Names = Arc<Mutex<Vec<Option<String>>>>;

/// A TLS server in front of a plain one.
async fn encrypt(config: Arc<ServerConfig>, inside: SocketAddr) -> (SocketAddr, Names) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let names = Names::default();
    let seen = Arc::clone(&names);
    tokio::spawn(async move {
        while let Ok((outer, _)) = listener.accept().await {
            let config = Arc::clone(&config);
            let seen = Arc::clone(&seen);
            // A handshake that the client gives up ends the task; the client's own error is what tests look at.
            tokio::spawn(async move { pump(outer, config, inside, seen).await });
        }
    });
    (address, names)
}

/// A socket as rustls wants it: reads and writes that would wait are errors.
struct Now<'a>(&'a TcpStream);

impl Read for Now<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Now<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.try_write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn would_wait(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}

/// Carries bytes between an encrypted and a plain connection until either ends.
async fn pump(
    outer: TcpStream,
    config: Arc<ServerConfig>,
    inside: SocketAddr,
    names: Names,
) -> std::io::Result<()> {
    let mut tls = rustls::ServerConnection::new(config).unwrap();
    let mut inner: Option<TcpStream> = None;
    let mut buffer = vec![0; 16_384];
    loop {
        while tls.wants_write() {
            match tls.write_tls(&mut Now(&outer)) {
                Ok(_) => {}
                Err(error) if would_wait(&error) => outer.writable().await?,
                Err(error) => return Err(error),
            }
        }
        let from_inside = async {
            match &inner {
                Some(inner) => inner.readable().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ready = outer.readable() => {
                ready?;
                match tls.read_tls(&mut Now(&outer)) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if would_wait(&error) => continue,
                    Err(error) => return Err(error),
                }
                if let Err(error) = tls.process_new_packets() {
                    // The alert that says why.
                    let _ = tls.write_tls(&mut Now(&outer));
                    return Err(std::io::Error::other(error));
                }
                if inner.is_none() && !tls.is_handshaking() {
                    names.lock().unwrap().push(tls.server_name().map(str::to_owned));
                    inner = Some(TcpStream::connect(inside).await?);
                }
                let Some(inner) = inner.as_mut() else { continue };
                while let Ok(n @ 1..) = tls.reader().read(&mut buffer) {
                    inner.write_all(&buffer[..n]).await?;
                }
            }
            ready = from_inside => {
                ready?;
                match inner.as_ref().unwrap().try_read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(n) => tls.writer().write_all(&buffer[..n])?,
                    Err(error) if would_wait(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// A client that trusts this authority, and for which every name is this machine.
fn trusting(authority: &Authority, http2: bool) -> Client {
    let options = ClientOptions {
        ca_pem: Some(authority.pem().into_bytes()),
        http2,
        ..options()
    };
    Client::with_resolver(options, Script::new(&[&["127.0.0.1"]]) as Arc<dyn Resolve>).unwrap()
}

#[tokio::test]
async fn the_right_name_of_a_known_authority_is_good() {
    let authority = Authority::new();
    let inside = Server::start(|_| Act::Say(answer("ok"))).await;
    let config = authority.server(&["billing.example", "127.0.0.1"], &[], |_| {});
    let (address, names) = encrypt(config, inside.address).await;
    let client = trusting(&authority, false);
    for host in ["billing.example", "BILLING.example", "127.0.0.1"] {
        let url = format!("https://{host}:{}/", address.port());
        let answer = in_time(client.send(get(&url), soon())).await.unwrap();
        assert_eq!(answer.read(2, soon()).await.unwrap(), "ok", "{host}");
    }
    // The name of the URL is asked for, not an address; an address is never sent as a name (RFC 6066).
    // Case makes no other host, so the second request went over the first connection.
    let billing = Some("billing.example".to_owned());
    assert_eq!(*names.lock().unwrap(), [billing, None]);
    assert_eq!(client.requests(), 3);
}

#[tokio::test]
async fn every_other_certificate_is_refused_before_anything_is_sent() {
    let authority = Authority::new();
    let stranger = Authority::named("a stranger");
    let impostor = Authority::new();
    let inside = Server::start(|_| Act::Say(answer("secret"))).await;
    let past = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    };
    let future = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2999, 1, 1);
        params.not_after = date_time_ymd(3000, 1, 1);
    };
    for (case, config, words) in [
        (
            "another name",
            authority.server(&["other.example"], &[], |_| {}),
            "not valid for name",
        ),
        (
            "the address instead of the name",
            authority.server(&["127.0.0.1"], &[], |_| {}),
            "not valid for name",
        ),
        (
            "a name above",
            authority.server(&["example"], &[], |_| {}),
            "not valid for name",
        ),
        (
            "ended",
            authority.server(&["billing.example"], &[], past),
            "expired",
        ),
        (
            "not begun",
            authority.server(&["billing.example"], &[], future),
            "not valid yet",
        ),
        (
            "another authority",
            stranger.server(&["billing.example"], &[], |_| {}),
            "UnknownIssuer",
        ),
        (
            "another authority of the same name",
            impostor.server(&["billing.example"], &[], |_| {}),
            "BadSignature",
        ),
    ] {
        let (address, _) = encrypt(config, inside.address).await;
        let client = trusting(&authority, true);
        let url = format!("https://billing.example:{}/", address.port());
        let fault = in_time(client.send(post(&url, "x"), soon())).await.unwrap_err();
        match &fault {
            EgressFault::Tls { host, why } => {
                assert_eq!(host, "billing.example", "{case}");
                assert!(why.contains(words), "{case}: {why}");
            }
            other => panic!("{case}: {other:?}"),
        }
        assert!(!fault.sent());
        assert_eq!(client.requests(), 0, "{case}");
    }
    assert!(inside.heads().is_empty());
}

#[tokio::test]
async fn an_authority_that_only_another_client_trusts_is_refused() {
    let authority = Authority::new();
    let inside = Server::start(|_| Act::Say(answer("ok"))).await;
    let config = authority.server(&["127.0.0.1"], &[], |_| {});
    let (address, _) = encrypt(config, inside.address).await;
    let url = format!("https://{address}/");
    let plain = Client::new(options()).unwrap();
    let fault = in_time(plain.send(get(&url), soon())).await.unwrap_err();
    assert!(matches!(fault, EgressFault::Tls { .. }), "{fault:?}");
    assert!(
        in_time(trusting(&authority, false).send(get(&url), soon()))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_server_that_speaks_plain_text_where_tls_is_due_is_refused() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&answer("ok")).await.unwrap();
        std::future::pending::<()>().await;
    });
    let client = Client::new(options()).unwrap();
    let fault = in_time(client.send(get(&format!("https://{address}/")), soon()))
        .await
        .unwrap_err();
    assert!(matches!(fault, EgressFault::Tls { .. }), "{fault:?}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn roots_that_cannot_be_read_are_a_fault_of_the_setup() {
    for pem in [
        &b""[..],
        b"no certificate",
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    ] {
        let options = ClientOptions {
            ca_pem: Some(pem.to_vec()),
            ..options()
        };
        let fault = Client::new(options).unwrap_err();
        assert!(
            matches!(&fault, EgressFault::Setup(why) if why.contains("`ca`")),
            "{fault:?}"
        );
        assert!(!fault.sent());
    }
}

/// An HTTP/2 server that counts connections and answers `h2`.
async fn http2_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            let service = service_fn(|request: http::Request<hyper::body::Incoming>| async move {
                assert_eq!(request.version(), http::Version::HTTP_2);
                if request.uri().path() == "/hang" {
                    std::future::pending::<()>().await;
                }
                Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from_static(b"h2"))))
            });
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    (address, connections)
}

#[tokio::test]
async fn http2_is_spoken_where_both_sides_want_it_and_not_where_it_is_off() {
    let authority = Authority::new();
    let (second, connections) = http2_server().await;
    let first = Server::start(|_| Act::Say(answer("h1"))).await;
    let with = |alpn: &[&str]| authority.server(&["127.0.0.1"], alpn, |_| {});

    let (address, _) = encrypt(with(&["h2"]), second).await;
    let url = format!("https://{address}/");
    let client = trusting(&authority, true);
    for _ in 0..3 {
        let answer = in_time(client.send(get(&url), soon())).await.unwrap();
        assert_eq!(answer.read(2, soon()).await.unwrap(), "h2");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1, "one connection for all");
    assert_eq!(client.requests(), 3);

    // A server that knows both gets what the client offers.
    for (http2, inside, said) in [(true, second, "h2"), (false, first.address, "h1")] {
        let (address, _) = encrypt(with(&["h2", "http/1.1"]), inside).await;
        let client = trusting(&authority, http2);
        let answer = in_time(client.send(get(&format!("https://{address}/")), soon()))
            .await
            .unwrap();
        assert_eq!(answer.read(2, soon()).await.unwrap(), said);
    }
}

#[tokio::test]
async fn over_http2_too_a_request_that_left_counts_as_sent() {
    let authority = Authority::new();
    let (inside, _) = http2_server().await;
    let (address, _) = encrypt(authority.server(&["127.0.0.1"], &["h2"], |_| {}), inside).await;
    let client = trusting(&authority, true);
    // A first answer, so that the time that follows is not spent on the handshake.
    in_time(client.send(get(&format!("https://{address}/")), soon()))
        .await
        .unwrap();
    for request in [
        get(&format!("https://{address}/hang")),
        post(&format!("https://{address}/hang"), "x"),
    ] {
        let before = client.requests();
        let fault = in_time(client.send(request, a_while())).await.unwrap_err();
        assert!(fault.sent(), "{fault:?}");
        assert_eq!(client.requests() - before, 1);
    }
}
