//! What certificates are judged by: the platform's roots, and those that the operator adds.
//!
//! The cryptography is named here (aws-lc-rs) and never taken from a process-wide default.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

use crate::fault::EgressFault;

/// The TLS side of a client, or why there can be no encrypted connection.
pub(crate) enum Tls {
    Ready(Arc<ClientConfig>),
    /// A machine without any roots may still talk to plain-text destinations, so this shows up at the connection.
    NoRoots(Arc<str>),
}

impl Tls {
    /// `ca_pem`: roots beside those of the platform. A text without a readable certificate is a fault.
    pub(crate) fn new(ca_pem: Option<&[u8]>, http2: bool) -> Result<Self, EgressFault> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let extra = match ca_pem {
            None => Vec::new(),
            Some(pem) => certificates(pem)?,
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
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EgressFault::Setup(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = if http2 {
            vec![b"h2".to_vec(), b"http/1.1".to_vec()]
        } else {
            vec![b"http/1.1".to_vec()]
        };
        Ok(Self::Ready(Arc::new(config)))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, EgressFault> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| bad_roots(&error.to_string()))?;
    if certificates.is_empty() {
        return Err(bad_roots("there is no certificate in it"));
    }
    Ok(certificates)
}

fn bad_roots(why: &str) -> EgressFault {
    EgressFault::Setup(format!(
        "the extra certificates (`ca`) cannot be used: {why}; give a PEM file with the certificates of authorities"
    ))
}
