//! `gridfuse man`: the pages of the manual.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use super::{CLEAN, CliError, CliResult};

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Print the page of this command; without one, that of gridfuse
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write the pages of gridfuse and of all its commands into a directory: `man -l DIR/gridfuse.1` shows one
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    output: Option<PathBuf>,
}

/// Runs `man`. `command`: the whole command line.
pub fn run(args: &ManArgs, mut command: Command, out: &mut dyn Write) -> CliResult {
    command.build();
    if let Some(directory) = &args.output {
        return write_all(directory, &command, out);
    }
    let named = match &args.command {
        None => &command,
        Some(name) => command
            .find_subcommand(name)
            .filter(|found| !found.is_hide_set())
            .ok_or_else(|| format!("no command is called `{name}`; `gridfuse --help` names them"))?,
    };
    out.write_all(&page(named)?)?;
    Ok(CLEAN)
}

/// The usage is that of `--help`: a list of all options would have one without a long name, `-I`, as a name without its value.
fn page(command: &Command) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    if let Some(usage) = usage.strip_prefix("Usage: ") {
        command = command.override_usage(usage.to_owned());
    }
    let source = format!("gridfuse {}", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(source).render(&mut text)?;
    Ok(text)
}

fn write_all(directory: &Path, command: &Command, out: &mut dyn Write) -> CliResult {
    std::fs::create_dir_all(directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let commands = command.get_subcommands();
    let shown = commands.filter(|one| !one.is_hide_set() && one.get_name() != "help");
    for one in std::iter::once(command).chain(shown) {
        let name = one.get_display_name().unwrap_or_else(|| one.get_name());
        let path = directory.join(format!("{name}.1"));
        std::fs::write(&path, page(one)?).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        writeln!(out, "wrote {}", path.display())?;
    }
    Ok(CLEAN)
}
