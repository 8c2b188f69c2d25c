//! The parts of the runtime: a facility each, and what code needs of them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A facility of the runtime.
pub struct Part {
    /// The name of its file in `codeactions/runtime/gridfuse/`.
    pub name: &'static str,
    /// What stands in the file: a header that includes the parts that it needs.
    pub text: &'static str,
}

macro_rules! parts {
    ($($name:literal)*) => {
        &[$(Part { name: $name, text: include_str!(concat!("../../runtime/gridfuse/", $name, ".cuh")) }),*]
    };
}

/// All parts, each behind those that it needs.
pub const PARTS: &[Part] = parts![
    "version"
    "grid"
    "arguments"
    "child_threads"
    "memory_order"
    "threads"
    "search"
    "direct_launches"
    "granularity"
    "state"
    "launchpad"
    "pool"
    "arena"
    "batch"
    "lock"
    "memory"
    "arena_for"
    "aggregate"
    "in_order"
    "launchpad_for"
    "serial"
    "serial_atomics"
    "threshold"
    "coarsen"
    "grid_view"
    "recursion"
    "links"
    "chain"
    "lookback"
    "chain_for"
    "occupancy"
    "block_loop"
    "loop"
    "lately"
    "rounds"
    "stream"
    "reuse"
    "reuse_in_stream"
    "atomics"
    "warp_atomics"
    "collect"
    "malloc"
];

/// The namespace of what only the runtime itself uses.
const INTERNAL: &str = "detail";

impl Part {
    /// The macro that says that a translation unit, or a file, has this part.
    pub fn guard(&self) -> String {
        format!("GRIDFUSE_{}_CUH", self.name.to_uppercase())
    }

    /// The names of the parts that it includes.
    pub fn includes(&self) -> impl Iterator<Item = &'static str> {
        self.text.lines().filter_map(included)
    }

    /// The names that it defines, as they are written behind `gridfuse::`. Of a specialization for a type of the runtime's, the type
    /// belongs to the name: `Aggregator<PerGridInStream`.
    pub fn defines(&self) -> Vec<String> {
        let mut scopes: Vec<&str> = Vec::new();
        let mut found: Vec<String> = Vec::new();
        for line in self.text.lines() {
            if let Some(scope) = line.strip_prefix("namespace ").and_then(|l| l.strip_suffix(" {")) {
                if scope != "gridfuse" {
                    if scopes.is_empty() && scope != INTERNAL {
                        found.push(scope.to_owned());
                    }
                    scopes.push(scope);
                }
            } else if line.starts_with("}   // namespace ") && !line.ends_with(" gridfuse") {
                scopes.pop();
            } else if let Some(name) = declared(line) {
                let scoped = scopes.iter().fold(String::new(), |all, scope| all + scope + "::");
                found.push(scoped + &name);
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// The part that a line includes.
pub(super) fn included(line: &str) -> Option<&str> {
    line.strip_prefix("#include \"")?.strip_suffix(".cuh\"")
}

/// The name that a line in a namespace defines: as the parts are written, what begins at its start.
fn declared(line: &str) -> Option<String> {
    if !line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let mut line = line;
    if let Some(rest) = line.strip_prefix("template ") {
        line = behind_angles(rest)?.trim_start();
    }
    for kind in ["struct ", "class ", "enum class "] {
        if let Some(mut rest) = line.strip_prefix(kind) {
            while let Some(aligned) = rest.strip_prefix("alignas(") {
                rest = aligned.split_once(')')?.1.trim_start();
            }
            let name: String = rest.chars().take_while(|c| is_of_word(*c)).collect();
            let rest = &rest[name.len()..];
            let of_runtime = rest
                .strip_prefix('<')
                .map(first_word)
                .filter(|word| word.starts_with("Per"));
            return match of_runtime {
                Some(word) if !rest.ends_with(';') && name == "Aggregator" => Some(format!("{name}<{word}")),
                // A declaration, or a specialization: the definition stands elsewhere.
                _ if rest.ends_with(';') && !rest.contains('{') || rest.starts_with('<') => None,
                _ => Some(name),
            };
        }
    }
    if let Some(rest) = line.strip_prefix("using ") {
        return Some(first_word(rest).to_owned());
    }
    if line.starts_with("static_assert") || line.starts_with("namespace ") || line.starts_with("inline namespace ") {
        return None;
    }
    let head = line.split(['(', '=', '{', ';']).next()?.trim_end();
    let name = head.rsplit(|c: char| !is_of_word(c)).next()?;
    (!name.is_empty() && head != name || line.contains(") -> ")).then(|| name.to_owned())
}

/// What stands behind `<…>`.
fn behind_angles(text: &str) -> Option<&str> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return text.get(at + 1..);
        }
    }
    None
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

/// Some parts, with all that they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct PartSet(u64);

const _: () = assert!(PARTS.len() <= 64, "a PartSet has a bit for each part");

/// For each part, itself and what it needs.
static CLOSED: LazyLock<Vec<PartSet>> = LazyLock::new(|| {
    let mut closed: Vec<PartSet> = Vec::new();
    for (index, part) in PARTS.iter().enumerate() {
        let needed = PARTS.iter().zip(&closed);
        let needed = needed.filter(|(other, _)| part.includes().any(|name| name == other.name));
        let all = needed.fold(1 << index, |all, (_, set)| all | set.0);
        closed.push(PartSet(all));
    }
    closed
});

/// Where each name that code may use is defined.
static HOMES: LazyLock<HashMap<String, PartSet>> = LazyLock::new(|| {
    let parts = PARTS.iter().zip(CLOSED.iter());
    parts
        .flat_map(|(part, set)| part.defines().into_iter().map(|name| (name, *set)))
        .filter(|(name, _)| !name.starts_with(INTERNAL))
        .collect()
});

impl PartSet {
    /// None of them.
    pub const NONE: PartSet = PartSet(0);

    /// All of them.
    pub fn all() -> PartSet {
        PartSet::of(|_| true)
    }

    /// Those that are asked for, with what they need.
    pub fn of(wanted: impl Fn(&Part) -> bool) -> PartSet {
        let found = PARTS.iter().zip(CLOSED.iter()).filter(|(part, _)| wanted(part));
        PartSet(found.fold(0, |all, (_, set)| all | set.0))
    }

    /// Those that hold what a piece of code names: `gridfuse::…`. A name that nobody knows needs all of them.
    pub fn needed_by(code: &str) -> PartSet {
        let mut needed = PartSet::NONE;
        for (at, written) in code.match_indices("gridfuse::") {
            if code[..at].ends_with(is_of_word) {
                continue;
            }
            let rest = &code[at + written.len()..];
            let name = first_word(rest);
            let special = rest[name.len()..].strip_prefix("<gridfuse::").map(first_word);
            let special = special.and_then(|argument| HOMES.get(&format!("{name}<{argument}")));
            needed = needed.with(match special.or_else(|| HOMES.get(name)) {
                Some(set) => *set,
                None => PartSet::all(),
            });
        }
        needed
    }

    /// These and others.
    pub fn with(self, others: PartSet) -> PartSet {
        PartSet(self.0 | others.0)
    }

    /// Whether all of some others are among these.
    pub fn holds(self, others: PartSet) -> bool {
        self.0 & others.0 == others.0
    }

    /// The parts, each behind those that it needs.
    pub fn parts(self) -> impl Iterator<Item = &'static Part> {
        let parts = PARTS.iter().enumerate();
        parts
            .filter(move |(index, _)| self.0 >> index & 1 != 0)
            .map(|(_, part)| part)
    }
}
