//! Inline PTX: the few instructions that have no intrinsic are turned into calls, all else is refused.

use std::ops::Range;

use gridfuse_codeactions::edit::lex::TokenKind;

use super::Unsupported;
use super::edits::Edits;
use super::stream::Stream;

/// Special registers, which are functions of the same name in `::emu::ptx`.
const REGISTERS: [(&str, &str); 15] = [
    ("u32", "laneid"),
    ("u32", "warpid"),
    ("u32", "nwarpid"),
    ("u32", "smid"),
    ("u32", "nsmid"),
    ("u32", "lanemask_eq"),
    ("u32", "lanemask_lt"),
    ("u32", "lanemask_le"),
    ("u32", "lanemask_gt"),
    ("u32", "lanemask_ge"),
    ("u32", "clock"),
    ("u64", "clock64"),
    ("u64", "globaltimer"),
    ("u64", "gridid"),
    ("u32", "dynamic_smem_size"),
];

/// Instructions without operands, and what does the same.
const INSTRUCTIONS: [(&str, &str); 10] = [
    ("membar.cta", "__threadfence_block()"),
    ("membar.gl", "__threadfence()"),
    ("membar.sys", "__threadfence_system()"),
    ("fence.acq_rel.cta", "__threadfence_block()"),
    ("fence.acq_rel.gpu", "__threadfence()"),
    ("fence.acq_rel.sys", "__threadfence_system()"),
    ("bar.sync 0", "__syncthreads()"),
    ("barrier.sync 0", "__syncthreads()"),
    ("trap", "__trap()"),
    ("exit", "::emu::ptx::exit_if(true)"),
];

/// Translates the `asm` statements of a stream.
pub fn translate(stream: &Stream<'_>, file: &str, edits: &mut Edits) -> Result<(), Unsupported> {
    for at in 0..stream.len() {
        if !matches!(stream.word(at), "asm" | "__asm__" | "__asm") || !stream.is_word(at) {
            continue;
        }
        let mut open = at + 1;
        while matches!(stream.word(open), "volatile" | "__volatile__" | "__volatile") {
            open += 1;
        }
        let close = stream.partner(open).filter(|_| stream.word(open) == "(");
        let Some(close) = close else { continue };
        let (code, operands) = sections(stream, open + 1..close);
        // An empty one orders the compiler alone.
        if code.is_empty() {
            continue;
        }
        let call = call(&code, &operands)
            .ok_or_else(|| Unsupported::at(file, stream.line(at), &format!("the inline assembly `{code}`")))?;
        edits.replace_tokens(stream, at..close + 1, call);
    }
    Ok(())
}

/// The operands of an `asm` that has one.
enum Operand {
    /// It has none, or several.
    Other,
    /// It writes to it.
    Output(String),
    /// It reads it.
    Input(String),
}

/// The instructions without their last semicolon, and the operand if there is one alone.
fn sections(stream: &Stream<'_>, inside: Range<usize>) -> (String, Operand) {
    let mut sections = vec![Vec::new()];
    let mut at = inside.start;
    while at < inside.end {
        if stream.word(at) == ":" {
            sections.push(Vec::new());
        } else if let Some(last) = sections.last_mut() {
            last.push(at);
            if stream.word(at) == "(" {
                let close = stream.partner(at).unwrap_or(at);
                last.extend(at + 1..=close);
                at = close;
            }
        }
        at += 1;
    }
    let mut code = String::new();
    for at in sections.first().into_iter().flatten() {
        match stream.kind(*at) {
            Some(TokenKind::Text) => code.push_str(stream.word(*at).trim_matches('"')),
            _ => code.push_str(stream.word(*at)),
        }
    }
    let code = code.replace("%%", "%").replace("\\n", " ").replace("\\t", " ");
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let one = |section: usize, constraints: [&str; 2]| match sections.get(section).map(Vec::as_slice) {
        Some([constraint, open, .., close]) if stream.word(*open) == "(" && stream.partner(*open) == Some(*close) => {
            let fits = constraints.contains(&stream.word(*constraint));
            fits.then(|| stream.join(*open..*close + 1, |_| true))
        }
        _ => None,
    };
    let none = |section: usize| sections.get(section).is_none_or(Vec::is_empty);
    let operand = if none(2) {
        one(1, ["\"=r\"", "\"=l\""]).map(Operand::Output)
    } else if none(1) {
        one(2, ["\"r\"", "\"l\""]).map(Operand::Input)
    } else {
        None
    };
    (
        code.trim_end_matches([';', ' ']).to_owned(),
        operand.unwrap_or(Operand::Other),
    )
}

/// A thread leaves if its operand isn't 0: a predicate, set by a comparison. The name is any.
fn leaves_if(code: &str) -> bool {
    let inner = code.strip_prefix('{').and_then(|code| code.strip_suffix('}'));
    let code = inner.unwrap_or(code).trim().trim_end_matches(';');
    let mut statements = code.split(';').map(str::trim);
    let Some(p) = statements.next().and_then(|first| first.strip_prefix(".reg .pred ")) else {
        return false;
    };
    ["s32", "u32", "b32"]
        .iter()
        .any(|ty| code.ends_with(&format!("; setp.ne.{ty} {p}, %0, 0; @{p} exit")))
        && statements.count() == 2
}

fn call(code: &str, operand: &Operand) -> Option<String> {
    if let Some((_, call)) = INSTRUCTIONS.iter().find(|(name, _)| *name == code) {
        return Some((*call).to_owned());
    }
    let operand = match operand {
        Operand::Output(place) => place,
        Operand::Input(value) => return leaves_if(code).then(|| format!("::emu::ptx::exit_if({value} != 0)")),
        Operand::Other => return None,
    };
    let register = REGISTERS.iter().find(|(width, name)| {
        let signed = width.replace('u', "s");
        let unsized_ = width.replace('u', "b");
        [*width, &signed, &unsized_]
            .iter()
            .any(|width| code == format!("mov.{width} %0, %{name}"))
    })?;
    Some(format!("{operand} = ::emu::ptx::{}()", register.1))
}
