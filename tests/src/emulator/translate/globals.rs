//! Variables in device memory: `__device__`, `__constant__`, `__managed__`.

use std::ops::Range;

use super::Unsupported;
use super::declaration::{Declaration, Declarator};
use super::edits::Edits;
use super::launch::literal;
use super::qualifiers::Qualifiers;
use super::stream::{Scope, Stream};

/// Marks and registers the variables of a stream. `number` counts what is made up, across files.
pub fn translate(
    stream: &Stream<'_>,
    file: &str,
    qualifiers: &Qualifiers,
    number: &mut usize,
    edits: &mut Edits,
) -> Result<(), Unsupported> {
    let mut done = 0;
    for at in 0..stream.len() {
        let mut words = ["__device__", "__constant__", "__managed__"].iter();
        if at < done || !words.any(|word| qualifiers.means(stream.word(at), word)) {
            continue;
        }
        let unsupported = |what: &str| Unsupported::at(file, stream.line(at), what);
        // `[=] __device__ () {…}`
        if stream.before(at) == "]" {
            continue;
        }
        let (start, template) = stream.declaration_start(at);
        if let Some((end, members)) = anonymous_union(stream, start) {
            let Some(members) = members else {
                return Err(unsupported("an anonymous union that isn't understood"));
            };
            done = end;
            if stream.scope(at) == Scope::Namespace {
                let space = space(|word| (start..end).any(|at| qualifiers.means(stream.word(at), word)));
                let known: String = members
                    .iter()
                    .map(|name| registration(name, literal(name), space, number))
                    .collect();
                edits.insert(stream.end(end), known);
            }
            continue;
        }
        let Some(declaration) = Declaration::parse(stream, start) else {
            if matches!(stream.word(at), "__constant__" | "__managed__") {
                return Err(unsupported("a declaration in device memory that isn't understood"));
            }
            continue;
        };
        let has = |qualifier: &str| {
            let mut specifiers = declaration.specifiers.clone();
            specifiers.any(|at| qualifiers.means(stream.word(at), qualifier))
        };
        if has("__shared__") {
            continue;
        }
        let plain = template.is_none() && stream.scope(at) == Scope::Namespace;
        let variable = Variable {
            stream,
            qualifiers,
            declaration,
            template,
        };
        let declaration = &variable.declaration;
        if stream.in_macro() && !variable.may_be_of_a_macro() {
            continue;
        }
        done = declaration.tokens.end;
        let immutable = declaration
            .declarators
            .iter()
            .all(|one| declaration.constant(stream, one));
        let inside = match stream.scope(at) {
            Scope::Namespace => false,
            // Its definition is elsewhere, or it is a constant.
            Scope::Class if immutable || !declaration.has(stream, "inline") => continue,
            Scope::Class => true,
            Scope::Body if immutable && !stream.in_macro() => continue,
            Scope::Body if stream.in_macro() => false,
            Scope::Body => return Err(unsupported("a local variable in device memory")),
        };
        let defined = |one: &Declarator| one.initialiser.is_some();
        if declaration.has(stream, "extern") && !declaration.declarators.iter().any(defined) {
            continue;
        }
        if declaration.has(stream, "constexpr") {
            continue;
        }
        if variable.template.is_some() {
            if inside || !variable.make_known_when_initialised(number, edits) {
                return Err(unsupported("a variable template in device memory"));
            }
            continue;
        }
        if inside && !variable.members_make_known(number, edits) {
            return Err(unsupported("an inline member in device memory"));
        }
        if !inside {
            variable.make_known(plain, number, edits);
        }
    }
    Ok(())
}

/// A declaration of variables in device memory.
struct Variable<'a, 't> {
    stream: &'a Stream<'t>,
    qualifiers: &'a Qualifiers,
    declaration: Declaration,
    template: Option<Range<usize>>,
}

