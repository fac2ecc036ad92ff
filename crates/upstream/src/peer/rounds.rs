//! The rounds of one call to a server of the stateless era: what it wants before it goes on is asked of the caller, and the
//! same request is sent again with the answers (MRTR-01 to MRTR-10).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use model::{Object, UpstreamName, Value};
use wire::client::{InputRequired, InputResponses};
use wire::{Inquiry, InquiryReply, Profile, Revision};

use crate::inquiries::Inquiries;
use crate::peer::fault::PeerFault;
use crate::peer::overheard::Guard;

/// How long a round that asks nothing is waited with (MRTR-10).
const PAUSE: Duration = Duration::from_millis(250);

/// The rounds of one call.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    pub(crate) upstream: &'a UpstreamName,
    pub(crate) guard: &'a Guard,
    pub(crate) inquiries: &'a Arc<Inquiries>,
    /// What was declared to the server for this call.
    pub(crate) profile: Profile,
    pub(crate) revision: Revision,
    /// How many more there may be.
    pub(crate) left: usize,
    pub(crate) max: usize,
}

impl Rounds<'_> {
    /// Has pages opened without which a server answers nothing; gives whether a person agreed to all of them. The same
    /// request is sent again then (D12).
    ///
    /// # Errors
    /// [`PeerFault`]: it wants them again and again, or they are not to be asked for.
    pub(crate) async fn pages(&mut self, pages: Vec<Inquiry>) -> Result<bool, PeerFault> {
        let keyed = pages.into_iter().enumerate();
        let keyed = keyed.map(|(at, page)| (at.to_string(), page)).collect();
        let answered = self.ask(keyed).await?;
        let agreed = |result: &Value| result.get("action").and_then(Value::as_str) == Some("accept");
        Ok(answered.values().all(agreed))
    }

    /// Asks what a server wants, and gives what it gets.
    ///
    /// # Errors
    /// [`PeerFault`]: what it asks is not to be asked, or there is no answer that it could be given.
    pub(crate) async fn next(&mut self, required: InputRequired) -> Result<InputResponses, PeerFault> {
        let asked = required
            .inquiries()
            .map_err(|(key, fault)| PeerFault::Asks(format!("what cannot be asked, as {key:?}: {fault}")))?;
        Ok(InputResponses {
            responses: self.ask(asked).await?,
            state: required.state,
        })
    }

    async fn ask(&mut self, asked: Vec<(String, Inquiry)>) -> Result<Object, PeerFault> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(PeerFault::Rounds { max: self.max });
        };
        self.left = left;
        for (key, inquiry) in &asked {
            // MRTR-03: only what was declared on this request.
            inquiry
                .fits(self.profile)
                .map_err(|fault| PeerFault::Asks(format!("what was not declared, as {key:?}: {fault}")))?;
            let words = Value::Object(inquiry.params().clone()).to_string();
            if (self.guard.0)(words.as_bytes()) || (self.guard.0)(key.as_bytes()) {
                return Err(PeerFault::Asks(
                    "with the credential of the gate in its words".to_owned(),
                ));
            }
        }
        if asked.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        let asking = asked.into_iter().map(async |(key, inquiry)| {
            let reply = self.inquiries.ask(self.upstream, (&key, inquiry.clone())).await;
            let what = inquiry.kind().method();
            let reply = reply.map_err(|many| PeerFault::Asks(many.to_string()))?;
            let why = match &reply {
                InquiryReply::Error { text, .. } => text.clone(),
                InquiryReply::Result(_) | InquiryReply::Nothing => "nobody answered".to_owned(),
            };
            inquiry
                .result_for(self.revision, reply)
                .map(|result| (key, result))
                .map_err(|_| PeerFault::Unanswered { what, why })
        });
        join_all(asking).await.into_iter().collect()
    }
}
