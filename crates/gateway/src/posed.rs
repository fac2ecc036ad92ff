//! Requests of ours that wait for a client's response, by their ids: one table for each session, or for each pipe.
//!
//! A response finds only what was asked in its own conversation. What answers nothing is ignored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wire::{Id, Response};

/// The requests that wait in one conversation. Cheap to clone.
#[derive(Debug, Default, Clone)]
pub struct Posed(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    last: i64,
    waiting: HashMap<i64, oneshot::Sender<Response>>,
}

/// One request that waits; dropping it makes a late response answer nothing.
#[derive(Debug)]
pub struct Pose {
    id: i64,
    table: Posed,
    response: oneshot::Receiver<Response>,
}

impl Posed {
    /// Notes a request, with an id that was not used in this conversation.
    #[must_use]
    pub fn pose(&self) -> Pose {
        let (sender, response) = oneshot::channel();
        let mut inner = self.lock();
        inner.last += 1;
        let id = inner.last;
        inner.waiting.insert(id, sender);
        drop(inner);
        Pose {
            id,
            table: self.clone(),
            response,
        }
    }

    /// Hands a response to whoever waits for it. Whether anybody did: once, and only for an id with its type (HOP-01).
    pub fn answer(&self, response: Response) -> bool {
        let Some(Id::Integer(id)) = response.id else {
            return false;
        };
        let waiting = self.lock().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.send(response).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pose {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Waits for the response. Dropping the future loses nothing.
    pub async fn response(&mut self) -> Response {
        match (&mut self.response).await {
            Ok(response) => response,
            // The sender stays in the table until it is used, so that there is nothing more to wait for.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Pose {
    fn drop(&mut self) {
        self.table.lock().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use model::Value;

    use super::*;

    fn response(id: Id) -> Response {
        Response {
            id: Some(id),
            outcome: Ok(Value::Null),
        }
    }

    #[tokio::test]
    async fn a_response_answers_what_was_asked_in_its_conversation_once() {
        let (posed, other) = (Posed::default(), Posed::default());
        let mut pose = posed.pose();
        assert!(!other.answer(response(Id::Integer(pose.id()))), "another session");
        assert!(!posed.answer(response(Id::Text(pose.id().to_string()))));
        assert!(posed.answer(response(Id::Integer(pose.id()))));
        assert!(!posed.answer(response(Id::Integer(pose.id()))), "twice");
        assert_eq!(pose.response().await.outcome, Ok(Value::Null));
        let late = posed.pose().id();
        assert!(!posed.answer(response(Id::Integer(late))));
        assert!(posed.lock().waiting.is_empty());
    }
}
