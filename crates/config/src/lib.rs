//! Text to settings: every fault at once, with file and line.
//!
//! [`load`] reads one TOML file and what it names, and gives [`Settings`] in which everything fits together, or every
//! [`ConfigFault`] that it found. It opens no connection, and it judges neither the OpenAPI documents nor the rules
//! that it reads: those have rooms of their own. The environment, the files and the clock are behind [`World`].
//!
//! One table of keys (`table.rs`) drives the check, the settings, the JSON [`schema`] and the [`reference()`]. The road
//! of a text: `raw.rs` (as written, with places), `check.rs` (each key for itself), `view.rs` and `reading.rs` (values,
//! defaults, `env:` and `file:`), then one file per noun, which also judges what must fit together; `settings.rs` is
//! the whole. Read `settings.rs` first.
//!
//! ```
//! use config::{PaperWorld, load};
//!
//! let world = PaperWorld::default()
//!     .with_file("tollhouse.toml", "[upstream.api]\nopenapi = \"api.yaml\"\ndestination = \"https://api.example.com\"\n")
//!     .with_file("api.yaml", "openapi: 3.1.0")
//!     .with_file("policy/rules.cedar", "");
//! let loaded = load("tollhouse.toml".as_ref(), &world).unwrap();
//! assert_eq!(loaded.settings.resource, "http://127.0.0.1:7300/mcp");
//!
//! let faults = load("tollhouse.toml".as_ref(), &world.with_file("tollhouse.toml", "lisen = \"127.0.0.1:80\"\n")).unwrap_err();
//! assert_eq!(faults[1].to_string(), "tollhouse.toml:1:1: lisen: this key is not known; did you mean `listen`?");
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]
// The tests inside share a world with the tests outside, where this room has a name.
#[cfg(test)]
extern crate self as config;

mod address;
#[cfg(test)]
mod agreement;
mod amount;
mod approval;
mod argument;
mod blocker;
mod caller;
mod check;
mod credential;
mod curated;
mod datum;
mod fault;
mod form;
mod identity;
mod key;
mod load;
mod lookup;
mod place;
mod policy;
mod probe;
mod query;
mod raw;
mod reading;
mod reference;
mod schema;
mod server;
mod settings;
mod source;
mod suggest;
mod table;
mod template;
mod text;
mod tool;
mod upstream;
mod view;
mod work;
mod world;

pub use approval::{Approval, Approved, Audience};
pub use argument::{ArgumentSettings, Given};
pub use blocker::BlockerSettings;
pub use caller::CallerSettings;
pub use check::quoted;
pub use credential::{ClientMethod, CredentialSetting, CredentialSettings, OAuthSettings, TokenEndpoint};
pub use curated::ViewSettings;
pub use fault::{ConfigFault, FaultKind};
pub use identity::{
    ClaimSettings, IdentitySettings, IssuerSettings, KeySetSetting, NetworkSettings, SignatureAlgorithm,
    TlsSettings,
};
pub use load::{Loaded, load};
pub use lookup::{FactKind, FactSettings, OwnerSettings};
pub use place::Place;
pub use policy::PolicyText;
pub use probe::{ProbeSettings, WitnessSettings};
pub use query::Bind;
pub use reading::DocumentFile;
pub use reference::reference;
pub use schema::schema;
pub use server::{
    Asks, CommandSettings, Reach, RestartSettings, SandboxSettings, ServerSettings, Sharing, Transport,
    UrlSettings,
};
pub use settings::{Durability, LedgerSettings, LogFormat, LogLevel, LogSettings, Settings, StdioSettings};
pub use source::{Owners, SourceSettings, StoreSetting};
pub use template::template;
pub use text::is_resource_uri;
pub use tool::{
    ConsentWaiver, DocumentServerSettings, NestingRule, PagesBy, PagesSettings, ResourceBy, ResourceSettings,
    RetrySettings, RowsSettings, Scope, ToolSettings,
};
pub use upstream::{DocumentRoot, Redirects, ReferenceSettings, UpstreamSettings};
pub use work::LongRunningSettings;
pub use world::{NotUnicode, PaperWorld, ReadFault, SystemWorld, World};
