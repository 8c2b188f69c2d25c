//! What an expression that names memory refers to: whose storage, through which pointer, of which type.

use crate::hir::declarator::declared_name;
use crate::hir::reference_names::field_leads;
use crate::hir::scope::{hides, hides_class, is_own_type};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::db::{Db, SourceFile};
use crate::facts::referring::types_may_refer;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::vector_fields;
use crate::hir::names::{template_arguments, unqualified, with_arguments};
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::settled::{patched_items, settled_rest};
use crate::hir::special_members::Constructors;
use crate::hir::visible::visible_names;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, Storage};

/// Memory by the type that it's accessed with, as far as C++'s aliasing rule tells accesses apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub enum MemoryClass {
    /// A type that isn't known, a class, or a character type: may be anything.
    Any,
    /// `bool`
    Bool,
    /// 16-bit integers.
    Short,
    /// 32-bit integers.
    Int,
    /// `long`, `long long` and 64-bit integers.
    Long,
    /// `float`
    Float,
    /// `double`
    Double,
    /// Pointers.
    Pointer,
}

impl MemoryClass {
    /// Whether an access of one kind may touch what one of the other kind touches.
    pub fn may_alias(self, other: MemoryClass) -> bool {
        self == other || self == MemoryClass::Any || other == MemoryClass::Any
    }
}

/// What a place (an lvalue) belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The storage of a binding itself, or a part of it.
    Object(BindingId),
    /// What a binding (a pointer or a reference) points at.
    Through(BindingId),
    /// A variable outside of the function, or a part of it.
    Global(String),
    /// Anything else.
    Other,
}

/// The type of an expression, as far as it's followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub base: String,
    pub pointers: u32,
    /// Array dimensions that are left.
    pub dims: u32,
}

/// Types and places of one body.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub db: &'a dyn Db,
    /// The function whose body it is: names are looked up in its scope.
    pub function: FunctionItem<'a>,
    pub body: &'a Body,
}

/// Nesting up to which types are followed.
const DEPTH: u32 = 48;

