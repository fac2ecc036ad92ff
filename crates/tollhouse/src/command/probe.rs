//! `tollhouse probe`: really calls tools with synthetic arguments, in the one environment that the configuration marks for
//! it, and writes down what the witnesses showed. A probe walks the same road as any call: rules, approvals, consent and
//! the ledger hold for it.

mod sensitive;
mod witness;

use std::path::Path;

use catalog::{Objection, Observation, Observations, ProbedAnswer, Tool, WitnessState, Witnessed};
use config::{ProbeSettings, Settings, SystemWorld, WitnessSettings, World as _};
use gateway::{Asked, Delivery, Flow, Gateway, Mount, Wanted};
use identity::Principal;
use jiff::Timestamp;
use model::{Arguments, Class, Content, Digest, JsonLimits, RefusalCode, ToolName, UpstreamName, Value};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::serve::Open;
use crate::cli::Probe;
use crate::failure::Failure;
use crate::print::{self, say};
use crate::{house, log};

/// One tool that is to be probed.
struct Plan {
    tool: ToolName,
    arguments: Arguments,
    witnesses: Vec<(String, WitnessSettings)>,
}

/// What came of one probe.
#[derive(Debug, Serialize)]
struct Probed {
    tool: ToolName,
    declared: Class,
    /// `None`: nothing could be observed.
    observed: Option<Class>,
    /// Whether the observed class is higher than the declared one.
    contradicts: bool,
    witnesses: Vec<Witnessed>,
    sensitive: Vec<catalog::Sensitive>,
    /// What is known of its answers by now.
    contract: Option<String>,
    said: String,
}

/// What came of a call.
enum Came {
    /// What left, and its length in bytes.
    Answer(Value, u64),
    /// The service said that it failed.
    Failed(String),
    /// The answer does not fit what is declared.
    Unfit(String),
    /// It was refused on the way, or nothing came.
    Refused(String),
}

impl Came {
    fn into_answer(self) -> Result<Value, String> {
        match self {
            Self::Answer(value, _) => Ok(value),
            Self::Failed(why) | Self::Unfit(why) | Self::Refused(why) => Err(why),
        }
    }
}

/// A gate that is open for probing.
struct Probing<'o> {
    gateway: &'o Gateway,
    principal: &'o Principal,
    sources: &'o gateway::Sources,
    settings: &'o Settings,
}

pub(crate) async fn probe(args: Probe) -> Result<(), Failure> {
    log::start_quiet();
    let reviewed = house::review_unobserved(&args.path.config, &SystemWorld).await?;
    let principal = super::principal(&reviewed.settings, &args.caller)?;
    // Everything is judged before anything is sent.
    let plans = plans(&reviewed.settings, &args.tools)?;
    for plan in &plans {
        for tool in plan.tools() {
            known(reviewed.catalog.tools().map(|tool| &**tool), tool)?;
        }
    }
    let sources = house::sources(&reviewed.settings)
        .await
        .map_err(Failure::Problems)?;
    let path = house::observations_path(&reviewed.settings);
    let mut observations = kept(&path)?;
    let open = Open::new(reviewed, "probe").await?;
    let probing = Probing {
        gateway: &open.gateway,
        principal: &principal,
        sources: &sources,
        settings: &open.settings,
    };
    let outcome = probing.all(&plans, &mut observations).await;
    let closed = open.close().await;
    let probed = outcome?;
    write(&path, &observations)?;
    closed?;
    show(&probed, &path, args.format.json)
}

// === what may be probed ===

