//! `tollhouse check`: every fault of what was written, then whether what it names can be reached.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::{Access, Catalog, Operation};
use config::{KeySetSetting, ServerSettings, UpstreamSettings};
use egress::{Client, ClientOptions, Destination, Network};
use http::{Method, Request};
use http_body_util::Full;
use model::{Limits, UpstreamName};
use openapi::OverlayAction;
use serde::Serialize;
use server::KeySetKeeper;
use tokio::time::Instant;
use upstream::{Far, Peer, Survey};

use super::held;
use crate::cli::Check;
use crate::failure::Failure;
use crate::house::document::Reach;
use crate::house::{Reviewed, command_line};
use crate::print::{self, say, tell};
use crate::problem::{Problem, report};
use crate::{house, log};

/// How long one probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize)]
struct Outcome {
    ok: bool,
    tools: usize,
    held: usize,
    rules_version: Option<String>,
    approvals: Vec<Answered>,
    documents: Vec<Read>,
    blocked: Vec<held::Operation>,
    probes: Vec<Probe>,
    warnings: Vec<Problem>,
    problems: Vec<Problem>,
}

/// Who answers for it that a tool is offered.
#[derive(Debug, Serialize)]
struct Answered {
    tool: String,
    what: &'static str,
    by: String,
    because: String,
    until: String,
    #[serde(rename = "for")]
    audience: Vec<String>,
    holds: bool,
}

/// What was read of one upstream's document.
#[derive(Debug, Serialize)]
struct Read {
    upstream: UpstreamName,
    /// What it says of itself, as `3.0.3`.
    version: String,
    operations: usize,
    /// Its other files.
    files: Vec<String>,
    /// What its overlays did.
    overlaid: Vec<OverlayAction>,
}

/// What a probe of something outside found.
#[derive(Debug, Serialize)]
struct Probe {
    what: String,
    reached: bool,
    detail: String,
}

pub(crate) async fn check(args: Check) -> Result<(), Failure> {
    log::start_quiet();
    let reach = if args.offline {
        Reach::Nothing
    } else {
        Reach::Configured
    };
    let reviewed = match super::review_approved(&args.path, reach).await {
        Ok(reviewed) => reviewed,
        Err(Failure::Problems(problems)) if args.format.json => {
            print::json(&Outcome {
                ok: false,
                tools: 0,
                held: 0,
                rules_version: None,
                approvals: Vec::new(),
                documents: Vec::new(),
                blocked: Vec::new(),
                probes: Vec::new(),
                warnings: Vec::new(),
                problems,
            });
            return Err(Failure::Faulty);
        }
        Err(failure) => return Err(failure),
    };
    let now = jiff::Timestamp::now();
    let tools = reviewed.catalog.tools();
    let (all, enabled) = (
        tools.len(),
        tools.filter(|tool| tool.objection(None, now).is_none()).count(),
    );
    let mut outcome = Outcome {
        ok: true,
        tools: enabled,
        held: reviewed.catalog.held() + (all - enabled),
        approvals: answered(&reviewed.catalog, now),
        rules_version: Some(reviewed.policy.version().to_string()),
        documents: documents(&reviewed),
        blocked: held::operations(&reviewed)
            .into_iter()
            .filter(held::Operation::is_blocked)
            .collect(),
        probes: Vec::new(),
        warnings: reviewed.warnings.clone(),
        problems: Vec::new(),
    };
    outcome.warnings.extend(long_lists(&reviewed, now));
    // Whatever a gateway compiles of its tools is compiled, so that `serve` finds nothing that was not told here.
    let sources = if args.offline {
        Ok(gateway::Sources::default())
    } else {
        house::sources(&reviewed.settings).await
    };
    let keeper = house::key_sets(&reviewed.settings);
    match keeper {
        Ok(keeper) if !args.offline => probe_issuers(&reviewed.settings, &keeper, &mut outcome.probes).await,
        Ok(_) => {}
        Err(Failure::Problems(problems)) => outcome.problems.extend(problems),
        Err(failure) => return Err(failure),
    }
    if !args.offline {
        for upstream in &reviewed.settings.upstreams {
            outcome
                .probes
                .push(probe(upstream, &reviewed.settings.limits).await);
        }
        look_at_servers(&reviewed, &mut outcome.probes).await?;
        sign_in(&reviewed, &mut outcome.probes).await;
    }
    match sources {
        Err(problems) => outcome.problems.extend(problems),
        Ok(sources) if !args.offline => {
            let ledger = house::paper_ledger(&reviewed.settings).await?;
            match house::gateway(reviewed, ledger.clone(), sources) {
                Ok(_) => {}
                Err(Failure::Problems(problems)) => outcome.problems.extend(problems),
                Err(failure) => return Err(failure),
            }
            // It is in memory; there is nothing in it that anybody could miss.
            let _ = ledger.close().await;
        }
        Ok(_) => {}
    }
    outcome.ok = outcome.problems.is_empty() && outcome.probes.iter().all(|probe| probe.reached);
    say(outcome, args.format.json)
}

