//! The items of a file: functions, launches' hosts, globals, structs, macros, includes. Stable identity: an edit inside one
//! function changes that function's `text` and everybody's `start`, and nothing else.
#![allow(
    missing_docs,
    reason = "the functions that salsa's macros generate carry no documentation; the fields do"
)]

use std::sync::Arc;

use tree_sitter::{Node, Tree};

use crate::db::{Db, SourceFile};
use crate::parse::{Parsed, parse, parse_text};
use crate::preprocess::Specifiers;
use crate::skeleton::without_bodies;
use crate::span::{Span, TextRange};
use crate::special_members::{Constructors, special_members};

/// A function definition or declaration.
#[salsa::tracked(debug)]
pub struct FunctionItem<'db> {
    /// The file that it stands in.
    #[returns(copy)]
    pub file: SourceFile,
    /// Qualified name: `expand`, `ns::Solver::step`.
    #[returns(deref)]
    pub name: String,
    /// It has a body.
    #[returns(copy)]
    pub has_body: bool,
    /// Facts of its signature (spans relative to its start).
    #[tracked]
    #[returns(ref)]
    pub signature: Signature,
    /// Its text from `template<…>` or the first qualifier to the closing brace, masked: same length as in the file.
    #[tracked]
    #[returns(clone)]
    pub text: Arc<str>,
    /// Span of the body including its braces; empty for a declaration. Not part of the signature, which stays the same when the
    /// body grows.
    #[tracked]
    #[returns(copy)]
    pub body_span: Span,
    /// Offset of its first byte in the file.
    #[tracked]
    #[returns(copy)]
    pub start: u32,
}

/// What the head of a function says.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Signature {
    /// `__global__`
    pub kernel: bool,
    /// `__device__`
    pub device: bool,
    /// `__host__`, or none of the three.
    pub host: bool,
    /// `static`
    pub is_static: bool,
    /// `extern "C"`
    pub extern_c: bool,
    /// Template parameter list without `template`: `<int N, class T>`; `None` when it isn't a template.
    pub template_params: Option<Span>,
    /// Names of the template parameters, in order.
    pub template_names: Vec<String>,
    /// The template parameters that are types (`class T`, `typename T`), by name.
    pub template_types: Vec<String>,
    /// It is a member of a class, or defined with a qualified name.
    pub member: bool,
    /// Span of the whole declarator name (`ns::f`).
    pub name_span: Span,
    /// Span of the return type and all qualifiers: everything before the name and behind the template header.
    pub head_span: Span,
    /// Span of the parameter list including the parentheses.
    pub params_span: Span,
    /// Span of `__launch_bounds__(…)`, or of the macro that stands for it.
    pub launch_bounds: Option<Span>,
    /// A macro in front of its name of which it isn't certain what it stands for: an `#if` that isn't decided has a say in it.
    pub uncertain: Option<Span>,
    /// Under `#if` (inside a function-level conditional): another definition may stand in the other branch.
    pub conditional: bool,
    /// Parts that were blanked because an `#if` cuts through a construct: what stands there isn't analysed.
    pub cuts: Vec<Span>,
    /// Parts that were blanked because they are too large: what stands there isn't analysed, either.
    pub large: Vec<Span>,
    /// `#if` groups of which it is known which branch is compiled: the others were blanked.
    pub decided: Vec<Span>,
}

/// A variable at namespace scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct GlobalItem {
    /// Name.
    pub name: String,
    /// Its type without qualifiers and declarator: `unsigned int`.
    pub base: String,
    /// A pointer, a reference or a function pointer, or an array of such.
    pub pointer: bool,
    /// Array dimensions.
    pub dims: u32,
    /// `const` or `constexpr` value (not a pointer to const).
    pub constant: bool,
    /// `__constant__`
    pub constant_memory: bool,
    /// `__device__`
    pub device: bool,
    /// `__managed__`
    pub managed: bool,
    /// `__shared__`
    pub shared: bool,
    /// Text of its initialiser.
    pub init: Option<String>,
}

