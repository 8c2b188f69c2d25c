//! `gridfuse rewrite`: applies rewrites to one launch, one after the other.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use annotate_snippets::Level;
use clap::Args;
use gridfuse_analysis::base::closest::closest;
use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_codeactions::api::assumption::reasons;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::{Family, Options, Rewrite, Target};
use gridfuse_codeactions::api::source_edit::{SourceEdit, map_range};
use gridfuse_codeactions::handlers::{REWRITES, of_places, rewrite_by_id};
use gridfuse_codeactions::runtime::together;

use super::output::{error, note};
use super::project::{Project, canonical, is_standard_input, located};
use super::site::{At, NamedAt, launches_at, list_places, named_place};
use super::snippet::Snippets;
use super::write::{NewText, WriteError, write_all};
use super::{CLEAN, CliError, CliResult, FINDINGS, Includes, changes};
use crate::bounds::Bounds;
use crate::changes::{Change, NoEdit, edit_at_place, edit_of, take};
use crate::creates::{Exists, to_create};
use crate::files::{MAX_NAMED_BYTES, read};
use crate::launches::{LaunchSite, REVERT, in_file};
use crate::line_index::line_index;
use crate::made;
use crate::recipe;
use crate::steps_back::{self, Step};

/// Arguments of `rewrite`.
#[derive(Debug, Args)]
pub struct RewriteArgs {
    /// File with the launch and its line, and the column where the line has several; or - for standard input
    #[arg(value_name = "FILE[:LINE[:COL]]")]
    location: PathBuf,
    /// Place of the launch, apart from the file
    #[arg(long, value_name = "[FILE:]LINE[:COL]", allow_hyphen_values = true)]
    at: Option<NamedAt>,
    /// Rewrites to apply, in order, each to the result of the one before; `gridfuse list` names them
    #[arg(long, required = true, value_name = "ID", value_delimiter = ',')]
    apply: Vec<String>,
    /// Option of a rewrite
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    destination: Destination,
    #[command(flatten)]
    includes: Includes,
}

/// Arguments of `revert`.
#[derive(Clone, Debug, Args)]
pub struct RevertArgs {
    /// File with what a rewrite made and its line, that of the collected launch, say; or - for standard input
    #[arg(value_name = "FILE[:LINE[:COL]]")]
    location: PathBuf,
    /// Place of what a rewrite made, apart from the file
    #[arg(long, value_name = "[FILE:]LINE[:COL]", allow_hyphen_values = true)]
    at: Option<NamedAt>,
    #[command(flatten)]
    destination: Destination,
    #[command(flatten)]
    includes: Includes,
}

/// Runs `revert`: the rewrite of this name.
pub fn revert(args: RevertArgs, out: &mut dyn Write) -> CliResult {
    let args = RewriteArgs {
        location: args.location,
        at: args.at,
        apply: vec!["revert".to_owned()],
        set: Vec::new(),
        destination: args.destination,
        includes: args.includes,
    };
    run(&args, out)
}

#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
struct Destination {
    /// Print the change as a unified diff (default); on a terminal, long new files such as gridfuse.cuh are only named
    #[arg(long)]
    diff: bool,
    /// Change the files: all of them or, when something fails, none
    #[arg(long)]
    in_place: bool,
    /// Write changed and new files into a directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Understands `NAME=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.trim().to_string())),
        _ => Err("expected NAME=VALUE, for example threshold=64".to_string()),
    }
}

/// Why no edit came out of a rewrite.
enum Stop {
    Error(CliError),
    /// Already reported.
    Refused,
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Stop::Error(message.into())
    }
}

