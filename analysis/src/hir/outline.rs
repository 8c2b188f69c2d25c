//! The items of a file as its text says now: what a walk over its tree finds.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use tree_sitter::{Node, Tree};

use crate::base::db::Db;
use crate::base::db::SourceFile;
use crate::base::fields;
use crate::base::mask::Masked;
use crate::base::parse::masked;
use crate::base::parse::parse;
use crate::base::parse::parse_bare;
use crate::base::parse::parse_barest;
use crate::base::preprocess::IncludeItem;
use crate::base::preprocess::Specifiers;
use crate::base::preprocess::file_directives;
use crate::base::preprocess::gave_up;
use crate::base::preprocess::reads_as_restrict;
use crate::base::span::Span;
use crate::base::span::TextRange;
use crate::hir::class_names::{class_name, name_by_typedef};
use crate::hir::declarator::typedef_target;
use crate::hir::items::Blanked;
use crate::hir::items::FunctionText;
use crate::hir::items::GlobalItem;
use crate::hir::items::Signature;
use crate::hir::items::TypeItem;
use crate::hir::items::Written;
use crate::hir::made_items::made_items;
use crate::hir::names::without_template_arguments;
use crate::hir::settled::patched_items;
use crate::hir::word::Word;

/// The items of a file, but for where they stand.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Outline {
    /// Functions in source order.
    pub functions: Vec<OutlinedFunction>,
    /// See [`FileItems::globals`].
    pub globals: Vec<GlobalItem>,
    /// Definitions of static members outside of their classes: name, whole declaration.
    pub members: Vec<(String, String)>,
    /// See [`FileItems::types`].
    pub types: Vec<TypeItem>,
    /// See [`FileItems::aliases`].
    pub aliases: Vec<(String, String)>,
    /// See [`FileItems::includes`].
    pub includes: Vec<IncludeItem>,
    /// See [`FileItems::inner_includes`].
    pub inner_includes: Vec<IncludeItem>,
    /// See [`FileItems::blanked`].
    pub blanked: Blanked,
    /// See [`FileItems::loose`].
    pub loose: Vec<String>,
}

/// A function of the items of a file, as it is found in the text.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct OutlinedFunction {
    /// See [`FunctionItem::name`].
    pub name: String,
    /// See [`FunctionItem::has_body`].
    pub has_body: bool,
    /// See [`FunctionItem::signature`].
    pub signature: Signature,
    /// See [`FunctionItem::directives_before`].
    pub directives_before: u32,
    /// What is written there.
    pub source: FunctionText,
}

/// The items of a file as its text says now.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub(crate) struct OutlineInText {
    /// The items.
    pub outline: Arc<Outline>,
    /// Where the functions begin.
    pub starts: Vec<u32>,
    /// Places of syntax errors outside of functions.
    pub errors: Vec<TextRange>,
    /// Which tree the items were found in.
    pub form: Form,
}

/// A tree in which items are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub(crate) enum Form {
    /// That of the text without what functions do outside of classes.
    #[default]
    Bare,
    /// That of the text without what any function does: something is broken outside of those.
    Barest,
    /// That of the whole text: what looks like a function's body isn't one.
    Whole,
}

/// The items of a file as its text says now.
#[salsa::tracked]
pub(crate) fn outline_in_text(db: &dyn Db, file: SourceFile) -> OutlineInText {
    if let Some(patched) = patched_items(db, file) {
        return patched.outline.clone();
    }
    let masked = masked(db, file);
    let directives = file_directives(db, file);
    let directives: Vec<u32> = directives.iter().map(|directive| directive.start as u32).collect();
    // Where it isn't known what macros stand for, something is nearly always broken: that is asked first.
    let hopeless = gave_up(db, file) && parse_barest(db, file).tree().root_node().has_error();
    let bare = (!hopeless).then(|| parse_bare(db, file));
    let (whole, barest);
    let mut found = None;
    if let Some(bare) = &bare {
        let collector = Collector::found(&masked, &directives, bare.bodies(), bare.tree());
        if !collector.is_sure() {
            whole = parse(db, file);
            if !whole.tree().root_node().has_error() {
                found = Some((Form::Whole, Collector::found(&masked, &directives, &[], whole.tree())));
            }
        } else if !bare.tree().root_node().has_error() {
            // What was blanked are bodies of functions, and each of these was found: nothing else looks another way without them.
            found = Some((Form::Bare, collector));
        }
    }
    let (form, collector) = match found {
        Some(found) => found,
        None => {
            barest = parse_barest(db, file);
            let collector = Collector::found(&masked, &directives, barest.bodies(), barest.tree());
            (Form::Barest, collector)
        }
    };
    let errors = collector.errors;
    // Only template headers and what was lost in front of a function make the order another one than that of the tree.
    let mut functions = collector.functions;
    functions.sort_by_key(|(start, _)| *start);
    let mut outline = collector.items;
    outline.blanked = Blanked::of(&file.text(db), &masked.large, &functions);
    let made = made_items(db, file);
    outline.blanked.extend(&made.names);
    outline.loose.clone_from(&made.loose);
    let mut starts = Vec::with_capacity(functions.len());
    for (start, function) in functions {
        starts.push(start);
        outline.functions.push(function);
    }
    let outline = Arc::new(outline);
    OutlineInText {
        outline,
        starts,
        errors,
        form,
    }
}

