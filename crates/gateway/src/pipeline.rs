//! The road of one call: steps 5 to 13 as one function that reads like the table in `docs/architecture.md`.
//!
//! Whatever stops a call before step 10 is written down as a refusal and made no request. Whatever stops it later is
//! written down as the outcome of its intent. Steps 1 to 4 and 14 are the server's and the wire's.

use std::sync::Arc;
use std::time::Duration;

use audit::{Outcome, Record, Recorded, Ticket};
use catalog::{Admitted, NotAdmitted, ServerTool};
use identity::Principal;
use jiff::Timestamp;
use model::{Aim, Arguments, Call, CallId, Class, Digest, Fact, Refusal, RefusalCode, RuleId, Target, Value};
use policy::{Denied, Permitted, Question};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use upstream::{
    Answer, Ending, Errand, Far, Inquiries, Lane, Outgoing, PrepareFault, Progress, Said, SendFault, Service,
    Trip,
};
use wire::Surface;

use crate::ended::{Ended, delivered_text};
use crate::hearing::Hearing;
use crate::house::Gateway;
use crate::mount::Mount;
use crate::pages::Reading;
use crate::release::{Checks, Released};
use crate::session::SessionId;
use crate::wanted::{self, Wanted};

/// What comes with a call beside what it asks for.
#[derive(Debug, Clone)]
pub struct Flow {
    /// How it came: `http`, `stdio` or `terminal`.
    pub transport: &'static str,
    /// When its first byte was read. Its deadline counts from here.
    pub received: Instant,
    /// The W3C trace context that it came with.
    pub traceparent: Option<String>,
    /// Comes to pass when the caller no longer wants it.
    pub cancel: CancellationToken,
    /// How far its work is, where it takes longer than one request.
    pub progress: Arc<Progress>,
    /// The session that it came in, where the client has one.
    pub session: Option<SessionId>,
    /// What its server may ask the caller meanwhile.
    pub inquiries: Arc<Inquiries>,
    /// What its client is told outside of answers, where it has a place for that.
    pub hearing: Option<Arc<Hearing>>,
}

impl Flow {
    /// Which connection to a server that knows its clients the call may use.
    fn lane(&self, principal: &Principal) -> Lane {
        Lane {
            caller: principal.key(),
            session: self.session.as_ref().map(|session| session.as_str().to_owned()),
            inquiries: Arc::clone(&self.inquiries),
            hearer: self.hearing.as_ref().map(|hearing| Arc::clone(hearing.relay())),
        }
    }
}

/// What a call asks for.
#[derive(Debug)]
pub struct Asked {
    /// What it wants.
    pub wanted: Wanted,
    /// Where it was asked: by which names, and what is shown there.
    pub mount: Mount,
}

/// What is known of a call so far: for the ledger, whatever becomes of it.
#[derive(Default)]
struct Known {
    admitted: Option<Admitted>,
    target: Option<Target>,
    rules: Vec<RuleId>,
    policy: Option<Digest>,
    consent: Option<Value>,
}

/// One call on the road.
struct Walk<'a> {
    id: CallId,
    principal: &'a Principal,
    method: &'static str,
    /// The public name of what is asked for; what was asked, where nothing has it.
    name: &'a str,
    surfaces: &'static [Surface],
    mount: &'a Mount,
    arguments: Arc<Arguments>,
    aim: Aim,
    flow: &'a Flow,
    now: Timestamp,
}

/// Goes on with what a step gives, or writes the refusal down and ends the walk with it.
macro_rules! step {
    ($gateway:ident, $walk:ident, $known:ident, $step:expr) => {
        match $step {
            Ok(value) => value,
            Err(refusal) => return Err($gateway.refuse(&$walk, &$known, refusal).await),
        }
    };
}

