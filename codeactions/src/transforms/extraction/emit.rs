//! The child kernel, and its launch in the place of the loop.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::dependence::{CountedLoop, Integer};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};

use super::SerialLoop;
use super::needs::Needs;
use crate::api::refusal::{Ineligible, refuse};
use crate::edit::builder::EditBuilder;
use crate::edit::names::Names;
use crate::edit::one_line::one_line;
use crate::edit::style;
use crate::emit::outline;
use crate::emit::target;
use crate::facts::child::Child;

/// A bound of the loop as the launch has it.
struct BoundOf {
    /// The variable that holds it.
    name: String,
    /// What declares that in front of the launch; `None`: it is there.
    value: Option<String>,
}

/// What stands in the place of the loop.
struct Launch {
    /// Declarations of the bounds.
    before: Vec<String>,
    /// Whether there are iterations.
    condition: String,
    /// The variable that holds their number, and that number.
    count: Option<(String, String)>,
    /// The launch up to its arguments.
    prefix: String,
    /// The arguments.
    args: Vec<String>,
}

/// Writes the child in front of the kernel, and the launch in the place of the loop.
///
/// # Errors
/// Where the loop stands isn't understood.
pub(super) fn write<'db>(
    serial: &SerialLoop<'db>,
    head: &CountedLoop,
    kernel: &Child<'db>,
    needs: &Needs,
    block: u64,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> Result<(), Ineligible> {
    let (db, function, body) = (serial.db, &serial.function, &*serial.function.body);
    let name = names.fresh(&format!("{}_loop", kernel.name));
    let text = function.item.text(db).to_string();
    let own = [(function.file, text)];
    let mut local = |wanted: &str| names.fresh_in(db, &own, wanted);
    let counter = body.binding(head.counter);
    let ty = counter.ty.base.clone();
    let mut params: Vec<String> = needs.passed.iter().map(|(_, _, param)| param.clone()).collect();
    let mut args: Vec<String> = needs.passed.iter().map(|(_, name, _)| name.clone()).collect();
    let handed = |b: Option<BindingId>| b.is_some_and(|b| needs.passed.iter().any(|(p, ..)| *p == b));
    let mut lines: Vec<String> = needs.constants.iter().map(|(_, line)| format!("\t{line}")).collect();
    let mut before: Vec<String> = Vec::new();
    let again = |b: &BindingId| needs.constants.iter().any(|(constant, _)| constant == b);
    let plain = |e: ExprId| plain_variable(serial, e, head.counts, &ty).filter(|b| !again(b));
    let limit = plain(head.limit);
    let from_zero = is_zero(serial, head.first) && head.step == 1 && !head.inclusive && head.limits == head.counts;
    let (condition, count, value) = if from_zero {
        // The number of the thread is the counter.
        let count = match limit {
            Some(b) => body.binding(b).name.clone(),
            None => {
                let count = local("count");
                before.push(format!("{ty} {count} = {};", code(serial, head.limit)));
                count
            }
        };
        if !handed(limit) {
            params.push(format!("{ty} {count}"));
            args.push(count.clone());
        }
        lines.push(format!(
            "\t{ty} {} = blockIdx.x * blockDim.x + threadIdx.x;",
            counter.name
        ));
        lines.push(format!("\tif ({} >= {count}) return;", counter.name));
        (format!("{count} > 0"), count, None)
    } else {
        let first = plain(head.first);
        let mut bound = |variable: Option<BindingId>, e: ExprId, wanted: &str| match variable {
            Some(b) => BoundOf {
                name: body.binding(b).name.clone(),
                value: None,
            },
            None => BoundOf {
                name: local(wanted),
                value: Some(code(serial, e)),
            },
        };
        let begin = bound(first, head.first, "begin");
        let end = bound(limit, head.limit, if head.inclusive { "last" } else { "end" });
        let (count, index) = (local("count"), local("i"));
        let same = head.limits == head.counts;
        match (&begin.value, &end.value) {
            (Some(a), Some(b)) if same => before.push(format!("{ty} {} = {a}, {} = {b};", begin.name, end.name)),
            (a, b) => {
                let of_end = if same { ty.as_str() } else { "auto" };
                before.extend(a.as_ref().map(|a| format!("{ty} {} = {a};", begin.name)));
                before.extend(b.as_ref().map(|b| format!("{of_end} {} = {b};", end.name)));
            }
        }
        if !handed(first) {
            params.push(format!("{ty} {}", begin.name));
            args.push(begin.name.clone());
        }
        params.push(format!("unsigned {count}"));
        args.push(count.clone());
        let unsigned = head.counts == Integer::UNSIGNED && head.limits == Integer::UNSIGNED;
        let distance = match unsigned {
            true => format!("{} - {}", end.name, begin.name),
            false => format!("(unsigned){} - {}", end.name, begin.name),
        };
        let value = match (head.step, head.inclusive) {
            (1, false) => distance,
            (1, true) => format!("{distance} + 1"),
            (step, false) => format!("({distance} - 1) / {step} + 1"),
            (step, true) => format!("({distance}) / {step} + 1"),
        };
        let operator = if head.inclusive { "<=" } else { "<" };
        lines.push(format!("\tunsigned {index} = blockIdx.x * blockDim.x + threadIdx.x;"));
        lines.push(format!("\tif ({index} >= {count}) return;"));
        let stride = match head.step {
            1 => index,
            step => format!("{step} * {index}"),
        };
        lines.push(format!("\t{ty} {} = {} + {stride};", counter.name, begin.name));
        let condition = format!("{} {operator} {}", begin.name, end.name);
        (condition, count, Some(value))
    };
    lines.push(inner(serial, head.body, needs.clashes)?);
    write_kernel(serial, kernel, &name, &params, &lines.join("\n"), edit);
    let stream = if serial.in_no_order() {
        ", 0, cudaStreamFireAndForget"
    } else {
        ""
    };
    let prefix = format!(
        "{name}{}<<<({count} - 1) / {block} + 1, {block}{stream}>>>(",
        kernel.template_args
    );
    let launch = Launch {
        before,
        condition,
        count: value.map(|value| (count, value)),
        prefix,
        args,
    };
    replace(serial, kernel, &launch, edit)
}

