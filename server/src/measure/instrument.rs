//! The edits that make a program measure itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_codeactions::api::source_edit::TextEdit;
use gridfuse_codeactions::edit::lex::{code_words, identifiers};

use crate::launches::{LaunchSite, by_function, in_file};
use crate::line_index::line_index;
use crate::measure::Request;
use crate::measure::report::{self, LeftOut};

/// A host launch of a measured kernel: the same in all variants of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostSite {
    /// The kernel's name without namespaces and template arguments.
    pub kernel: String,
    /// Which of the kernel's launches, in the order of the files and in them, from 0.
    pub nth: u32,
}

/// Host launches that are measured, with the numbers that the programs report them by.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    numbers: BTreeMap<HostSite, u32>,
    /// For each number, where the launch is in the original: file and line, from 1.
    pub places: Vec<(HostSite, PathBuf, u32)>,
    /// Launches of measured kernels that can't be measured: file, line, why.
    pub left_out: Vec<(PathBuf, u32, &'static str)>,
}

impl Sites {
    /// The measured launches, with paths as they are shown.
    pub fn shown(&self, request: &Request, show: &dyn Fn(&Path) -> String) -> Vec<report::Site> {
        let places = self.places.iter();
        places
            .map(|(site, path, line)| {
                let (path, line) = request.place(path, *line);
                report::Site {
                    kernel: site.kernel.clone(),
                    path: show(path),
                    line,
                }
            })
            .collect()
    }

    /// Those that can't be measured.
    pub fn shown_left_out(&self, show: &dyn Fn(&Path) -> String) -> Vec<LeftOut> {
        let left_out = self.left_out.iter();
        left_out
            .map(|(path, line, why)| LeftOut {
                path: show(path),
                line: *line,
                reason: (*why).to_owned(),
            })
            .collect()
    }
}

/// The names of the kernels that launch others, themselves or by way of a device function, in a program's files.
pub fn launching_kernels(db: &Database, files: &[SourceFile]) -> BTreeSet<String> {
    let functions = || files.iter().flat_map(|file| items(db, *file).functions.iter().copied());
    let launches = |function: FunctionItem<'_>| by_function(db, function).iter().any(LaunchSite::device_side);
    let mut reached: BTreeSet<String> = functions()
        .filter(|function| launches(*function))
        .map(|function| unqualified(function.name(db)).to_owned())
        .collect();
    // A function whose text names one of them may call it.
    loop {
        let names = |function: FunctionItem<'_>| identifiers(&function.text(db)).any(|word| reached.contains(word));
        let more: Vec<String> = functions()
            .filter(|function| {
                let signature = function.signature(db);
                (signature.kernel || signature.device) && !reached.contains(unqualified(function.name(db)))
            })
            .filter(|function| names(*function))
            .map(|function| unqualified(function.name(db)).to_owned())
            .collect();
        if more.is_empty() {
            break;
        }
        reached.extend(more);
    }
    functions()
        .filter(|function| function.signature(db).kernel)
        .map(|function| unqualified(function.name(db)).to_owned())
        .filter(|name| reached.contains(name))
        .collect()
}