impl Variable<'_, '_> {
    fn space(&self) -> &'static str {
        space(|word| {
            let mut specifiers = self.declaration.specifiers.clone();
            specifiers.any(|at| self.qualifiers.means(self.stream.word(at), word))
        })
    }

    /// The body of a macro declares it, rather than words that stand before a declaration: then it has a type, and its name comes from
    /// whoever uses the macro, or it ends there.
    fn may_be_of_a_macro(&self) -> bool {
        let (stream, declaration) = (self.stream, &self.declaration);
        let ends = stream.word(declaration.tokens.end) == ";";
        let named = |one: &Declarator| stream.is_parameter(stream.word(one.name)) || one.initialiser.is_some();
        self.template.is_none()
            && declaration.typed(stream)
            && !self.qualifiers.is_head(stream.macro_name())
            && (ends || declaration.declarators.iter().all(named))
    }

    /// Registers the variables behind their declaration, and puts them beside each other, where that is possible.
    fn make_known(&self, together: bool, number: &mut usize, edits: &mut Edits) {
        let (stream, declaration) = (self.stream, &self.declaration);
        let mut registered = String::new();
        for declarator in &declaration.declarators {
            // What it refers to is known by itself.
            if declaration.reference(stream, declarator) {
                continue;
            }
            if together && !declaration.constant(stream, declarator) {
                // Constants and variables don't go into one section.
                let behind = stream.end(declarator.tokens.end - 1);
                edits.insert(behind, " __attribute__((section(\"emu_globals\")))");
            }
            let name = qualified(stream, declarator.name, declarator.tokens.clone(), declaration);
            registered.push_str(&match stream.is_parameter(&name) {
                true => {
                    *number += 1;
                    format!(
                        " static const ::emu::RegisterGlobal emu_reg_{number}_##{name}{{&{name}, sizeof {name}, #{name}, ::emu::Space::{}}};",
                        self.space()
                    )
                }
                false => registration(&name, literal(&name), self.space(), number),
            });
        }
        let end = declaration.tokens.end;
        if stream.word(end) == ";" {
            edits.insert(stream.end(end), registered);
        } else if !registered.is_empty() {
            // Who uses the macro writes the last `;`.
            edits.insert(stream.end(end - 1), format!(";{}", registered.trim_end_matches(';')));
        }
    }

    /// Registers members that a class defines: others of it do, behind them.
    fn members_make_known(&self, number: &mut usize, edits: &mut Edits) -> bool {
        let (stream, declaration) = (self.stream, &self.declaration);
        if stream.in_macro() || declaration.has(stream, "auto") {
            return false;
        }
        let registered: String = declaration
            .declarators
            .iter()
            .filter(|one| !declaration.reference(stream, one))
            .map(|one| {
                let name = stream.word(one.name);
                *number += 1;
                format!(
                    " static inline const ::emu::RegisterGlobal emu_reg_{number}{{&{name}, sizeof {name}, {}, ::emu::Space::{}}};",
                    literal(name),
                    self.space()
                )
            })
            .collect();
        edits.insert(stream.end(declaration.tokens.end), registered);
        true
    }

    /// Registers each variable of a template before it gets its value. False if that isn't possible.
    fn make_known_when_initialised(&self, number: &mut usize, edits: &mut Edits) -> bool {
        let (stream, declaration) = (self.stream, &self.declaration);
        let parameters = self
            .template
            .as_ref()
            .and_then(|list| template_parameters(stream, list));
        let ([only], Some(parameters)) = (declaration.declarators.as_slice(), parameters) else {
            return false;
        };
        if !only.extents.is_empty()
            || stream.after_scope_operator(only.name)
            || declaration.reference(stream, only)
            || parameters.is_empty()
        {
            return false;
        }
        *number += 1;
        let name = stream.word(only.name);
        let own = format!("{name}<{}>", parameters.join(", "));
        let known = format!(
            "(::emu::RegisterGlobal{{&{own}, sizeof {own}, {}, ::emu::Space::{}}}, ",
            literal(name),
            self.space()
        );
        match &only.initialiser {
            Some(range) if stream.word(range.start) == "=" && stream.word(range.start + 1) != "{" => {
                edits.insert(stream.start(range.start + 1), known);
                edits.insert(stream.end(range.end - 1), ")");
            }
            None => edits.insert(
                stream.end(only.tokens.end - 1),
                format!(" = {known}std::decay_t<decltype({own})>{{}})"),
            ),
            Some(_) => return false,
        }
        true
    }
}

/// Where variables are that have these qualifiers.
fn space(has: impl Fn(&str) -> bool) -> &'static str {
    match () {
        () if has("__constant__") => "Constant",
        () if has("__managed__") => "Managed",
        () => "Device",
    }
}

/// Makes a variable known. `shown` is a literal with its name.
fn registration(name: &str, shown: String, space: &str, number: &mut usize) -> String {
    *number += 1;
    format!(
        " static const ::emu::RegisterGlobal emu_reg_{number}{{&{name}, sizeof {name}, {shown}, ::emu::Space::{space}}};"
    )
}

/// `union { … };` with the `;`, and the names of the members, if these are understood.
fn anonymous_union(stream: &Stream<'_>, start: usize) -> Option<(usize, Option<Vec<String>>)> {
    let mut at = start;
    while stream.is_word(at) && stream.word(at) != "union" {
        at += 1;
    }
    let close = match (stream.word(at), stream.word(at + 1)) {
        ("union", "{") => stream.partner(at + 1)?,
        _ => return None,
    };
    if stream.word(close + 1) != ";" {
        return None;
    }
    let mut members = Vec::new();
    let mut next = at + 2;
    while next < close {
        let Some(member) = Declaration::parse(stream, next).filter(|member| member.tokens.end < close) else {
            return Some((close + 1, None));
        };
        members.extend(member.declarators.iter().map(|one| stream.word(one.name).to_owned()));
        next = member.tokens.end + 1;
    }
    Some((close + 1, Some(members)))
}

/// The names in `template <class T, int N = 1>`; `None` if they aren't all plain.
fn template_parameters<'t>(stream: &Stream<'t>, list: &Range<usize>) -> Option<Vec<&'t str>> {
    let mut names = Vec::new();
    let (mut name, mut default) = (None, false);
    for at in list.start + 1..list.end {
        match stream.word(at) {
            "," => {
                names.push(name.take()?);
                default = false;
            }
            "=" => default = true,
            ">" if at + 1 == list.end => names.extend(name.take()),
            "<" | ">" | "." | "(" => return None,
            word if !default && stream.is_word(at) => name = Some(word),
            _ => {}
        }
    }
    Some(names)
}

/// The name of a declared variable with the class in which it was declared: `Counters::total`.
fn qualified(stream: &Stream<'_>, name: usize, declarator: Range<usize>, declaration: &Declaration) -> String {
    let mut start = name;
    while start > declaration.tokens.start && stream.after_scope_operator(start) && stream.is_word(start - 3) {
        start -= 3;
    }
    stream.join(start..name + 1, |at| at <= name && at < declarator.end)
}