/// The source of an expression, in one line.
fn code(serial: &SerialLoop<'_>, e: ExprId) -> String {
    one_line(serial.source(serial.function.body.expr(e).span))
}

fn is_zero(serial: &SerialLoop<'_>, e: ExprId) -> bool {
    let body = &*serial.function.body;
    matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Literal(Literal::Int(0)))
}

/// The variable that a bound is, where it is a number of the counter's type: no other one is needed.
fn plain_variable(serial: &SerialLoop<'_>, e: ExprId, counts: Integer, ty: &str) -> Option<BindingId> {
    let body = &*serial.function.body;
    let ExprKind::Name(Name::Local(binding)) = body.expr(body.strip_parens(e)).kind else {
        return None;
    };
    let variable = body.binding(binding);
    let plain =
        variable.ty.is_value() && !variable.ty.volatile && matches!(variable.storage, Storage::Local | Storage::Param);
    let int = counts == Integer::INT || counts == Integer::UNSIGNED;
    (plain && int && variable.ty.base == ty && !body.expr(e).from_macro).then_some(binding)
}

/// What an iteration does, as it stands in the child.
fn inner(serial: &SerialLoop<'_>, stmt: StmtId, braces: bool) -> Result<String, Ineligible> {
    let (function, body) = (&serial.function, &*serial.function.body);
    let unclear = || {
        refuse(
            "where the loop's body begins and ends is not understood",
            Some(serial.here()),
        )
    };
    let span = body.stmt(stmt).span;
    let whole = span.shift(function.start);
    let text: &str = &function.text;
    let block = matches!(body.stmt(stmt).kind, StmtKind::Block(_));
    let written = text.get(whole.start as usize..whole.end as usize).ok_or_else(unclear)?;
    if block != written.starts_with('{') || block && !written.ends_with('}') {
        return Err(unclear());
    }
    let mut jumps: Vec<Span> = Vec::new();
    for (index, jump) in body.stmts.iter().enumerate() {
        if jump.kind != StmtKind::Continue || !span.contains(jump.span) {
            continue;
        }
        if of_inner_loop(serial, stmt, StmtId(index as u32)) {
            continue;
        }
        if !serial.source(jump.span).starts_with("continue") {
            return Err(refuse(
                "a `continue` of the loop comes out of a macro",
                Some(function.place(jump.span)),
            ));
        }
        jumps.push(jump.span);
    }
    let (mut start, mut end) = (whole.start as usize, whole.end as usize);
    if block && !braces {
        (start, end) = (start + 1, end - 1);
        let code = text.get(start..end).ok_or_else(unclear)?;
        // A comment on the brace's line stays in front.
        start += code.len() - code.trim_start().len();
        end = start + code.trim().len();
        if code.trim().is_empty() {
            end = start;
        }
    }
    jumps.sort_by_key(|span| span.start);
    let mut code = String::new();
    let mut last = start;
    for jump in jumps {
        let at = jump.shift(function.start).start as usize;
        code.push_str(text.get(last..at).ok_or_else(unclear)?);
        code.push_str("return");
        last = at + "continue".len();
    }
    code.push_str(text.get(last..end).ok_or_else(unclear)?);
    // What stands on the line of the brace, a comment, isn't indented as the rest is.
    let first = match &body.stmt(stmt).kind {
        StmtKind::Block(stmts) if block && !braces => stmts.first(),
        _ => None,
    };
    let measured = first.map_or(start, |first| {
        body.stmt(*first).span.shift(function.start).start as usize
    });
    let indent = style::indent_at(text, measured).to_owned();
    let code = style::reindent(&code.replace("\r\n", "\n"), &indent, "\t");
    let lines: Vec<&str> = code.split('\n').map(str::trim_end).collect();
    Ok(format!("\t{}", lines.join("\n")))
}

