//! `tollhouse explain`: each step of a call, the rules that decide, the request that would be sent. Nothing is sent.

use gateway::{Explanation, StepOutcome};

use super::Looking;
use crate::cli::CallArgs;
use crate::failure::Failure;
use crate::log;
use crate::print::{self, say};

pub(crate) async fn explain(args: CallArgs) -> Result<(), Failure> {
    log::start_quiet();
    let looking = Looking::open(&args.path).await?;
    let principal = super::principal(&looking.settings, &args.caller)?;
    let asked = super::asked(
        &looking.gateway,
        &args,
        super::arguments(&looking.settings, &args)?,
    );
    let explanation = looking.gateway.explain(&principal, asked).await;
    looking.close().await;
    if args.format.json {
        print::json(&explanation.to_json());
    } else {
        say(&explanation);
    }
    if explanation.would_be_made() {
        Ok(())
    } else {
        Err(Failure::No)
    }
}

fn say(explanation: &Explanation) {
    let rows = explanation
        .steps
        .iter()
        .map(|step| {
            let word = match step.outcome {
                StepOutcome::Passed => "ok",
                StepOutcome::Stopped => "NO",
            };
            vec![
                step.number.to_string(),
                step.name.to_owned(),
                word.to_owned(),
                step.detail.clone(),
            ]
        })
        .collect();
    print::table(&["step", "what", "", "found"], rows);
    if let Some(request) = &explanation.request {
        say!("");
        say!("{} {}", request.method, request.url);
        for (name, value) in &request.headers {
            say!("{name}: {value}");
        }
        if let Some(credential) = &request.credential {
            say!(
                "{}: [hidden]",
                credential
                    .trim_start_matches("header ")
                    .trim_start_matches("query ")
            );
        }
        if let Some(body) = &request.body {
            say!("\n{body}");
        }
        say!("\nthe call would be made; nothing was sent");
    }
    if let Some(refusal) = &explanation.refusal {
        say!(
            "\nthe call would be refused; the agent would read: {}",
            refusal.for_agent()
        );
    }
}
