//! `tollhouse init`: a first configuration and a first rule. Nothing that is there is overwritten. What it does with a
//! document is in `document`.

mod document;

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
    if args.target.is_file() || is_missing_document(&args.target) {
        return document::document(args);
    }
    // `./tollhouse.toml` reads worse than `tollhouse.toml`, and is the same file.
    let folder = if args.target == Path::new(".") {
        Path::new("")
    } else {
        &args.target
    };
    fs::create_dir_all(folder.join("policy")).map_err(|error| {
        Failure::Input(format!(
            "`{}` cannot be made: {error}",
            folder.join("policy").display()
        ))
    })?;
    write_new(&folder.join("tollhouse.toml"), config::template())?;
    policy_folder(folder)?;
    say!("");
    say!("next, in the folder `{}`:", args.target.display());
    say!("1. put the OpenAPI document of your service there as openapi.yaml");
    say!("2. write its address into tollhouse.toml, as `destination`");
    say!("3. see its operations with `tollhouse tools --held`, and list those you want as tools");
    say!("4. write a rule for them in policy/rules.cedar; what no rule permits is refused");
    say!("5. run `tollhouse check`, then `tollhouse keys add ada`, then `tollhouse serve`");
    Ok(())
}

/// A document that is not there, by its name: a slip in it must not make a folder of that name.
fn is_missing_document(target: &Path) -> bool {
    let extension = target.extension().and_then(|extension| extension.to_str());
    !target.is_dir() && matches!(extension, Some("yaml" | "yml" | "json"))
}

/// The folder of the rules, with a first one in it that permits nothing.
fn policy_folder(folder: &Path) -> Result<(), Failure> {
    let policy = folder.join("policy");
    fs::create_dir_all(&policy)
        .map_err(|error| Failure::Input(format!("`{}` cannot be made: {error}", policy.display())))?;
    write_new(&policy.join("rules.cedar"), POLICY)
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