/// Whether a `continue` belongs to a loop in the loop's body.
fn of_inner_loop(serial: &SerialLoop<'_>, inner: StmtId, jump: StmtId) -> bool {
    let body = &*serial.function.body;
    let mut at = jump;
    while let Some(outer) = serial.places.parent(at) {
        if outer == serial.stmt || at == inner {
            return false;
        }
        let loops = matches!(
            body.stmt(outer).kind,
            StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
        );
        if loops {
            return true;
        }
        at = outer;
    }
    false
}

/// Writes the child in front of the kernel.
fn write_kernel<'db>(
    serial: &SerialLoop<'db>,
    kernel: &Child<'db>,
    name: &str,
    params: &[String],
    code: &str,
    edit: &mut EditBuilder<'db>,
) {
    let file = serial.function.file;
    let file_style = edit.style(file);
    let behind = outline::behind(edit, kernel);
    let head = format!("{}{}__global__ void {name}(", kernel.template_line(), kernel.linkage());
    let generated = format!(
        "// An iteration of the loop in {}, for each thread.\n{}\n\n",
        kernel.name,
        behind.function(&head, params, code)
    );
    let indent = style::indent_at(&kernel.text, kernel.front() as usize).to_owned();
    let at = target::above_comment(serial.db, file, kernel.front() as usize);
    let mut text = file_style.fit(&generated, &indent);
    text.push_str(&indent);
    edit.insert(file, at as u32, text);
}

/// Puts the launch in the place of the loop.
fn replace<'db>(
    serial: &SerialLoop<'db>,
    kernel: &Child<'db>,
    launch: &Launch,
    edit: &mut EditBuilder<'db>,
) -> Result<(), Ineligible> {
    let (function, body) = (&serial.function, &*serial.function.body);
    let Launch { before, condition, .. } = launch;
    let file_style = edit.style(function.file);
    let start = pragma_in_front(serial)?;
    let indent = style::indent_at(&kernel.text, start as usize).to_owned();
    let in_list = serial.places.parent(serial.stmt).is_some_and(|outer| {
        matches!(body.stmt(outer).kind, StmtKind::Block(_)) && serial.source(body.stmt(outer).span).starts_with('{')
    });
    // An `else` may follow.
    let braces = !in_list;
    let depth = usize::from(braces);
    let column = style::columns(&indent) + (depth + 1) * style::columns(&file_style.unit);
    let call = file_style.list(column, &launch.prefix, &launch.args, ");");
    let mut lines: Vec<String> = before.clone();
    match &launch.count {
        Some((count, value)) => {
            lines.push(format!("if ({condition}) {{"));
            lines.push(format!("\tunsigned {count} = {value};"));
            lines.push(format!("\t{}", call.replace('\n', "\n\t")));
            lines.push("}".to_owned());
        }
        None => lines.push(format!("if ({condition})\n\t{}", call.replace('\n', "\n\t"))),
    }
    let mut text = lines.join("\n");
    if braces {
        text = format!("{{\n\t{}\n}}", text.replace('\n', "\n\t"));
    }
    let place = FileRange {
        file: function.file,
        range: TextRange::new(start, serial.here().range.end),
    };
    edit.replace_code(place, &text);
    Ok(())
}

/// Where the loop begins, with a `#pragma unroll` in front of it, which nothing is left to unroll of.
fn pragma_in_front(serial: &SerialLoop<'_>) -> Result<u32, Ineligible> {
    let start = serial.here().range.start;
    let text: &str = &serial.function.text;
    let before = text.get(..start as usize).unwrap_or("").trim_end();
    let line = style::line_start(before, before.len());
    let above = before.get(line..).unwrap_or("").trim();
    // A comment may stand between.
    let is_comment = |line: &str| line.starts_with("//") || line.starts_with("/*") || line.ends_with("*/");
    let code_above = before
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !is_comment(line));
    if is_comment(above) && code_above.is_some_and(|line| line.starts_with('#')) {
        return Err(refuse(
            "a comment stands between a directive and the loop",
            Some(serial.here()),
        ));
    }
    let Some(directive) = above.strip_prefix('#') else {
        if above.contains("_Pragma") || above.contains("[[") {
            return Err(refuse(
                "an attribute or a pragma in front of the loop isn't understood",
                Some(serial.here()),
            ));
        }
        return Ok(start);
    };
    let words: Vec<&str> = directive.split_whitespace().collect();
    match words.as_slice() {
        ["pragma", what, ..] if what.starts_with("unroll") || what.starts_with("nounroll") => {
            let at = before.len() - before.get(line..).unwrap_or("").trim_start().len();
            Ok(at as u32)
        }
        ["pragma", ..] => Err(refuse("a `#pragma` stands in front of the loop", Some(serial.here()))),
        _ => Ok(start),
    }
}