impl Places<'_> {
    fn file(&self) -> SourceFile {
        self.function.file(self.db)
    }

    /// Type of an expression.
    pub fn shape(&self, e: ExprId) -> Option<Shape> {
        self.shape_within(e, DEPTH)
    }

    fn shape_within(&self, e: ExprId, depth: u32) -> Option<Shape> {
        let depth = depth.checked_sub(1)?;
        let body = self.body;
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => {
                let ty = &body.binding(*b).ty;
                (!ty.complex).then(|| Shape {
                    base: ty.base.clone(),
                    pointers: u32::from(ty.pointers),
                    dims: ty.array.len() as u32,
                })
            }
            ExprKind::Name(Name::Other(name)) => match meaning_in(self.db, self.function, name) {
                Meaning::Global(global) if !global.pointer => Some(Shape {
                    dims: global.dims,
                    ..written(&global.base)?
                }),
                _ => None,
            },
            ExprKind::Paren(e) => self.shape_within(*e, depth),
            ExprKind::AddrOf(e) => {
                let mut s = self.shape_within(*e, depth)?;
                (s.dims == 0).then_some(())?;
                s.pointers += 1;
                Some(s)
            }
            ExprKind::Deref(e) | ExprKind::Index { base: e, .. } => element(self.shape_within(*e, depth)?),
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                let pointer = |s: &Shape| s.pointers > 0 || s.dims > 0;
                let left = self.shape_within(*a, depth);
                match left {
                    Some(s) if pointer(&s) => Some(s),
                    _ => self.shape_within(*b, depth).filter(pointer),
                }
            }
            ExprKind::Assign { place, .. } => self.shape_within(*place, depth),
            ExprKind::IncDec { place, .. } => self.shape_within(*place, depth),
            ExprKind::Comma(_, e) => self.shape_within(*e, depth),
            ExprKind::Conditional { then, otherwise, .. } => {
                let s = self.shape_within(*then, depth)?;
                (self.shape_within(*otherwise, depth)? == s).then_some(s)
            }
            ExprKind::Cast { ty, .. } | ExprKind::Construct { ty, .. } => written(ty),
            ExprKind::Field { base, field, arrow } => {
                let mut s = self.shape_within(*base, depth)?;
                if *arrow {
                    s = element(s)?;
                }
                (s.pointers == 0 && s.dims == 0).then_some(())?;
                let base = self.alias(&s.base);
                if vector_fields(&base).is_some_and(|f| f.contains(&field.as_str())) {
                    return Some(Shape {
                        base: vector_element(&base).to_owned(),
                        pointers: 0,
                        dims: 0,
                    });
                }
                self.field(&base, field)
            }
            _ => None,
        }
    }

    /// Type of a field of a class of the workspace.
    pub fn field(&self, class: &str, field: &str) -> Option<Shape> {
        let class = class.strip_prefix("struct ").unwrap_or(class);
        let (class, arguments) = match class.find('<') {
            Some(at) => (class.get(..at)?.trim_end(), template_arguments(class.get(at..)?)),
            None => (class, Vec::new()),
        };
        if hides_class(self.db, self.function, class) {
            return None;
        }
        let class = unqualified(class);
        let mut found = None;
        for file in included_files(self.db, self.file()) {
            for item in items(self.db, *file).types.iter().filter(|t| t.name == class) {
                let (ty, declarator) = item.fields.iter().find(|(_, d)| declared_name(d) == field)?;
                if declarator.contains(['(', '&', ':']) {
                    return None;
                }
                // Of a specialisation it isn't known which objects are of it.
                if item.template_names.is_empty() && !arguments.is_empty() {
                    return None;
                }
                let ty = match arguments.is_empty() {
                    true => ty.clone(),
                    false => with_arguments(ty, &item.template_names, &arguments)?,
                };
                let mut shape = written(&ty)?;
                shape.pointers += declarator.matches('*').count() as u32;
                shape.dims += declarator.matches('[').count() as u32;
                if found.get_or_insert(shape.clone()) != &shape {
                    return None;
                }
            }
        }
        found
    }

    /// How the field that an expression names is declared in the classes of the workspace: `next`, `size[4]`, `flag : 1`.
    pub fn declared_field(&self, e: ExprId) -> Vec<&str> {
        let ExprKind::Field { base, field, arrow } = &self.body.expr(self.body.strip_parens(e)).kind else {
            return Vec::new();
        };
        let shape = self
            .shape(*base)
            .and_then(|s| if *arrow { element(s) } else { Some(s) });
        let class = shape.map(|s| self.alias(&s.base));
        // Of a class that isn't known it may be any field of this name.
        let class = class
            .as_deref()
            .map(|c| unqualified(c.split('<').next().unwrap_or(c).trim()));
        let files = included_files(self.db, self.file()).iter();
        files
            .flat_map(|file| &items(self.db, *file).types)
            .filter(|item| class.is_none_or(|class| class == item.name))
            .flat_map(|item| &item.fields)
            .map(|(_, declarator)| declarator.as_str())
            .filter(|declarator| declared_name(declarator) == field)
            .collect()
    }

    /// Whether a place lies where a member leads that is a reference, or may be one: `view.total`. The member may be another class's that
    /// the object's derives from.
    pub fn refers(&self, e: ExprId) -> bool {
        let of_template = |s: Shape| self.alias(&s.base).contains('<');
        let declared = |field: &str| {
            let files = included_files(self.db, self.file()).iter();
            let mut members = files
                .flat_map(|file| &items(self.db, *file).types)
                .flat_map(|item| &item.fields);
            members.any(|(_, declarator)| declarator.contains('&') && declared_name(declarator) == field)
        };
        let mut e = self.body.strip_parens(e);
        while let ExprKind::Field {
            base,
            field,
            arrow: false,
        } = &self.body.expr(e).kind
        {
            let may_refer = || types_may_refer(self.db, self.file());
            if declared(field) || self.shape(*base).is_some_and(of_template) && may_refer() {
                return true;
            }
            e = self.body.strip_parens(*base);
        }
        false
    }

    /// A field that shares its storage with its neighbours, which whoever writes it reads and writes as well.
    pub fn is_bit_field(&self, e: ExprId) -> bool {
        self.declared_field(e).iter().any(|declarator| declarator.contains(':'))
    }

    /// An array whose elements may lie behind its object: `int data[]`, also written `data[0]` and `data[1]`.
    pub fn is_flexible_array(&self, e: ExprId) -> bool {
        self.declared_field(e).iter().any(|declarator| {
            let extent = declarator.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            extent.is_some_and(|(extent, _)| matches!(extent.trim(), "" | "0" | "1"))
        })
    }

    /// Whether some class of the workspace has a field of this name.
    pub fn some_field(&self, name: &str) -> bool {
        included_files(self.db, self.file())
            .iter()
            .flat_map(|f| &items(self.db, *f).types)
            .any(|t| t.fields.iter().any(|(_, d)| declared_name(d) == name))
    }

    /// A static constant of a class of the workspace: `Tile::SIZE`, or `SIZE` in a member function.
    pub fn static_constant(&self, name: &str) -> bool {
        let mut segments = name.rsplit("::");
        let last = segments.next().unwrap_or(name);
        let class = segments.next().map(|c| c.split('<').next().unwrap_or(c));
        let mut types = included_files(self.db, self.file())
            .iter()
            .flat_map(|f| &items(self.db, *f).types)
            .filter(|t| class.is_none_or(|c| c == t.name));
        types.any(|t| t.constants.iter().any(|(_, constant)| constant == last))
    }

    /// The type that a name stands for; the name itself where it is the function's own, which may be any type.
    pub fn alias(&self, name: &str) -> String {
        let names = visible_names(self.db, self.file());
        let mut name = name.trim().to_owned();
        for _ in 0..8 {
            if hides(self.db, self.function, &name) {
                break;
            }
            match names.aliases.get(unqualified(&name)) {
                Some(to) if to.trim() != name => name = to.trim().to_owned(),
                _ => break,
            }
        }
        name
    }

    /// Class of a value of this type.
    pub fn class_of(&self, base: &str, pointers: u32) -> MemoryClass {
        if pointers > 0 {
            return MemoryClass::Pointer;
        }
        let base = self.alias(base);
        match written(&base) {
            Some(s) if s.pointers > 0 => MemoryClass::Pointer,
            Some(s) => scalar(&s.base),
            None => MemoryClass::Any,
        }
    }

    /// Class of the memory that the place `e` occupies.
    pub fn class(&self, e: ExprId) -> MemoryClass {
        match self.shape(e) {
            Some(s) => self.class_of(&s.base, s.pointers),
            None => MemoryClass::Any,
        }
    }

    /// Class of the memory that the pointer `e` points at.
    pub fn pointee_class(&self, e: ExprId) -> MemoryClass {
        match self.shape(e).and_then(element) {
            Some(s) => self.class_of(&s.base, s.pointers),
            None => MemoryClass::Any,
        }
    }

    /// What a value type is. The flag of [`Class::Fields`]: fields may share storage (it may be a union).
    pub fn class_kind(&self, base: &str, templates: &[String]) -> Class {
        let base = self.alias(base);
        let base = base.strip_prefix("struct ").unwrap_or(&base).trim();
        if is_own_type(self.db, self.function, base) {
            return self.own_kind(base, templates);
        }
        if let Some(fields) = vector_fields(base) {
            return Class::Fields(fields.iter().map(|f| (*f).to_owned()).collect(), false);
        }
        // The program may have a class of that name.
        let own = visible_names(self.db, self.file()).types.contains(base);
        let plain = matches!(
            base,
            "char"
                | "unsigned char"
                | "signed char"
                | "int8_t"
                | "uint8_t"
                | "std::byte"
                | "half"
                | "__half"
                | "void"
                | "auto"
                | "bool"
        );
        let runtime = base.starts_with("cuda") && !base.contains("::");
        if !own && (plain || runtime || base.contains('*') || self.class_of(base, 0) != MemoryClass::Any) {
            return Class::Plain;
        }
        if templates.iter().any(|t| t == base) {
            return Class::Plain;
        }
        if hides_class(self.db, self.function, base) {
            return Class::Opaque;
        }
        let name = unqualified(base);
        let mut found: Option<Class> = None;
        for file in included_files(self.db, self.file()) {
            for item in items(self.db, *file).types.iter().filter(|t| t.name == name) {
                let kind = if item.is_enum {
                    Class::Plain
                } else if item.nontrivial
                    || item.constructors != Constructors::None
                    || item.fields.is_empty()
                    || item.fields.iter().any(|field| self.is_odd(field))
                {
                    Class::Opaque
                } else {
                    let names = item.fields.iter().map(|(_, d)| declared_name(d).to_owned());
                    Class::Fields(names.collect(), true)
                };
                if found.get_or_insert(kind.clone()) != &kind {
                    return Class::Opaque;
                }
            }
        }
        found.unwrap_or(Class::Opaque)
    }

    /// What a type is that the function declares, or that is given to it as a template's argument: a value if it has no name that a class
    /// in sight has as well.
    fn own_kind(&self, name: &str, templates: &[String]) -> Class {
        let hides = visible_names(self.db, self.file()).types.contains(name);
        match !hides && templates.iter().any(|t| t == name) {
            true => Class::Plain,
            false => Class::Opaque,
        }
    }

    /// A field that is a reference or holds one, or may, is a function or a bit field, or has an initialiser.
    fn is_odd(&self, field: &(String, String)) -> bool {
        field.1.contains(['&', '(', ':', '=', '{']) || field_leads(self.db, self.file(), field)
    }

    /// Whether a type is an enumeration, whose operators may be the user's as those of a class.
    pub fn is_enumeration(&self, base: &str) -> bool {
        let base = self.alias(base);
        let name = unqualified(base.strip_prefix("enum ").unwrap_or(&base).trim());
        let mut types = included_files(self.db, self.file())
            .iter()
            .flat_map(|file| &items(self.db, *file).types);
        types.any(|item| item.is_enum && item.name == name)
    }

    /// Whether making or copying an object of this type may do more than compute it.
    pub fn is_opaque(&self, base: &str, templates: &[String]) -> bool {
        self.class_kind(base, templates) == Class::Opaque && !self.computes(base, templates)
    }

    /// Whether making an object of this type and copying it does nothing but compute it from what it is made of. (Its fields may be
    /// others than those values, unlike where [`Places::class_kind`] knows them.)
    fn computes(&self, base: &str, templates: &[String]) -> bool {
        self.computes_within(base, templates, 0)
    }

    fn computes_within(&self, base: &str, templates: &[String], depth: u32) -> bool {
        if depth > MAX_CLASS_DEPTH || base.contains('<') {
            return false;
        }
        let written = self.alias(base);
        let written = written.strip_prefix("struct ").unwrap_or(&written).trim();
        if hides_class(self.db, self.function, written) {
            return self.class_kind(base, templates) != Class::Opaque;
        }
        let name = unqualified(written);
        let mut all = included_files(self.db, self.file())
            .iter()
            .flat_map(|file| items(self.db, *file).types.iter().filter(|t| t.name == name))
            .peekable();
        if all.peek().is_none() {
            return self.class_kind(base, templates) != Class::Opaque;
        }
        all.all(|item| {
            let fields = || {
                item.fields.iter().all(|field @ (ty, declarator)| {
                    !self.is_odd(field) && (declarator.contains('*') || self.computes_within(ty, templates, depth + 1))
                })
            };
            item.is_enum || !item.nontrivial && item.constructors != Constructors::Other && fields()
        })
    }

    /// What the place `e` belongs to.
    pub fn root(&self, mut e: ExprId) -> Root {
        let body = self.body;
        for _ in 0..256 {
            match &body.expr(e).kind {
                ExprKind::Name(Name::Local(b)) => {
                    let ty = &body.binding(*b).ty;
                    return if ty.reference {
                        Root::Through(*b)
                    } else {
                        Root::Object(*b)
                    };
                }
                ExprKind::Name(Name::Other(name)) => return Root::Global(name.clone()),
                ExprKind::Paren(inner) | ExprKind::Comma(_, inner) => e = *inner,
                ExprKind::Assign { place, .. } => e = *place,
                ExprKind::IncDec {
                    place, prefix: true, ..
                } => e = *place,
                ExprKind::Field { base, arrow: false, .. } => e = *base,
                ExprKind::Field { base, .. } => return self.pointee_root(*base),
                ExprKind::Deref(pointer) => return self.pointee_root(*pointer),
                ExprKind::Index { base, .. } => {
                    let inner = body.strip_parens(*base);
                    if let ExprKind::Name(Name::Other(name)) = &body.expr(inner).kind {
                        return Root::Global(name.clone());
                    }
                    match self.shape(inner) {
                        Some(s) if s.dims > 0 && !self.is_param_array(inner) => e = inner,
                        Some(s) if s.dims > 0 || s.pointers > 0 => return self.pointee_root(inner),
                        _ => return Root::Other,
                    }
                }
                _ => return Root::Other,
            }
        }
        Root::Other
    }

    fn is_param_array(&self, e: ExprId) -> bool {
        matches!(&self.body.expr(e).kind, ExprKind::Name(Name::Local(b)) if self.body.binding(*b).storage == Storage::Param)
    }

    /// What the pointer `e` points into.
    pub fn pointee_root(&self, mut e: ExprId) -> Root {
        let body = self.body;
        for _ in 0..256 {
            match &body.expr(e).kind {
                ExprKind::Name(Name::Local(b)) => {
                    let binding = body.binding(*b);
                    return if !binding.ty.array.is_empty() && binding.storage != Storage::Param {
                        Root::Object(*b)
                    } else if binding.ty.reference || binding.ty.complex {
                        Root::Other
                    } else {
                        Root::Through(*b)
                    };
                }
                ExprKind::Name(Name::Other(name)) => return Root::Global(name.clone()),
                ExprKind::Paren(inner) | ExprKind::Comma(_, inner) => e = *inner,
                ExprKind::AddrOf(inner) => return self.root(*inner),
                ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                    let pointer = |e: ExprId| self.shape(e).is_some_and(|s| s.pointers > 0 || s.dims > 0);
                    if pointer(*a) {
                        e = *a;
                    } else if pointer(*b) {
                        e = *b;
                    } else {
                        return Root::Other;
                    }
                }
                _ => return Root::Other,
            }
        }
        Root::Other
    }

    /// Whether a cast makes a pointer to one type out of a pointer to another: then types say nothing about aliasing.
    pub fn puns(&self) -> bool {
        self.body.exprs.iter().any(|e| {
            let ExprKind::Cast {
                ty,
                operand,
                reinterpret,
            } = &e.kind
            else {
                return false;
            };
            if !reinterpret && !ty.contains(['*', '&']) {
                return false;
            }
            if ty.contains('&') {
                return true;
            }
            let Some(to) = written(ty).filter(|s| s.pointers > 0) else {
                return ty.contains('*');
            };
            let fresh = matches!(&self.body.expr(self.body.strip_parens(*operand)).kind,
                ExprKind::Call { name: Some(n), .. } if n == "malloc");
            if fresh || to.base == "void" {
                return false;
            }
            match self.shape(*operand).and_then(element) {
                Some(from) => {
                    let from = self.class_of(&from.base, from.pointers);
                    let to = self.class_of(&to.base, to.pointers - 1);
                    from != to || from == MemoryClass::Any
                }
                None => true,
            }
        })
    }
}

