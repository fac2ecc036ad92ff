//! Services behind TLS: an authority of the tests, and a server with a certificate that it signed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;

/// An authority that can sign certificates.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A server over TLS that answers every request with the same JSON.
#[derive(Debug)]
pub struct Secure {
    pub address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority of the tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a client, and its private key, as PEM.
    pub fn client(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params
            .extended_key_usages
            .push(ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// A server on loopback with a certificate for this name.
    pub fn server(&self, name: &str, body: &Value) -> Secure {
        self.serve(name, body, false)
    }

    /// The same, which lets nobody through who shows no certificate of this authority.
    pub fn server_for_clients(&self, name: &str, body: &Value) -> Secure {
        self.serve(name, body, true)
    }

    fn serve(&self, name: &str, body: &Value, asks_clients: bool) -> Secure {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if asks_clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let config = builder
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let (seen, body) = (Arc::clone(&requests), body.to_string());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, seen, body) = (Arc::clone(&config), Arc::clone(&seen), body.clone());
                // A handshake that fails is what some tests are about.
                std::thread::spawn(move || drop(serve(stream, config, &seen, &body)));
            }
        });
        Secure { address, requests }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Secure {
    /// How many requests were read.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    seen: &AtomicUsize,
    body: &str,
) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut tls = StreamOwned::new(connection, stream);
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            tls.read_exact(&mut byte)?;
            head.extend_from_slice(&byte);
        }
        seen.fetch_add(1, Ordering::SeqCst);
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        tls.write_all(head.as_bytes())?;
        tls.write_all(body.as_bytes())?;
        tls.flush()?;
    }
}