impl Blanked {
    /// Adds what may stand elsewhere.
    pub(crate) fn extend(&mut self, other: &Blanked) {
        self.words.extend(&other.words);
        self.classes.extend(other.classes.iter().cloned());
    }

    /// What stands in the ranges of `text` that none of the `functions` contains, which are in order.
    fn of(text: &str, large: &[TextRange], functions: &[(u32, OutlinedFunction)]) -> Blanked {
        let mut found = Blanked::default();
        let in_function = |range: &TextRange| {
            let before = functions.partition_point(|(start, _)| *start <= range.start);
            let last = before.checked_sub(1).and_then(|last| functions.get(last));
            last.is_some_and(|(start, function)| match &function.source {
                FunctionText::Kept(written) => {
                    let body = written.body_span.shift(*start);
                    function.has_body && body.contains(*range)
                }
                FunctionText::Edited(_) => false,
            })
        };
        for range in large.iter().filter(|range| !in_function(range)) {
            let mut last = "";
            for word in crate::base::words::words(range.text(text)) {
                if matches!(last, "struct" | "class" | "union" | "using" | "__align__" | "alignas") {
                    found.classes.insert(word.to_owned());
                }
                found.words.insert(Word::new(word));
                last = word;
            }
        }
        found
    }
}

/// The tree in which the items of a file were found, and the bodies that were blanked for it.
pub(crate) fn item_tree(db: &dyn Db, file: SourceFile) -> (Tree, Vec<TextRange>) {
    let bare = match outline_in_text(db, file).form {
        Form::Whole => return (parse(db, file).tree().clone(), Vec::new()),
        Form::Bare => parse_bare(db, file),
        Form::Barest => parse_barest(db, file),
    };
    (bare.tree().clone(), bare.bodies().to_vec())
}

/// Collects the items of a file.
pub(super) struct Collector<'a> {
    pub(super) masked: &'a Masked,
    /// Where the directives of the file begin.
    directives: &'a [u32],
    /// The bodies that were blanked, in order.
    bodies: &'a [TextRange],
    /// How many of these are bodies of the functions that were found.
    found_bodies: usize,
    /// Something was blanked in a class.
    pub(super) blanked_class: bool,
    /// Functions with where they begin.
    functions: Vec<(u32, OutlinedFunction)>,
    /// All other items.
    pub(super) items: Outline,
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
    /// The parameters of the templates around the node.
    scope_names: Vec<String>,
    /// Those of them that are types.
    scope_types: Vec<String>,
    extern_c: bool,
    conditional: bool,
    /// Under an `#ifdef` without an alternative that isn't a guard against including twice.
    optional: bool,
    in_class: bool,
}

impl<'a> Collector<'a> {
    /// What is found in a tree in which `bodies` were blanked.
    fn found(masked: &'a Masked, directives: &'a [u32], bodies: &'a [TextRange], tree: &Tree) -> Self {
        let mut collector = Collector {
            masked,
            directives,
            bodies,
            found_bodies: 0,
            blanked_class: false,
            functions: Vec::new(),
            items: Outline::default(),
            errors: Vec::new(),
        };
        collector.walk(tree);
        collector
    }