/// How deep classes are looked into that are made of classes.
const MAX_CLASS_DEPTH: u32 = 8;

/// What is known about a class type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not a class: operators are the built-in ones.
    Plain,
    /// Its fields, all of them; copying copies them.
    Fields(Vec<String>, bool),
    /// Anything may happen when it's made, copied or used.
    Opaque,
}

/// What a pointer points at, or an array is made of.
pub(crate) fn element(mut s: Shape) -> Option<Shape> {
    if s.dims > 0 {
        s.dims -= 1;
    } else {
        s.pointers = s.pointers.checked_sub(1)?;
    }
    Some(s)
}

fn vector_element(base: &str) -> &'static str {
    match base.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "dim" | "uint" | "int" => "int",
        "float" => "float",
        "double" => "double",
        "short" | "ushort" => "short",
        "long" | "ulong" | "longlong" | "ulonglong" => "long",
        _ => "char",
    }
}

/// A type as written in a cast or a field.
pub(crate) fn written(ty: &str) -> Option<Shape> {
    if ty.contains(['(', '<', '&', '[']) {
        return None;
    }
    let pointers = ty.matches('*').count() as u32;
    let words: Vec<&str> = ty
        .split(|c: char| c == '*' || c.is_whitespace())
        .filter(|w| {
            !matches!(
                *w,
                "" | "const"
                    | "volatile"
                    | "struct"
                    | "typename"
                    | "__restrict__"
                    | "__restrict"
                    | "mutable"
                    | "constexpr"
            )
        })
        .collect();
    Some(Shape {
        base: words.join(" "),
        pointers,
        dims: 0,
    })
}