/// Runs `rewrite`.
pub fn run(args: &RewriteArgs, out: &mut dyn Write) -> CliResult {
    let rewrites = known_rewrites(&args.apply)?;
    let options = options(&rewrites, &args.set)?;
    let (asked, at) = named_place(&args.location, args.at.clone())?;
    if asked.is_dir() {
        return Err(format!("{} is a directory; name the file with the launch", asked.display()).into());
    }
    let at = at.ok_or_else(|| {
        let example = asked.display();
        format!("name the line as well, for example {example}:41, or with --at 41")
    })?;
    let destination = &args.destination;
    if is_standard_input(&asked) && (destination.in_place || destination.output.is_some()) {
        let text = "standard input cannot be written: --diff shows the change, and `patch` applies it to the file";
        return Err(text.to_owned().into());
    }
    let mut project = Project::load(std::slice::from_ref(&asked), &args.includes)?;
    let path = located(&asked, &args.includes)?;
    let file = project
        .host
        .file(&path)
        .ok_or_else(|| format!("cannot read {}", asked.display()))?;
    let mut target = match rewrites.first() {
        Some(rewrite) if !rewrite.target.is_launch() => place_of(&project, file, at)?,
        _ => first_target(&project, file, at)?,
    };
    let in_place = args.destination.in_place;
    let before = in_place.then(|| made::program(project.host.db(), &BTreeMap::new()));
    let mut changes = BTreeMap::new();
    for (rewrite, options) in rewrites.iter().zip(&options) {
        match apply(&mut project, &path, target, rewrite, options, &mut changes) {
            Ok(after) => target = after,
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Refused) => return Ok(FINDINGS),
        }
    }
    changes.retain(|_, change: &mut Change| change.before.as_deref() != Some(&change.after));
    if changes.is_empty() {
        note("nothing to change");
        return Ok(CLEAN);
    }
    if let Some(directory) = &args.destination.output {
        return write_output(&project, &changes, directory, out);
    }
    let left_over = changes::left_over(&project, &changes);
    if in_place {
        let step = Step::of(&changes);
        write_in_place(&project, changes, out)?;
        if let Some(before) = before
            && rewrites.iter().all(|rewrite| rewrite.id != REVERT)
        {
            made::write(before, made::program(project.host.db(), &BTreeMap::new()));
            if let Some(step) = step {
                step.keep();
            }
        }
        for path in changes::delete(&project, &left_over) {
            writeln!(out, "deleted {}", project.show(&path))?;
        }
        return Ok(CLEAN);
    }
    changes::show(&project, &changes, out)?;
    changes::show_deleted(&project, &left_over, out)?;
    Ok(CLEAN)
}

fn known_rewrites(ids: &[String]) -> Result<Vec<&'static Rewrite>, CliError> {
    let known = |id: &String| {
        rewrite_by_id(id.trim()).ok_or_else(|| CliError::Message(recipe::unknown(id.trim(), REWRITES.iter())))
    };
    ids.iter().map(known).collect()
}

/// Each rewrite's share of the settings. A name that none of them knows is an error.
fn options(rewrites: &[&'static Rewrite], set: &[(String, String)]) -> Result<Vec<Options>, CliError> {
    let knows = |rewrite: &Rewrite, name: &str| rewrite.options.iter().any(|option| option.name == name);
    for (name, _) in set {
        if !rewrites.iter().any(|rewrite| knows(rewrite, name)) {
            let all: Vec<&str> = rewrites
                .iter()
                .flat_map(|rewrite| rewrite.options.iter().map(|option| option.name))
                .collect();
            let hint = match closest(name, all.iter().copied()) {
                _ if all.is_empty() => "the applied rewrites have no options".to_string(),
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are: {}", all.join(", ")),
            };
            return Err(format!("no applied rewrite has an option `{name}`; {hint}").into());
        }
    }
    for (name, value) in set {
        let specs = rewrites.iter().flat_map(|rewrite| rewrite.options);
        // An option whose default is a number takes positive ones.
        let mut numbers = specs.filter(|spec| spec.name == name && spec.default.parse::<u64>().is_ok());
        let positive = value.parse().is_ok_and(|n: u64| (1..=i32::MAX as u64).contains(&n));
        if numbers.next().is_some() && !positive {
            return Err(format!("`{name}` must be a number from 1 to {}, not `{value}`", i32::MAX).into());
        }
    }
    let share = |rewrite: &&'static Rewrite| {
        let mine = set.iter().filter(|(name, _)| knows(rewrite, name));
        Options(mine.cloned().collect())
    };
    Ok(rewrites.iter().map(share).collect())
}

/// The launch that the user means.
fn first_target(project: &Project, file: SourceFile, at: At) -> Result<TextRange, CliError> {
    let db = project.host.db();
    let here = launches_at(db, file, at);
    let device: Vec<LaunchSite<'_>> = here.iter().filter(|site| site.device_side()).copied().collect();
    let path = project.show(file.path(db));
    match device.as_slice() {
        [site] => Ok(site.place.range),
        [] if !here.is_empty() => {
            Err(format!("host code launches at {path}:{at}; rewrites apply to launches by kernels").into())
        }
        [] => {
            let mut all = in_file(db, file);
            all.retain(LaunchSite::device_side);
            Err(if all.is_empty() {
                format!("no kernel launch at {path}:{at}: no kernel in this file launches another")
            } else {
                format!(
                    "no kernel launch at {path}:{at}; there are launches at {}",
                    list_places(db, &path, &all)
                )
            }
            .into())
        }
        several => {
            let places = list_places(db, &path, several);
            Err(format!("several kernel launches at {path}:{at}: name {places}").into())
        }
    }
}

