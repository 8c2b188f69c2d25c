//! What gridfuse's rewrites make of a program, without files: for programs that the emulator runs.

use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::rewrite::{Options, Rewrite};
use gridfuse_codeactions::api::source_edit::apply_to_text;
use gridfuse_codeactions::api::source_edit::map_range;
use gridfuse_codeactions::handlers::{launch_rewrite, of_launches, place_rewrite};

use super::program::Program;

/// A launch by device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    range: TextRange,
}

/// A rewritten program.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The rewrites, in order.
    pub ids: Vec<&'static str>,
    /// What came out.
    pub program: Program,
    /// What the rewrites take for granted.
    pub assumptions: Vec<String>,
    /// Where the launch, or what it has become, stands now.
    site: Site,
}

/// The root of programs in the database.
const ROOT: &str = "/program";

fn host(program: &Program) -> Host {
    let mut host = Host::new();
    host.set_include_dirs(
        program
            .include_dirs()
            .iter()
            .map(|dir| Path::new(ROOT).join(dir))
            .collect(),
    );
    let texts = program.files().iter();
    host.set_files(
        texts
            .map(|(path, text)| (Path::new(ROOT).join(path), text.clone()))
            .collect(),
    );
    host
}

/// The launches by device code in a file.
fn in_file(host: &Host, file: SourceFile) -> Vec<(LaunchId<'_>, TextRange)> {
    let db = host.db();
    let mut found = Vec::new();
    for function in items(db, file)
        .functions
        .iter()
        .filter(|function| function.has_body(db))
    {
        for (index, facts) in launches(db, *function).iter().enumerate() {
            if facts.launchers != Launchers::Host {
                let id = LaunchId {
                    function: *function,
                    index: u32::try_from(index).unwrap_or(u32::MAX),
                };
                found.push((id, facts.span.shift(function.start(db))));
            }
        }
    }
    found.sort_by_key(|(_, range)| *range);
    found
}

/// The launches by device code in a program.
pub fn device_launches(program: &Program) -> Vec<Site> {
    let host = host(program);
    let mut found = Vec::new();
    for (path, text) in program.files() {
        let Some(file) = host.file(&Path::new(ROOT).join(path)) else {
            continue;
        };
        for (_, range) in in_file(&host, file) {
            let before = text.as_bytes().iter().take(range.start as usize);
            found.push(Site {
                file: path.clone(),
                line: 1 + before.filter(|byte| **byte == b'\n').count(),
                range,
            });
        }
    }
    found
}

/// Applies a rewrite with its default options to a launch; an error is the reason why it can't be.
pub fn rewrite(program: &Program, site: &Site, id: &str) -> Result<Rewritten, String> {
    untouched(program, site).and(id)
}

/// What a fix makes of what stands where a launch of a program stands.
pub fn fixed(program: &Program, site: &Site, id: &str) -> Result<Program, String> {
    untouched(program, site).fix(id)
}

/// What gridfuse offers at a launch: each rewrite alone, and pairs of different ones, one after the other: those for whose number
/// `wanted` holds. The numbers are those of all pairs of rewrites, offered or not.
pub fn offered(program: &Program, site: &Site, wanted: impl Fn(usize) -> bool) -> Vec<Rewritten> {
    let all: Vec<&Rewrite> = of_launches().collect();
    let mut found = untouched(program, site).each(|_| true);
    for first in 0..found.len() {
        let first = found[first].clone();
        let row = all
            .iter()
            .position(|rewrite| first.ids == [rewrite.id])
            .unwrap_or_default();
        let pairs = first.each(|second| second != row && wanted(row * all.len() + second));
        found.extend(pairs);
    }
    found
}

/// A program before any rewrite.
fn untouched(program: &Program, site: &Site) -> Rewritten {
    Rewritten {
        ids: Vec::new(),
        program: program.clone(),
        assumptions: Vec::new(),
        site: site.clone(),
    }
}

impl Rewritten {
    /// Applies one more rewrite to the same launch.
    pub fn and(&self, id: &str) -> Result<Rewritten, String> {
        let rewrite = launch_rewrite(id).ok_or_else(|| format!("there is no rewrite `{id}`"))?;
        self.apply(&host(&self.program), rewrite)
    }

