//! `tenure completions`: what a shell needs to complete our words.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::failure::Failure;
use crate::ui::output::Lines;

const EXAMPLES: &str = "\
Examples:
  source <(tenure completions bash)
  tenure completions zsh > ~/.zfunc/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish";

/// Print what a shell needs to complete commands and flags.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(completions: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Cli::command(), "tenure", &mut script);
    let mut out = Lines::new();
    out.part(String::from_utf8_lossy(&script));
    out.finish();
    Ok(())
}