    /// Whether all that was blanked are bodies of functions outside of classes.
    fn is_sure(&self) -> bool {
        self.found_bodies == self.bodies.len() && !self.blanked_class
    }

    /// The first blanked body that begins at `start` or behind it.
    pub(super) fn body_from(&self, start: usize) -> Option<TextRange> {
        let first = self.bodies.partition_point(|body| (body.start as usize) < start);
        self.bodies.get(first).copied()
    }

    /// Whether a node is there as it is written: no directive stands in it, and nothing of it was blanked.
    pub(super) fn is_whole(&self, node: Node<'_>) -> bool {
        let range = TextRange::new(node.start_byte() as u32, node.end_byte() as u32);
        let first = self.directives.partition_point(|at| *at < range.start);
        let directive = self.directives.get(first).is_some_and(|at| *at < range.end);
        let blanked = |all: &[TextRange]| all.iter().any(|part| part.start < range.end && range.start < part.end);
        !directive && !blanked(self.bodies) && !blanked(&self.masked.inactive)
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        self.masked.text.get(node.byte_range()).unwrap_or("")
    }

    /// Where an item at `start` begins when macros in front of it that masking blanked belong to it.
    fn start_with_specifiers(&self, mut start: usize) -> usize {
        let masked = self.masked;
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
        let between = self.masked.text.get(broken.end_byte()..function.start_byte())?;
        let found = SPECIFIERS.iter().filter_map(|word| text.find(word)).min()?;
        between.trim().is_empty().then(|| broken.start_byte() + found)
    }

    /// Whether something in a node was blanked because it is too large.
    pub(super) fn is_partly_blanked(&self, node: Node<'_>) -> bool {
        let large = &self.masked.large;
        let first = large.partition_point(|range| (range.end as usize) <= node.start_byte());
        large
            .get(first)
            .is_some_and(|range| (range.start as usize) < node.end_byte())
    }

