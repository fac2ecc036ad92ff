//! The documents that are made from the code, so that they cannot say anything else than it does.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use model::{Fault, RefusalCode};

use crate::repository::Made;

const BY: &str = "cargo xtask docs --write";

const REFUSALS_HEAD: &str = "\
# Refusals

<!-- Generated from the table of refusals in crates/model/src/refusal.rs. Change it there. -->

A call that is not made, or whose answer is not given, has one of these codes. The code is written to the ledger, where
`tollhouse audit show CALL` gives it with the whole story. The agent reads a fixed sentence, so that no rule, host, path,
token or text of a service can leak through it; codes that it must not tell apart have the same sentence. Where the
arguments were at fault, what is wrong with them stands behind the sentence.

**Whose fault** says who has to change something before a retry can succeed: the caller, the service behind the tool, or the
gate and its operator.

| code | whose fault | what happened | what the agent reads |
|---|---|---|---|
";

/// Every document that is made from code.
///
/// # Errors
/// Where the schema of the configuration is no JSON.
pub fn all() -> Result<Vec<Made>> {
    let schema = serde_json::to_string_pretty(&config::schema()).context("the schema is not JSON")?;
    let made = |path: &str, text: String| Made {
        path: path.to_owned(),
        text,
        by: BY,
    };
    Ok(vec![
        made("docs/config.md", config::reference()),
        made("docs/refusals.md", refusals()),
        made("docs/tollhouse.schema.json", format!("{schema}\n")),
    ])
}

fn refusals() -> String {
    let mut page = REFUSALS_HEAD.to_owned();
    for code in RefusalCode::ALL {
        let fault = match code.fault() {
            Fault::Caller => "caller",
            Fault::Upstream => "service",
            Fault::Gateway => "gate",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{code}` | {fault} | {} | {} |",
            code.doc(),
            code.for_agent()
        );
    }
    page
}