impl Gateway {
    /// Carries out one call of a tool, from its name to the checked result.
    ///
    /// The deadline is that of the tool, or `call_timeout`, counted from `flow.received`.
    ///
    /// # Errors
    /// [`Refusal`], already written down. Its text for the agent tells nothing that the caller may not know: a tool
    /// that the caller may not use in any way reads as unknown.
    ///
    /// Cancellation: dropping the future abandons the call. If it was on its way, its outcome is recorded as unknown.
    /// Cancel `flow.cancel` instead to have the call ended in order.
    pub async fn call(&self, principal: &Principal, asked: Asked, flow: &Flow) -> Result<Released, Refusal> {
        let method = asked.wanted.method();
        let place = match &asked.wanted {
            Wanted::Follow { uri } => Some(flow.hearing.as_ref().map(|hearing| hearing.follow(uri))),
            Wanted::Tool { .. } | Wanted::Prompt { .. } | Wanted::Resource { .. } | Wanted::Completion(_) => {
                None
            }
        };
        let mut found = self.find(asked.wanted, &asked.mount);
        let followed = match place {
            None => None,
            Some(Some(Ok(followed))) => Some(followed),
            Some(Some(Err(full))) => {
                found.refused = Some(full);
                None
            }
            Some(None) => {
                found.refused = Some(Refusal::new(
                    RefusalCode::ArgumentsInvalid,
                    "nobody can be told here",
                ));
                None
            }
        };
        let walk = Walk {
            id: CallId::new(),
            principal,
            method,
            name: &found.name,
            surfaces: found.surfaces,
            mount: &asked.mount,
            arguments: Arc::new(found.arguments),
            aim: found.aim,
            flow,
            now: self.now(),
        };
        let mut known = Known::default();
        let _slot = step!(self, walk, known, self.slots.take(principal.key()));

        // 5. The public name to an admitted tool.
        let admitted = step!(
            self,
            walk,
            known,
            found.refused.map_or_else(|| self.admit(&walk), Err)
        );
        let tool = admitted.shared();
        known.admitted = Some(admitted);
        let deadline = flow.received + self.time_of(&tool);
        let far = step!(self, walk, known, self.far(&tool));

        // 6. The arguments against the pinned schema, and whether they can be sent safely.
        step!(self, walk, known, self.fits(&tool, &walk));
        let call = Call {
            id: walk.id,
            tool: tool.name().clone(),
            upstream: tool.upstream().clone(),
            arguments: Arc::clone(&walk.arguments),
            injected: step!(
                self,
                walk,
                known,
                self.lookups.injected(&tool, principal, walk.id)
            ),
            aim: walk.aim.clone(),
        };
        let errand = step!(
            self,
            walk,
            known,
            far.prepare(&tool, &call).map_err(|fault| unsafe_request(&fault))
        );

        let mut pages = self.pages.get(tool.name()).and_then(|pages| {
            let read = (call.id, &call.arguments, &call.injected);
            let of = (&*tool, tool.operation()?, far.service()?);
            Some(Reading::new(pages, of, &self.schemas, &self.limits, read))
        });

        // 7. The target and its owner, from a source that is not the protected call.
        let sources_deadline = deadline.min(Instant::now() + self.limits.source_timeout);
        let found = self
            .lookups
            .find(&tool, principal, &walk.arguments, sources_deadline)
            .await;
        let found = step!(self, walk, known, found);
        known.target = found.target;

        // 8. Decide.
        let permitted = match self.decide(&walk, call, known.target.as_ref(), &found.facts) {
            Ok(permitted) => permitted,
            Err(denied) => {
                known.rules = denied.rules();
                known.policy = Some(denied.policy);
                let refusal = Refusal::new(RefusalCode::NotPermitted, denied.to_string());
                return Err(self.refuse(&walk, &known, refusal).await);
            }
        };
        known.rules.clone_from(&permitted.verdict().rules);
        known.policy = Some(permitted.verdict().policy);

        // 9. Consent, where the class asks for it.
        known.consent = step!(self, walk, known, consent(&tool, walk.now));

        // 10. Write the intent: no record, no call.
        let intent = self.ledger.intend(permitted, walk.record(&known), deadline).await;
        let (recorded, ticket) = match intent {
            Ok(proof) => proof,
            Err(fault) => {
                tracing::error!(call = %walk.id, %fault, "the intent could not be written, so the call was not made");
                return Err(Refusal::new(RefusalCode::LedgerUnavailable, fault.to_string()));
            }
        };

        // 11. Attach the credential and send, within the deadline.
        let patience = far.peer().map_or(Duration::ZERO, |_| flow.inquiries.patience());
        let trip = Trip::new(deadline + patience, flow.traceparent.clone());
        let sent = tokio::select! {
            biased;
            () = flow.cancel.cancelled() => Err(Given::Up),
            sent = self.run((far, errand), recorded, (&tool, &mut pages), &walk, &trip) => {
                sent.map_err(Given::Fault)
            }
        };

        // 12. Check what came back.
        let ended = match sent {
            Err(Given::Up) => {
                far.call_off(&trip).await;
                Ended::given_up(&trip)
            }
            Err(Given::Fault(fault)) => Ended::failed(&fault),
            Ok(sent) => {
                let checks = Checks {
                    call: walk.id,
                    tool: &tool,
                    aim: &walk.aim,
                    target: known.target.as_ref(),
                    rows: self.rows.get(tool.name()),
                    schemas: &self.schemas,
                    far,
                    limits: &self.limits,
                };
                match (sent, &pages) {
                    (Sent::Work(Ending::NotStarted(answer) | Ending::Done(answer)), _) => {
                        Ended::answered(&answer, checks.release(&answer))
                    }
                    (Sent::Work(Ending::Failed(state, answer)), _) => {
                        Ended::failed_work(answer.status, checks.failed_work(&state, &answer))
                    }
                    (Sent::Work(Ending::Unknown { answer, why }), _) => {
                        far.call_off(&trip).await;
                        Ended::lost(answer.as_ref(), &why)
                    }
                    (Sent::Pages(answers), pages) => match (answers.last(), pages) {
                        (Some(last), Some(pages)) => Ended::answered(last, pages.release(&answers, &checks)),
                        (Some(last), None) => Ended::answered(last, checks.release(last)),
                        (None, _) => Ended::given_up(&trip),
                    },
                    (Sent::Said(said), _) => Ended::said(checks.release_said(*said)),
                }
            }
        };

        // 13. Write the outcome: not written, not told.
        let finished = self.finish(&walk, ticket, ended, &trip).await;
        match (&finished, followed) {
            (Ok(_), Some(followed)) => followed.keep(),
            // Nobody is told of what he was not allowed to hear.
            (Err(_), Some(followed)) => {
                if let Some((uri, hearing)) = followed.undo() {
                    self.unfollow(uri, hearing);
                }
            }
            (_, None) => {}
        }
        finished
    }

