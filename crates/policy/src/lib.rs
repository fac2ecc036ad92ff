//! Rules and facts in, verdict with reasons out.
//!
//! This room decides and does nothing else: it reads no clock, no file and no network, and it never asks who a caller
//! really is or who owns a thing. Others found that out; here it is put before the rules. It is the only maker of
//! [`Permitted<T>`], the proof that rules said yes. Read first: [`Policy::decide`].
//!
//! Rules are written in [Cedar](https://docs.cedarpolicy.com/). Nothing said yes is a no. A forbid beats every permit.
//!
//! # A rule, and what it decides
//!
//! ```
//! use model::{Caller, Class, ResourceType, Subject, Target, TenantId, ToolName, UpstreamName};
//! use policy::{Action, DeniedWhy, Policy, PolicyFile, Question};
//! use serde_json::json;
//!
//! let tool = ToolName::parse("billing_getInvoiceStatus")?;
//! let actions = [Action {
//!     tool: tool.clone(),
//!     upstream: UpstreamName::parse("billing")?,
//!     class: Class::Read,
//!     resource: Some(ResourceType::parse("Invoice")?),
//!     input_schema: json!({
//!         "type": "object",
//!         "properties": {"invoiceId": {"type": "string"}},
//!         "required": ["invoiceId"],
//!         "additionalProperties": false,
//!     }),
//!     facts: vec![],
//! }];
//! let files = [PolicyFile {
//!     path: "policy/billing.cedar".to_owned(),
//!     text: r#"
//! permit (
//!   principal is Caller,
//!   action == Action::"billing_getInvoiceStatus",
//!   resource is Invoice
//! ) when { resource.owner == principal.tenant };
//!     "#.to_owned(),
//! }];
//! let policy = Policy::load(&files, &actions).map_err(|faults| faults[0].clone())?;
//!
//! // A member of the organisation `north` asks for the status of an invoice.
//! let ada = Caller {
//!     issuer: "corp".to_owned(),
//!     subject: Subject::parse("ada")?,
//!     tenant: Some(TenantId::parse("north")?),
//!     roles: [].into(),
//!     client: None,
//! };
//! let arguments = json!({"invoiceId": "inv-1"});
//! let ask = |owner: &str| -> Result<_, Box<dyn std::error::Error>> {
//!     let target = Target {
//!         kind: ResourceType::parse("Invoice")?,
//!         id: "inv-1".to_owned(),
//!         owner: Some(TenantId::parse(owner)?),
//!     };
//!     Ok(policy.decide("the call", &Question {
//!         caller: &ada,
//!         tool: &tool,
//!         target: Some(&target),
//!         arguments: arguments.as_object().ok_or("not an object")?,
//!         facts: &[],
//!         now: "2026-11-30T12:00:00Z".parse()?,
//!     }))
//! };
//!
//! let permitted = ask("north")?.map_err(|denied| denied.to_string())?;
//! assert_eq!(permitted.get(), &"the call");
//! assert_eq!(permitted.verdict().rules[0].as_str(), "billing.cedar#0");
//!
//! let denied = ask("south")?.unwrap_err();
//! assert_eq!(denied.why, DeniedWhy::NothingPermits);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What rules can say
//!
//! | word | what it is |
//! |---|---|
//! | `principal` | a `Caller`, as `Caller::"corp/ada"`: issuer, slash, subject |
//! | `principal.subject`, `.issuer`, `.tenant`, `.client` | texts |
//! | `principal.roles` | a set of texts: `principal.roles.contains("auditor")` |
//! | `action` | the tool, as `Action::"billing_getInvoiceStatus"` |
//! | `action in Action::"class:read"` | any tool of a class: `read`, `sensitive-read`, `write`, `destructive` |
//! | `action in Action::"upstream:billing"` | any tool of an upstream |
//! | `resource` | the thing that the call names, as `Invoice::"inv-1"`; else the tool itself, as `Tool::"ping"` |
//! | `resource.id`, `.owner` | texts; a `Tool` has neither |
//! | `context.class`, `.upstream` | texts |
//! | `context.now` | a `datetime` in whole milliseconds: `context.now < datetime("2027-01-01")` |
//! | `context.arguments.<name>` | an argument, typed as below |
//! | `context.facts.<name>` | a fact that was looked up, as `Bool`, `Long` or `String` |
//!
//! **Arguments** are typed from the JSON Schema of the tool:
//!
//! | JSON Schema | Cedar |
//! |---|---|
//! | `string`; `enum` or `const` of texts | `String` |
//! | `integer` | `Long` |
//! | `boolean` | `Bool` |
//! | `array` of one of those | `Set` of it; order and repetition are lost |
//! | `object` with `properties`, down to four inside each other | a record |
//! | not in `required` | an optional attribute: ask first, `context.arguments has limit && …` |
//! | `null`, `number`, several types, `$ref`, anything else; what is past the first 1 000 | left out |
//!
//! A rule that names an argument which is left out does not load, not even behind `has`: to Cedar it would simply be
//! absent, and an `unless { context.arguments has callback }` would not see the callback. For the same reason a record
//! such as `context.arguments` cannot be compared as a whole. A name that is no identifier goes in brackets:
//! `context.arguments["page-size"]`.
//!
//! **What may be missing.** A caller may have no tenant or client, a thing no known owner, a source may know no fact.
//! Rules read these as if they were always there, which keeps rules short; where one is missing, the rule that reads
//! it fails, and **a rule that fails denies**, be it a permit or a forbid, and even where another rule says yes. So
//! does a sum beyond 64 bits. To allow for what is missing, ask before reading:
//!
//! ```cedar
//! permit (principal, action in Action::"class:read", resource)
//! when { principal has tenant && resource has owner && resource.owner == principal.tenant };
//! ```
//!
//! **Ids.** `@id("members-read-invoices")` in front of a rule names it in the ledger. Without it the rule is
//! `billing.cedar#0`: the file's name and the rule's number in the file, from 0.
//!
//! **What does not load**, each with its place and, where there is one, the name that was probably meant: what Cedar
//! cannot parse; templates; names of tools, groups and types that do not exist; attributes that cannot exist; types
//! that do not fit; rules that can never apply; two rules with one id; invisible characters; a rule with more than a
//! hundred operators and brackets on top of each other, as a chain of `||` (a list, `[…].contains(…)`, may be as long
//! as you like); files longer than the limit `config_bytes_max`, and more than 10 000 rules. A rule about a class that has no tools at the moment loads, and its condition is checked when it has.
//!
//! Only the rules that can apply to a tool are evaluated for it. The texts of Cedar's own errors reach the operator
//! and never an agent.

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

mod action;
mod check;
mod fault;
mod leeway;
mod listing;
mod load;
mod policy;
mod probe;
mod question;
mod reads;
mod rule;
mod scan;
mod shape;
mod value;
mod verdict;
mod vocabulary;

pub use action::{Action, FactType};
pub use fault::{Place, PolicyFault, PolicyFaultKind};
pub use load::{FAULTS_MAX, PolicyFile, RULES_MAX};
pub use policy::{Listing, Policy};
pub use probe::read_anything;
pub use question::Question;
pub use rule::{Effect, RuleSummary};
pub use verdict::{Denied, DeniedWhy, Permitted, Verdict};