    /// The macros that masking blanked in a range.
    pub(super) fn specifiers(&self, start: usize, end: usize) -> &'a [Specifiers] {
        let all = &self.masked.specifiers;
        let first = all.partition_point(|s| (s.start as usize) < start);
        let last = all.partition_point(|s| (s.start as usize) < end);
        all.get(first..last).unwrap_or_default()
    }

    /// Visits all item-level nodes.
    fn walk(&mut self, tree: &Tree) {
        let root = tree.root_node();
        let mut stack = vec![(root, Context::default())];
        while let Some((node, context)) = stack.pop() {
            let mut inner = context.clone();
            match node.kind() {
                "function_definition" => {
                    self.function(node, &context);
                    continue;
                }
                "declaration" | "field_declaration" => {
                    self.declaration(node, &context);
                    // A class defined in a declaration: `struct S { … } s;`
                    if let Some(ty) = defined_type(node) {
                        stack.push((ty, context));
                    }
                    continue;
                }
                "template_declaration" => {
                    inner.template = Some(node);
                    inner.scope_names.extend(self.template_parameters(node));
                    inner.scope_types.extend(self.template_types(node));
                }
                "linkage_specification" => inner.extern_c = true,
                "preproc_if" | "preproc_ifdef" | "preproc_else" | "preproc_elif" => {
                    // An include guard is no alternative.
                    let guard = node.kind() == "preproc_ifdef"
                        && context.top
                        && node.child_by_field_id(fields::ALTERNATIVE.id()).is_none();
                    inner.conditional |= !guard;
                    inner.optional |= guard && !self.is_include_guard(node);
                }
                "namespace_definition" => {
                    // What stands in an inline namespace goes by the name of what is around it.
                    let is_inline = node.child(0).is_some_and(|word| word.kind() == "inline");
                    if let Some(name) = node.child_by_field_id(fields::NAME.id()).filter(|_| !is_inline) {
                        inner.prefix = format!("{}{}::", context.prefix, self.text(name));
                    }
                }
                "class_specifier" | "struct_specifier" | "union_specifier" | "enum_specifier" => {
                    self.type_item(node, context.template);
                    // A specialisation's members count as the template's: any of them may be meant.
                    let name = class_name(node).map_or("", |n| self.text(n));
                    let name = without_template_arguments(name);
                    inner.prefix = format!("{}{name}::", context.prefix);
                    inner.in_class = true;
                    inner.template = None;
                    match node.child_by_field_id(fields::BODY.id()) {
                        Some(body) if node.kind() != "enum_specifier" => stack.push((body, inner)),
                        _ => {}
                    }
                    continue;
                }
                "ERROR" => {
                    self.broken_typedef(node);
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
                    self.include(node);
                    continue;
                }
                "alias_declaration" | "type_definition" => {
                    self.alias(node);
                    if let Some(ty) = defined_type(node).filter(|_| node.kind() == "type_definition") {
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
    }

    fn include(&mut self, node: Node<'_>) {
        if let Some(path) = node.child_by_field_id(fields::PATH.id()) {
            let text = self.text(path);
            let written = text.trim_matches(['"', '<', '>']).to_owned();
            self.items.includes.push(IncludeItem {
                path: written,
                system: text.starts_with('<'),
            });
        }
    }

    /// Other names of types, by `using` or `typedef`.
    fn alias(&mut self, node: Node<'_>) {
        if node.kind() == "alias_declaration" {
            let name = node.child_by_field_id(fields::NAME.id());
            if let Some((name, ty)) = name.zip(node.child_by_field_id(fields::TYPE.id())) {
                let target = format!("{}{}", self.text(ty), self.restrict_by_macro(node));
                self.items.aliases.push((self.text(name).to_owned(), target));
            }
            return;
        }
        // That is its name: nothing else is there for which it would stand.
        let own = defined_type(node).and_then(|ty| name_by_typedef(ty, node));
        let mut cursor = node.walk();
        for name in node.children_by_field_name("declarator", &mut cursor) {
            if own == Some(name) {
                continue;
            }
            let words = self.text(name).trim_matches(['*', ' ', '&']).to_owned();
            let target = typedef_target(node, name, |n| self.text(n)) + self.restrict_by_macro(node);
            self.items.aliases.push((words, target));
        }
        self.broken_typedef(node);
    }

    /// `typedef RO_PTR(float) In;`, which reads as something else: the last word stands for what is written before it.
    fn broken_typedef(&mut self, node: Node<'_>) {
        let text = self.text(node).trim_end_matches([';', ' ']);
        let Some(written) = text.strip_prefix("typedef").filter(|written| written.contains('(')) else {
            return;
        };
        if let Some(last) = crate::base::words::words(written).last()
            && let Some(target) = written.strip_suffix(last)
        {
            self.items.aliases.push((last.to_owned(), target.trim().to_owned()));
        }
    }

    /// The `__restrict__` of a macro in a declaration that reads as the rest of what it stands for.
    fn restrict_by_macro(&self, node: Node<'_>) -> &'static str {
        let mut macros = self.specifiers(node.start_byte(), node.end_byte()).iter();
        match macros.any(|used| used.words.iter().any(|word| reads_as_restrict(word))) {
            true => " __restrict__",
            false => "",
        }
    }

    /// `#ifndef X` with `#define X` in the next line.
    fn is_include_guard(&self, node: Node<'_>) -> bool {
        let Some(name) = node.child_by_field_id(fields::NAME.id()) else {
            return false;
        };
        let mut cursor = node.walk();
        let first = node.named_children(&mut cursor).find(|child| *child != name);
        let defined = first.and_then(|first| first.child_by_field_id(fields::NAME.id()));
        self.text(node).starts_with("#ifndef") && defined.is_some_and(|defined| self.text(defined) == self.text(name))
    }

    /// The `function_declarator` of a definition or declaration.
    fn function_declarator<'t>(node: Node<'t>) -> Option<Node<'t>> {
        let mut next = node.child_by_field_id(fields::DECLARATOR.id());
        while let Some(current) = next {
            if current.kind() == "function_declarator" {
                return Some(current);
            }
            next = current.child_by_field_id(fields::DECLARATOR.id()).or_else(|| {
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
            declarator.child_by_field_id(fields::DECLARATOR.id()),
            declarator.child_by_field_id(fields::PARAMETERS.id()),
        ) else {
            return;
        };
        // `T (*f)(int)`: a variable.
        if name.kind() == "parenthesized_declarator" {
            return;
        }
        let whole = context.template.unwrap_or(node);
        let lost = self.lost_specifiers(whole, context.broken);
        let start = lost.unwrap_or_else(|| self.start_with_specifiers(whole.start_byte()));
        let end = whole.end_byte();
        let relative = |n: Node<'_>| Span::new((n.start_byte() - start) as u32, (n.end_byte() - start) as u32);
        let body = node.child_by_field_id(fields::BODY.id());
        let mut signature = Signature {
            extern_c: context.extern_c,
            conditional: context.conditional,
            optional: context.optional,
            member: context.in_class || name.kind() == "qualified_identifier",
            name_span: relative(name),
            params_span: relative(params),
            ..Signature::default()
        };
        let head_end = name.start_byte();
        self.specify(&mut signature, node, start..head_end, lost.map(|_| whole.start_byte()));
        let mut head_start = node
            .start_byte()
            .min(if context.template.is_some() { usize::MAX } else { start });
        if let Some(template) = context.template
            && let Some(list) = template.child_by_field_id(fields::PARAMETERS.id())
        {
            signature.template_params = Some(relative(list));
            self.template_names(&mut signature, list);
            head_start = node.start_byte();
        }
        signature.scope_names.clone_from(&context.scope_names);
        let outer = context.scope_types.iter();
        let outer: Vec<String> = outer
            .filter(|ty| !signature.template_names.contains(ty))
            .cloned()
            .collect();
        signature.template_types.extend(outer);
        signature.head_span = Span::new((head_start - start) as u32, (head_end - start) as u32);
        let name = without_template_arguments(self.text(name));
        let first = self.directives.partition_point(|at| (*at as usize) < start);
        let written = self.written(start..end, body.map(relative));
        let function = OutlinedFunction {
            name: format!("{}{name}", context.prefix),
            has_body: body.is_some(),
            signature,
            directives_before: first as u32,
            source: FunctionText::Kept(Arc::new(written)),
        };
        if let Some(body) = body
            && self.body_from(body.start_byte()).is_some_and(|blanked| {
                (blanked.start as usize, blanked.end as usize) == (body.start_byte(), body.end_byte())
            })
        {
            self.found_bodies += 1;
        }
        self.functions.push((start as u32, function));
    }

    /// What the words in front of a function's name say of it, and macros that stand for such. `found_behind`: where what the parser has
    /// lost of them ends.
    fn specify(&self, signature: &mut Signature, node: Node<'_>, head: Range<usize>, found_behind: Option<usize>) {
        let (start, head_end) = (head.start, head.end);
        let relative = |n: Node<'_>| Span::new((n.start_byte() - start) as u32, (n.end_byte() - start) as u32);
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
        if let Some(end) = found_behind {
            let lost = self.masked.text.get(start..end);
            words.extend(crate::base::words::words(lost.unwrap_or("")));
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
    }

    /// The parameters of a template.
    fn template_names(&self, signature: &mut Signature, list: Node<'_>) {
        for (name, is_type) in self.parameter_names(list) {
            if is_type {
                signature.template_types.push(name.clone());
            }
            signature.template_names.push(name);
        }
    }

    /// The names of the parameters of a template, in their order, each with whether it is a type; nothing for one that has no name.
    pub(super) fn parameter_names(&self, list: Node<'_>) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        let mut cursor = list.walk();
        for parameter in list.named_children(&mut cursor) {
            if parameter.kind() == "comment" {
                continue;
            }
            let is_type = parameter.kind().contains("type_parameter");
            let name = if is_type {
                let mut cursor = parameter.walk();
                parameter.child_by_field_id(fields::NAME.id()).or_else(|| {
                    parameter
                        .named_children(&mut cursor)
                        .find(|c| c.kind() == "type_identifier")
                })
            } else {
                parameter.child_by_field_id(fields::DECLARATOR.id())
            };
            // `int* p` and `int& r` are declared so.
            let name = name
                .map_or("", |name| self.text(name))
                .trim_start_matches(['*', '&', ' ', '\n', '\t']);
            found.push((name.to_owned(), is_type));
        }
        found
    }

    /// The text of a function, and what of it isn't what it seems. `body`: where its body stands.
    fn written(&self, whole: Range<usize>, body: Option<Span>) -> Written {
        let (start, end, masked) = (whole.start, whole.end, self.masked);
        let within = |ranges: &[TextRange]| -> Vec<Span> {
            let inside = ranges
                .iter()
                .map(|range| (range.start as usize, range.end as usize))
                .filter(|(from, to)| *from < end && *to > start);
            inside
                .map(|(from, to)| Span::new((from.max(start) - start) as u32, (to.min(end) - start) as u32))
                .collect()
        };
        let first = self.directives.partition_point(|at| (*at as usize) < start);
        let last = self.directives.partition_point(|at| (*at as usize) < end);
        let directives = self.directives.get(first..last).unwrap_or_default();
        Written {
            text: Arc::from(masked.text.get(start..end).unwrap_or("")),
            body_span: body.unwrap_or(Span::new((end - start) as u32, (end - start) as u32)),
            cuts: within(&masked.cuts),
            large: within(&masked.large),
            decided: within(&masked.decided),
            directives: directives.iter().map(|at| at - start as u32).collect(),
        }
    }

    fn declaration(&mut self, node: Node<'_>, context: &Context<'_>) {
        let mut cursor = node.walk();
        let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
        if let [only] = declarators.as_slice()
            && only.kind() != "init_declarator"
            && Self::function_declarator(node).is_some_and(|f| {
                f.child_by_field_id(fields::DECLARATOR.id())
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
                name = current.child_by_field_id(fields::DECLARATOR.id());
            }
            let Some(name) = name else {
                if let Some(member) = last_of_qualified(written) {
                    let text = self.text(node).to_owned();
                    self.items.members.push((self.text(member).to_owned(), text));
                }
                continue;
            };
            let init = written
                .child_by_field_id(fields::VALUE.id())
                .map(|v| self.text(v).to_owned());
            self.items.globals.push(GlobalItem {
                name: self.text(name).to_owned(),
                scopes: BTreeSet::from([context.prefix.clone()]),
                base: node
                    .child_by_field_id(fields::TYPE.id())
                    .map_or("", |t| self.text(t))
                    .to_owned(),
                pointer,
                dims,
                constant: !pointer
                    && words.iter().any(|w| matches!(*w, "const" | "constexpr"))
                    && !words.contains(&"volatile"),
                constant_memory: words.contains(&"__constant__"),
                device: words.contains(&"__device__"),
                managed: words.contains(&"__managed__"),
                shared: words.contains(&"__shared__"),
                restrict: crate::base::words::words(self.text(node))
                    .chain(words.iter().copied())
                    .any(reads_as_restrict),
                init,
            });
        }
    }

    /// The names of a template's parameters that are types.
    fn template_types(&self, template: Node<'_>) -> Vec<String> {
        let list = template.child_by_field_id(fields::PARAMETERS.id());
        let named = list.map(|list| self.parameter_names(list)).unwrap_or_default();
        let types = named.into_iter().filter(|(name, is_type)| *is_type && !name.is_empty());
        types.map(|(name, _)| name).collect()
    }

    /// The names in a template's parameter list, without those in defaults.
    fn template_parameters(&self, template: Node<'_>) -> Vec<String> {
        let Some(list) = template.child_by_field_id(fields::PARAMETERS.id()) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut cursor = list.walk();
        for parameter in list.named_children(&mut cursor) {
            // The declarator of a pointer to a function has the types of its parameters, too: more names are no mistake.
            let declared = match parameter.child_by_field_id(fields::DECLARATOR.id()) {
                Some(declarator) => self.text(declarator),
                None => self.text(parameter),
            };
            let declared = declared.split('=').next().unwrap_or_default();
            let names = crate::base::words::words(declared);
            found.extend(
                names
                    .filter(|word| !matches!(*word, "class" | "typename" | "template"))
                    .map(str::to_owned),
            );
        }
        found
    }
}

/// The type that a declaration defines: `struct S { … } s;`
fn defined_type(node: Node<'_>) -> Option<Node<'_>> {
    let ty = node.child_by_field_id(fields::TYPE.id())?;
    ty.child_by_field_id(fields::BODY.id()).is_some().then_some(ty)
}

/// The last name of a declarator with a qualified name: `block` of `Plan::block = dim3(32)`.
fn last_of_qualified(declarator: Node<'_>) -> Option<Node<'_>> {
    let mut next = Some(declarator);
    while let Some(current) = next {
        if current.kind() == "qualified_identifier" {
            let mut name = current;
            while let Some(inner) = name.child_by_field_id(fields::NAME.id()) {
                name = inner;
            }
            return Some(name);
        }
        next = current.child_by_field_id(fields::DECLARATOR.id());
    }
    None
}
