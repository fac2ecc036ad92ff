//! Completion scripts and manual pages, made from the command line itself.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::print::{self, say};

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tollhouse", &mut script);
    print::bytes(&script);
    Ok(())
}

pub(crate) fn manual(folder: &Path) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Input(format!("`{}` cannot be written: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    say!("wrote the manual pages to {}", folder.display());
    Ok(())
}
