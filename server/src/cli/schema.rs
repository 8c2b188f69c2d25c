//! `gridfuse schema`: the JSON schemas of what the commands print.

use std::io::Write;

use clap::{Args, ValueEnum};
use schemars::generate::SchemaSettings;

use super::output::json;
use super::{CLEAN, CliResult};
use crate::measure::report::Report;
use crate::measure::tune::report::TuneReport;
use crate::schema::{CheckReport, DoctorReport, ExplainReport, ListReport};

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The command that prints JSON of this form
    #[arg(value_enum, value_name = "COMMAND")]
    of: Printed,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Printed {
    /// gridfuse check --format json
    Check,
    /// gridfuse explain --format json
    Explain,
    /// gridfuse list --format json
    List,
    /// gridfuse doctor --format json
    Doctor,
    /// gridfuse measure --json
    Measure,
    /// gridfuse tune --json
    Tune,
}

/// Runs `schema`.
pub fn run(args: &SchemaArgs, out: &mut dyn Write) -> CliResult {
    let generator = SchemaSettings::default().for_serialize().into_generator();
    let schema = match args.of {
        Printed::Check => generator.into_root_schema_for::<CheckReport>(),
        Printed::Explain => generator.into_root_schema_for::<ExplainReport>(),
        Printed::List => generator.into_root_schema_for::<ListReport>(),
        Printed::Doctor => generator.into_root_schema_for::<DoctorReport>(),
        Printed::Measure => generator.into_root_schema_for::<Report>(),
        Printed::Tune => generator.into_root_schema_for::<TuneReport>(),
    };
    json(out, &schema)?;
    Ok(CLEAN)
}