    /// Sends what a call became, and waits for all that comes of it.
    async fn run(
        &self,
        (far, errand): (&Far, Errand),
        call: Recorded<Permitted<Call>>,
        (tool, pages): (&catalog::Tool, &mut Option<Reading<'_>>),
        walk: &Walk<'_>,
        trip: &Trip,
    ) -> Result<Sent, SendFault> {
        match (far, errand) {
            (Far::Service(service), Errand::Request(outgoing)) => match pages {
                None => self
                    .send(service, call, *outgoing, tool, walk.flow, trip)
                    .await
                    .map(Sent::Work),
                Some(pages) => {
                    let follow = |answer: &Answer, request: &Outgoing| pages.follow(answer, request);
                    service
                        .send_pages(call, *outgoing, trip, follow)
                        .await
                        .map(Sent::Pages)
                }
            },
            // On the heap: calls of services should not carry its size.
            (Far::Peer(peer), Errand::Call) => {
                let lane = walk.flow.lane(walk.principal);
                Box::pin(peer.call(call, tool, &lane, trip, &walk.flow.progress, &self.catalog))
                    .await
                    .map(|said| Sent::Said(Box::new(said)))
            }
            (Far::Service(_), Errand::Call) | (Far::Peer(_), Errand::Request(_)) => Err(SendFault::Request(
                "what was prepared is not for this upstream".to_owned(),
            )),
        }
    }

    /// Sends the request of a call; where its work takes longer, waits for the end of that.
    async fn send(
        &self,
        service: &Service,
        call: Recorded<Permitted<Call>>,
        outgoing: Outgoing,
        tool: &catalog::Tool,
        flow: &Flow,
        trip: &Trip,
    ) -> Result<Ending, SendFault> {
        match tool.long_running() {
            None => service.send(call, outgoing, trip).await.map(Ending::Done),
            // On the heap: most calls are not of this kind and should not carry its size.
            Some(work) => {
                Box::pin(service.carry(call, outgoing, work, trip, &flow.progress, &self.limits)).await
            }
        }
    }

    /// How long a call may take.
    fn time_of(&self, tool: &catalog::Tool) -> Duration {
        match tool.long_running() {
            Some(work) => work.settings().deadline,
            None => tool.bounds().timeout.unwrap_or(self.limits.call_timeout),
        }
    }

    /// The arguments against the pinned schema. Of a completion some are still missing, and those that are there are
    /// declared.
    fn fits(&self, tool: &catalog::Tool, walk: &Walk<'_>) -> Result<(), Refusal> {
        match &walk.aim {
            Aim::Use => self.schemas.check(tool, &walk.arguments),
            Aim::Follow if !tool.server_tool().is_some_and(ServerTool::subscribes) => Err(Refusal::new(
                RefusalCode::ArgumentsInvalid,
                "the server does not tell when this changes",
            )),
            Aim::Follow => self.schemas.check(tool, &walk.arguments),
            Aim::Complete { argument, .. } => {
                let is_declared = |name: &String| tool.argument_names().contains(name);
                let mut names = walk.arguments.object().keys().chain(std::iter::once(argument));
                if !tool.server_tool().is_some_and(ServerTool::completes) {
                    return Err(Refusal::new(
                        RefusalCode::ArgumentsInvalid,
                        "the server completes no arguments of this",
                    ));
                }
                names.all(is_declared).then_some(()).ok_or_else(|| {
                    let text = format!("it has the arguments {}", tool.argument_names().join(", "));
                    Refusal::new(RefusalCode::ArgumentsInvalid, text.clone()).with_detail(text)
                })
            }
        }
    }

    fn admit(&self, walk: &Walk<'_>) -> Result<Admitted, Refusal> {
        let admitted = self.catalog.admit(walk.name, walk.principal.caller(), walk.now);
        let admitted = admitted.and_then(|admitted| {
            let tool = admitted.tool();
            if walk.mount.shows(tool) && walk.surfaces.contains(&tool.surface()) {
                Ok(admitted)
            } else {
                Err(NotAdmitted::Unknown)
            }
        });
        admitted.map_err(|fault| wanted::refusal(&fault))
    }

    fn far(&self, tool: &catalog::Tool) -> Result<&Far, Refusal> {
        self.upstreams.get(tool.upstream()).ok_or_else(|| {
            Refusal::new(
                RefusalCode::UpstreamUnreachable,
                "the tool's upstream is not there",
            )
        })
    }

    fn decide(
        &self,
        walk: &Walk<'_>,
        call: Call,
        target: Option<&Target>,
        facts: &[Fact],
    ) -> Result<Permitted<Call>, Denied> {
        let tool = call.tool.clone();
        // Which rule holds depends on arguments that are not there yet.
        if let Aim::Complete { .. } = &call.aim {
            return self.policy.decide_listable(call, walk.principal.caller(), &tool);
        }
        let question = Question {
            caller: walk.principal.caller(),
            tool: &tool,
            target,
            arguments: walk.arguments.object(),
            facts,
            now: walk.now,
        };
        self.policy.decide(call, &question)
    }

    /// Writes a refusal down and gives what the caller gets to see of it.
    async fn refuse(&self, walk: &Walk<'_>, known: &Known, refusal: Refusal) -> Refusal {
        tracing::info!(
            call = %walk.id,
            tool = walk.name.chars().take(64).collect::<String>(),
            caller = %walk.principal.caller().subject,
            refusal = %refusal.code(),
            why = refusal.for_log(),
            "refused"
        );
        let deadline = Instant::now() + self.limits.ledger_timeout;
        let record = walk.record(known);
        if let Err(fault) = self.ledger.refuse(record, &refusal, &known.rules, deadline).await {
            tracing::error!(call = %walk.id, %fault, "a refusal could not be written down");
            return Refusal::new(RefusalCode::LedgerUnavailable, fault.to_string());
        }
        self.as_seen(walk, known, refusal)
    }

    /// One decision answers both "may they see it" and "may they call it": a tool that every call of this caller would
    /// be refused reads as unknown, so that its schema and its existence are not told by its refusals.
    fn as_seen(&self, walk: &Walk<'_>, known: &Known, refusal: Refusal) -> Refusal {
        match refusal.code() {
            RefusalCode::ArgumentsInvalid
            | RefusalCode::RequestUnsafe
            | RefusalCode::OwnerUnknown
            | RefusalCode::SourceFailed
            | RefusalCode::NotPermitted
            | RefusalCode::ConsentMissing => {
                let tool = known.admitted.as_ref().map(Admitted::name);
                let listed = tool.is_some_and(|tool| self.policy.listable(walk.principal.caller(), tool));
                if listed {
                    refusal
                } else {
                    Refusal::new(RefusalCode::UnknownTool, refusal.for_operator()).with_log(refusal.for_log())
                }
            }
            RefusalCode::Unauthenticated
            | RefusalCode::UnknownTool
            | RefusalCode::Held
            | RefusalCode::TooBusy
            | RefusalCode::Draining
            | RefusalCode::LedgerUnavailable
            | RefusalCode::DestinationRefused
            | RefusalCode::CredentialUnavailable
            | RefusalCode::UpstreamUnreachable
            | RefusalCode::UpstreamBroken
            | RefusalCode::UpstreamTimeout
            | RefusalCode::WorkUnknown
            | RefusalCode::NoResource
            | RefusalCode::UpstreamError
            | RefusalCode::UpstreamParams
            | RefusalCode::AskUnanswered
            | RefusalCode::CapabilityMissing
            | RefusalCode::Cancelled
            | RefusalCode::ResultInvalid
            | RefusalCode::ResultWithheld
            | RefusalCode::OutcomeUnrecorded => refusal,
        }
    }

    async fn finish(
        &self,
        walk: &Walk<'_>,
        ticket: Ticket,
        ended: Ended,
        trip: &Trip,
    ) -> Result<Released, Refusal> {
        let Ended {
            state,
            status,
            result,
        } = ended;
        let text = result
            .as_ref()
            .ok()
            .map(|released| delivered_text(released.delivery()));
        let outcome = Outcome {
            state,
            refusal: result.as_ref().err(),
            status,
            upstream_requests: trip.requests(),
            result_bytes: text
                .as_ref()
                .map(|text| u64::try_from(text.len()).unwrap_or(u64::MAX)),
            result: text.as_ref().map(|text| text.as_bytes()),
            duration: walk.flow.received.elapsed(),
            time: self.now(),
        };
        if let Err(refusal) = &result {
            tracing::warn!(
                call = %walk.id,
                tool = walk.name,
                refusal = %refusal.code(),
                why = refusal.for_log(),
                requests = trip.requests(),
                "the call has no answer that may go out"
            );
        }
        // The call's own deadline may just have passed; its outcome is written all the same.
        let deadline = Instant::now() + self.limits.ledger_timeout;
        if let Err(fault) = self.ledger.finish(ticket, outcome, deadline).await {
            tracing::error!(call = %walk.id, %fault, "the outcome could not be written, so the answer is withheld");
            return Err(Refusal::new(RefusalCode::OutcomeUnrecorded, fault.to_string()));
        }
        result
    }

    /// Writes down that somebody without an identity that holds was turned away, within a bound.
    ///
    /// `why` is for the operator; it names no part of a credential.
    pub async fn turn_away(&self, why: &str, transport: &'static str) {
        let Some(passed_over) = self.strangers.admit() else {
            return;
        };
        tracing::info!(why, passed_over, "a stranger was turned away");
        let refusal = Refusal::new(RefusalCode::Unauthenticated, why);
        let record = Record {
            call: CallId::new(),
            actor: None,
            credential: None,
            transport,
            method: "authenticate",
            tool: None,
            class: None,
            pin: None,
            target: None,
            arguments: None,
            declared: None,
            policy: None,
            rules: &[],
            consent: None,
            trace: None,
            time: self.now(),
        };
        let deadline = Instant::now() + self.limits.ledger_timeout;
        if let Err(fault) = self.ledger.refuse(record, &refusal, &[], deadline).await {
            tracing::error!(%fault, "the refusal of a stranger could not be written down");
        }
    }
}

impl Walk<'_> {
    fn record<'r>(&'r self, known: &'r Known) -> Record<'r> {
        let tool = known.admitted.as_ref();
        Record {
            call: self.id,
            actor: Some(self.principal.caller()),
            credential: Some(self.principal.credential().to_string()),
            transport: self.flow.transport,
            method: self.method,
            tool: Some(self.name),
            class: tool.map(|tool| tool.tool().class()),
            pin: tool.map(Admitted::pin),
            target: known.target.as_ref(),
            arguments: Some(&self.arguments),
            // Without a tool no name is declared, so none of the caller's own is written down.
            declared: Some(tool.map_or(&[], |tool| tool.tool().argument_names())),
            policy: known.policy,
            rules: &known.rules,
            consent: known.consent.clone(),
            trace: self.flow.traceparent.as_deref(),
            time: self.now,
        }
    }
}

