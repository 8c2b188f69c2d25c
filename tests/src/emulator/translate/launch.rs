//! Launches: `kernel<<<grid, block>>>(arguments)`.

use std::ops::Range;

use super::Unsupported;
use super::edits::Edits;
use super::kernels::{Form, Kernels};
use super::stream::Stream;

/// A launch, as ranges of tokens.
struct Launch {
    kernel: Range<usize>,
    config: Range<usize>,
    arguments: Range<usize>,
}

/// Translates the launches of a stream.
pub fn translate(stream: &Stream<'_>, file: &str, kernels: &Kernels, edits: &mut Edits) -> Result<(), Unsupported> {
    for at in 0..stream.len() {
        if !opens_config(stream, at) {
            continue;
        }
        let unsupported = |what: &str| Unsupported::at(file, stream.line(at), what);
        let launch = read(stream, at).map_err(unsupported)?;
        let config = stream.split(launch.config.clone());
        if !(2..=4).contains(&config.len()) {
            return Err(unsupported("a launch without grid and block size"));
        }
        let place = if stream.in_macro() {
            "__FILE__, __LINE__".to_owned()
        } else {
            format!("{}, {}", literal(file), stream.line(launch.kernel.start))
        };
        let kernel = stream.join(launch.kernel.clone(), |_| true);
        let callee = match form(stream, &launch, kernels) {
            Form::Address => format!(").of({kernel})"),
            // A lambda has no name that says something.
            Form::Call => format!(
                ").deduced([=](auto... emu_args) {{ {kernel}(emu_args...); }}, {})",
                literal(&kernel)
            ),
        };
        if matches!(form(stream, &launch, kernels), Form::Call) {
            convert_arenas(stream, &launch, edits);
        }
        edits.replace_tokens(stream, launch.kernel.start..at + 3, format!("::emu::Launch({place}, "));
        edits.replace_tokens(stream, launch.config.end..launch.config.end + 3, callee);
    }
    Ok(())
}

/// What owns an arena becomes the arena that the kernel takes: no parameter's type is known to which it would convert.
fn convert_arenas(stream: &Stream<'_>, launch: &Launch, edits: &mut Edits) {
    for argument in stream.split(launch.arguments.clone()) {
        if argument.clone().any(|at| stream.word(at) == "arena_for") {
            let bytes = stream.bytes(&argument);
            edits.insert(bytes.start, "static_cast<::gridfuse::Arena>(");
            edits.insert(bytes.end, ")");
        }
    }
}

/// A text as a string literal.
pub fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn triple(stream: &Stream<'_>, at: usize, of: &str) -> bool {
    (at..at + 3).all(|at| stream.word(at) == of)
}

fn opens_config(stream: &Stream<'_>, at: usize) -> bool {
    triple(stream, at, "<") && stream.before(at) != "operator" && stream.before(at) != "<"
}

fn read(stream: &Stream<'_>, at: usize) -> Result<Launch, &'static str> {
    let kernel = kernel_before(stream, at).ok_or("a launch of something that isn't understood")?;
    let first = at + 3;
    let close = config_end(stream, first, true)
        .or_else(|| config_end(stream, first, false))
        .ok_or("`<<<` without `>>>(`")?;
    let end = stream
        .partner(close + 3)
        .ok_or("a launch whose arguments have no end")?;
    Ok(Launch {
        kernel,
        config: first..close,
        arguments: close + 4..end,
    })
}

/// The `>>>(` that ends a configuration. With `templates`, a `<` behind a name opens a template list, which takes a `>` of
/// its own.
fn config_end(stream: &Stream<'_>, first: usize, templates: bool) -> Option<usize> {
    let mut open = 0;
    let mut at = first;
    while at < stream.len() {
        match stream.word(at) {
            "(" | "[" | "{" => at = stream.partner(at).filter(|end| *end > at)?,
            ")" | "]" | "}" | ";" => return None,
            "<" if stream.word(at + 1) == "<" && stream.adjacent(at) => at += 1,
            "<" if templates && stream.opens_template(at) => open += 1,
            ">" if stream.before(at) == "-" && stream.adjacent(at - 1) => {}
            ">" if open > 0 => open -= 1,
            ">" if triple(stream, at, ">") && stream.word(at + 3) == "(" => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// What is launched: the postfix expression that ends before `at`.
fn kernel_before(stream: &Stream<'_>, at: usize) -> Option<Range<usize>> {
    let mut start = at;
    loop {
        // One name, with its template arguments, or something in brackets.
        let mut last = start.checked_sub(1)?;
        while stream.word(last) == "]" {
            last = stream.partner(last)?.checked_sub(1)?;
        }
        if stream.word(last) == ">" {
            last = stream.angles_before(last)?.checked_sub(1)?;
        }
        match stream.word(last) {
            ")" => {
                last = stream.partner(last)?;
                // A call: `table(i)<<<…>>>`.
                if last > 0 && stream.is_word(last - 1) && !statement_word(stream.before(last)) {
                    last -= 1;
                }
            }
            _ if stream.is_word(last) => {}
            _ => return None,
        }
        start = last;
        // A name that a macro puts together: `a##b<<<…>>>`.
        while start >= 3
            && stream.before(start) == "#"
            && stream.before(start - 1) == "#"
            && stream.adjacent(start - 2)
            && stream.is_word(start - 3)
        {
            start -= 3;
        }
        if stream.before(start) == "template" {
            start -= 1;
        }
        let before = stream.before(start);
        let arrow = before == ">" && start >= 2 && stream.before(start - 1) == "-" && stream.adjacent(start - 2);
        if stream.after_scope_operator(start) {
            start -= 2;
            let qualified = start > 0
                && (stream.before(start) == ">" || stream.is_word(start - 1) && !statement_word(stream.before(start)));
            if !qualified {
                return Some(start..at);
            }
        } else if before == "." {
            start -= 1;
        } else if arrow {
            start -= 2;
        } else {
            return Some(start..at);
        }
    }
}

fn statement_word(word: &str) -> bool {
    matches!(
        word,
        "return" | "else" | "do" | "case" | "if" | "while" | "for" | "switch"
    )
}

fn form(stream: &Stream<'_>, launch: &Launch, kernels: &Kernels) -> Form {
    let mut name = launch.kernel.end - 1;
    let mut explicit = 0;
    if stream.word(name) == ">"
        && let Some(open) = stream.angles_before(name)
    {
        explicit = stream.split(open + 1..name).len();
        if (open + 1..name).any(|at| triple(stream, at, ".")) {
            explicit = usize::MAX; // a pack: as many as there are
        }
        name = open.saturating_sub(1);
    }
    let plain = launch.kernel.start == name || stream.after_scope_operator(name);
    if !plain {
        return Form::Address;
    }
    let arguments = stream.split(launch.arguments.clone());
    let braced = arguments.iter().any(|argument| stream.word(argument.start) == "{");
    // A macro may stand for several arguments, or for none.
    let uncertain = launch
        .arguments
        .clone()
        .any(|at| triple(stream, at, ".") || stream.word(at) == "__VA_ARGS__");
    let count = (!uncertain).then_some(arguments.len());
    kernels.form(stream.word(name), explicit, count, braced)
}