    /// What a fix makes of what stands where the launch stood.
    pub fn fix(&self, id: &str) -> Result<Program, String> {
        let fix = place_rewrite(id).ok_or_else(|| format!("there is no fix `{id}`"))?;
        let host = host(&self.program);
        let file = host.file(&Path::new(ROOT).join(&self.site.file));
        let file = file.ok_or("the file of the launch is lost")?;
        let apply = |start: u32| {
            let range = TextRange::empty(start);
            let edit = fix.apply(host.db(), FileRange { file, range }, &Options::default());
            edit.map_err(|refusal| {
                let reasons: Vec<&str> = refusal.0.iter().map(|reason| reason.text.as_str()).collect();
                reasons.join("; ")
            })
        };
        // An edit of several steps may not say where the launch has gone.
        let text = file.text(host.db());
        let calls = text.match_indices(".launch(").map(|(at, _)| at as u32);
        let edit = apply(self.site.range.start);
        let edit = edit.or_else(|why| calls.filter_map(|at| apply(at).ok()).next().ok_or(why))?;
        let mut program = self.program.clone();
        for (edited, edits) in &edit.edits {
            let name = edited.strip_prefix(ROOT).unwrap_or(edited);
            let before = self.program.files().get(name).ok_or("an edit of an unknown file")?;
            let text = apply_to_text(edited, before, edits).map_err(|error| error.to_string())?;
            program = program.with_file(name, text);
        }
        Ok(program)
    }

    /// What each rewrite makes of it, where it can be applied; of those for whose number `wanted` holds.
    fn each(&self, wanted: impl Fn(usize) -> bool) -> Vec<Rewritten> {
        let host = host(&self.program);
        let numbered = of_launches().enumerate().filter(|(number, _)| wanted(*number));
        let applied = numbered.map(|(_, rewrite)| self.apply(&host, rewrite));
        applied.filter_map(Result::ok).collect()
    }

    fn apply(&self, host: &Host, rewrite: &'static Rewrite) -> Result<Rewritten, String> {
        let path = Path::new(ROOT).join(&self.site.file);
        let file = host.file(&path).ok_or("there is no such file")?;
        let here = in_file(host, file);
        let overlaps = |range: &TextRange| range.start < self.site.range.end && self.site.range.start < range.end;
        let exact = here.iter().find(|(_, range)| *range == self.site.range);
        let (launch, range) = exact
            .or_else(|| here.iter().find(|(_, range)| overlaps(range)))
            .ok_or("there is no such launch any more")?;
        let edit = rewrite
            .apply(host.db(), *launch, &Options::default())
            .map_err(|refusal| {
                let reasons: Vec<&str> = refusal.0.iter().map(|reason| reason.text.as_str()).collect();
                reasons.join("; ")
            })?;
        let mut after = self.clone();
        after.ids.push(rewrite.id);
        after
            .assumptions
            .extend(edit.assumptions.iter().map(|assumed| assumed.reason.text.clone()));
        after.site.range = *range;
        let relative = |path: &Path| path.strip_prefix(ROOT).unwrap_or(path).to_owned();
        for (created, text) in &edit.creates {
            after.program = after.program.with_file(relative(created), &**text);
        }
        for (edited, edits) in &edit.edits {
            let name = relative(edited);
            let before = self.program.files().get(&name).ok_or("an edit of an unknown file")?;
            let text = apply_to_text(edited, before, edits).map_err(|error| error.to_string())?;
            if name == self.site.file {
                after.site.range = map_range(*range, edits);
            }
            after.program = after.program.with_file(name, text);
        }
        Ok(after)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const TEXT: &str = r#"__global__ void child(int* out, int count) { if (threadIdx.x < count) atomicAdd(&out[threadIdx.x], 1); }
__global__ void parent(int* out, int n) {
    if (threadIdx.x < n) child<<<1, 32>>>(out, threadIdx.x);
}
int main() { parent<<<1, 32>>>(nullptr, 5); }
"#;

    #[test]
    fn rewrites_alone_and_in_pairs() {
        let program = Program::new("a.cu", TEXT);
        let sites = device_launches(&program);
        assert_eq!(sites.len(), 1);
        assert_eq!(sites[0].line, 3);
        let offered = offered(&program, &sites[0], |_| true);
        let ids: Vec<String> = offered.iter().map(|rewritten| rewritten.ids.join(",")).collect();
        for wanted in [
            "aggregate-block",
            "threshold",
            "fire-and-forget",
            "threshold,aggregate-block",
        ] {
            assert!(ids.iter().any(|ids| ids == wanted), "{wanted} is not among {ids:?}");
        }
        let aggregated = &offered[0];
        assert!(!aggregated.assumptions.is_empty());
        assert!(aggregated.program.files().contains_key(Path::new("gridfuse.cuh")));
        assert!(aggregated.program.files()[Path::new("a.cu")].contains("Aggregator"));
    }

    #[test]
    fn refusals_have_a_reason() {
        let program = Program::new(
            "a.cu",
            TEXT.replace("child<<<1, 32>>>", "child<<<1, 32, 0, cudaStreamTailLaunch>>>"),
        );
        let site = &device_launches(&program)[0];
        let reason = rewrite(&program, site, "aggregate-block").unwrap_err();
        assert!(reason.contains("tail launch"), "{reason}");
        assert_eq!(rewrite(&program, site, "x").unwrap_err(), "there is no rewrite `x`");
    }
}
