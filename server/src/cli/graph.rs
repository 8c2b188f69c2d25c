//! `gridfuse graph`: draws which function launches which kernel, and how often.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::project::Project;
use super::{CLEAN, CliResult, Includes, USAGE_OR_IO};
use crate::graph::Graph;

/// Arguments of `graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Files, directories that are searched for .cu, .cuh, .h and .hpp files, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Language of the drawing
    #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
    format: GraphFormat,
    #[command(flatten)]
    includes: Includes,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GraphFormat {
    /// Graphviz
    Dot,
    /// Mermaid, which Markdown viewers draw
    Mermaid,
    /// A picture, for browsers and documents
    Svg,
}

/// Runs `graph`.
pub fn run(args: &GraphArgs, out: &mut dyn Write) -> CliResult {
    let project = Project::load(&args.paths, &args.includes)?;
    let mut graph = Graph::default();
    for file in project.asked() {
        graph.add_file(project.host.db(), file);
    }
    let drawn = match args.format {
        GraphFormat::Dot => graph.dot(),
        GraphFormat::Mermaid => graph.mermaid(),
        GraphFormat::Svg => graph.svg()?,
    };
    out.write_all(drawn.as_bytes())?;
    Ok(if project.incomplete { USAGE_OR_IO } else { CLEAN })
}
