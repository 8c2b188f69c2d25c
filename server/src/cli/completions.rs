//! `gridfuse completions`: what a shell needs to complete the command line.

use std::io::Write;

use clap::{Args, Command as CommandLine};
use clap_complete::Shell;

use super::{CLEAN, CliResult};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = WHERE)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const WHERE: &str = "\
Where it goes:
  bash        gridfuse completions bash > ~/.local/share/bash-completion/completions/gridfuse
  zsh         gridfuse completions zsh > DIR/_gridfuse    where DIR is in $fpath
  fish        gridfuse completions fish > ~/.config/fish/completions/gridfuse.fish
  elvish      gridfuse completions elvish >> ~/.config/elvish/rc.elv
  powershell  gridfuse completions powershell >> $PROFILE";

/// Runs `completions`. `command`: the whole command line.
pub fn run(args: &CompletionsArgs, command: CommandLine, out: &mut dyn Write) -> CliResult {
    let mut command = shown(command);
    // Into memory first: clap_complete takes a pipe that is closed for a reason to panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "gridfuse", &mut script);
    out.write_all(&script)?;
    Ok(CLEAN)
}

/// The command line without its hidden commands: some shells would complete these, too.
fn shown(command: CommandLine) -> CommandLine {
    CommandLine::new("gridfuse")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().cloned())
        .subcommands(command.get_subcommands().filter(|one| !one.is_hide_set()).cloned())
}
