//! From names to addresses. What comes out is not trusted: every address is judged before it is connected to.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// A future on the heap that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves names. Replaceable, so that a test can let a name change its meaning.
pub trait Resolve: Send + Sync {
    /// All addresses of a host, in the order in which they are tried. An error or an empty answer is a no.
    ///
    /// `host`: a DNS name in lower case; never an address. Dropping the future gives the question up.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver: `/etc/hosts`, DNS, and whatever else it is set up with.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut addresses = Vec::new();
            for address in tokio::net::lookup_host((host, 0)).await? {
                // The system names an address once per socket type.
                if !addresses.contains(&address.ip()) {
                    addresses.push(address.ip());
                }
            }
            Ok(addresses)
        })
    }
}
