//! `tollhouse schema`: what editors need to check a configuration or a policy while it is written.

use crate::cli::Schema;
use crate::failure::Failure;
use crate::log;
use crate::print::{self, say};

pub(crate) async fn schema(args: Schema) -> Result<(), Failure> {
    if args.policy {
        log::start_quiet();
        let reviewed = super::review(&args.path).await?;
        say!("{}", reviewed.policy.schema_text());
    } else if args.review {
        print::json(&::review::schema());
    } else {
        print::json(&config::schema());
    }
    Ok(())
}