fn plans(settings: &Settings, wanted: &[String]) -> Result<Vec<Plan>, Failure> {
    let mut plans = Vec::new();
    for upstream in &settings.upstreams {
        let Some(probe) = &upstream.probe else { continue };
        let asked = |tool: &ToolName| wanted.is_empty() || wanted.iter().any(|name| name == tool.as_str());
        let calls = probe.calls.iter().filter(|(tool, _)| asked(tool));
        for (tool, arguments) in calls {
            marked(&upstream.name, &upstream.destination, probe)?;
            plans.push(Plan {
                tool: tool.clone(),
                arguments: read(settings, arguments)?,
                witnesses: probe.witnesses.clone(),
            });
        }
    }
    for name in wanted {
        if !plans.iter().any(|plan| plan.tool.as_str() == name) {
            return Err(Failure::Input(format!(
                "`{name}` has no call to probe it with; write one into `call` of [upstream.NAME.probe]"
            )));
        }
    }
    if plans.is_empty() {
        return Err(Failure::Input(
            "nothing may be probed; mark an environment of your own with [upstream.NAME.probe]".to_owned(),
        ));
    }
    Ok(plans)
}

/// The mark is for one destination, spelled out: a variable that leads elsewhere today does not move it.
fn marked(upstream: &UpstreamName, destination: &str, probe: &ProbeSettings) -> Result<(), Failure> {
    if destination.trim_end_matches('/') == probe.destination.trim_end_matches('/') {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "upstream `{upstream}` leads to `{destination}`, and only `{}` is marked as synthetic; nothing was sent",
        probe.destination
    )))
}

fn read(settings: &Settings, arguments: &str) -> Result<Arguments, Failure> {
    let limits = JsonLimits {
        bytes_max: settings.limits.arguments_bytes_max,
        depth_max: settings.limits.json_depth_max,
    };
    Arguments::parse(arguments.as_bytes(), limits)
        .map_err(|fault| Failure::Input(format!("the arguments of a probe cannot be read: {fault}")))
}

/// A tool that is called must be there, and one that bears witness must change nothing.
fn known<'t>(
    mut tools: impl Iterator<Item = &'t Tool>,
    (name, is_witness): (&ToolName, bool),
) -> Result<(), Failure> {
    let Some(tool) = tools.find(|tool| tool.name() == name) else {
        return Err(Failure::Input(format!("there is no tool `{name}`")));
    };
    if is_witness && (tool.class().changes_state() || !tool.origin().starts_with("GET ")) {
        return Err(Failure::Input(format!(
            "`{name}` bears witness and is {} ({}); a witness is a GET that changes nothing",
            tool.class(),
            tool.origin()
        )));
    }
    Ok(())
}

impl Plan {
    /// Every tool that is called, and whether it bears witness.
    fn tools(&self) -> impl Iterator<Item = (&ToolName, bool)> {
        let witnesses = self.witnesses.iter().filter_map(|(_, witness)| match witness {
            WitnessSettings::Tool { tool, .. } => Some((tool, true)),
            WitnessSettings::Sql { .. } | WitnessSettings::Folder(_) => None,
        });
        std::iter::once((&self.tool, false)).chain(witnesses)
    }
}

// === probing ===