fn scalar(base: &str) -> MemoryClass {
    let base = base.strip_prefix("std::").unwrap_or(base);
    match base {
        "bool" => return MemoryClass::Bool,
        "float" => return MemoryClass::Float,
        "double" => return MemoryClass::Double,
        "int16_t" | "uint16_t" | "ushort" => return MemoryClass::Short,
        "int32_t" | "uint32_t" | "uint" => return MemoryClass::Int,
        "int64_t" | "uint64_t" | "size_t" | "ptrdiff_t" | "ssize_t" | "intptr_t" | "uintptr_t" | "ulong" => {
            return MemoryClass::Long;
        }
        _ => {}
    }
    let mut class = None;
    for word in base.split_whitespace() {
        class = Some(match (word, class) {
            ("long", _) | ("int" | "unsigned" | "signed", Some(MemoryClass::Long)) => MemoryClass::Long,
            ("short", _) | ("int" | "unsigned" | "signed", Some(MemoryClass::Short)) => MemoryClass::Short,
            ("int" | "unsigned" | "signed", _) => MemoryClass::Int,
            _ => return MemoryClass::Any,
        });
    }
    class.unwrap_or(MemoryClass::Any)
}

/// Names of the file's `__constant__` variables that hold their values themselves (no pointers).
pub(crate) fn constant_values(db: &dyn Db, file: SourceFile) -> &BTreeSet<String> {
    match settled_rest(db, file) {
        Some(settled) => &settled.constants,
        None => constant_values_in_text(db, file),
    }
}

