//! One call on its way to a server: the conversation that it uses, the rounds that it takes, and what is tried again.
//!
//! Takes only calls that were permitted and recorded. How a conversation is opened is `peer.rs`'s.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use audit::Recorded;
use bytes::Bytes;
use catalog::{Catalog, ServerTool, Tool};
use model::{Aim, Call, JsonLimits, Object, Value};
use policy::Permitted;
use wire::client::{Called, Carried, Ended, InputResponses, Say, ServerError, Surface, mirrored};
use wire::{Profile, Retry, Revision};

use crate::fault::SendFault;
use crate::inquiries::Inquiries;
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::peer::Peer;
use crate::peer::conversation::Beside;
use crate::peer::fault::PeerFault;
use crate::peer::lanes::Lane;
use crate::peer::rounds::Rounds;
use crate::progress::Progress;

/// What a server said to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A call of a tool ended.
    Ended(Ended),
    /// A prompt, a resource or a completion came, or did not.
    Carried(Carried),
    /// With an error instead of a result.
    Error(ServerError),
}

impl Peer {
    /// Makes a call that was permitted and recorded.
    ///
    /// Opens a conversation where the lane has none, reads the list of tools where it is not known or has changed, and
    /// notes in the catalogue what departs from what was approved; a tool that does is not called. A session that the
    /// server has lost is opened again once; the call is made again only if it changes nothing.
    ///
    /// Dropping the future gives the call up and tells the server so; [`Trip::requests`] says whether it left.
    ///
    /// # Errors
    /// [`SendFault`]; [`SendFault::sent`] says whether the server may have acted.
    pub async fn call(
        self: &Arc<Self>,
        call: Recorded<Permitted<Call>>,
        tool: &Tool,
        lane: &Lane,
        trip: &Trip,
        progress: &Arc<Progress>,
        catalog: &Catalog,
    ) -> Result<Said, SendFault> {
        let (call, _verdict) = call.into_inner().into_parts();
        let Some(server_tool) = tool
            .server_tool()
            .filter(|_| call.upstream == self.name && call.tool == *tool.name())
        else {
            return Err(SendFault::Request(format!(
                "call {} is not for this server",
                call.id
            )));
        };
        let arguments = merged(&call);
        let say = say(server_tool, &call, &arguments);
        let params = match say {
            Say::Call { .. } => mirrored(&tool.definition().input_schema, &arguments),
            _ => Vec::new(),
        };
        progress.is_told();
        let inquiries = &lane.inquiries;
        // Whatever ends the call, nobody is asked after it.
        let _over = Over(inquiries);
        let profile = self.may_ask.and(inquiries.profile());
        let patience = inquiries.patience();
        let near = trip.deadline.checked_sub(patience).unwrap_or(trip.deadline);
        let calling = async {
            let mut may_again = !tool.class().changes_state();
            let mut answers: Option<InputResponses> = None;
            let mut rounds = Rounds {
                upstream: &self.name,
                guard: &self.opener.guard,
                inquiries,
                profile,
                revision: Revision::NEWEST_STATELESS,
                left: self.rounds_max,
                max: self.rounds_max,
            };
            loop {
                let key = self.key(lane, profile);
                let until = if rounds.left < self.rounds_max {
                    trip.deadline
                } else {
                    near
                };
                let conversation = self.ready(&key, until, catalog).await?;
                if let Some(drift) = server_tool.drift() {
                    return Err(PeerFault::Drifted(drift).into());
                }
                self.requests.fetch_add(1, Ordering::AcqRel);
                if let Some(hearer) = &lane.hearer
                    && !key.is_shared()
                    && !conversation.opened().is_stateless()
                {
                    conversation.audience().admit(hearer);
                }
                let beside = Beside {
                    progress,
                    hearer: lane.hearer.as_ref(),
                    inquiries,
                    profile,
                    answers: answers.as_ref(),
                };
                let asked = match (&say, &lane.hearer) {
                    (Say::Subscribe { uri }, Some(hearer)) => {
                        // Before the server is asked, so that nothing is missed that it tells at once.
                        conversation.audience().follow(uri, hearer);
                        conversation.follow(uri, trip, beside).await
                    }
                    _ => conversation.call(&say, &params, trip, beside).await,
                };
                match asked {
                    Ok(Ok(result)) => {
                        let revision = conversation.opened().revision;
                        let json = self.opener.bounds.json;
                        let required = match read(&say, revision, &result, json)? {
                            Said::Ended(Ended::InputRequired(required))
                            | Said::Carried(Carried::InputRequired(required)) => required,
                            said @ (Said::Ended(_) | Said::Carried(_) | Said::Error(_)) => return Ok(said),
                        };
                        if !Retry::is_on(say.method()) {
                            let what = format!("for input on `{}`, where it may not", say.method());
                            return Err(PeerFault::Asks(what).into());
                        }
                        rounds.revision = revision;
                        answers = Some(rounds.next(required).await?);
                    }
                    Ok(Err(error)) => {
                        rounds.revision = conversation.opened().revision;
                        let Some(pages) = self.wanted_first(&say, &error, &rounds)? else {
                            return Ok(Said::Error(error));
                        };
                        // The same request again: the server knows by itself what was done meanwhile.
                        if !rounds.pages(pages).await? {
                            return Ok(Said::Error(error));
                        }
                    }
                    Err(PeerFault::Link(fault)) if may_again && may_help(&fault) => may_again = false,
                    Err(fault) => return Err(fault.into()),
                }
            }
        };
        if patience.is_zero() {
            return calling.await;
        }
        tokio::select! {
            biased;
            said = calling => said,
            () = inquiries.run_out(near) => Err(PeerFault::Late {
                after: None,
                sent: trip.requests() > 0,
            }
            .into()),
        }
    }