/// The rewrite that puts the same layer on a launch once it is collected: then no launch is left for the one that is meant for these.
fn after_collecting(rewrite: &Rewrite) -> Option<&'static Rewrite> {
    of_places().find(|other| (other.family, other.undo) == (Family::InLauncher, rewrite.undo))
}

/// The place that is meant: of the line, or of a column in it.
fn place_of(project: &Project, file: SourceFile, at: At) -> Result<TextRange, CliError> {
    let db = project.host.db();
    let start = line_index(db, file).start(at.line - 1);
    let start = start.ok_or_else(|| format!("{} has no line {}", project.show(file.path(db)), at.line))?;
    let text = file.text(db);
    let length = text
        .get(start as usize..)
        .and_then(|rest| rest.lines().next())
        .map_or(0, |line| line.trim_end().len() as u32);
    Ok(match at.column {
        Some(column) => TextRange::empty((start + column - 1).min(start + length)),
        None => TextRange::new(start, start + length),
    })
}

/// Applies one rewrite, tells what it assumes or why it can't be applied, and returns where the launch is afterwards.
fn apply(
    project: &mut Project,
    path: &Path,
    target: TextRange,
    rewrite: &'static Rewrite,
    options: &Options,
    changes: &mut BTreeMap<PathBuf, Change>,
) -> Result<TextRange, Stop> {
    let id = rewrite.id;
    let made = match kept_of(project, path, target, rewrite) {
        Some((place, edit, true)) => Ok((place, edit)),
        kept => match (edit_by(project, path, target, rewrite, options), kept) {
            (Err(NoEdit::Refused(..)), Some((place, edit, _))) => Ok((place, edit)),
            (made, _) => made,
        },
    };
    let edit = match made {
        Ok((place, mut edit)) => {
            if id == REVERT && project.is_untouched(&edit) {
                edit.assumptions.clear();
            }
            let title = format!("`{id}` is right only if what it assumes holds");
            report(project, Level::NOTE, &title, place, &reasons(&edit.assumptions));
            edit
        }
        Err(NoEdit::NoLaunch) => {
            error(&format!(
                "`{id}` cannot be applied: the rewrite before it left no launch; try another order"
            ));
            return Err(Stop::Refused);
        }
        Err(NoEdit::Refused(place, reasons)) => {
            let what = match rewrite.target {
                Target::Launch(_) => "to this launch",
                Target::Place(_) => "here",
            };
            let title = format!("`{id}` cannot be applied {what}");
            report(project, Level::ERROR, &title, place, &reasons);
            return Err(Stop::Refused);
        }
        Err(NoEdit::Unreadable) => return Err(format!("cannot read {}", path.display()).into()),
    };
    let after_edits = edit.edits.get(path).map_or(target, |list| map_range(target, list));
    take(project, &edit, changes)?;
    Ok(after_edits)
}

/// The edit of a rewrite.
fn edit_by(
    project: &Project,
    path: &Path,
    target: TextRange,
    rewrite: &'static Rewrite,
    options: &Options,
) -> Result<(FileRange, SourceEdit), NoEdit> {
    if !rewrite.target.is_launch() {
        return edit_at_place(project, path, target, rewrite, options);
    }
    match (
        edit_of(project, path, target, rewrite, options),
        after_collecting(rewrite),
    ) {
        (Err(NoEdit::NoLaunch), Some(other)) => edit_at_place(project, path, target, other, options),
        (made, _) => made,
    }
}

/// What leads back from what commands have made here, and whether nobody has changed anything since, in other files either.
fn kept_of(
    project: &Project,
    path: &Path,
    target: TextRange,
    rewrite: &Rewrite,
) -> Option<(FileRange, SourceEdit, bool)> {
    if rewrite.id != REVERT {
        return None;
    }
    let file = project.host.file(path)?;
    let mut edit = steps_back::back(project.host.db(), &steps_back::kept(), path, target)?;
    let is_untouched = project.is_untouched(&edit);
    if !is_untouched {
        edit.assumptions.push(steps_back::others_need_nothing());
    }
    Some((FileRange { file, range: target }, edit, is_untouched))
}

/// Tells reasons or assumptions on standard error.
fn report(project: &Project, level: Level<'static>, title: &str, place: FileRange, reasons: &[Reason]) {
    if reasons.is_empty() {
        return;
    }
    let path = |path: &Path| project.show(path);
    let snippets = Snippets {
        db: project.host.db(),
        path: &path,
    };
    // Nothing is left to do when standard error is closed.
    let _ = writeln!(anstream::stderr(), "{}", snippets.reasons(level, title, place, reasons));
}

