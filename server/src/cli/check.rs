//! `gridfuse check`: findings of files and directories.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;

use super::baseline::Baseline;
use super::output::{count, json, note};
use super::project::{Project, is_standard_input, located};
use super::site::named_place;
use super::snippet::{Assumed, Snippets};
use super::wrapped::wrapped;
use super::{CLEAN, CliError, CliResult, FINDINGS, Includes, USAGE_OR_IO, changed, changes, fix, github, sarif};
use crate::collected;
use crate::launches::{function_at, in_file};
use crate::schema::{self, CheckReport, Finding, Fix, Fixed, Summary};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files, directories that are searched for .cu, .cuh, .h and .hpp files, or - for standard input; of FILE:LINE, what is found there
    #[arg(required = true, value_name = "PATH[:LINE]")]
    paths: Vec<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
    /// Exit with 1 on findings of at least this severity
    #[arg(long, value_enum, default_value_t = Deny::Error)]
    deny: Deny,
    /// Apply the fixes that are proven right and keep the program's structure; other rewrites are left to `gridfuse rewrite`
    #[arg(long)]
    fix: bool,
    /// Print what --fix would change as a unified diff, and change nothing; the exit code is 1 when that is anything
    #[arg(long, requires = "fix")]
    diff: bool,
    /// Look only at files that differ from where the branch has left this commit, and at those that include such files; asks git
    #[arg(long, value_name = "REF")]
    changed_since: Option<String>,
    /// Leave out the findings that this file has: those that were there before, wherever they stand now
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write all findings into the file of --baseline, in place of what it has
    #[arg(long, requires = "baseline", conflicts_with_all = ["diff", "changed_since"])]
    write_baseline: bool,
    #[command(flatten)]
    includes: Includes,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CheckFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations for GitHub Actions
    Github,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Deny {
    Error,
    Warning,
    Info,
}

impl Deny {
    fn severity(self) -> Severity {
        match self {
            Deny::Error => Severity::Error,
            Deny::Warning => Severity::Warning,
            Deny::Info => Severity::Info,
        }
    }
}

/// Findings of a file for which fixes are looked up: each takes a try of every rewrite that may mend it. More come out of programs that
/// write programs.
const FINDINGS_WITH_FIXES: usize = 200;

/// Runs `check`.
pub fn run(args: &CheckArgs, out: &mut dyn Write) -> CliResult {
    let (paths, lines) = Lines::of(&args.paths, &args.includes)?;
    if args.fix && !lines.0.is_empty() {
        return Err("--fix mends whole files: leave the line out".to_owned().into());
    }
    if args.fix && !args.diff && paths.iter().any(|path| is_standard_input(path)) {
        return Err("--fix cannot write to standard input: add --diff to see the change"
            .to_owned()
            .into());
    }
    if args.write_baseline && !lines.0.is_empty() {
        return Err("--write-baseline takes the findings of whole files: leave the line out"
            .to_owned()
            .into());
    }
    let mut project = Project::load(&paths, &args.includes)?;
    if let Some(reference) = &args.changed_since {
        only_changed(&mut project, reference)?;
    }
    // Before anything is fixed: a baseline that can't be read stops everything.
    let baseline = match &args.baseline {
        Some(path) if args.write_baseline => Some(Baseline::new(path)?),
        Some(path) => Some(Baseline::read(path)?),
        None => None,
    };
    let mut fixed = Vec::new();
    if args.fix {
        let (applied, edited) = fix::fix_all(&mut project)?;
        if args.diff {
            changes::show(&project, &edited, out)?;
            note(&format!("{} would be applied", count(applied.len(), "fix", "fixes")));
            return Ok(match edited.is_empty() {
                _ if project.incomplete => USAGE_OR_IO,
                true => CLEAN,
                false => FINDINGS,
            });
        }
        changes::write(&project, edited)?;
        fixed = applied;
    }
    let mut summary = Summary::default();
    let mut found: Vec<(Diagnostic, Finding)> = Vec::new();
    for file in project.asked() {
        // A bug in the analysis of one file must not hide the findings of the others.
        match catch_unwind(AssertUnwindSafe(|| check_file(&project, file, &mut summary))) {
            Ok(findings) => found.extend(findings.into_iter().filter(|(diagnostic, finding)| {
                let path = diagnostic.place.file.path(project.host.db());
                lines.ask_for(path, finding.place.start.line..=finding.place.end.line)
            })),
            Err(_) => {
                let path = project.show(file.path(project.host.db()));
                return Err(format!("internal error while checking {path}; please report it with the file").into());
            }
        }
    }
    match baseline {
        Some(baseline) if args.write_baseline => return write(baseline, &project, &found),
        Some(mut baseline) => {
            summary.baseline = baseline.leave_out(&project, &mut found);
            if lines.0.is_empty() {
                baseline.tell_what_is_gone(&project);
            }
        }
        None => {}
    }
    for (diagnostic, _) in &found {
        match diagnostic.severity {
            Severity::Error => summary.errors += 1,
            Severity::Warning => summary.warnings += 1,
            Severity::Info => summary.infos += 1,
        }
    }
    let incomplete = project.incomplete;
    let denied = found.iter().any(|(d, _)| d.severity >= args.deny.severity());
    match args.format {
        CheckFormat::Text => text(&project, &fixed, &found, &summary, out)?,
        CheckFormat::Sarif => {
            json(out, &sarif::log(&project, &found))?;
        }
        CheckFormat::Github => {
            let (db, repository) = (project.host.db(), project.repository());
            for (diagnostic, _) in &found {
                let path = diagnostic.place.file.path(db);
                let path = repository.path_of(path).filter(|_| !project.is_nameless(path));
                let path = path.unwrap_or_else(|| project.show(diagnostic.place.file.path(db)));
                github::annotation(db, &path, diagnostic, out)?;
            }
        }
        CheckFormat::Json => json(
            out,
            &CheckReport {
                schema: schema::VERSION,
                version: env!("CARGO_PKG_VERSION"),
                summary,
                fixed,
                findings: found.into_iter().map(|(_, finding)| finding).collect(),
                skipped: project.skipped.into_iter().chain(project.unreadable).collect(),
            },
        )?,
    }
    Ok(match denied {
        _ if incomplete => USAGE_OR_IO,
        true => FINDINGS,
        false => CLEAN,
    })
}