    /// The pages that a server wants to be opened before it answers, where its error says so and they may be asked for.
    ///
    /// # Errors
    /// [`PeerFault::Lacks`], where the operator would let it ask and the client has not declared that it can be.
    fn wanted_first(
        &self,
        say: &Say<'_>,
        error: &ServerError,
        rounds: &Rounds<'_>,
    ) -> Result<Option<Vec<wire::Inquiry>>, PeerFault> {
        if !Retry::is_on(say.method()) {
            return Ok(None);
        }
        let pages = error.pages(rounds.revision);
        let needs = match &pages {
            Some(_) => Profile::URL,
            None => error.required(rounds.revision).unwrap_or_default(),
        };
        let lacks = needs.without(rounds.profile);
        if lacks.is_empty() {
            return Ok(pages);
        }
        if self.may_ask.has(needs) {
            return Err(PeerFault::Lacks(lacks));
        }
        Ok(None)
    }
}

/// What a call is in the words of the protocol.
fn say<'c>(offered: &'c ServerTool, call: &'c Call, arguments: &'c Object) -> Say<'c> {
    let name = offered.name();
    if let Aim::Complete { argument, value } = &call.aim {
        return Say::Complete {
            surface: offered.surface(),
            of: name,
            argument: (argument, value),
            others: arguments,
        };
    }
    let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or(name);
    if call.aim == Aim::Follow {
        return Say::Subscribe { uri };
    }
    match offered.surface() {
        Surface::Tools => Say::Call { name, arguments },
        Surface::Prompts => Say::Get { name, arguments },
        Surface::Resources | Surface::Templates => Say::Read { uri },
    }
}

/// What a server said to a call.
fn read(say: &Say<'_>, revision: Revision, result: &Bytes, json: JsonLimits) -> Result<Said, SendFault> {
    match say {
        Say::Call { .. } => Called::read(revision, result, json)
            .map(Said::Ended)
            .map_err(|fault| SendFault::Unreadable(fault.to_string())),
        _ => Carried::read(revision, say.method(), result, json)
            .map(Said::Carried)
            .map_err(|fault| SendFault::Unreadable(fault.to_string())),
    }
}

/// The end of a call, whatever brings it.
struct Over<'a>(&'a Inquiries);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the server gets: what the caller sent, and what only the operator gives.
pub(super) fn merged(call: &Call) -> Object {
    let mut arguments = call.arguments.object().clone();
    for (key, value) in &call.injected {
        arguments.insert(key.clone(), value.clone());
    }
    arguments
}

/// Whether the server refused what is gone by now: a session that it forgot, a token that ended before its time.
const fn may_help(fault: &LinkFault) -> bool {
    matches!(
        fault,
        LinkFault::SessionLost | LinkFault::Unauthorized { renews: true, .. }
    )
}
