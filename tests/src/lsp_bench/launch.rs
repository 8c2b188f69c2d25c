//! The launch of a source that is asked about, and the functions that are edited: found in the text alone, since the
//! measurement has to be the same for all servers.

use std::ops::Range;

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The body, between the braces.
    pub body: Range<usize>,
    /// Whether it runs on the device.
    pub device: bool,
}

/// What a measurement needs of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The kernel that is launched, with its template arguments and the `<<<` behind it: what to look for after edits.
    pub launch: String,
    /// Where that stands.
    pub at: usize,
    /// The function of the launch.
    pub same: Function,
    /// A function that has to do neither with the launch nor with its function.
    pub elsewhere: Function,
}

/// The launch in the middle of those that are made on the device. `None` when there is none, or no other function to edit.
pub fn subject(text: &str) -> Option<Subject> {
    let functions = functions(text);
    let mut launches = Vec::new();
    for function in functions.iter().filter(|function| function.device) {
        let body = &text[function.body.clone()];
        launches.extend(
            body.match_indices("<<<")
                .map(|(at, _)| (function, function.body.start + at)),
        );
    }
    let (same, end) = launches.get(launches.len() / 2).copied()?;
    let at = callee(text, end);
    let child = name_in(&text[at..end]);
    let unrelated = |function: &&Function| {
        let body = &text[function.body.clone()];
        function.name != child && function.name != same.name && !body.contains(&child) && !body.contains(&same.name)
    };
    // The first one of the last quarter: neither the last one, which may be a `main` that calls all, nor a neighbour.
    let unrelated: Vec<&Function> = functions.iter().filter(unrelated).collect();
    let elsewhere = unrelated.get(unrelated.len() * 3 / 4)?;
    Some(Subject {
        launch: text[at..end + 3].to_owned(),
        at,
        same: same.clone(),
        elsewhere: (*elsewhere).clone(),
    })
}

/// Where the kernel's name begins that stands before a `<<<`.
fn callee(text: &str, end: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = end;
    let mut depth = 0;
    while at > 0 {
        match bytes[at - 1] {
            b'>' => depth += 1,
            b'<' => depth -= 1,
            byte if depth > 0 || byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':' => {}
            _ => break,
        }
        at -= 1;
    }
    at
}

fn name_in(callee: &str) -> String {
    callee.split('<').next().unwrap_or_default().to_owned()
}

/// The functions with bodies, in their order.
fn functions(text: &str) -> Vec<Function> {
    let code = without_comments(text);
    let bytes = code.as_slice();
    let mut found = Vec::new();
    // Where the declaration begins that is being read.
    let mut head = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                let before = code[head..at].trim_ascii_end();
                if before.last() == Some(&b')') {
                    let end = closing(bytes, at);
                    let head_text = String::from_utf8_lossy(before);
                    found.push(Function {
                        name: function_name(&head_text),
                        body: at + 1..end,
                        device: head_text.contains("__global__") || head_text.contains("__device__"),
                    });
                    at = end;
                }
                head = at + 1;
            }
            b'}' | b';' => head = at + 1,
            _ => {}
        }
        at += 1;
    }
    found
}

/// The word before the parameters.
fn function_name(head: &str) -> String {
    // Attributes such as __launch_bounds__(128) have parentheses of their own: the last outermost pair counts.
    let mut depth = 0;
    let mut open = 0;
    for (at, c) in head.char_indices() {
        match c {
            '(' => {
                if depth == 0 {
                    open = at;
                }
                depth += 1;
            }
            ')' => depth -= 1,
            _ => {}
        }
    }
    let before = head.get(..open).unwrap_or_default().trim_end();
    let start = before
        .rfind(|c: char| !c.is_alphanumeric() && c != '_')
        .map_or(0, |at| at + 1);
    before.get(start..).unwrap_or_default().to_owned()
}

fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// The text with blanks for comments, literals and preprocessor lines: nothing moves.
fn without_comments(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    let mut line_begins = true;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest {
            [b'/', b'/', ..] => line_end(rest, false),
            [b'/', b'*', ..] => rest
                .windows(2)
                .position(|w| w == b"*/")
                .map_or(rest.len(), |end| end + 2),
            [b'#', ..] if line_begins => line_end(rest, true),
            [quote @ (b'"' | b'\''), ..] => literal_end(rest, *quote),
            _ => {
                line_begins = match rest.first() {
                    Some(b'\n') => true,
                    Some(byte) => line_begins && byte.is_ascii_whitespace(),
                    None => false,
                };
                at += 1;
                continue;
            }
        };
        for byte in &mut bytes[at..at + end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += end;
    }
    bytes
}

fn line_end(rest: &[u8], continued: bool) -> usize {
    let mut at = 0;
    while at < rest.len() {
        if rest[at] == b'\n' && !(continued && at > 0 && rest[at - 1] == b'\\') {
            return at;
        }
        at += 1;
    }
    at
}

fn literal_end(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = r#"#define CHECK(x) do { \
  if (x) { } } while (0)
// void no() {
struct S { int f() { return '}'; } };
template <int W> __global__ void __launch_bounds__(128) child(int* a) { a[0] = W; }
__global__ void parent(int* a) {
    if (a[0]) { child<3><<<1, 2>>>(a); }
}
void host() { parent<<<1, 1>>>(0); const char* s = "{"; }
int other(int x) { return x; }
int main() { host(); }
"#;

    #[test]
    fn functions_are_found() {
        let functions = functions(TEXT);
        let names: Vec<(&str, bool)> = functions.iter().map(|f| (f.name.as_str(), f.device)).collect();
        let wanted = [
            ("f", false),
            ("child", true),
            ("parent", true),
            ("host", false),
            ("other", false),
            ("main", false),
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn the_subject_is_a_launch_and_two_functions() {
        let subject = subject(TEXT).unwrap();
        assert_eq!(subject.launch, "child<3><<<");
        assert_eq!(subject.same.name, "parent");
        assert_eq!(subject.elsewhere.name, "main");
        assert_eq!(super::subject("int main() {}"), None);
    }
}
