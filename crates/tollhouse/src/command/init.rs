//! `tollhouse init`: a first configuration and a first rule. Nothing that is there is overwritten.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::cli::Init;
use crate::failure::Failure;
use crate::print::say;

const POLICY: &str = "// What no rule permits is refused. The vocabulary is in docs/guides/policies.md; the types that your tools\n\
                      // give you are printed by `tollhouse schema --policy`.\n\
                      //\n\
                      // @id(\"members-read-their-own-invoices\")\n\
                      // permit (\n\
                      //   principal is Caller,\n\
                      //   action == Action::\"api_getInvoiceStatus\",\n\
                      //   resource is Invoice\n\
                      // ) when { resource.owner == principal.tenant };\n";

pub(crate) fn init(args: &Init) -> Result<(), Failure> {
    let policy = args.folder.join("policy");
    fs::create_dir_all(&policy)
        .map_err(|error| Failure::Input(format!("`{}` cannot be made: {error}", policy.display())))?;
    write_new(&args.folder.join("tollhouse.toml"), config::template())?;
    write_new(&policy.join("rules.cedar"), POLICY)?;
    say!("edit tollhouse.toml, put your OpenAPI document beside it, then run `tollhouse check`");
    Ok(())
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => {
            say!("wrote {}", path.display());
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            say!("kept {}, which is there already", path.display());
            Ok(())
        }
        Err(error) => Err(Failure::Input(format!(
            "`{}` cannot be written: {error}",
            path.display()
        ))),
    }
}
