//! The documents of upstreams: read with their overlays, with the other files of their folder, and with files that servers
//! give where the configuration allows it. What a document says is judged in `openapi`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use config::{ReadFault, ReferenceSettings, UpstreamSettings, World};
use egress::{Client, ClientOptions, Network};
use http::{Method, Request};
use http_body_util::Full;
use model::Limits;
use openapi::{Absent, Document, DocumentFault, DocumentLimits, Reading, Sources};
use tokio::time::Instant;
use url::Url;

/// How long all files that servers give may take together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Files of servers that one document may have.
const FETCHED_MAX: usize = 256;

/// Whether servers may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As the configuration allows it.
    Configured,
    /// No connection is made.
    Nothing,
}

/// Reads the document of an upstream.
///
/// Files of servers are fetched in rounds: what a round brings can name others. Nothing is fetched for a document whose
/// upstream has no `references`.
pub(crate) async fn read(
    upstream: &UpstreamSettings,
    limits: &Limits,
    world: &dyn World,
    reach: Reach,
) -> Result<Document, DocumentFault> {
    let mut shelf = Shelf {
        upstream,
        world,
        bytes_max: limits.document_bytes_max,
        reach,
        fetched: BTreeMap::new(),
        wanted: RefCell::default(),
    };
    let overlays: Vec<&[u8]> = upstream
        .overlays
        .iter()
        .map(|overlay| overlay.bytes.as_slice())
        .collect();
    let deadline = Instant::now() + FETCH_TIMEOUT;
    loop {
        let reading = Reading {
            limits: DocumentLimits::from(limits),
            path: &upstream.root.document,
            sources: &shelf,
            overlays: &overlays,
        };
        let document = Document::read_with(&upstream.openapi.bytes, &reading)?;
        let wanted = shelf.wanted.take();
        if wanted.is_empty() {
            return Ok(document);
        }
        // Each round knows more than the one before, up to `FETCHED_MAX`.
        for url in wanted {
            let file = match &upstream.references {
                Some(references) => fetch(&url, references, limits, deadline).await,
                None => Err("nothing may be fetched".to_owned()),
            };
            shelf.fetched.insert(url, file);
        }
    }
}

/// Where the other files of one document come from.
struct Shelf<'w> {
    upstream: &'w UpstreamSettings,
    world: &'w dyn World,
    bytes_max: usize,
    reach: Reach,
    /// What servers gave so far, or why they gave nothing.
    fetched: BTreeMap<String, Result<Vec<u8>, String>>,
    /// What is to be fetched before the document is read again.
    wanted: RefCell<BTreeSet<String>>,
}

impl Sources for Shelf<'_> {
    fn file(&self, path: &str) -> Result<Vec<u8>, Absent> {
        self.world
            .read_inside(&self.upstream.root.folder, path, self.bytes_max)
            .map_err(|fault| Absent {
                text: match &fault {
                    ReadFault::Long { max } => format!("`{path}` is longer than {max} bytes"),
                    ReadFault::Missing
                    | ReadFault::Denied
                    | ReadFault::Kind(_)
                    | ReadFault::Name
                    | ReadFault::Other(_) => format!("`{path}` {fault}"),
                },
                clears: format!(
                    "put the file into `{}`, or bundle the document",
                    self.upstream.root.folder.display()
                ),
            })
    }

    fn remote(&self, url: &str) -> Result<Vec<u8>, Absent> {
        let name = &self.upstream.name;
        let absent = |text: String, clears: String| Err(Absent { text, clears });
        let is_allowed = self
            .upstream
            .references
            .as_ref()
            .zip(Url::parse(url).ok())
            .is_some_and(|(references, url)| references.allow(&url));
        if !is_allowed {
            return absent(
                format!("`upstream.{name}.references` does not allow it"),
                format!("add it to `upstream.{name}.references.from`, or bundle the document"),
            );
        }
        match (self.fetched.get(url), self.reach) {
            (Some(Ok(bytes)), _) => Ok(bytes.clone()),
            (Some(Err(why)), _) => absent(
                format!("it could not be fetched: {why}"),
                "let the server answer, or bundle the document".to_owned(),
            ),
            (None, Reach::Nothing) => absent(
                "it was not fetched, because nothing is connected to".to_owned(),
                "leave `--offline` out".to_owned(),
            ),
            (None, Reach::Configured) if self.fetched.len() + self.wanted.borrow().len() >= FETCHED_MAX => {
                absent(
                    format!("a document may have {FETCHED_MAX} files of servers"),
                    "bundle the document".to_owned(),
                )
            }
            (None, Reach::Configured) => {
                self.wanted.borrow_mut().insert(url.to_owned());
                absent("it is not fetched yet".to_owned(), String::new())
            }
        }
    }
}

/// One file of a server, in one try.
async fn fetch(
    url: &str,
    references: &ReferenceSettings,
    limits: &Limits,
    deadline: Instant,
) -> Result<Vec<u8>, String> {
    let mut options = ClientOptions::new(Network::allowing(references.network.allow.clone()), limits);
    options.ca_pem = references.tls.ca.as_ref().map(|file| file.bytes.clone());
    let client = Client::new(options).map_err(|fault| fault.to_string())?;
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.method_mut() = Method::GET;
    *request.uri_mut() = url.parse().map_err(|_| "it is no URI".to_owned())?;
    let answer = client
        .send(request, deadline)
        .await
        .map_err(|fault| fault.to_string())?;
    if answer.status != http::StatusCode::OK {
        return Err(format!("the server answered {}", answer.status.as_u16()));
    }
    let bytes = answer
        .read(limits.document_bytes_max, deadline)
        .await
        .map_err(|fault| fault.to_string())?;
    Ok(bytes.to_vec())
}
