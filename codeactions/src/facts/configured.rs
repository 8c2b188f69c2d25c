//! What a program sets for a kernel (`cudaFuncSetAttribute`: more dynamic shared memory than 48 KB, say) holds for that kernel alone, and
//! not for one that a rewrite launches in its place.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::resolve::{only_known_launches, other_mentions};

use crate::api::refusal::Refusals;
use crate::edit::lex::{self, Token};
use crate::facts::child::Child;
use crate::runtime::is_header;

/// Refuses a child that something may be set for: it is passed to a function that isn't known to leave it as it is, or a pointer to it is
/// kept. For rewrites that launch another kernel in its place.
pub fn refuse_configured(child: &Child<'_>, refusals: &mut Refusals) {
    let db = child.db;
    if only_known_launches(db, child.item) {
        return;
    }
    // The runtime header has locals of many names, and knows no kernel of the user's.
    let of_user = |file: SourceFile| !is_header(db, file);
    let mut places = Vec::new();
    for mention in other_mentions(db, child.item).into_iter().filter(|m| of_user(m.file)) {
        let text = mention.file.text(db);
        let tokens = lex::code_tokens_of(db, mention.file);
        // All of a macro's text is one mention.
        let first = tokens.partition_point(|t| (t.start as u32) < mention.range.start);
        let inside = tokens.iter().enumerate().skip(first);
        for (index, token) in inside.take_while(|(_, t)| t.end as u32 <= mention.range.end) {
            if token.text(&text) == child.name && may_configure(&text, tokens, index) {
                places.push(FileRange {
                    file: mention.file,
                    range: TextRange::new(token.start as u32, token.end as u32),
                });
            }
        }
    }
    for place in places.into_iter().take(3) {
        refusals.add(
            format!(
                "`{}` is mentioned where it isn't launched, and what is set for it there (cudaFuncSetAttribute) doesn't hold for the kernel \
                 that takes its place",
                child.name
            ),
            Some(place),
        );
    }
}

/// Whether a function leaves a kernel that it is given as it is, or launches just that.
fn leaves_as_it_is(function: &str) -> bool {
    function.starts_with("cudaOccupancy")
        || matches!(
            function,
            "cudaFuncGetAttributes"
                | "cudaFuncGetName"
                | "cudaFuncGetParamInfo"
                | "cudaLaunchKernel"
                | "cudaLaunchKernelEx"
                | "cudaLaunchKernelExC"
                | "cudaLaunchCooperativeKernel"
                | "sizeof"
                | "decltype"
        )
}

/// Whether the kernel's name at a token is a pointer to it, for which something may be set.
fn may_configure(text: &str, tokens: &[Token], index: usize) -> bool {
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    // A launch, a declaration, the operand of a calculation with something else of that name.
    let mut next = index + 1;
    if word(next) == "<" && word(next + 1) != "<" {
        let Some(close) = closing_angle(text, tokens, next) else {
            return true;
        };
        next = close + 1;
    }
    if !matches!(word(next), "" | ")" | "," | ";" | "}" | ":" | "#") {
        // In a macro's text the next line's first word comes next.
        let same_line = |end: usize| {
            let behind = tokens.get(next).and_then(|t| text.get(end..t.start));
            behind.is_none_or(|between| !between.replace("\\\n", "").replace("\\\r\n", "").contains('\n'))
        };
        if tokens.get(next - 1).is_none_or(|last| same_line(last.end)) {
            return false;
        }
    }
    let mut before = index;
    while before >= 3 && word(before - 1) == ":" && word(before - 2) == ":" {
        before -= 2;
        if tokens[before - 1].kind == lex::TokenKind::Word && !matches!(word(before - 1), "using" | "return") {
            before -= 1;
        }
    }
    let Some(before) = before.checked_sub(1) else {
        return false;
    };
    if !matches!(word(before), "(" | ")" | "," | "=" | "&" | "{" | "?" | ":" | "return") {
        return false;
    }
    !called(text, tokens, index).is_some_and(leaves_as_it_is)
}

/// The `>` that closes a list of template arguments.
fn closing_angle(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text(text) {
            "<" => depth += 1,
            ">" => depth -= 1,
            ";" | "{" | "}" => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// The name of the function in whose arguments a token stands; casts and brackets around it don't count.
fn called<'a>(text: &'a str, tokens: &[Token], index: usize) -> Option<&'a str> {
    let mut depth = 0;
    let mut at = index;
    while let Some(before) = at.checked_sub(1) {
        at = before;
        match tokens[at].text(text) {
            ")" | "]" => depth += 1,
            "(" | "[" if depth > 0 => depth -= 1,
            "(" => {
                let mut name = at.checked_sub(1)?;
                // Of a cast, or of a function template.
                if tokens[name].text(text) == ">" {
                    name = (0..name)
                        .rev()
                        .find(|i| closing_angle(text, tokens, *i) == Some(name))?
                        .checked_sub(1)?;
                }
                let token = tokens[name];
                let word = token.text(text);
                if token.kind == lex::TokenKind::Word && !word.ends_with("_cast") && word != "return" {
                    return Some(word);
                }
            }
            ";" | "{" | "}" => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_configure_a_kernel() {
        let configures = |text: &str| {
            let tokens = lex::code_tokens(text);
            let index = tokens.iter().position(|t| t.text(text) == "child").unwrap_or(0);
            may_configure(text, &tokens, index)
        };
        for text in [
            "cudaFuncSetAttribute(child, a, 1);",
            "cudaFuncSetAttribute((const void*)child, a, 1);",
            "cudaFuncSetAttribute(reinterpret_cast<const void*>(&ns::child<int, 4>), a, 1);",
            "CHECK(cudaFuncSetCacheConfig(::child, c));",
            "configure(48 * 1024, child);",
            "auto k = child;",
            "const void* all[] = {other, child};",
            "return child;",
            "{ return ::child; }",
            "f(c ? child : other);",
            "f<4>({child});",
            "#define SET cudaFuncSetAttribute(child, \\\n  a, 1)\nint x;",
            "#define KERNEL (child\nint x;",
        ] {
            assert!(configures(text), "{text}");
        }
        for text in [
            "child<<<1, 32>>>(a);",
            "f(child<int><<<1, 32>>>(a));",
            "#define RUN child<<<1, 32>>>(a)",
            "cudaOccupancyMaxPotentialBlockSize(&b, &t, child, 0, 0);",
            "cudaOccupancyMaxPotentialBlockSize(&b, &t, (void*)child<int>, 0, 0);",
            "cudaFuncGetAttributes(&a, reinterpret_cast<const void*>(child));",
            "cudaLaunchKernel((const void*)child, g, b, args, 0, 0);",
            "template __global__ void child<int>(int*);",
            "{ using ::child; }",
            "using a::b::child;",
            "f(node->child);",
            "int child = 0;",
            "f(child * 2);",
        ] {
            assert!(!configures(text), "{text}");
        }
    }
}
