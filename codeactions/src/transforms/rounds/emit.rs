//! What is written: the kernels' bodies as functions, the kernel with the loop, and its launch in the place of the host's loop.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::StmtKind;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::mentions::files_mentioning;
use gridfuse_analysis::hir::names::unqualified;

use super::host_loop::HostLoop;
use super::kernels::{Kernels, Shape};
use super::translate::{Moved, Param};
use super::variables::Variable;
use crate::edit::argument::{named, named_sizes};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::{Names, words_with_macros};
use crate::edit::style;
use crate::emit::launch_bounds;
use crate::emit::outline::{self, Collecting, Worker};
use crate::emit::target;
use crate::facts::child::Child;
use crate::facts::movable::Form;
use crate::runtime::is_header;

/// Blocks of so many threads fit whatever their registers are.
const SMALL_BLOCK: u64 = 256;

/// Moves the kernels' bodies out; the functions with them, kernel by kernel.
pub fn outline_bodies<'db>(
    kernels: &Kernels<'db>,
    shape: &Shape,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> Vec<Worker> {
    let outlined = kernels.all.iter().enumerate().map(|(index, kernel)| {
        let mut behind = outline::behind(edit, kernel);
        // What one round has written the next one reads.
        let collecting = Collecting {
            unrestricted: true,
            stays: true,
            ..Collecting::default()
        };
        let kept = shape.kept(kernels, index);
        let worker = outline::outline_collecting(edit, &mut behind, kernel, Form::Block, kept, &collecting, names);
        behind.finish(edit, kernel);
        worker
    });
    outlined.collect()
}

/// The names of what is generated.
struct Generated {
    /// The kernel with the loop.
    kernel: String,
    /// The struct of the host's variables.
    state: String,
    /// The host's variable of that type.
    variable: String,
}

/// Writes the kernel with the loop above the host's function, and its launch in the loop's place.
pub fn write<'db>(
    host: &HostLoop<'db>,
    kernels: &Kernels<'db>,
    shape: &Shape,
    moved: &Moved,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) {
    let first = kernels.all.first().map_or("", |kernel| &kernel.name);
    // Another file may have a kernel of that name, too.
    let first = match is_named_for_its_file(host, kernels) {
        true => format!("{}_{first}", stem(host)),
        false => first.to_owned(),
    };
    let generated = Generated {
        kernel: names.fresh(&format!("{first}_rounds")),
        state: names.fresh(&format!("{first}_state")),
        variable: names.fresh("state"),
    };
    write_kernel(host, kernels, shape, moved, &generated, edit);
    write_launch(host, shape, moved, &generated, edit);
}

fn kept(moved: &Moved) -> impl Iterator<Item = &Variable> + Clone {
    moved.variables.iter().filter(|variable| variable.ends)
}

/// Parameters: what the host passes, and the variables whose last values nobody asks for.
pub fn params(moved: &Moved) -> Vec<Param> {
    let passed = moved.variables.iter().filter(|v| !v.ends && v.begins).map(|v| Param {
        ty: v.ty.clone(),
        name: v.name.clone(),
        value: v.name.clone(),
    });
    moved.params.iter().cloned().chain(passed).collect()
}

fn declared(ty: &str, name: &str) -> String {
    format!("{ty} {name}")
}

fn write_kernel<'db>(
    host: &HostLoop<'db>,
    kernels: &Kernels<'db>,
    shape: &Shape,
    moved: &Moved,
    generated: &Generated,
    edit: &mut EditBuilder<'db>,
) {
    let function = &host.function;
    let style = edit.style(host.file());
    let front = in_front_of_linkage(&function.text, function.start as usize);
    let indent = style::indent_at(&function.text, front).to_owned();
    let column = style::columns(&indent);
    let mut code = String::new();
    let fields: Vec<String> = kept(moved).map(|v| format!("{};", declared(&v.ty, &v.name))).collect();
    let brace = style.open_brace();
    if !fields.is_empty() {
        code.push_str(&format!(
            "// What the loop of {} leaves in the host's variables.\n",
            function.name()
        ));
        let line = format!("struct {} {{ {} }};", generated.state, fields.join(" "));
        code.push_str(&match column + line.chars().count() > style.width {
            true => format!("struct {}{brace}\n\t{}\n}};", generated.state, fields.join("\n\t")),
            false => line,
        });
        code.push_str("\n\n");
    }
    let state = match fields.is_empty() {
        true => "gridfuse::Rounds<>".to_owned(),
        false => format!("gridfuse::Rounds<{}>", generated.state),
    };
    let mut list = vec![declared(&state, &moved.rounds)];
    list.extend(params(moved).iter().map(|p| declared(&p.ty, &p.name)));
    let head = format!(
        "{}__global__ void {}{}(",
        if is_inline(host) || is_named_for_its_file(host, kernels) {
            "static "
        } else {
            ""
        },
        bounds(host, kernels, shape),
        generated.kernel
    );
    code.push_str(&format!(
        "// The loop of {}, in one grid: its blocks meet between the kernels.\n",
        function.name()
    ));
    code.push_str(&style.list(column, &head, &list, &format!("){brace}\n")));
    for variable in &moved.variables {
        let (ty, name) = (&variable.ty, &variable.name);
        if variable.ends && variable.begins {
            code.push_str(&format!(
                "\t{} = {}.state().{name};\n",
                declared(ty, name),
                moved.rounds
            ));
        } else if !variable.begins {
            code.push_str(&format!("\t{};\n", declared(ty, name)));
        }
    }
    let own = style::indent_at(&function.text, (host.span().start + function.start) as usize).to_owned();
    let text = moved.text.replace("\r\n", "\n");
    let text = style::reindent(&text, &own, "\t");
    code.push_str(&format!("\t{text}"));
    if !fields.is_empty() {
        let values: Vec<&str> = kept(moved).map(|v| v.name.as_str()).collect();
        code.push_str(&format!("\n\t{}.finish({{{}}});", moved.rounds, values.join(", ")));
    }
    code.push_str("\n}\n\n");
    let at = target::above_comment(function.db, host.file(), front);
    let text = format!("{}{indent}", style.fit(&code, &indent));
    edit.insert(host.file(), at as u32, text);
}