impl Probing<'_> {
    async fn all(&self, plans: &[Plan], observations: &mut Observations) -> Result<Vec<Probed>, Failure> {
        let mut probed = Vec::new();
        for plan in plans {
            probed.push(self.one(plan, observations).await?);
        }
        Ok(probed)
    }

    async fn one(&self, plan: &Plan, observations: &mut Observations) -> Result<Probed, Failure> {
        let found = self
            .gateway
            .catalog()
            .tools()
            .find(|tool| *tool.name() == plan.tool);
        let Some(tool) = found else {
            return Err(Failure::Internal(format!("there is no tool `{}`", plan.tool)));
        };
        // Twice before and twice after: a witness that changes by itself says nothing of the call.
        let first = self.measure(plan).await?;
        let before = self.measure(plan).await?;
        let came = self.call(&plan.tool, plan.arguments.clone()).await;
        match &came {
            Came::Answer(_, bytes) => observations.note_answer(tool, ProbedAnswer::Passed(*bytes)),
            Came::Failed(_) => observations.note_answer(tool, ProbedAnswer::Failed),
            Came::Unfit(_) => observations.note_answer(tool, ProbedAnswer::Unfit),
            Came::Refused(_) => {}
        }
        let answered = came.into_answer();
        let after = self.measure(plan).await?;
        let last = self.measure(plan).await?;
        let witnesses: Vec<Witnessed> = plan
            .witnesses
            .iter()
            .zip(first.iter().zip(&before))
            .zip(after.iter().zip(&last))
            .map(|(((name, _), (first, before)), (after, last))| Witnessed {
                name: name.clone(),
                state: if first != before || after != last {
                    WitnessState::Noisy
                } else if before.lost(after) {
                    WitnessState::Vanished
                } else if before != after {
                    WitnessState::Changed
                } else {
                    WitnessState::Unchanged
                },
                before: before.digest,
                after: after.digest,
            })
            .collect();
        let (sensitive, failure) = match &answered {
            Ok(value) => (sensitive::in_answer(value), None),
            Err(why) => (Vec::new(), Some(why.as_str())),
        };
        let observed = observed(&witnesses, !sensitive.is_empty(), failure.is_none());
        let declared = tool.class();
        let mut said = match (observed, failure) {
            (None, Some(why)) => format!("nothing was observed: the call failed: {why}"),
            (None, None) => "nothing was observed: every witness changes by itself".to_owned(),
            (Some(_), _) => String::new(),
        };
        let mut contradicts = false;
        if let Some(class) = observed {
            let observation = Observation {
                class,
                declared,
                operation: tool.origin_digest(),
                time: Timestamp::now(),
                arguments: Digest::of("tollhouse/probe/arguments/v1", &[&plan.arguments.canonical()]),
                succeeded: failure.is_none(),
                witnesses: witnesses.clone(),
                sensitive: sensitive.clone(),
            };
            contradicts = class > declared;
            said = if contradicts {
                format!(
                    "the tool is held from now on: {}",
                    Objection::Observed(&observation)
                )
            } else {
                observation.to_string()
            };
            observations.note(tool, observation);
        }
        Ok(Probed {
            tool: plan.tool.clone(),
            declared,
            observed,
            contradicts,
            witnesses,
            sensitive,
            contract: observations.contract(tool).map(ToString::to_string),
            said,
        })
    }

    /// Calls a tool as any caller would, and gives what would leave.
    async fn call(&self, tool: &ToolName, arguments: Arguments) -> Came {
        let asked = Asked {
            wanted: Wanted::Tool {
                name: tool.to_string(),
                arguments,
            },
            mount: Mount::All,
        };
        let flow = Flow {
            transport: "terminal",
            received: Instant::now(),
            traceparent: None,
            cancel: CancellationToken::new(),
            progress: std::sync::Arc::default(),
            session: None,
            inquiries: std::sync::Arc::new(gateway::Inquiries::none()),
            hearing: None,
        };
        let reply = match self.gateway.call(self.principal, asked, &flow).await {
            Ok(released) => match released.into_delivery() {
                Delivery::Reply(reply) => reply,
                Delivery::Prompt(_)
                | Delivery::Contents(_)
                | Delivery::Completion(_)
                | Delivery::Followed => {
                    return Came::Unfit("it is no tool".to_owned());
                }
            },
            Err(refusal) => {
                let why = format!("{}: {}", refusal.code(), refusal.for_operator());
                return if refusal.code() == RefusalCode::ResultInvalid {
                    Came::Unfit(why)
                } else {
                    Came::Refused(why)
                };
            }
        };
        let text = reply.content.iter().map(|content| match content {
            Content::Text(text) => text.as_str(),
            // Bytes have no fields by a name.
            Content::Media(_) => "",
            Content::Carried(block) => block.get("text").and_then(Value::as_str).unwrap_or_default(),
        });
        let text: String = text.collect();
        if reply.is_error {
            return Came::Failed(text);
        }
        let value = reply
            .structured
            .unwrap_or_else(|| serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text)));
        let bytes = u64::try_from(openapi::json_length(&value)).unwrap_or(u64::MAX);
        Came::Answer(value, bytes)
    }
}