/// A class, struct, union or enum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct TypeItem {
    /// Name.
    pub name: String,
    /// An enum.
    pub is_enum: bool,
    /// Enumerators of an enum.
    pub enumerators: Vec<String>,
    /// Has a base class or virtual functions, or declares what may run code when it is copied or converted to.
    pub nontrivial: bool,
    /// What its constructors do.
    pub constructors: Constructors,
    /// What of it runs unasked and does more than compute or set fields.
    pub hidden: Option<&'static str>,
    /// Its base classes as written.
    pub bases: String,
    /// Fields of its objects as (type as written, name).
    pub fields: Vec<(String, String)>,
    /// Names of its static constants.
    pub constants: Vec<String>,
}

/// A `#define`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct MacroItem {
    /// Name.
    pub name: String,
    /// Parameter names of a function-like macro.
    pub params: Option<Vec<String>>,
    /// Replacement text, comments and line continuations removed.
    pub body: String,
}

/// An `#include`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct IncludeItem {
    /// The path as written.
    pub path: String,
    /// `<…>`
    pub system: bool,
}

impl IncludeItem {
    /// Reads what stands behind `#include`. `None`: a macro, or nothing.
    pub fn parse(rest: &str) -> Option<IncludeItem> {
        let rest = rest.trim_start();
        let (system, closer) = match rest.as_bytes().first()? {
            b'<' => (true, '>'),
            b'"' => (false, '"'),
            _ => return None,
        };
        let (path, _) = rest.get(1..)?.split_once(closer)?;
        let path = path.to_owned();
        (!path.contains('\n')).then_some(IncludeItem { path, system })
    }
}

/// All items of one file. Presentation data (where they stand) is in [`ItemPlaces`].
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct FileItems<'db> {
    /// Functions in source order.
    pub functions: Vec<FunctionItem<'db>>,
    /// Variables at namespace scope.
    pub globals: Vec<GlobalItem>,
    /// Types.
    pub types: Vec<TypeItem>,
    /// Names introduced by `using x = …`, `typedef`.
    pub aliases: Vec<(String, String)>,
    /// Includes.
    pub includes: Vec<IncludeItem>,
}

/// Where things stand in a file: only presentation and rewrites read this.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct ItemPlaces {
    /// Every `#include` line, in order (whole line without the newline).
    pub includes: Vec<TextRange>,
    /// Places of syntax errors outside of functions.
    pub errors: Vec<TextRange>,
}

/// Items of a file.
#[salsa::tracked]
pub fn items<'db>(db: &'db dyn Db, file: SourceFile) -> FileItems<'db> {
    let parsed = parse(db, file);
    let mut collector = Collector {
        db,
        file,
        parsed: &parsed,
        items: FileItems::default(),
        errors: Vec::new(),
    };
    collector.walk(&item_tree(&parsed), true);
    collector.items
}

/// Places of a file's includes and syntax errors.
#[salsa::tracked]
pub fn places(db: &dyn Db, file: SourceFile) -> ItemPlaces {
    let parsed = parse(db, file);
    let mut collector = Collector {
        db,
        file,
        parsed: &parsed,
        items: FileItems::default(),
        errors: Vec::new(),
    };
    collector.walk(&item_tree(&parsed), false);
    let mut includes = Vec::new();
    let mut cursor = parsed.tree().walk();
    let mut stack: Vec<Node<'_>> = vec![parsed.tree().root_node()];
    while let Some(node) = stack.pop() {
        match node.kind() {
            "preproc_include" => {
                let text = &parsed.masked().text;
                let line = text.get(node.byte_range()).unwrap_or("").trim_end();
                includes.push(TextRange::new(
                    node.start_byte() as u32,
                    (node.start_byte() + line.len()) as u32,
                ));
            }
            "translation_unit" | "preproc_if" | "preproc_ifdef" | "preproc_else" | "preproc_elif" => {
                stack.extend(node.named_children(&mut cursor));
            }
            _ => {}
        }
    }
    includes.sort_unstable();
    ItemPlaces {
        includes,
        errors: collector.errors,
    }
}