/// Whether the kernel with the loop is the file's alone, by its name too: another file may get one of the same name otherwise.
fn is_named_for_its_file(host: &HostLoop<'_>, kernels: &Kernels<'_>) -> bool {
    is_of_file(host, kernels) || is_named_elsewhere(host, kernels)
}

/// Whether the host's function, or one of the kernels, is the file's alone.
fn is_of_file(host: &HostLoop<'_>, kernels: &Kernels<'_>) -> bool {
    let is_static = |kernel: &Child<'_>| {
        kernel.item.signature(kernel.db).is_static || in_unnamed_namespace(&kernel.text, kernel.start as usize)
    };
    host.function.item.signature(host.function.db).is_static || kernels.all.iter().any(is_static)
}

/// Whether a file that this one doesn't see names a kernel alike, or the same one: a loop of it may get a kernel of the same name.
fn is_named_elsewhere(host: &HostLoop<'_>, kernels: &Kernels<'_>) -> bool {
    let db = host.function.db;
    let seen = included_files(db, host.file());
    let Some(first) = kernels.all.first() else { return false };
    let others = files_mentioning(db, unqualified(&first.name)).iter();
    let mut others = others.filter(|file| !seen.contains(file) && !is_header(db, **file));
    others.next().is_some()
}

/// Whether what stands at an offset of a file stands in a namespace without a name.
fn in_unnamed_namespace(text: &str, offset: usize) -> bool {
    let words = lex::code_words(text.get(..offset).unwrap_or(""));
    let mut open = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match *word {
            "{" => open.push(at.checked_sub(1).is_some_and(|before| words[before] == "namespace")),
            "}" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.contains(&true)
}

/// Whether several files may have the host's function.
fn is_inline(host: &HostLoop<'_>) -> bool {
    lex::identifiers(host.source(host.head())).any(|word| matches!(word, "inline" | "constexpr"))
}

/// The file's name as a part of others.
fn stem(host: &HostLoop<'_>) -> String {
    let stem = host.file().path(host.function.db).file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = stem.chars().map(letter).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("in_{name}"),
        false => name,
    }
}