/// Leaves those files that have changed since a commit, or that include such a file.
fn only_changed(project: &mut Project, reference: &str) -> Result<(), CliError> {
    let changed = changed::since(reference, project.repository().root.as_deref())?;
    let db = project.host.db();
    let has_changed = |file: &SourceFile| changed.contains(file.path(db));
    let asked = project.asked().into_iter();
    let left = asked.filter(|file| included_files(db, *file).iter().any(has_changed));
    let files: Vec<PathBuf> = left.map(|file| file.path(db).to_path_buf()).collect();
    if files.is_empty() {
        note(&format!("no CUDA file has changed since {reference}"));
    }
    project.files = files;
    Ok(())
}

/// Writes a baseline, and says so.
fn write(baseline: Baseline, project: &Project, found: &[(Diagnostic, Finding)]) -> CliResult {
    let path = baseline.write(project, found)?;
    note(&format!(
        "wrote {}: {}",
        path.display(),
        count(found.len(), "finding", "findings")
    ));
    Ok(if project.incomplete { USAGE_OR_IO } else { CLEAN })
}

/// The lines that the user asks about, by file; files that aren't here as a whole.
struct Lines(BTreeMap<PathBuf, Vec<u32>>);

impl Lines {
    /// Takes the lines off `FILE:LINE`.
    fn of(asked: &[PathBuf], includes: &Includes) -> Result<(Vec<PathBuf>, Lines), CliError> {
        let mut paths = Vec::new();
        let mut lines: BTreeMap<PathBuf, Vec<u32>> = BTreeMap::new();
        let mut whole: BTreeSet<PathBuf> = BTreeSet::new();
        for location in asked {
            let (path, at) = named_place(location, None)?;
            match at {
                Some(at) if path.is_dir() => {
                    return Err(format!("{} is a directory: it has no line {}", path.display(), at.line).into());
                }
                Some(at) => lines.entry(located(&path, includes)?).or_default().push(at.line),
                None => whole.extend(located(&path, includes).ok()),
            }
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        lines.retain(|path, _| !whole.iter().any(|whole| path.starts_with(whole)));
        Ok((paths, Lines(lines)))
    }

    /// Whether what stands in some lines of a file is to be told.
    fn ask_for(&self, path: &Path, place: RangeInclusive<u32>) -> bool {
        let lines = self.0.get(path);
        lines.is_none_or(|lines| lines.iter().any(|line| place.contains(line)))
    }
}

fn check_file(project: &Project, file: SourceFile, summary: &mut Summary) -> Vec<(Diagnostic, Finding)> {
    project.describe(|db, describe| {
        let kernels = items(db, file).functions.iter();
        summary.files += 1;
        summary.kernels += kernels.filter(|f| f.has_body(db) && f.signature(db).kernel).count();
        // What stands in the runtime header isn't the user's.
        if !is_runtime_header(db, file) {
            let mut sites = in_file(db, file);
            sites.retain(|site| site.device_side());
            summary.launches += sites.len();
            let mut launching: BTreeSet<u32> = sites.iter().map(|site| site.id.function.start(db)).collect();
            for function in &items(db, file).functions {
                let launches = collected::count(db, *function);
                summary.collected += launches;
                launching.extend((launches > 0).then(|| function.start(db)));
            }
            summary.launching_functions += launching.len();
        }
        let all = diagnostics(db, file);
        if all.len() > FINDINGS_WITH_FIXES {
            let path = project.show(file.path(db));
            note(&format!(
                "fixes are looked up for the first {FINDINGS_WITH_FIXES} findings of {path}: `gridfuse explain` tells of those of others"
            ));
        }
        all.iter()
            .enumerate()
            .map(|(index, diagnostic)| {
                let finding = match index < FINDINGS_WITH_FIXES {
                    true => describe.finding(diagnostic, &project.include_dirs),
                    false => describe.finding_without_fixes(diagnostic),
                };
                (diagnostic.clone(), finding)
            })
            .collect()
    })
}

fn text(
    project: &Project,
    fixed: &[Fixed],
    found: &[(Diagnostic, Finding)],
    summary: &Summary,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let path = |path: &Path| project.show(path);
    let snippets = Snippets {
        db: project.host.db(),
        path: &path,
    };
    for fix in fixed {
        let place = &fix.place;
        let (line, column) = (place.start.line, place.start.column);
        writeln!(out, "fixed {}:{line}:{column}: {}: {}", place.path, fix.id, fix.title)?;
    }
    if !fixed.is_empty() {
        writeln!(out)?;
    }
    let db = project.host.db();
    // Several findings about one launch offer the same fixes: once is enough.
    let offers = |index: usize| -> &[Fix] {
        let fixes = found.get(index).map_or(&[][..], |(_, finding)| &finding.fixes);
        let before = index.checked_sub(1).and_then(|before| found.get(before));
        let again = before.is_some_and(|(_, before)| before.fixes == fixes);
        if again { &[] } else { fixes }
    };
    let functions: Vec<_> = found
        .iter()
        .map(|(diagnostic, _)| function_at(db, diagnostic.place.file, diagnostic.place.range.start))
        .collect();
    let mut assumed = Assumed::default();
    for (index, (diagnostic, _)) in found.iter().enumerate() {
        // The findings of a function number together what their fixes assume.
        if index == 0 || functions[index] != functions[index - 1] {
            let same = functions[index..]
                .iter()
                .take_while(|other| **other == functions[index]);
            assumed = Assumed::of((index..index + same.count()).flat_map(offers));
        }
        writeln!(out, "{}\n", snippets.finding(diagnostic, offers(index), &mut assumed))?;
    }
    let total = summary.errors + summary.warnings + summary.infos;
    let counted = format!(
        "{}{} in {}, {} in {}: {}, {}, {}{}",
        count(
            summary.launches + summary.collected,
            "device-side launch",
            "device-side launches"
        ),
        match summary.collected {
            0 => String::new(),
            collected => format!(" ({collected} collected)"),
        },
        count(summary.launching_functions, "function", "functions"),
        count(total, "finding", "findings"),
        count(summary.files, "file", "files"),
        count(summary.errors, "error", "errors"),
        count(summary.warnings, "warning", "warnings"),
        count(summary.infos, "info", "infos"),
        [(fixed.len(), "fixed"), (summary.baseline, "in the baseline")]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("; {number} {what}"))
            .collect::<String>(),
    );
    writeln!(out, "{}", wrapped(&counted).trim_end())?;
    out.flush()?;
    for skipped in &project.skipped {
        note(&format!("skipped {}: {}", skipped.path, skipped.reason));
    }
    Ok(())
}
