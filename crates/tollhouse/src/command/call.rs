//! `tollhouse call`: one call as a caller of the configuration, on the same road as any agent's.

use gateway::{Delivery, Flow};
use model::Content;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::serve::Open;
use crate::cli::CallArgs;
use crate::failure::Failure;
use crate::log;
use crate::print::{self, say, tell};

pub(crate) async fn call(args: CallArgs) -> Result<(), Failure> {
    log::start_quiet();
    let reviewed = super::review(&args.path).await?;
    let principal = super::principal(&reviewed.settings, &args.caller)?;
    let arguments = super::arguments(&reviewed.settings, &args)?;
    let open = Open::new(reviewed, "call").await?;
    let asked = super::asked(&open.gateway, &args, arguments);
    let cancel = CancellationToken::new();
    super::serve::spawn_signals(cancel.clone());
    let flow = Flow {
        transport: "terminal",
        received: Instant::now(),
        traceparent: None,
        cancel,
        progress: std::sync::Arc::default(),
        session: None,
        inquiries: std::sync::Arc::new(gateway::Inquiries::none()),
        hearing: None,
    };
    let answered = open.gateway.call(&principal, asked, &flow).await;
    let closed = open.close().await;
    let failed = match &answered {
        Ok(released) => {
            let reply = match released.delivery() {
                Delivery::Reply(reply) => reply,
                Delivery::Prompt(object) | Delivery::Contents(object) | Delivery::Completion(object) => {
                    print::json(object);
                    return closed;
                }
                // Nobody is told anything at a terminal.
                Delivery::Followed => return closed,
            };
            if args.format.json {
                let content: Vec<_> = reply
                    .content
                    .iter()
                    .map(|content| match content {
                        Content::Text(text) => json!({ "type": "text", "text": text }),
                        Content::Media(media) => json!({
                            "type": "media", "mimeType": media.media_type, "bytes": media.bytes, "data": media.data,
                        }),
                        Content::Carried(block) => json!(block),
                    })
                    .collect();
                print::json(&json!({
                    "content": content,
                    "structuredContent": reply.structured,
                    "isError": reply.is_error,
                }));
            } else {
                for content in &reply.content {
                    match content {
                        Content::Text(text) => say!("{text}"),
                        Content::Carried(block) => match block.get("text").and_then(|text| text.as_str()) {
                            Some(text) => say!("{text}"),
                            None => say!("{}", json!(block)),
                        },
                        Content::Media(media) => {
                            say!(
                                "{} of {} bytes; `--json` shows them",
                                media.media_type,
                                media.bytes
                            );
                        }
                    }
                }
            }
            reply.is_error
        }
        Err(refusal) => {
            if args.format.json {
                print::json(&json!({ "refusal": refusal.code(), "for_agent": refusal.for_agent() }));
            } else {
                tell!("refused ({}): {}", refusal.code(), refusal.for_operator());
                tell!("an agent reads: {}", refusal.for_agent());
            }
            true
        }
    };
    closed?;
    if failed { Err(Failure::No) } else { Ok(()) }
}