/// Every approval of every tool, in the order of the tools.
fn answered(catalog: &catalog::Catalog, now: jiff::Timestamp) -> Vec<Answered> {
    let of_tool = |tool: &std::sync::Arc<catalog::Tool>| {
        let approvals = tool.bounds().approvals.iter();
        approvals
            .map(|approval| Answered {
                tool: tool.name().to_string(),
                what: approval.what.as_str(),
                by: approval.by.clone(),
                because: approval.because.clone(),
                until: approval.until.to_string(),
                audience: approval.audience.iter().map(ToString::to_string).collect(),
                holds: approval.holds(now),
            })
            .collect::<Vec<_>>()
    };
    catalog.tools().flat_map(of_tool).collect()
}

fn documents(reviewed: &Reviewed) -> Vec<Read> {
    let upstreams = reviewed.settings.upstreams.iter();
    upstreams
        .filter_map(|upstream| {
            let document = reviewed.documents.get(&upstream.name)?;
            Some(Read {
                upstream: upstream.name.clone(),
                version: document.version().to_owned(),
                operations: document.operations().count(),
                files: document.files().to_vec(),
                overlaid: document.overlaid().to_vec(),
            })
        })
        .collect()
}

/// Lists of enabled tools that are longer than they should be: a model reads them before it has done anything.
fn long_lists(reviewed: &Reviewed, now: jiff::Timestamp) -> Vec<Problem> {
    let bytes_max = reviewed.settings.limits.tools_list_bytes_max;
    let upstreams = reviewed.settings.upstreams.iter();
    let long = |upstream: &UpstreamSettings| {
        let document = reviewed.documents.get(&upstream.name)?;
        let enabled = reviewed
            .catalog
            .tools()
            .filter(|tool| *tool.upstream() == upstream.name && tool.objection(None, now).is_none());
        let mut operations = BTreeSet::new();
        let mut bytes = 2;
        for tool in enabled {
            operations.insert(tool.origin().to_owned());
            bytes += review::listed_bytes(tool) + 1;
        }
        (bytes > bytes_max).then(|| {
            let text = review::long_list(document, &operations, bytes, bytes_max);
            Problem::at(
                &reviewed.settings,
                &format!("upstream.{}", upstream.name),
                "list",
                text,
            )
        })
    };
    upstreams.filter_map(long).collect()
}

/// What a person should know of a document beside its operations: what is not in the one file that they see.
fn say_of(read: &Read) {
    if !read.files.is_empty() {
        let files = print::counted(read.files.len(), "other file", "other files");
        say!("upstream `{}`: its document has {files}", read.upstream);
    }
    if !read.overlaid.is_empty() {
        let places: usize = read.overlaid.iter().map(|action| action.count).sum();
        say!(
            "upstream `{}`: {} of overlays changed {}",
            read.upstream,
            print::counted(read.overlaid.len(), "action", "actions"),
            print::counted(places, "place", "places")
        );
    }
}

/// The most blockers that are listed for a person.
const BLOCKED_SHOWN_MAX: usize = 20;

fn say_blocked(blocked: &[held::Operation]) {
    if blocked.is_empty() {
        return;
    }
    let lines: Vec<String> = blocked.iter().flat_map(held::Operation::lines).collect();
    for line in lines.iter().take(BLOCKED_SHOWN_MAX) {
        say!("{line}");
    }
    if lines.len() > BLOCKED_SHOWN_MAX {
        say!(
            "… and {} more; `tollhouse tools --held` lists all",
            lines.len() - BLOCKED_SHOWN_MAX
        );
    }
}

fn say(outcome: Outcome, json: bool) -> Result<(), Failure> {
    if json {
        print::json(&outcome);
    } else {
        for warning in &outcome.warnings {
            tell!("warning: {warning}");
        }
        outcome.documents.iter().for_each(say_of);
        say_blocked(&outcome.blocked);
        for probe in &outcome.probes {
            let word = if probe.reached { "reached" } else { "NOT reached" };
            say!("{}: {word}, {}", probe.what, probe.detail);
        }
        if outcome.problems.is_empty() {
            let holding = outcome.approvals.iter().filter(|approval| approval.holds);
            if let Some(first) = holding.clone().map(|approval| &approval.until).min() {
                let counted = print::counted(holding.count(), "approval holds", "approvals hold");
                say!("{counted}, the first until {first}");
            }
            say!(
                "{}, {}",
                print::counted(outcome.tools, "tool is enabled", "tools are enabled"),
                print::counted(outcome.held, "operation is held", "operations are held")
            );
        } else {
            report(&outcome.problems);
        }
    }
    match (outcome.problems.is_empty(), outcome.ok) {
        (false, _) => Err(Failure::Faulty),
        (true, false) => Err(Failure::Unavailable(
            "something that the configuration names cannot be reached".to_owned(),
        )),
        (true, true) => Ok(()),
    }
}

