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
const INSTRUCTIONS: [(&str, &str); 9] = [
    ("membar.cta", "__threadfence_block()"),
    ("membar.gl", "__threadfence()"),
    ("membar.sys", "__threadfence_system()"),
    ("fence.acq_rel.cta", "__threadfence_block()"),
    ("fence.acq_rel.gpu", "__threadfence()"),
    ("fence.acq_rel.sys", "__threadfence_system()"),
    ("bar.sync 0", "__syncthreads()"),
    ("barrier.sync 0", "__syncthreads()"),
    ("trap", "__trap()"),
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
        let call = call(&code, operands.as_deref())
            .ok_or_else(|| Unsupported::at(file, stream.line(at), &format!("the inline assembly `{code}`")))?;
        edits.replace_tokens(stream, at..close + 1, call);
    }
    Ok(())
}

/// The instructions without their last semicolon, and the one output operand if that is all there is.
fn sections(stream: &Stream<'_>, inside: Range<usize>) -> (String, Option<String>) {
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
    let operand = match sections.get(1).map(Vec::as_slice) {
        Some([constraint, open, .., close]) if stream.word(*open) == "(" && stream.partner(*open) == Some(*close) => {
            let writes = matches!(stream.word(*constraint), "\"=r\"" | "\"=l\"");
            let inputs = sections.get(2).is_some_and(|inputs| !inputs.is_empty());
            (writes && !inputs).then(|| stream.join(*open..*close + 1, |_| true))
        }
        _ => None,
    };
    (code.trim_end_matches([';', ' ']).to_owned(), operand)
}

fn call(code: &str, operand: Option<&str>) -> Option<String> {
    if let Some((_, call)) = INSTRUCTIONS.iter().find(|(name, _)| *name == code) {
        return Some((*call).to_owned());
    }
    let operand = operand?;
    let register = REGISTERS.iter().find(|(width, name)| {
        let signed = width.replace('u', "s");
        let unsized_ = width.replace('u', "b");
        [*width, &signed, &unsized_]
            .iter()
            .any(|width| code == format!("mov.{width} %0, %{name}"))
    })?;
    Some(format!("{operand} = ::emu::ptx::{}()", register.1))
}