/// Where a function begins, with the `extern "C"` in front of it.
fn in_front_of_linkage(text: &str, start: usize) -> usize {
    let linkage = |text: &str| {
        let text = text.trim_end();
        let language = text.strip_suffix(r#""C""#).or_else(|| text.strip_suffix(r#""C++""#))?;
        Some(language.trim_end().strip_suffix("extern")?.len())
    };
    text.get(..start).and_then(linkage).unwrap_or(start)
}

/// `__launch_bounds__(…) `, where blocks may be so large that they leave a thread less registers than the kernel comes to take.
fn bounds(host: &HostLoop<'_>, kernels: &Kernels<'_>, shape: &Shape) -> String {
    let main = &host.launches[shape.block];
    let allowed = |kernel: &Child<'_>| launch_bounds::allowed_threads(kernel).flatten();
    let allowed = kernels.all.iter().filter_map(allowed).min();
    let threads = launch_bounds::largest_block(std::slice::from_ref(main)).or(allowed);
    match threads {
        Some(threads) if threads <= SMALL_BLOCK => String::new(),
        Some(threads) => format!("__launch_bounds__({threads}) "),
        None => "__launch_bounds__(1024) ".to_owned(),
    }
}

fn write_launch<'db>(
    host: &HostLoop<'db>,
    shape: &Shape,
    moved: &Moved,
    generated: &Generated,
    edit: &mut EditBuilder<'db>,
) {
    let function = &host.function;
    let main = &host.launches[shape.block];
    let style = edit.style(host.file());
    let operand = |index: usize| main.launch.config.get(index).map(|e| host.flat(*e));
    let grid = match moved.any_grid {
        true => "gridfuse::any_grid".to_owned(),
        false => moved
            .grids
            .iter()
            .cloned()
            .reduce(|all, grid| format!("gridfuse::larger_grid({all}, {grid})"))
            .unwrap_or_default(),
    };
    let shared = shape.shared.and_then(|at| host.launches.get(at)?.launch.config.get(2));
    let mut items = named_sizes(&grid, &operand(1).unwrap_or_default()).to_vec();
    let shared = shared.map_or("0".to_owned(), |e| host.flat(*e));
    items.push(named("shared_bytes", &shared));
    items.push(named("stream", &operand(3).unwrap_or_else(|| "0".to_owned())));
    let states: Vec<&Variable> = kept(moved).collect();
    if !states.is_empty() {
        items.push(generated.variable.clone());
    }
    items.extend(params(moved).into_iter().map(|p| p.value));
    let column = style::columns(style::indent_at(
        &function.text,
        (host.span().start + function.start) as usize,
    ));
    let checks = &moved.checks;
    let before = &checks.check.before;
    let after = match checks.check.after.as_str() {
        "" => ";".to_owned(),
        after if after.ends_with([';', '}']) => after.to_owned(),
        after => format!("{after};"),
    };
    let call = style.list(
        column,
        &format!("{before}gridfuse::run_rounds<{}>(", generated.kernel),
        &items,
        &format!("){after}"),
    );
    let mut lines = Vec::new();
    if moved.waits_for_all {
        lines.push("cudaDeviceSynchronize();".to_owned());
    }
    lines.extend(checks.declared.iter().map(|name| format!("cudaError_t {name};")));
    if !states.is_empty() {
        let values: Vec<&str> = states
            .iter()
            .map(|v| if v.begins { v.name.as_str() } else { "{}" })
            .collect();
        lines.push(format!(
            "{} {} = {{{}}};",
            generated.state,
            generated.variable,
            values.join(", ")
        ));
    }
    lines.push(call);
    lines.extend(checks.check.below.iter().chain(&checks.last).map(|text| {
        let own = style::indent_at(&function.text, (host.span().start + function.start) as usize);
        let text = text.replace("\r\n", "\n");
        // It stood a level deeper.
        let deeper = format!("{own}{}", style.unit);
        let text = style::reindent(&text, &deeper, "");
        if text.ends_with([';', '}']) {
            text
        } else {
            format!("{text};")
        }
    }));
    lines.extend(
        states
            .iter()
            .map(|v| format!("{} = {}.{};", v.name, generated.variable, v.name)),
    );
    delete_declarations(host, moved, edit);
    let place = function.place(host.span());
    let listed = target::stands_in_list(&function.body, &host.places, &function.text, function.start, host.stmt)
        && !function
            .body
            .stmts
            .iter()
            .any(|s| matches!(s.kind, StmtKind::Goto(_) | StmtKind::Switch { .. }))
        && !checks.hides;
    let code = match listed || lines.len() == 1 && states.is_empty() {
        true => lines.join("\n"),
        false => format!("{{\n\t{}\n}}", lines.join("\n").replace('\n', "\n\t")),
    };
    edit.replace_code(place, &code);
}

/// Takes out the host's declarations of variables that only the kernel has now.
fn delete_declarations<'db>(host: &HostLoop<'db>, moved: &Moved, edit: &mut EditBuilder<'db>) {
    let function = &host.function;
    for variable in moved.variables.iter().filter(|v| !v.begins && !v.ends) {
        let Some((stmt, _)) = function.body.declaration(variable.binding) else {
            continue;
        };
        let alone = matches!(&function.body.stmt(stmt).kind, StmtKind::Decl(decls) if decls.len() == 1);
        let listed = target::stands_in_list(&function.body, &host.places, &function.text, function.start, stmt);
        // Elsewhere its name may stand in `sizeof`, in the argument of a macro, in what looks for errors.
        let own = function.body.stmt(stmt).span;
        let Some(root) = function.body.root else { continue };
        let (first, end) = (function.body.stmt(root).span.start, function.body.stmt(root).span.end);
        let around = [(first, own.start), (own.end, host.span().start), (host.span().end, end)];
        let around = around
            .iter()
            .filter(|(from, to)| from < to)
            .map(|(from, to)| host.source(Span::new(*from, *to)));
        let checks = [&moved.checks.check.before, &moved.checks.check.after].into_iter();
        let checks = checks
            .chain(&moved.checks.check.below)
            .chain(&moved.checks.last)
            .map(String::as_str);
        let code: String = around.chain(checks).collect::<Vec<_>>().join(" ");
        let named = words_with_macros(function.db, host.file(), &code).contains(&variable.name);
        if alone && listed && !named {
            edit.delete_lines(function.place(function.body.stmt(stmt).span));
        }
    }
}