/// Looks at every MCP server, and starts those that are started; what is not approved was told before.
async fn look_at_servers(reviewed: &Reviewed, probes: &mut Vec<Probe>) -> Result<(), Failure> {
    let is_started = |server: &ServerSettings| matches!(server.reach, config::Reach::Command(_));
    if reviewed.settings.servers.iter().any(is_started) {
        let store = house::store(&reviewed.settings).await?;
        let told = command_line::permit(&reviewed.settings, &store, &reviewed.upstreams).await;
        store.close().await;
        told?;
    }
    for peer in reviewed.upstreams.values().filter_map(Far::peer) {
        probes.push(look_at(peer, &reviewed.catalog).await);
    }
    reviewed.yard.close().await;
    Ok(())
}

/// How long an MCP server may take to be looked at.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks an MCP server what it is and has, and holds that against what was approved.
async fn look_at(peer: &Arc<Peer>, catalog: &Catalog) -> Probe {
    let what = format!("upstream `{}`", peer.name());
    let deadline = Instant::now() + SERVER_TIMEOUT;
    let looked = async {
        peer.check(catalog, deadline).await?;
        peer.survey(deadline).await
    };
    let outcome = looked.await;
    peer.close().await;
    match outcome {
        Ok(survey) => {
            let own = catalog.tools().filter(|tool| tool.upstream() == peer.name());
            let drifted = own
                .filter_map(|tool| tool.server_tool()?.drift().map(|_| tool.name().as_str()))
                .collect::<Vec<_>>();
            let told = if drifted.is_empty() {
                String::new()
            } else {
                format!("; no longer as approved: {}", drifted.join(", "))
            };
            Probe {
                what,
                reached: true,
                detail: format!(
                    "speaks {}, {}{}{told}",
                    survey.opened.revision,
                    print::counted(survey.tools.len(), "tool", "tools"),
                    beside(&survey)
                ),
            }
        }
        Err(fault) => Probe {
            what,
            reached: false,
            detail: fault.to_string(),
        },
    }
}

/// What a server has beside tools, in words; nothing where it has nothing.
fn beside(survey: &Survey) -> String {
    let mut text = String::new();
    for (count, one, several) in [
        (survey.prompts.len(), "prompt", "prompts"),
        (survey.resources.len(), "resource", "resources"),
        (survey.templates.len(), "template", "templates"),
    ] {
        if count > 0 {
            text.push_str(", ");
            text.push_str(&print::counted(count, one, several));
        }
    }
    text
}

/// Asks an upstream for nothing: a HEAD of its base path, without credential. Any answer will do.
async fn probe(upstream: &UpstreamSettings, limits: &Limits) -> Probe {
    let what = format!("upstream `{}`", upstream.name);
    let asked = async {
        let destination = Destination::parse(&upstream.destination).map_err(|fault| fault.to_string())?;
        let mut options = ClientOptions::new(Network::allowing(upstream.network.allow.clone()), limits);
        options.ca_pem = upstream.tls.ca.as_ref().map(|file| file.bytes.clone());
        let client = Client::new(options).map_err(|fault| fault.to_string())?;
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.method_mut() = Method::HEAD;
        *request.uri_mut() = destination.uri("/").map_err(|fault| fault.to_string())?;
        let answer = client
            .send(request, Instant::now() + PROBE_TIMEOUT)
            .await
            .map_err(|fault| fault.to_string())?;
        Ok::<_, String>(format!(
            "{} answered {}",
            destination.origin(),
            answer.status.as_u16()
        ))
    };
    match asked.await {
        Ok(detail) => Probe {
            what,
            reached: true,
            detail,
        },
        Err(detail) => Probe {
            what,
            reached: false,
            detail,
        },
    }
}

/// Gets a token for each set of scopes that the tools need, as a call would. What is got is not shown and not kept.
async fn sign_in(reviewed: &Reviewed, probes: &mut Vec<Probe>) {
    let mut asked: Vec<(&UpstreamName, &Access)> = Vec::new();
    for tool in reviewed.catalog.tools() {
        let Some(access) = tool.operation().map(Operation::access) else {
            continue;
        };
        let one = (tool.upstream(), access);
        let Some(service) = reviewed
            .upstreams
            .get(tool.upstream())
            .and_then(Far::service)
            .filter(|_| !asked.contains(&one))
        else {
            continue;
        };
        asked.push(one);
        let outcome = service.sign_in(access, Instant::now() + PROBE_TIMEOUT).await;
        let (reached, detail) = match outcome {
            Ok(0) => continue,
            Ok(_) => (true, "a token was got".to_owned()),
            Err(fault) => (false, fault.to_string()),
        };
        probes.push(Probe {
            what: format!("token for `{}`", tool.name()),
            reached,
            detail,
        });
    }
}

async fn probe_issuers(settings: &config::Settings, keeper: &KeySetKeeper, probes: &mut Vec<Probe>) {
    for issuer in &settings.identity.issuers {
        if let KeySetSetting::Url(url) = &issuer.key_set {
            let reached = keeper.refresh(&issuer.name).await;
            let detail = if reached {
                format!("its key set was fetched from {url}")
            } else {
                format!("its key set could not be fetched from {url}")
            };
            probes.push(Probe {
                what: format!("issuer `{}`", issuer.name),
                reached,
                detail,
            });
        }
    }
}
