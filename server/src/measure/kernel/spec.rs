//! Run specifications: how a kernel is launched by itself, in a comment beside it or in `gridfuse.toml`.
//!
//! ```text
//! // gridfuse: run <<<(n + 255) / 256, 256>>>
//! //   n = 16384
//! //   graph = csr(rmat, n)
//! //   row = graph.row, col = graph.col
//! //   dist = fill(n, -1), dist[0] = 0
//! ```

use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::diagnostics::suppress::{ADDRESS, is_run_specification};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_codeactions::edit::lex::{Token, comments, is_blank};

use super::expression::{Expr, Mistake, Reader};
use crate::line_index::LineIndex;
use crate::manifest::{KernelRun, KernelRuns, Written};

/// What a comment begins with that holds a specification.
const MARK: &str = "gridfuse:";

/// How a kernel is launched.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The kernel, as the specification names it, or as the function behind the comment is named.
    pub kernel: String,
    /// `<int, 4>`, or nothing.
    pub template_arguments: String,
    /// Grid size.
    pub grid: Expr,
    /// Block size.
    pub block: Expr,
    /// Bytes of dynamic shared memory.
    pub shared: Option<Expr>,
    /// What parameters and other names stand for.
    pub definitions: Vec<Definition>,
    /// Where all this is written.
    pub source: Source,
}

/// `dist = fill(n, -1)`, `dist[0] = 0`
#[derive(Clone, Debug)]
pub struct Definition {
    /// Where it begins.
    pub at: usize,
    /// What is defined.
    pub name: String,
    /// The element that is set; `None`: the name itself is defined.
    pub element: Option<Expr>,
    /// The value.
    pub value: Expr,
}

/// Where a specification is written.
#[derive(Clone, Debug)]
pub struct Source {
    /// File.
    pub path: PathBuf,
    /// All of it.
    text: String,
    /// What the offsets in the specification count from; where it's put together of several strings, each of which is read by
    /// itself, the place of all.
    base: usize,
    /// Offsets within are places, too.
    exact: bool,
}

impl Source {
    /// Line from 1.
    pub fn line(&self) -> u32 {
        self.place(0).0
    }

    fn place(&self, at: usize) -> (u32, u32) {
        let at = self.base + if self.exact { at } else { 0 };
        let at = u32::try_from(at.min(self.text.len())).unwrap_or(u32::MAX);
        let (line, column) = LineIndex::new(&self.text).line_column(at);
        (line + 1, column + 1)
    }

    /// A mistake in words, with its place.
    pub fn tell(&self, mistake: &Mistake, show: &dyn Fn(&Path) -> String) -> String {
        let (line, column) = self.place(mistake.at);
        format!("{}:{line}:{column}: {}", show(&self.path), mistake.message)
    }
}

/// A specification that can't be understood.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The kernel that it's for, if that much is known.
    pub kernel: Option<String>,
    /// Where it's written.
    pub source: Source,
    /// What is wrong.
    pub mistake: Mistake,
}

/// The specifications in the comments of a file, in order.
pub fn in_comments(db: &dyn Db, file: SourceFile) -> Vec<Result<Spec, Box<Broken>>> {
    let text = file.text(db);
    let mut found = Vec::new();
    // Most files have none, and needn't be read.
    if !text.contains(ADDRESS) {
        return found;
    }
    let comments = comments(&text);
    let mut index = 0;
    while let Some(first) = comments.get(index) {
        index += 1;
        if !is_run_specification(first.text(&text)) {
            continue;
        }
        let mut last = *first;
        // What stands in line comments directly below belongs to it, up to an empty one.
        while let Some(next) = comments.get(index)
            && first.text(&text).starts_with("//")
            && continues(&text, last, *next)
        {
            last = *next;
            index += 1;
        }
        found.push(read_comment(db, file, &text, *first, last));
    }
    found
}

fn inner(comment: &str) -> &str {
    comment.trim_start_matches(['/', '*', '!'])
}