fn write_in_place(project: &Project, changes: BTreeMap<PathBuf, Change>, out: &mut dyn Write) -> CliResult {
    for file in changes::write(project, changes)? {
        let verb = if file.replaces.is_some() { "changed" } else { "created" };
        writeln!(out, "{verb} {}", project.show(&file.path))?;
    }
    Ok(CLEAN)
}

/// Writes the changed files under `directory`, at their places relative to the deepest directory that holds them all.
fn write_output(
    project: &Project,
    changes: &BTreeMap<PathBuf, Change>,
    directory: &Path,
    out: &mut dyn Write,
) -> CliResult {
    std::fs::create_dir_all(directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let directory = canonical(directory)?;
    let common = common_directory(changes.keys());
    let inside = Bounds::new([directory.clone()], []);
    let mut files = Vec::new();
    for (path, change) in changes {
        let Ok(below) = path.strip_prefix(&common) else {
            return Err(format!("internal error: {} is not below {}", path.display(), common.display()).into());
        };
        let target = directory.join(below);
        if target == *path {
            let text = format!(
                "--output would overwrite {}; use --in-place for that",
                project.show(path)
            );
            return Err(text.into());
        }
        // A link that stands there may lead anywhere.
        inside
            .check(&target)
            .map_err(|outside| outside.message(|path| project.show(path)))?;
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(|error| format!("cannot create {}: {error}", parent.display()))?;
        }
        let replaces = read(&target, MAX_NAMED_BYTES).ok().map(|text| text.to_string());
        let header = replaces.as_ref().and_then(|there| together(there, &change.after));
        if let Some(header) = header {
            // What was written there before needs the header's other parts.
            if replaces.as_deref() != Some(&*header) {
                files.push(NewText {
                    path: target,
                    text: header.to_string(),
                    replaces,
                });
            }
            continue;
        }
        if change.before.is_none() {
            let wanted = BTreeMap::from([(target.clone(), change.after.as_str().into())]);
            let missing = to_create(&wanted, |_| replaces.clone());
            if missing
                .map_err(|Exists(path)| Exists::message(&project.show(&path)))?
                .is_empty()
            {
                continue;
            }
        }
        files.push(NewText {
            path: target,
            text: change.after.clone(),
            replaces,
        });
    }
    write_all(&files).map_err(|WriteError(message)| message)?;
    for file in &files {
        writeln!(out, "wrote {}", project.show(&file.path))?;
    }
    Ok(CLEAN)
}