/// What the witnesses let conclude; `None`: nothing.
fn observed(witnesses: &[Witnessed], is_sensitive: bool, succeeded: bool) -> Option<Class> {
    let any = |state: WitnessState| witnesses.iter().any(|one| one.state == state);
    if any(WitnessState::Vanished) {
        return Some(Class::Destructive);
    }
    if any(WitnessState::Changed) {
        return Some(Class::Write);
    }
    if !succeeded || !any(WitnessState::Unchanged) {
        return None;
    }
    Some(if is_sensitive {
        Class::SensitiveRead
    } else {
        Class::Read
    })
}

// === what is kept ===

fn kept(path: &Path) -> Result<Observations, Failure> {
    let unreadable = |why: String| Failure::Input(format!("`{}`: {why}", path.display()));
    match SystemWorld.read(path, catalog::OBSERVATIONS_BYTES_MAX) {
        Err(config::ReadFault::Missing) => Ok(Observations::default()),
        Err(fault) => Err(unreadable(fault.to_string())),
        Ok(bytes) => Observations::parse(&bytes).map_err(|fault| unreadable(fault.to_string())),
    }
}

/// Writes the file beside itself and moves it into its place, so that nobody reads half of it.
fn write(path: &Path, observations: &Observations) -> Result<(), Failure> {
    let unwritten =
        |error: String| Failure::Unavailable(format!("`{}` cannot be written: {error}", path.display()));
    let mut text = serde_json::to_vec_pretty(observations).map_err(|error| unwritten(error.to_string()))?;
    text.push(b'\n');
    let new = path.with_extension("json.new");
    std::fs::write(&new, text).map_err(|error| unwritten(error.to_string()))?;
    std::fs::rename(&new, path).map_err(|error| unwritten(error.to_string()))
}

fn show(probed: &[Probed], path: &Path, json: bool) -> Result<(), Failure> {
    if json {
        print::json(&json!({ "file": path.display().to_string(), "probes": probed }));
    } else {
        let rows = probed.iter().map(|one| {
            let witnesses: Vec<String> = one
                .witnesses
                .iter()
                .map(|witness| format!("{}: {}", witness.name, witness::word(witness.state)))
                .collect();
            vec![
                one.tool.to_string(),
                one.declared.to_string(),
                one.observed
                    .map_or_else(|| "nothing".to_owned(), |class| class.to_string()),
                witnesses.join(", "),
                one.said.clone(),
            ]
        });
        print::table(
            &["tool", "declared", "observed", "witnesses", "evidence"],
            rows.collect(),
        );
        say!("\nwritten to {}", path.display());
    }
    if probed
        .iter()
        .all(|one| one.observed.is_some() && !one.contradicts)
    {
        Ok(())
    } else {
        Err(Failure::No)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quiet_witnesses_and_a_call_that_succeeded_say_that_nothing_changes() {
        use WitnessState::{Changed, Noisy, Unchanged, Vanished};
        for (states, is_sensitive, succeeded, expected) in [
            (&[Unchanged][..], false, true, Some(Class::Read)),
            (&[Unchanged], true, true, Some(Class::SensitiveRead)),
            (&[Unchanged, Noisy], false, true, Some(Class::Read)),
            (&[Unchanged, Changed], false, true, Some(Class::Write)),
            (
                &[Unchanged, Changed, Vanished],
                false,
                true,
                Some(Class::Destructive),
            ),
            (&[Vanished], false, false, Some(Class::Destructive)),
            // A change is one, whatever was answered.
            (&[Changed], false, false, Some(Class::Write)),
            (&[Unchanged], false, false, None),
            (&[Noisy], false, true, None),
            (&[], false, true, None),
        ] {
            let digest = Digest::of("test", &[]);
            let witnesses: Vec<Witnessed> = states
                .iter()
                .map(|state| Witnessed {
                    name: "w".to_owned(),
                    state: *state,
                    before: digest,
                    after: digest,
                })
                .collect();
            assert_eq!(
                observed(&witnesses, is_sensitive, succeeded),
                expected,
                "{states:?}"
            );
        }
    }
}