fn continues(text: &str, last: Token, next: Token) -> bool {
    let own = next.text(text);
    let between = text.get(last.end..next.start).unwrap_or_default();
    let adjacent = between.trim().is_empty() && between.matches('\n').count() == 1;
    own.starts_with("//") && adjacent && !inner(own).trim().is_empty() && !is_run_specification(own)
}

fn read_comment(db: &dyn Db, file: SourceFile, text: &str, first: Token, last: Token) -> Result<Spec, Box<Broken>> {
    let whole = text.get(first.start..last.end).unwrap_or_default();
    let source = Source {
        path: file.path(db).to_path_buf(),
        text: text.to_owned(),
        base: first.start,
        exact: true,
    };
    let behind = function_behind(db, file, text, last.end);
    let name = behind.map(|function| function.name(db).to_owned());
    let broken = |mistake: Mistake| {
        Box::new(Broken {
            kernel: name.clone(),
            source: source.clone(),
            mistake,
        })
    };
    let bare = without_marks(whole);
    let mut reader = Reader::new(&bare);
    reader.take(MARK);
    reader.take("run");
    let at = reader.position();
    let named = reader.identifier().map(str::to_owned);
    let kernel = named.or_else(|| name.clone()).ok_or_else(|| {
        broken(Mistake::new(
            at,
            "no kernel stands below this comment: name one, `run KERNEL<<<…>>>`",
        ))
    })?;
    read(&mut reader, kernel, source.clone()).map_err(broken)
}

/// The kernel that begins behind a comment, with nothing but comments and white space between.
fn function_behind<'db>(db: &'db dyn Db, file: SourceFile, text: &str, end: usize) -> Option<FunctionItem<'db>> {
    let end = u32::try_from(end).ok()?;
    let functions = items(db, file).functions.iter().copied();
    let next = functions.filter(|function| function.start(db) >= end);
    let next = next.min_by_key(|function| function.start(db))?;
    let between = text.get(end as usize..next.start(db) as usize)?;
    (next.signature(db).kernel && is_blank(between)).then_some(next)
}

/// The text of comments with blanks in place of `//`, `/*` and the like, byte for byte.
fn without_marks(comments: &str) -> String {
    let block = comments
        .starts_with("/*")
        .then(|| comments.strip_suffix("*/"))
        .flatten();
    let mut text = String::with_capacity(comments.len());
    for (index, line) in block.unwrap_or(comments).split_inclusive('\n').enumerate() {
        let start = line.len() - line.trim_start().len();
        let rest = line.get(start..).unwrap_or_default();
        // Of the lines of a block comment, a star at the beginning.
        let marks: &[char] = if index == 0 || rest.starts_with("//") {
            &['/', '*', '!']
        } else {
            &['*']
        };
        let bare = rest.trim_start_matches(marks);
        text.extend(std::iter::repeat_n(' ', line.len() - bare.len()));
        text.push_str(bare);
    }
    if block.is_some() {
        text.push_str("  ");
    }
    text
}

/// Reads what stands behind the kernel's name: `<int><<<…>>> name = …`.
fn read(reader: &mut Reader<'_>, kernel: String, source: Source) -> Result<Spec, Mistake> {
    let at = reader.position();
    let example = "`// gridfuse: run <<<(n + 255) / 256, 256>>> n = 16384 …`";
    let template_arguments = reader
        .up_to("<<<")
        .map(|written| written.trim().to_owned())
        .filter(|written| written.is_empty() || written.starts_with('<') && written.ends_with('>'))
        .ok_or_else(|| Mistake::new(at, format!("expected the launch's configuration: {example}")))?;
    reader.expect("<<<", "in front of the configuration")?;
    let grid = reader.expression()?;
    reader.expect(",", "between the size of the grid and that of the block")?;
    let block = reader.expression()?;
    let shared = match reader.take(",") {
        true => Some(reader.expression()?),
        false => None,
    };
    reader.expect(">>>", "after the configuration")?;
    let mut definitions = Vec::new();
    loop {
        while reader.take(",") || reader.take(";") {}
        if reader.is_done() {
            break;
        }
        definitions.push(definition(reader)?);
    }
    Ok(Spec {
        kernel,
        template_arguments,
        grid,
        block,
        shared,
        definitions,
        source,
    })
}