fn common_directory<'a>(mut paths: impl Iterator<Item = &'a PathBuf>) -> PathBuf {
    let first = paths.next().and_then(|path| path.parent()).unwrap_or(Path::new(""));
    let mut common = first.to_path_buf();
    for path in paths {
        while !path.starts_with(&common) && common.pop() {}
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfuse_codeactions::api::refusal::Ineligible;
    use gridfuse_codeactions::api::rewrite::{Launches, Measured, OptionSpec, RewriteCtx, Undo};
    use gridfuse_codeactions::api::source_edit::TextEdit;

    type Applied = Result<SourceEdit, Ineligible>;

    fn place(ctx: &RewriteCtx<'_, '_>) -> Result<(PathBuf, TextRange), Ineligible> {
        let place = ctx.place()?;
        Ok((place.file.path(ctx.db).to_path_buf(), place.range))
    }

    /// Puts something before the launch.
    fn wrap(ctx: &RewriteCtx<'_, '_>) -> Applied {
        let (path, range) = place(ctx)?;
        let edit = TextEdit {
            range: TextRange::empty(range.start),
            insert: format!("if (n >= {}) ", ctx.given("limit").unwrap_or("7")),
        };
        Ok(SourceEdit {
            edits: BTreeMap::from([(path, vec![edit])]),
            ..SourceEdit::default()
        })
    }

    /// Replaces the launch and needs a header.
    fn replace(ctx: &RewriteCtx<'_, '_>) -> Applied {
        let (path, range) = place(ctx)?;
        let include = TextEdit {
            range: TextRange::empty(0),
            insert: "#include \"h.cuh\"\r\n".to_string(),
        };
        let launch = TextEdit {
            range,
            insert: "collect(n)".to_string(),
        };
        Ok(SourceEdit {
            creates: BTreeMap::from([(path.with_file_name("h.cuh"), "#pragma once\n".into())]),
            edits: BTreeMap::from([(path, vec![include, launch])]),
            ..SourceEdit::default()
        })
    }

    const LIMIT: &[OptionSpec] = &[OptionSpec {
        name: "limit",
        default: "7",
        doc: "Least.",
    }];
    static WRAP: Rewrite = Rewrite {
        id: "wrap",
        title: "Wrap",
        doc: "",
        options: LIMIT,
        target: Target::Launch(Launches::Any),
        family: Family::Stream,
        measured: Measured::No,
        tunes: None,
        unattended: false,
        undo: Undo::EachStep,
        run: wrap,
    };
    static REPLACE: Rewrite = Rewrite {
        id: "replace",
        title: "Replace",
        doc: "",
        options: &[],
        target: Target::Launch(Launches::Any),
        family: Family::Stream,
        measured: Measured::No,
        tunes: None,
        unattended: false,
        undo: Undo::EachStep,
        run: replace,
    };

    const PROGRAM: &str = "__global__ void c(int n) {}\r\n__global__ void p(int n) {\r\n\tc<<<n, 32>>>(n);\r\n}\r\n";

    /// Applies rewrites to a copy of the program: the new texts by file name, or the number of those that worked.
    fn applied(rewrites: &[&'static Rewrite], header: Option<&str>) -> Result<BTreeMap<String, String>, usize> {
        let directory = tempfile::tempdir().map_err(|_| 99_usize)?;
        let path = directory.path().canonicalize().map_err(|_| 99_usize)?.join("x.cu");
        std::fs::write(&path, PROGRAM).map_err(|_| 99_usize)?;
        if let Some(header) = header {
            std::fs::write(path.with_file_name("h.cuh"), header).map_err(|_| 99_usize)?;
        }
        let none = Includes {
            stdin_path: None,
            include_dirs: Vec::new(),
        };
        let mut project = Project::load(std::slice::from_ref(&path), &none).map_err(|_| 99_usize)?;
        let file = project.host.file(&path).ok_or(99_usize)?;
        let at = At { line: 3, column: None };
        let mut target = first_target(&project, file, at).map_err(|_| 99_usize)?;
        let mut changes = BTreeMap::new();
        for (done, rewrite) in rewrites.iter().enumerate() {
            let options = Options::default();
            target = apply(&mut project, &path, target, rewrite, &options, &mut changes).map_err(|_| done)?;
        }
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(changes
            .iter()
            .map(|(path, change)| (name(path), change.after.clone()))
            .collect())
    }

    #[test]
    fn rewrites_follow_the_launch() {
        let texts = applied(&[&WRAP, &WRAP, &REPLACE], None).unwrap_or_default();
        let body = "#include \"h.cuh\"\r\n__global__ void c(int n) {}\r\n__global__ void p(int n) {\r\n\tif (n >= 7) if (n >= 7) collect(n);\r\n}\r\n";
        assert_eq!(texts.get("x.cu").map(String::as_str), Some(body));
        assert_eq!(texts.get("h.cuh").map(String::as_str), Some("#pragma once\n"));
    }

    #[test]
    fn a_launch_that_is_gone_stops_the_next() {
        assert_eq!(applied(&[&REPLACE, &WRAP], None), Err(1));
    }

    #[test]
    fn existing_headers_are_kept_or_refused() {
        let same = applied(&[&REPLACE], Some("#pragma once\r\n")).unwrap_or_default();
        assert_eq!(same.keys().collect::<Vec<_>>(), ["x.cu"]);
        assert_eq!(applied(&[&REPLACE], Some("mine")), Err(0));
    }

    #[test]
    fn options_go_to_those_who_know_them() {
        let set = [("limit".to_string(), "9".to_string())];
        let shares = options(&[&REPLACE, &WRAP], &set).unwrap_or_default();
        assert_eq!(shares, [Options::default(), Options(BTreeMap::from(set.clone()))]);
        assert!(options(&[&REPLACE], &set).is_err());
    }

    #[test]
    fn settings() {
        assert_eq!(setting("threshold=64"), Ok(("threshold".into(), "64".into())));
        assert!(setting("threshold").is_err());
        assert!(setting("=1").is_err());
    }

    #[test]
    fn common_directories() {
        let paths = ["/a/b/x.cu", "/a/b/c/y.cu", "/a/z.cuh"].map(PathBuf::from);
        assert_eq!(common_directory(paths.iter()), Path::new("/a"));
        assert_eq!(common_directory(paths[..1].iter()), Path::new("/a/b"));
    }
}
