//! What certificates are judged by: the platform's roots, and those that the operator adds.
//!
//! The cryptography is named here (aws-lc-rs) and never taken from a process-wide default.

use std::sync::Arc;

use model::SecretText;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::Verifier;
use secrecy::ExposeSecret as _;

use crate::fault::EgressFault;

/// A certificate that a client shows in the handshake. `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The certificate, and those between it and an authority, as PEM.
    pub certificate_pem: Vec<u8>,
    /// Its private key, as PEM: PKCS #8, PKCS #1 or SEC 1.
    pub key_pem: SecretText,
}

/// The TLS side of a client, or why there can be no encrypted connection.
pub(crate) enum Tls {
    Ready(Arc<ClientConfig>),
    /// A machine without any roots may still talk to plain-text destinations, so this shows up at the connection.
    NoRoots(Arc<str>),
}

impl Tls {
    /// `ca_pem`: roots beside those of the platform. A text without a readable certificate is a fault, and so is a
    /// certificate of the client whose key is another's.
    pub(crate) fn new(
        ca_pem: Option<&[u8]>,
        certificate: Option<&ClientCertificate>,
        http2: bool,
    ) -> Result<Self, EgressFault> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let extra = match ca_pem {
            None => Vec::new(),
            Some(pem) => certificates(pem).map_err(|why| bad_roots(&why))?,
        };
        let has_extra = !extra.is_empty();
        let verifier = match Verifier::new_with_extra_roots(extra, Arc::clone(&provider)) {
            Ok(verifier) => verifier,
            Err(error) if has_extra => return Err(bad_roots(&error.to_string())),
            Err(error) => {
                return Ok(Self::NoRoots(Arc::from(format!(
                    "this machine has no certificates of authorities to judge by ({error}); install its \
                     `ca-certificates` package, point SSL_CERT_FILE to a bundle, or configure `ca` for this upstream"
                ))));
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EgressFault::Setup(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let chain =
                    certificates(&certificate.certificate_pem).map_err(|why| bad_certificate(&why))?;
                // The error of a key that cannot be read does not repeat it.
                let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.expose_secret().as_bytes())
                    .map_err(|_| bad_certificate("its private key cannot be read"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| bad_certificate(&error.to_string()))?
            }
        };
        config.alpn_protocols = if http2 {
            vec![b"h2".to_vec(), b"http/1.1".to_vec()]
        } else {
            vec![b"http/1.1".to_vec()]
        };
        Ok(Self::Ready(Arc::new(config)))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(certificates)
}

fn bad_roots(why: &str) -> EgressFault {
    EgressFault::Setup(format!(
        "the extra certificates (`ca`) cannot be used: {why}; give a PEM file with the certificates of authorities"
    ))
}

fn bad_certificate(why: &str) -> EgressFault {
    EgressFault::Setup(format!(
        "the certificate of this client cannot be used: {why}; give a PEM file with the certificate, and its own \
         private key as PEM"
    ))
}