fn definition(reader: &mut Reader<'_>) -> Result<Definition, Mistake> {
    let at = reader.position();
    let here = reader.here();
    let name = reader
        .identifier()
        .ok_or_else(|| Mistake::new(at, format!("expected `name = value`, not {here}")))?
        .to_owned();
    let element = match reader.take("[") {
        true => {
            let index = reader.expression()?;
            reader.expect("]", "after the number of the element")?;
            Some(index)
        }
        false => None,
    };
    reader.expect(
        "=",
        &format!("after `{name}` (other comments go below an empty comment line)"),
    )?;
    let value = reader.expression()?;
    Ok(Definition {
        at,
        name,
        element,
        value,
    })
}

/// The specification of an entry `[[measure.kernel]]`.
pub fn of_manifest(runs: &KernelRuns, run: &KernelRun) -> Result<Spec, Box<Broken>> {
    let source = |base: usize| Source {
        path: runs.path.clone(),
        text: runs.text.clone(),
        base,
        exact: false,
    };
    let read = |written: &Written| -> Result<Expr, Box<Broken>> {
        let mut reader = Reader::new(&written.text);
        let read = reader.expression().and_then(|value| match reader.is_done() {
            true => Ok(value),
            false => Err(Mistake::new(0, format!("{} is left after the value", reader.here()))),
        });
        read.map_err(|mistake| {
            Box::new(Broken {
                kernel: Some(run.name.text.clone()),
                source: source(written.at),
                mistake,
            })
        })
    };
    let mut definitions = Vec::new();
    for (name, value) in &run.arguments {
        let (key, element) = match name.text.split_once('[') {
            Some((key, index)) => {
                let index = index.trim_end().trim_end_matches(']').to_owned();
                let element = read(&Written {
                    at: name.at,
                    text: index,
                })?;
                (key.trim(), Some(element))
            }
            None => (name.text.as_str(), None),
        };
        definitions.push(Definition {
            at: 0,
            name: key.to_owned(),
            element,
            value: read(value)?,
        });
    }
    Ok(Spec {
        kernel: run.name.text.clone(),
        template_arguments: run
            .template_arguments
            .as_ref()
            .map(|arguments| format!("<{arguments}>"))
            .unwrap_or_default(),
        grid: read(&run.grid)?,
        block: read(&run.block)?,
        shared: run.shared.as_ref().map(read).transpose()?,
        definitions,
        source: source(run.name.at),
    })
}

impl Spec {
    /// Whether it's for a kernel of this name.
    pub fn is_for(&self, kernel: &str) -> bool {
        same_kernel(&self.kernel, kernel)
    }
}

impl Broken {
    /// Whether it's for a kernel of this name, as far as that is known.
    pub fn is_for(&self, kernel: &str) -> bool {
        self.kernel.as_ref().is_none_or(|own| same_kernel(own, kernel))
    }
}

/// `ns::k` and `k` are the same, where nothing else is said.
fn same_kernel(a: &str, b: &str) -> bool {
    a == b || (a.contains("::") != b.contains("::") && unqualified(a) == unqualified(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_lose_their_marks_only() {
        for (comment, bare) in [
            ("// gridfuse: run\n//   n = 1", "   gridfuse: run\n     n = 1"),
            (
                "/* gridfuse: run\n * n = 2 * 3\n */",
                "   gridfuse: run\n   n = 2 * 3\n   ",
            ),
        ] {
            assert_eq!(without_marks(comment), bare);
        }
        assert!(is_run_specification("// gridfuse: run <<<1, 1>>>") && is_run_specification("/* gridfuse:run k<<<"));
        for other in ["// gridfuse: allow(x)", "// gridfuse: running", "// run <<<1, 1>>>"] {
            assert!(!is_run_specification(other), "{other}");
        }
    }

    #[test]
    fn names_of_kernels() {
        assert!(same_kernel("app::k", "k") && same_kernel("k", "k") && same_kernel("k", "app::k"));
        assert!(!same_kernel("app::k", "other::k") && !same_kernel("k", "kk"));
    }
}
