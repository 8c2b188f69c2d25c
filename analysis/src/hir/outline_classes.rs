//! What the walk over a file's tree finds of classes and enums.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::class_names::class_name;
use super::outline::Collector;
use crate::base::fields;
use crate::base::literal::integer_literal;
use crate::base::preprocess::IncludeItem;
use crate::hir::items::TypeItem;
use crate::hir::names::without_template_arguments;
use crate::hir::special_members::{Constructors, is_conversion, special_members};

impl Collector<'_> {
    /// Notes what a part of a class's body declares beside functions.
    fn note_members(&self, part: Node<'_>, members: &mut BTreeSet<String>) {
        let declared = |node: Node<'_>| crate::hir::declarator::declared_name(self.text(node)).to_owned();
        match part.kind() {
            "comment" | "access_specifier" | "friend_declaration" | "static_assert_declaration" => {}
            // A function: the file's functions of that name are looked at together with it.
            "function_definition" | "declaration" => {}
            "field_declaration" => {
                let mut cursor = part.walk();
                for declarator in part.children_by_field_name("declarator", &mut cursor) {
                    match declarator.kind() {
                        "function_declarator" if !self.text(declarator).trim_start().starts_with('(') => {}
                        // `int (*f)(int)`
                        _ if self.text(declarator).contains('(') => {
                            members.extend(crate::base::words::words(self.text(declarator)).map(str::to_owned));
                        }
                        _ => {
                            members.insert(declared(declarator));
                        }
                    }
                }
                if let Some(ty) = part.child_by_field_id(fields::TYPE.id()) {
                    self.note_type(ty, members);
                }
            }
            "class_specifier" | "struct_specifier" | "union_specifier" | "enum_specifier" => {
                self.note_type(part, members);
            }
            "template_declaration" => {
                let mut cursor = part.walk();
                for inner in part.named_children(&mut cursor) {
                    if inner.kind() != "template_parameter_list" {
                        self.note_members(inner, members);
                    }
                }
            }
            "alias_declaration" | "type_definition" | "enumerator" => {
                let mut cursor = part.walk();
                let names = part.children_by_field_name("declarator", &mut cursor);
                members.extend(names.map(declared));
                members.extend(part.child_by_field_id(fields::NAME.id()).map(declared));
            }
            // Branches of `#if`, `using Base::member;`, what isn't understood: any of its words.
            _ => members.extend(crate::base::words::words(self.text(part)).map(str::to_owned)),
        }
    }

    /// Notes the name of a class or enum that is defined here, and an enum's enumerators.
    fn note_type(&self, ty: Node<'_>, members: &mut BTreeSet<String>) {
        let Some(body) = ty.child_by_field_id(fields::BODY.id()) else {
            return;
        };
        let name = ty.child_by_field_id(fields::NAME.id());
        members.extend(name.map(|name| self.text(name).to_owned()));
        // The members of a class without a name are those of the class around it.
        if ty.kind() == "enum_specifier" || name.is_none() {
            let mut cursor = body.walk();
            for inner in body.named_children(&mut cursor) {
                self.note_members(inner, members);
            }
        }
    }

    /// Reads the members of a class, or the enumerators of an enum.
    fn read_members(&self, body: Node<'_>, item: &mut TypeItem) {
        let mut cursor = body.walk();
        // What isn't read may be an enumerator, too, and the next one has the next value.
        let mut all_read = self.is_whole(body);
        for child in body.named_children(&mut cursor) {
            self.note_members(child, &mut item.members);
            all_read &= matches!(child.kind(), "enumerator" | "comment");
            match child.kind() {
                "enumerator" => {
                    if let Some(name) = child.child_by_field_id(fields::NAME.id()) {
                        item.enumerators.push(self.text(name).to_owned());
                        let before = item.enumerator_values.last().map_or(Some(-1), |before| *before);
                        let before = before.filter(|_| all_read);
                        let value = match child.child_by_field_id(fields::VALUE.id()) {
                            Some(value) => {
                                integer_literal(self.text(value)).and_then(|value| i64::try_from(value).ok())
                            }
                            None => before.and_then(|before| before.checked_add(1)),
                        };
                        item.enumerator_values.push(value);
                    }
                }
                // Its declaration looks like a field's where words stand in front of it that the parser doesn't know.
                "field_declaration" | "function_definition" | "declaration" | "template_declaration"
                    if is_conversion(child, &self.masked.text) =>
                {
                    item.implicit.push_str(self.text(child));
                }
                "field_declaration" => {
                    let text = self.text(child);
                    let mut ty = child
                        .child_by_field_id(fields::TYPE.id())
                        .map_or("", |t| self.text(t))
                        .to_owned();
                    // What the parser doesn't understand is part of the type: a macro of it.
                    let mut cursor = child.walk();
                    for unclear in child.children(&mut cursor).filter(|part| part.is_error()) {
                        ty.push(' ');
                        ty.push_str(self.text(unclear));
                    }
                    let head = text.split(['=', '{', ';']).next().unwrap_or("");
                    let is = |word: &str| crate::base::words::words(head).any(|w| w == word);
                    let variable = !head.contains(['(', '*', '&']);
                    let constant = variable && is("static") && (is("const") || is("constexpr"));
                    item.mutable |= is("mutable");
                    let mut cursor = child.walk();
                    for name in child.children_by_field_name("declarator", &mut cursor) {
                        if constant {
                            let name = crate::hir::declarator::declared_name(self.text(name));
                            item.constants.push((ty.clone(), name.to_owned()));
                        } else if !is("static") {
                            let width = name
                                .next_named_sibling()
                                .filter(|next| next.kind() == "bitfield_clause");
                            let width = width.map_or("", |width| self.text(width));
                            item.fields.push((ty.clone(), format!("{}{width}", self.text(name))));
                        }
                    }
                    if child.child_by_field_id(fields::DEFAULT_VALUE.id()).is_some() {
                        item.implicit.push_str(text);
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes a class or an enum. `template`: what it is one by.
    pub(super) fn type_item(&mut self, node: Node<'_>, template: Option<Node<'_>>) {
        let is_enum = node.kind() == "enum_specifier";
        let name = class_name(node).map(|n| without_template_arguments(self.text(n)));
        let Some(name) = name.or_else(|| is_enum.then(|| UNNAMED.to_owned())) else {
            return;
        };
        let Some(body) = node.child_by_field_id(fields::BODY.id()) else {
            return;
        };
        let blanked = self.body_from(body.start_byte());
        self.blanked_class |= blanked.is_some_and(|blanked| (blanked.start as usize) < body.end_byte());
        let inner: Vec<IncludeItem> = included_in(self.text(body)).collect();
        let includes_inside = !inner.is_empty();
        for include in inner {
            if !self.items.includes.contains(&include) {
                self.items.includes.push(include.clone());
            }
            self.items.inner_includes.push(include);
        }
        let mut item = TypeItem {
            name,
            is_enum,
            enumerators: Vec::new(),
            enumerator_values: Vec::new(),
            nontrivial: false,
            constructors: Constructors::None,
            hidden: None,
            hidden_from_device: false,
            template_names: Vec::new(),
            template_defaults: String::new(),
            bases: String::new(),
            fields: Vec::new(),
            implicit: String::new(),
            constants: Vec::new(),
            mutable: false,
            shares_storage: includes_inside || crate::base::words::words(self.text(node)).any(|word| word == "union"),
            members: BTreeSet::new(),
            guarded: node.kind() == "class_specifier"
                || crate::base::words::words(self.text(body)).any(|word| matches!(word, "private" | "protected")),
        };
        let parameters = template.and_then(|t| t.child_by_field_id(fields::PARAMETERS.id()));
        let specialised = class_name(node).is_some_and(|name| self.text(name).contains('<'));
        if let Some(list) = parameters.filter(|_| !specialised) {
            item.template_names = self.parameter_names(list).into_iter().map(|(name, _)| name).collect();
        }
        let parameters = parameters.map_or("", |list| self.text(list));
        if parameters.contains('=') {
            item.template_defaults = parameters.to_owned();
        }
        let mut cursor = node.walk();
        let bases = node
            .named_children(&mut cursor)
            .find(|c| c.kind() == "base_class_clause");
        item.nontrivial = bases.is_some();
        item.bases = bases.map_or("", |bases| self.text(bases)).to_owned();
        self.read_members(body, &mut item);
        if !is_enum {
            let declared: Vec<&str> = item
                .fields
                .iter()
                .map(|(_, declarator)| crate::hir::declarator::declared_name(declarator))
                .collect();
            let arrays: Vec<&str> = item
                .fields
                .iter()
                .filter(|(_, declarator)| crate::hir::declarator::is_array(declarator))
                .map(|(_, declarator)| crate::hir::declarator::declared_name(declarator))
                .collect();
            let macros = self.specifiers(body.start_byte(), body.end_byte());
            let special = special_members(body, &item.name, &declared, &arrays, &self.masked.text, macros);
            item.nontrivial |= special.nontrivial;
            item.constructors = special.constructors;
            item.hidden = special.hidden;
            item.hidden_from_device = special.hidden_from_device;
            if includes_inside {
                item.nontrivial = true;
                item.constructors = Constructors::Other;
                item.hidden = Some("what is included in it");
                item.hidden_from_device = false;
            }
            if self.is_partly_blanked(body) {
                item.nontrivial = true;
                item.constructors = Constructors::Other;
                item.hidden = Some("a member that is too large");
                item.hidden_from_device = false;
            }
        }
        self.items.types.push(item);
    }
}

/// What an enum without a name is called: nothing that code could name.
const UNNAMED: &str = "(unnamed enum)";

/// The `#include` lines of a text.
fn included_in(text: &str) -> impl Iterator<Item = IncludeItem> {
    let directives = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    let paths = directives.filter_map(|line| line.trim_start().strip_prefix("include"));
    paths.map(|path| {
        let path = path.trim();
        let end = path
            .get(1..)
            .and_then(|rest| rest.find(['"', '>']))
            .map_or(path.len(), |end| end + 1);
        IncludeItem {
            path: path
                .get(..end)
                .unwrap_or(path)
                .trim_start_matches(['"', '<'])
                .to_owned(),
            system: path.starts_with('<'),
        }
    })
}
