//! The items of a file: functions, launches' hosts, globals, structs, macros, includes. Stable identity: an edit inside one
//! function changes that function's `text` and everybody's `start`, and nothing else.
#![allow(
    missing_docs,
    reason = "the functions that salsa's macros generate carry no documentation; the fields do"
)]

use crate::base::preprocess::IncludeItem;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tree_sitter::Node;

use crate::base::db::Db;
use crate::base::db::SourceFile;
use crate::base::parse::masked;
use crate::base::span::Span;
use crate::base::span::TextRange;
use crate::hir::outline::item_tree;
use crate::hir::outline::outline_in_text;
use crate::hir::settled::EditedFunction;
use crate::hir::settled::settled_outline;
use crate::hir::special_members::Constructors;
use crate::hir::word::WordSet;

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
    /// How many directives of the file stand in front of it.
    #[tracked]
    #[returns(copy)]
    pub(crate) directives_before: u32,
    /// What is written there.
    #[tracked]
    #[returns(ref)]
    pub(crate) source: FunctionText,
}

impl<'db> FunctionItem<'db> {
    fn written(self, db: &'db dyn Db) -> &'db Written {
        match self.source(db) {
            FunctionText::Kept(written) => written,
            FunctionText::Edited(text) => text.written(db),
        }
    }

    /// Its text from `template<…>` or the first qualifier to the closing brace, masked: same length as in the file.
    pub fn text(self, db: &'db dyn Db) -> Arc<str> {
        self.written(db).text.clone()
    }

    /// Span of the body including its braces; empty for a declaration. Not part of the signature, which stays the same when the
    /// body grows.
    pub fn body_span(self, db: &'db dyn Db) -> Span {
        self.written(db).body_span
    }

    /// Parts that were blanked because an `#if` cuts through a construct: what stands there isn't analysed.
    pub fn cuts(self, db: &'db dyn Db) -> &'db [Span] {
        &self.written(db).cuts
    }

    /// Parts that were blanked because they are too large: what stands there isn't analysed, either.
    pub fn large(self, db: &'db dyn Db) -> &'db [Span] {
        &self.written(db).large
    }

    /// `#if` groups of which it is known which branch is compiled: the others were blanked.
    pub fn decided(self, db: &'db dyn Db) -> &'db [Span] {
        &self.written(db).decided
    }

    /// Offsets of the directives in it.
    pub(crate) fn directives(self, db: &'db dyn Db) -> &'db [u32] {
        &self.written(db).directives
    }

    /// Offset of its first byte in the file.
    pub fn start(self, db: &'db dyn Db) -> u32 {
        starts(db, self.file(db)).get(&self).copied().unwrap_or_default()
    }
}

/// Where the text of a function is.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum FunctionText {
    /// It hasn't been edited for some time.
    Kept(Arc<Written>),
    /// It is being edited: what hangs on other functions doesn't hang on this text.
    Edited(EditedFunction),
}

/// What is written where a function stands, and what masking did to it.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Written {
    /// See [`FunctionItem::text`].
    pub text: Arc<str>,
    /// See [`FunctionItem::body_span`].
    pub body_span: Span,
    /// See [`FunctionItem::cuts`].
    pub cuts: Vec<Span>,
    /// See [`FunctionItem::large`].
    pub large: Vec<Span>,
    /// See [`FunctionItem::decided`].
    pub decided: Vec<Span>,
    /// See [`FunctionItem::directives`].
    pub directives: Vec<u32>,
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
    /// The template parameters that are types (`class T`, `typename T`), by name: those of the function, then those of the classes around
    /// it.
    pub template_types: Vec<String>,
    /// Names of the template parameters of the function and of all that is around it, in whichever form they are declared.
    pub scope_names: Vec<String>,
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
    /// Under an `#ifdef` without an alternative: it may be missing.
    pub optional: bool,
}

/// A variable at namespace scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct GlobalItem {
    /// Name.
    pub name: String,
    /// The scopes in which one of that name stands, as they are written before it: `ns::`, or nothing.
    pub scopes: BTreeSet<String>,
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
    /// `__restrict__`
    pub restrict: bool,
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
    /// Their values, as far as literals say them.
    pub enumerator_values: Vec<Option<i64>>,
    /// Has a base class or virtual functions, or declares what may run code when it is copied or converted to.
    pub nontrivial: bool,
    /// What its constructors do.
    pub constructors: Constructors,
    /// What of it runs unasked and does more than compute or set fields.
    pub hidden: Option<&'static str>,
    /// All of that is for the host alone: no code of the device can run it.
    pub hidden_from_device: bool,
    /// The names of its template parameters, in order; empty for a specialisation, and for what is no template.
    pub template_names: Vec<String>,
    /// Its template parameters as written where some have defaults.
    pub template_defaults: String,
    /// Its base classes as written.
    pub bases: String,
    /// Fields of its objects as (type as written, name).
    pub fields: Vec<(String, String)>,
    /// Its default member initialisers and conversion functions, as written: what its objects are made from, or become, and no name says.
    pub implicit: String,
    /// Its static constants as (type as written, name).
    pub constants: Vec<(String, String)>,
    /// A field of it is `mutable`: it changes in constant objects, too.
    pub mutable: bool,
    /// Members of it may share storage: it is a union, or there is one in it.
    pub shares_storage: bool,
    /// Names of its members that are no functions: fields, constants, types, aliases, enumerators.
    pub members: BTreeSet<String>,
    /// Some of its members may be for itself and its friends alone.
    pub guarded: bool,
}

/// All items of one file. Presentation data (where they stand) is in [`ItemPlaces`].
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct FileItems<'db> {
    /// Functions in source order.
    pub functions: Vec<FunctionItem<'db>>,
    /// Variables at namespace scope.
    pub globals: Vec<GlobalItem>,
    /// Definitions of static members outside of their classes: name, whole declaration as written.
    pub members: Vec<(String, String)>,
    /// Types.
    pub types: Vec<TypeItem>,
    /// Names introduced by `using x = …`, `typedef`.
    pub aliases: Vec<(String, String)>,
    /// Includes.
    pub includes: Vec<IncludeItem>,
    /// Those of them that stand within a class or an enum: any word of what is included may be a name that it declares.
    pub inner_includes: Vec<IncludeItem>,
    /// What may stand where something isn't parsed.
    pub blanked: Blanked,
    /// Uses of macros that whoever includes the file may define: see [`MadeItems::loose`](crate::hir::made_items::MadeItems::loose).
    pub loose: Vec<String>,
}

/// What stands, outside of functions, where something was blanked because it is too large, and what macros declare there: nothing else is
/// known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Blanked {
    /// Its words, or the names that are declared.
    pub words: WordSet,
    /// Those of them that may be names of classes.
    pub classes: BTreeSet<String>,
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
    let outline = match settled_outline(db, file) {
        Some(outline) => outline,
        None => &outline_in_text(db, file).outline,
    };
    let functions = outline.functions.iter().map(|function| {
        FunctionItem::new(
            db,
            file,
            function.name.clone(),
            function.has_body,
            function.signature.clone(),
            function.directives_before,
            function.source.clone(),
        )
    });
    FileItems {
        functions: functions.collect(),
        globals: outline.globals.clone(),
        members: outline.members.clone(),
        types: outline.types.clone(),
        aliases: outline.aliases.clone(),
        includes: outline.includes.clone(),
        inner_includes: outline.inner_includes.clone(),
        blanked: outline.blanked.clone(),
        loose: outline.loose.clone(),
    }
}

/// Where the functions of a file begin.
#[salsa::tracked]
fn starts<'db>(db: &'db dyn Db, file: SourceFile) -> HashMap<FunctionItem<'db>, u32> {
    let functions = items(db, file).functions.iter().copied();
    functions
        .zip(outline_in_text(db, file).starts.iter().copied())
        .collect()
}

/// Places of a file's includes and syntax errors.
#[salsa::tracked]
pub fn places(db: &dyn Db, file: SourceFile) -> ItemPlaces {
    let (tree, _) = item_tree(db, file);
    let masked = masked(db, file);
    let mut includes = Vec::new();
    let mut cursor = tree.walk();
    let mut stack: Vec<Node<'_>> = vec![tree.root_node()];
    while let Some(node) = stack.pop() {
        match node.kind() {
            "preproc_include" => {
                let text = &masked.text;
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
        errors: outline_in_text(db, file).errors.clone(),
    }
}