/// The same as the text says now.
#[salsa::tracked]
pub(crate) fn constant_values_in_text(db: &dyn Db, file: SourceFile) -> Arc<BTreeSet<String>> {
    if let Some(patched) = patched_items(db, file) {
        return patched.constants.clone();
    }
    let text = crate::base::parse::masked(db, file).text.clone();
    let mut names = BTreeSet::new();
    for (at, word) in text.match_indices("__constant__") {
        let rest = &text[at + word.len()..];
        let declaration = rest.split([';', '=', '{']).next().unwrap_or("");
        if declaration.contains(['*', '&', '(', ',']) {
            continue;
        }
        let declarator = declaration.split('[').next().unwrap_or("");
        if let Some(name) = declarator.split_whitespace().next_back() {
            names.insert(name.to_owned());
        }
    }
    Arc::new(names)
}

/// Whether `name` is a `__constant__` variable that holds its values itself, as seen from `file`.
pub(crate) fn is_constant_value(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let name = unqualified(name);
    let mut found = false;
    for file in included_files(db, file) {
        let declared = items(db, *file).globals.iter().any(|g| g.name == name);
        let constant = constant_values(db, *file).contains(name);
        if declared && !constant {
            return false;
        }
        found |= constant;
    }
    found
}

/// Whether an expression may read memory that others may write: anything but local variables, literals and built-ins.
pub(crate) fn reads_memory(kind: &ExprKind) -> bool {
    matches!(
        kind,
        ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. } | ExprKind::Unknown { .. }
    )
}
