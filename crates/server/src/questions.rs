//! What a server asks in a call of the legacy era: real requests to the client, on the stream of its own request, and its
//! responses back.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use gateway::{Inquiries, Pose, Posed, Question};
use wire::{Inquiry, InquiryReply, Response, Revision, client, inquiry};

use crate::answer::Reports;

/// Waits for `work` and meanwhile asks the client what its server wants to know. What is open when the work ends is taken
/// back.
pub(crate) async fn with_questions<T>(
    work: impl Future<Output = T>,
    inquiries: &Inquiries,
    revision: Revision,
    posed: &Posed,
    reports: Reports<'_>,
) -> T {
    if inquiries.profile().is_empty() {
        return work.await;
    }
    tokio::pin!(work);
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = inquiries.changed() => {
                for question in inquiries.take() {
                    open.push(ask(question, revision, posed, reports));
                }
            }
            Some(()) = open.next() => {}
        }
    }
}

/// Asks one thing and hands the answer on.
async fn ask(mut question: Question, revision: Revision, posed: &Posed, reports: Reports<'_>) {
    let mut asked = Asked {
        pose: posed.pose(),
        reports,
        is_open: false,
    };
    match question.inquiry().request(revision, asked.pose.id()) {
        // HOP-10: what cannot be asked is not asked in another way.
        Err(text) => question.answer(InquiryReply::Error { code: -32_602, text }),
        Ok(request) => {
            asked.is_open = true;
            reports.deliver(request).await;
            tokio::select! {
                biased;
                response = asked.pose.response() => {
                    asked.is_open = false;
                    let reply = read(question.inquiry(), response);
                    question.answer(reply);
                }
                () = question.withdrawn() => {}
            }
        }
    }
}

fn read(inquiry: &Inquiry, response: Response) -> InquiryReply {
    match response.outcome {
        Ok(result) => match inquiry.read_result(&result) {
            Ok(result) => InquiryReply::Result(result),
            Err(why) => {
                tracing::info!(why, "a client answered what does not fit what it was asked");
                let text = "the client's answer does not fit".to_owned();
                InquiryReply::Error { code: -32_603, text }
            }
        },
        Err(error) => inquiry::error_of(&error),
    }
}

/// A request to a client; one that is still open when this is dropped is taken back (CAN-01).
struct Asked<'a> {
    pose: Pose,
    reports: Reports<'a>,
    is_open: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let message = client::cancelled(self.pose.id(), "the answer is no longer wanted");
            self.reports.report(message);
        }
    }
}