/// The edits of a program's files that time the host's launches of `kernels` and, on request, count device-side launches.
/// New sites are numbered only in the original (`sites` empty); in a rewritten program, other launches stay as they are. `host`: only
/// this file's launches by the host are measured.
pub fn instrument(
    db: &Database,
    files: &[SourceFile],
    host: Option<&Path>,
    kernels: &BTreeSet<String>,
    sites: &mut Sites,
    count_launches: bool,
) -> BTreeMap<PathBuf, Vec<TextEdit>> {
    let original = sites.places.is_empty();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut edits: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
    for file in files.iter().copied() {
        let path = file.path(db).to_path_buf();
        let mut here: Vec<TextEdit> = Vec::new();
        let mut outer_end = 0;
        for site in in_file(db, file) {
            let line = line_index(db, file).line(site.place.range.start).0 + 1;
            let launch = &file.text(db)[site.place.range.start as usize..site.place.range.end as usize];
            if site.device_side() {
                if count_launches && site.facts.statement.is_some() && !site.facts.from_macro {
                    here.push(TextEdit {
                        range: site.place.range,
                        insert: format!("({launch}, ::gridfuse_measure::launched())"),
                    });
                }
                continue;
            }
            let Some(name) = &site.facts.kernel_name else { continue };
            let kernel = unqualified(name.split('<').next().unwrap_or(name)).trim().to_owned();
            if !kernels.contains(&kernel) || host.is_some_and(|host| host != path) {
                continue;
            }
            let nth = seen.entry(kernel.clone()).or_default();
            let key = HostSite { kernel, nth: *nth };
            *nth += 1;
            let wrapped = if site.facts.from_macro {
                Err("it comes out of a macro")
            } else if site.place.range.start < outer_end {
                Err("it stands in another launch")
            } else {
                wrap(db, &site, launch)
            };
            let wrapped = match wrapped {
                Ok(wrapped) => wrapped,
                Err(why) => {
                    if original {
                        sites.left_out.push((path.clone(), line, why));
                    }
                    continue;
                }
            };
            let number = if original {
                let number = sites.places.len() as u32;
                sites.numbers.insert(key.clone(), number);
                sites.places.push((key, path.clone(), line));
                number
            } else {
                match sites.numbers.get(&key) {
                    Some(number) => *number,
                    None => continue,
                }
            };
            outer_end = site.place.range.end;
            here.push(TextEdit {
                range: site.place.range,
                insert: wrapped(number),
            });
        }
        if !here.is_empty() {
            edits.insert(path, here);
        }
    }
    edits
}

/// The text that takes a launch's place, by the site's number.
fn wrap<'a>(
    db: &Database,
    site: &LaunchSite<'_>,
    launch: &'a str,
) -> Result<impl Fn(u32) -> String + use<'a>, &'static str> {
    let text = site.id.function.text(db);
    let source = |span: gridfuse_analysis::base::span::Span| {
        let (start, end) = (span.start as usize, span.end as usize);
        text.get(start..end).unwrap_or_default().to_owned()
    };
    let stream = match &site.facts.stream_operand {
        None => "0".to_owned(),
        Some(operand) => {
            let stream = source(operand.span);
            if !repeatable(&stream) {
                return Err("its stream can't be named twice: it's more than a variable");
            }
            stream.replace(['\r', '\n'], " ")
        }
    };
    // Arguments that can't be named twice aren't looked at: calls, assignments.
    let args: Vec<String> = site
        .facts
        .args
        .iter()
        .map(|operand| source(operand.span))
        .map(|arg| if repeatable(&arg) { arg } else { "0".to_owned() })
        // The lines behind stay where they are, so that compilers speak of the right ones.
        .map(|arg| arg.replace(['\r', '\n'], " "))
        .collect();
    let args: String = args.iter().map(|arg| format!(", {arg}")).collect();
    Ok(move |number: u32| format!("(::gridfuse_measure::measured({number}, {stream}{args}), {launch})"))
}

/// An expression without calls and side effects, so that it can be evaluated once more.
fn repeatable(expression: &str) -> bool {
    let assigns = |(at, _): (usize, &str)| {
        let before = expression[..at].chars().next_back();
        let after = expression[at + 1..].chars().next();
        !matches!(before, Some('=' | '!' | '<' | '>')) && after != Some('=')
    };
    let words = code_words(expression);
    let calls = words.windows(2).any(|pair| {
        pair[1] == "(" && pair[0].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '>'))
    });
    !words.is_empty()
        && !calls
        && !expression.contains("++")
        && !expression.contains("--")
        && !expression.contains("<<=")
        && !expression.contains(">>=")
        && !expression.match_indices('=').any(assigns)
        && !expression.contains(['{', '}', ';', '#', '\\'])
        && !expression.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_evaluated_twice() {
        for good in [
            "a",
            "0",
            "s.data",
            "p + 4",
            "(int*)p",
            "&a[i]",
            "graph->row",
            "streams[i % 4]",
            "a == b",
        ] {
            assert!(repeatable(good), "{good}");
        }
        for bad in [
            "",
            "i++",
            "f(x)",
            "x = 3",
            "v.data()",
            "dim3{1}",
            "a += 2",
            "g<int>(x)",
            "--n",
            "p // the buffer",
        ] {
            assert!(!repeatable(bad), "{bad}");
        }
    }
}