/// What came back.
enum Sent {
    /// The end of one request, or of the work that it started.
    Work(Ending),
    /// The pages of a list. Never empty.
    Pages(Vec<Answer>),
    /// What an MCP server said.
    Said(Box<Said>),
}

/// Why nothing came back.
enum Given {
    /// The caller no longer wants it.
    Up,
    Fault(SendFault),
}

/// Consent for a call of this tool: none needed, waived, or missing.
pub(crate) fn consent(tool: &catalog::Tool, now: Timestamp) -> Result<Option<Value>, Refusal> {
    match tool.class() {
        Class::Read | Class::SensitiveRead => Ok(None),
        Class::Write | Class::Destructive => match &tool.bounds().consent {
            Some(waiver) if waiver.holds(now) => Ok(Some(json!({
                "waived_by": waiver.waived_by,
                "because": waiver.because,
                "until": waiver.until.to_string(),
            }))),
            Some(waiver) => Err(Refusal::new(
                RefusalCode::ConsentMissing,
                format!("the waiver of `{}` ended with {}", waiver.waived_by, waiver.until),
            )),
            None => Err(Refusal::new(
                RefusalCode::ConsentMissing,
                format!(
                    "a {} call needs the approval of a person, and nobody can be asked",
                    tool.class()
                ),
            )),
        },
    }
}

pub(crate) fn unsafe_request(fault: &PrepareFault) -> Refusal {
    match fault.fault() {
        model::Fault::Caller => {
            Refusal::new(RefusalCode::RequestUnsafe, fault.to_string()).with_detail(fault.to_string())
        }
        model::Fault::Upstream | model::Fault::Gateway => {
            Refusal::new(RefusalCode::RequestUnsafe, fault.to_string())
        }
    }
}