/// The tree in which items are looked for: where something is broken, that of the text without the insides of functions.
fn item_tree(parsed: &Parsed) -> Tree {
    if parsed.tree().root_node().has_error() {
        parse_text(&without_bodies(&parsed.masked().text), None)
    } else {
        parsed.tree().clone()
    }
}

struct Collector<'a, 'db> {
    db: &'db dyn Db,
    file: SourceFile,
    parsed: &'a Parsed,
    items: FileItems<'db>,
    errors: Vec<TextRange>,
}

/// Where a function runs.
const SPECIFIERS: [&str; 3] = ["__global__", "__device__", "__host__"];

/// What surrounds an item.
#[derive(Clone, Default)]
struct Context<'t> {
    /// What was broken right in front of the node.
    broken: Option<Node<'t>>,
    /// The node stands in no other item.
    top: bool,
    prefix: String,
    template: Option<Node<'t>>,
    extern_c: bool,
    conditional: bool,
    in_class: bool,
}

impl<'a> Collector<'a, '_> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.parsed.masked().text.get(node.byte_range()).unwrap_or("")
    }

    /// Where an item at `start` begins when macros in front of it that masking blanked belong to it.
    fn start_with_specifiers(&self, mut start: usize) -> usize {
        let masked = self.parsed.masked();
        let before = masked.specifiers.partition_point(|s| (s.start as usize) < start);
        for macros in masked.specifiers.iter().take(before).rev() {
            let between = masked.text.get(macros.start as usize..start).unwrap_or("x");
            if !between.trim().is_empty() {
                break;
            }
            start = macros.start as usize;
        }
        start
    }

    /// Where the specifiers of a function begin that the grammar has given to something broken in front of it: `DEFINE(n)` without a
    /// `;`, then `__global__`.
    fn lost_specifiers(&self, function: Node<'_>, broken: Option<Node<'_>>) -> Option<usize> {
        let broken = broken?;
        let text = self.text(broken);
        let between = self
            .parsed
            .masked()
            .text
            .get(broken.end_byte()..function.start_byte())?;
        let found = SPECIFIERS.iter().filter_map(|word| text.find(word)).min()?;
        between.trim().is_empty().then(|| broken.start_byte() + found)
    }

    /// The macros that masking blanked in a range.
    fn specifiers(&self, start: usize, end: usize) -> &'a [Specifiers] {
        let all = &self.parsed.masked().specifiers;
        let first = all.partition_point(|s| (s.start as usize) < start);
        let last = all.partition_point(|s| (s.start as usize) < end);
        all.get(first..last).unwrap_or_default()
    }

    /// Visits all item-level nodes. `create`: make the items (only inside the `items` query); else only errors are noted.
    fn walk(&mut self, tree: &Tree, create: bool) {
        let root = tree.root_node();
        let mut stack = vec![(root, Context::default())];
        while let Some((node, context)) = stack.pop() {
            let mut inner = context.clone();
            match node.kind() {
                "function_definition" => {
                    if create {
                        self.function(node, &context);
                    }
                    continue;
                }
                "declaration" | "field_declaration" => {
                    if create {
                        self.declaration(node, &context);
                    }
                    // A class defined in a declaration: `struct S { … } s;`
                    if let Some(ty) = node
                        .child_by_field_name("type")
                        .filter(|t| t.child_by_field_name("body").is_some())
                    {
                        stack.push((ty, context));
                    }
                    continue;
                }
                "template_declaration" => inner.template = Some(node),
                "linkage_specification" => inner.extern_c = true,
                "preproc_if" | "preproc_ifdef" | "preproc_else" | "preproc_elif" => {
                    // An include guard is no alternative.
                    let guard = node.kind() == "preproc_ifdef"
                        && context.top
                        && node.child_by_field_name("alternative").is_none();
                    inner.conditional |= !guard;
                }
                "namespace_definition" => {
                    if let Some(name) = node.child_by_field_name("name") {
                        inner.prefix = format!("{}{}::", context.prefix, self.text(name));
                    }
                }
                "class_specifier" | "struct_specifier" | "union_specifier" | "enum_specifier" => {
                    if create {
                        self.type_item(node);
                    }
                    let name = node.child_by_field_name("name").map_or("", |n| self.text(n));
                    inner.prefix = format!("{}{name}::", context.prefix);
                    inner.in_class = true;
                    inner.template = None;
                    match node.child_by_field_name("body") {
                        Some(body) if node.kind() != "enum_specifier" => stack.push((body, inner)),
                        _ => {}
                    }
                    continue;
                }
                "ERROR" => {
                    self.errors
                        .push(TextRange::new(node.start_byte() as u32, node.end_byte() as u32));
                    inner.conditional = true;
                }
                "friend_declaration" => {
                    // No member: it belongs to what is around the class.
                    let outside = context.prefix.trim_end_matches("::").rsplit_once("::");
                    inner.prefix = outside.map_or(String::new(), |(outside, _)| format!("{outside}::"));
                    inner.in_class = false;
                }
                "translation_unit" | "declaration_list" | "field_declaration_list" => {}
                "preproc_include" => {
                    if let Some(path) = node.child_by_field_name("path") {
                        let text = self.text(path);
                        let written = text.trim_matches(['"', '<', '>']).to_owned();
                        self.items.includes.push(IncludeItem {
                            path: written,
                            system: text.starts_with('<'),
                        });
                    }
                    continue;
                }
                "alias_declaration" => {
                    if let (Some(name), Some(ty)) = (node.child_by_field_name("name"), node.child_by_field_name("type"))
                    {
                        self.items
                            .aliases
                            .push((self.text(name).to_owned(), self.text(ty).to_owned()));
                    }
                    continue;
                }
                "type_definition" => {
                    let ty = node.child_by_field_name("type");
                    let stands_for = ty.map_or("", |t| self.text(t)).to_owned();
                    let mut cursor = node.walk();
                    for name in node.children_by_field_name("declarator", &mut cursor) {
                        let pointer = if name.kind() == "type_identifier" {
                            ""
                        } else {
                            " (declarator)"
                        };
                        let words = self.text(name).trim_matches(['*', ' ', '&']).to_owned();
                        self.items.aliases.push((words, format!("{stands_for}{pointer}")));
                    }
                    if let Some(ty) = ty.filter(|t| t.child_by_field_name("body").is_some()) {
                        stack.push((ty, context));
                    }
                    continue;
                }
                _ => continue,
            }
            inner.top = node.kind() == "translation_unit";
            // Not `Node::prev_sibling`, which looks through all that stands before.
            let mut before: Option<Node<'_>> = None;
            let first = stack.len();
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                if child.is_named() {
                    // What is around a template belongs to the function that it is.
                    let broken = match (node.kind(), before) {
                        ("template_declaration", _) => context.broken,
                        (_, before) => before.filter(|node| node.kind() == "ERROR"),
                    };
                    let inner = Context {
                        broken,
                        ..inner.clone()
                    };
                    stack.push((child, inner));
                }
                before = Some(child);
            }
            stack[first..].reverse();
        }
        self.items.functions.sort_by_key(|f| f.start(self.db));
    }

    /// The `function_declarator` of a definition or declaration.
    fn function_declarator<'t>(node: Node<'t>) -> Option<Node<'t>> {
        let mut next = node.child_by_field_name("declarator");
        while let Some(current) = next {
            if current.kind() == "function_declarator" {
                return Some(current);
            }
            next = current.child_by_field_name("declarator").or_else(|| {
                let mut cursor = current.walk();
                current
                    .named_children(&mut cursor)
                    .find(|c| c.kind() == "function_declarator")
            });
        }
        None
    }

    fn function(&mut self, node: Node<'_>, context: &Context<'_>) {
        let Some(declarator) = Self::function_declarator(node) else {
            return;
        };
        let (Some(name), Some(params)) = (
            declarator.child_by_field_name("declarator"),
            declarator.child_by_field_name("parameters"),
        ) else {
            return;
        };
        // `T (*f)(int)`: a variable.
        if name.kind() == "parenthesized_declarator" {
            return;
        }
        let whole = context.template.unwrap_or(node);
        let masked = self.parsed.masked();
        let lost = self.lost_specifiers(whole, context.broken);
        let start = lost.unwrap_or_else(|| self.start_with_specifiers(whole.start_byte()));
        let end = whole.end_byte();
        let relative = |n: Node<'_>| Span::new((n.start_byte() - start) as u32, (n.end_byte() - start) as u32);
        let body = node.child_by_field_name("body");
        let mut signature = Signature {
            extern_c: context.extern_c,
            conditional: context.conditional,
            member: context.in_class || name.kind() == "qualified_identifier",
            name_span: relative(name),
            params_span: relative(params),
            ..Signature::default()
        };
        let head_end = name.start_byte();
        let mut words: Vec<&str> = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.start_byte() >= head_end {
                break;
            }
            match child.kind() {
                "launch_bounds" => signature.launch_bounds = Some(relative(child)),
                _ => words.push(self.text(child)),
            }
        }
        if lost.is_some() {
            words.extend(crate::hir::words(
                masked.text.get(start..whole.start_byte()).unwrap_or(""),
            ));
        }
        for macros in self.specifiers(start, head_end) {
            words.extend(macros.words.iter().map(String::as_str));
            let span = Span::new(macros.start - start as u32, macros.end - start as u32);
            if macros.with_arguments("__launch_bounds__").is_some() {
                signature.launch_bounds = Some(span);
            }
            if !macros.certain {
                signature.uncertain.get_or_insert(span);
            }
        }
        signature.extern_c |= words.contains(&"\"C\"");
        signature.kernel = words.contains(&"__global__");
        signature.device = words.contains(&"__device__");
        signature.host = words.contains(&"__host__") || (!signature.kernel && !signature.device);
        signature.is_static = words.contains(&"static");
        let mut head_start = node
            .start_byte()
            .min(if context.template.is_some() { usize::MAX } else { start });
        if let Some(template) = context.template
            && let Some(list) = template.child_by_field_name("parameters")
        {
            signature.template_params = Some(relative(list));
            let mut cursor = list.walk();
            for parameter in list.named_children(&mut cursor) {
                let is_type = parameter.kind().contains("type_parameter");
                let name = if is_type {
                    let mut cursor = parameter.walk();
                    parameter.child_by_field_name("name").or_else(|| {
                        parameter
                            .named_children(&mut cursor)
                            .find(|c| c.kind() == "type_identifier")
                    })
                } else {
                    parameter.child_by_field_name("declarator")
                };
                let Some(name) = name.map(|n| self.text(n).to_owned()) else {
                    continue;
                };
                if is_type {
                    signature.template_types.push(name.clone());
                }
                signature.template_names.push(name);
            }
            head_start = node.start_byte();
        }
        signature.head_span = Span::new((head_start - start) as u32, (head_end - start) as u32);
        let within = |ranges: &[TextRange]| -> Vec<Span> {
            let inside = ranges
                .iter()
                .map(|range| (range.start as usize, range.end as usize))
                .filter(|(from, to)| *from < end && *to > start);
            inside
                .map(|(from, to)| Span::new((from.max(start) - start) as u32, (to.min(end) - start) as u32))
                .collect()
        };
        signature.cuts = within(&masked.cuts);
        signature.large = within(&masked.large);
        signature.decided = within(&masked.decided);
        let name = crate::hir::without_template_arguments(self.text(name));
        let item = FunctionItem::new(
            self.db,
            self.file,
            format!("{}{name}", context.prefix),
            body.is_some(),
            signature,
            Arc::from(masked.text.get(start..end).unwrap_or("")),
            body.map(relative)
                .unwrap_or(Span::new((end - start) as u32, (end - start) as u32)),
            start as u32,
        );
        self.items.functions.push(item);
    }

    fn declaration(&mut self, node: Node<'_>, context: &Context<'_>) {
        let mut cursor = node.walk();
        let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
        if let [only] = declarators.as_slice()
            && only.kind() != "init_declarator"
            && Self::function_declarator(node).is_some_and(|f| {
                f.child_by_field_name("declarator")
                    .is_some_and(|d| d.kind() != "parenthesized_declarator")
            })
        {
            self.function(node, context);
            return;
        }
        if context.in_class {
            return;
        }
        let mut words: Vec<&str> = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if declarators.contains(&child) {
                break;
            }
            words.push(self.text(child));
        }
        let head_end = declarators.first().map_or(node.end_byte(), Node::start_byte);
        for macros in self.specifiers(self.start_with_specifiers(node.start_byte()), head_end) {
            words.extend(macros.words.iter().map(String::as_str));
        }
        for written in declarators {
            let mut pointer = false;
            let mut dims = 0;
            let mut name = Some(written);
            while let Some(current) = name.filter(|n| n.kind() != "identifier") {
                dims += u32::from(current.kind() == "array_declarator");
                pointer |= matches!(
                    current.kind(),
                    "pointer_declarator" | "reference_declarator" | "function_declarator"
                );
                name = current.child_by_field_name("declarator");
            }
            let Some(name) = name else { continue };
            let init = written.child_by_field_name("value").map(|v| self.text(v).to_owned());
            self.items.globals.push(GlobalItem {
                name: self.text(name).to_owned(),
                base: node.child_by_field_name("type").map_or("", |t| self.text(t)).to_owned(),
                pointer,
                dims,
                constant: !pointer && words.iter().any(|w| matches!(*w, "const" | "constexpr")),
                constant_memory: words.contains(&"__constant__"),
                device: words.contains(&"__device__"),
                managed: words.contains(&"__managed__"),
                shared: words.contains(&"__shared__"),
                init,
            });
        }
    }

    fn type_item(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name").map(|n| self.text(n).to_owned()) else {
            return;
        };
        let Some(body) = node.child_by_field_name("body") else {
            return;
        };
        let is_enum = node.kind() == "enum_specifier";
        let mut item = TypeItem {
            name,
            is_enum,
            enumerators: Vec::new(),
            nontrivial: false,
            constructors: Constructors::None,
            hidden: None,
            bases: String::new(),
            fields: Vec::new(),
            constants: Vec::new(),
        };
        let mut cursor = node.walk();
        let bases = node
            .named_children(&mut cursor)
            .find(|c| c.kind() == "base_class_clause");
        item.nontrivial = bases.is_some();
        item.bases = bases.map_or("", |bases| self.text(bases)).to_owned();
        let mut cursor = body.walk();
        for child in body.named_children(&mut cursor) {
            match child.kind() {
                "enumerator" => {
                    if let Some(name) = child.child_by_field_name("name") {
                        item.enumerators.push(self.text(name).to_owned());
                    }
                }
                "field_declaration" => {
                    let text = self.text(child);
                    let ty = child.child_by_field_name("type").map_or("", |t| self.text(t));
                    let head = text.split(['=', '{', ';']).next().unwrap_or("");
                    let is = |word: &str| crate::hir::words(head).any(|w| w == word);
                    let variable = !head.contains(['(', '*', '&']);
                    let constant = variable && is("static") && (is("const") || is("constexpr"));
                    let mut cursor = child.walk();
                    for name in child.children_by_field_name("declarator", &mut cursor) {
                        if constant {
                            let name = crate::uniformity::memory::declared_name(self.text(name));
                            item.constants.push(name.to_owned());
                        } else {
                            item.fields.push((ty.to_owned(), self.text(name).to_owned()));
                        }
                    }
                }
                _ => {}
            }
        }
        if !is_enum {
            let declared: Vec<&str> = item
                .fields
                .iter()
                .map(|(_, declarator)| crate::uniformity::memory::declared_name(declarator))
                .collect();
            let arrays: Vec<&str> = item
                .fields
                .iter()
                .filter(|(_, declarator)| crate::uniformity::memory::is_array(declarator))
                .map(|(_, declarator)| crate::uniformity::memory::declared_name(declarator))
                .collect();
            let special = special_members(body, &item.name, &declared, &arrays, &self.parsed.masked().text);
            item.nontrivial |= special.nontrivial;
            item.constructors = special.constructors;
            item.hidden = special.hidden;
        }
        self.items.types.push(item);
    }
}
