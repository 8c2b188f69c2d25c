//! Whether an operand is a number, a pointer or an array for sure, so that an operator on it is the language's own.

use crate::base::db::{Db, SourceFile};
use crate::base::words::words;
use crate::facts::hidden::class_of;
use crate::facts::uniformity::memory::{Class, Places};
use crate::hir::declarator::declared_name;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::known;
use crate::hir::resolve::{Meaning, functions_in, meaning_in};
use crate::hir::{Body, ExprId, ExprKind, Name};

/// How deep operators are looked into whose operands are operators.
const MAX_OPERANDS: u32 = 64;

/// Whether an expression is a number, a pointer or an array for sure: an operator on it is the language's own.
pub(crate) fn is_plain(places: Places<'_>, e: ExprId) -> bool {
    Types::of(places.db, places.function, places.body).is_plain(e, 0)
}

/// What the types of expressions are, as far as they are known.
pub(crate) struct Types<'a> {
    db: &'a dyn Db,
    file: SourceFile,
    body: &'a Body,
    places: Places<'a>,
    templates: &'a [String],
    /// All template parameters; those that aren't types are numbers or pointers.
    template_names: &'a [String],
    /// Of the class that the function is a member of.
    class: &'a str,
}

impl<'a> Types<'a> {
    pub(crate) fn of<'db: 'a>(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Types<'a> {
        let file = function.file(db);
        Types {
            db,
            file,
            body,
            places: Places { db, function, body },
            templates: &function.signature(db).template_types,
            template_names: &function.signature(db).template_names,
            class: class_of(db, function),
        }
    }

    /// Whether an expression is a number, a pointer or an array for sure, so that no class's or enumeration's operator works on it.
    pub(crate) fn is_plain(&self, e: ExprId, depth: u32) -> bool {
        let e = self.body.strip_parens(e);
        let plain = |e: &ExprId| depth < MAX_OPERANDS && self.is_plain(*e, depth + 1);
        if let Some(shape) = self.places.shape(e) {
            return shape.pointers > 0 || shape.dims > 0 || self.names_plain(&shape.base);
        }
        match &self.body.expr(e).kind {
            ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::AddrOf(_) | ExprKind::Name(Name::Builtin(_)) => true,
            // `threadIdx.x`
            ExprKind::Field { base, arrow: false, .. } => {
                matches!(
                    self.body.expr(self.body.strip_parens(*base)).kind,
                    ExprKind::Name(Name::Builtin(_))
                )
            }
            // `p[i]` of a pointer or an array that is a field.
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => {
                let base = &self.body.expr(self.body.strip_parens(*base)).kind;
                matches!(base, ExprKind::Name(Name::Other(name)) if self.has_plain_elements(name))
            }
            ExprKind::Unary(_, a) | ExprKind::IncDec { place: a, .. } | ExprKind::Assign { place: a, .. } => plain(a),
            ExprKind::Binary(_, a, b) | ExprKind::Logical { lhs: a, rhs: b, .. } => plain(a) && plain(b),
            ExprKind::Comma(_, b) => plain(b),
            ExprKind::Conditional { then, otherwise, .. } => plain(then) && plain(otherwise),
            ExprKind::Cast { ty, .. } | ExprKind::Construct { ty, .. } => ty.contains('*') || self.names_plain(ty),
            ExprKind::Call { name: Some(name), .. } => self.returns_plain(name),
            ExprKind::Name(Name::Other(name)) if self.template_names.contains(name) => self.is_plain_parameter(name),
            ExprKind::Name(Name::Other(name)) => match meaning_in(self.db, self.places.function, name) {
                _ if self.is_plain_field(name) => true,
                Meaning::Global(global) => global.pointer || global.dims > 0 || self.names_plain(&global.base),
                // A constant in a macro, `nullptr`.
                Meaning::Enumerator(_) | Meaning::Macro(_) => false,
                _ => name == "nullptr" || name == "NULL",
            },
            _ => false,
        }
    }

    /// A parameter of the function's template that is a number.
    fn is_plain_parameter(&self, name: &str) -> bool {
        let (text, signature) = (
            self.places.function.text(self.db),
            self.places.function.signature(self.db),
        );
        let list = signature.template_params.map_or("", |span| span.text(&text));
        let mut parameters = list.trim_start_matches('<').trim_end_matches('>').split(',');
        let declared = parameters.find_map(|parameter| {
            let declared = parameter.split('=').next().unwrap_or("").trim();
            declared.strip_suffix(name).map(str::trim)
        });
        declared.is_some_and(|ty| ty.contains('*') || self.names_plain(ty))
    }

    /// A field of the function's own class that is no object.
    fn is_plain_field(&self, name: &str) -> bool {
        let plain = |(ty, declarator): &(String, String)| declarator.contains(['*', '[']) || self.names_plain(ty);
        let fields = self.own_fields(name);
        !fields.is_empty() && fields.iter().all(plain)
    }

    /// A field of the function's own class that is a pointer to numbers, or an array of numbers.
    fn has_plain_elements(&self, name: &str) -> bool {
        let fields = self.own_fields(name);
        !fields.is_empty() && fields.iter().all(|(ty, _)| self.names_plain(ty))
    }

    fn own_fields(&self, name: &str) -> Vec<(String, String)> {
        let fields = fields_of(self.db, self.file, self.class);
        fields
            .filter(|(_, declarator)| declared_name(declarator) == name)
            .collect()
    }

    fn names_plain(&self, ty: &str) -> bool {
        let ty = ty.trim().trim_start_matches("const ").trim();
        ty != "auto"
            && !self.templates.iter().any(|t| t == ty)
            && self.places.class_kind(ty, self.templates) == Class::Plain
            && !self.places.is_enumeration(ty)
    }

    /// Whether all functions of this name return numbers or pointers.
    fn returns_plain(&self, name: &str) -> bool {
        let functions = functions_in(self.db, self.places.function, name);
        if functions.is_empty() {
            let number = match meaning_in(self.db, self.places.function, name) {
                Meaning::Type => return self.names_plain(name),
                _ => known(name).is_some(),
            };
            return number && !name.starts_with("make_");
        }
        functions.iter().all(|f| {
            let (signature, text) = (f.signature(self.db), f.text(self.db));
            let head = signature.head_span;
            let head = text.get(head.start as usize..head.end as usize).unwrap_or("");
            let specifier =
                |word: &&str| word.starts_with("__") || matches!(*word, "static" | "inline" | "constexpr" | "extern");
            let ty: Vec<&str> = words(head).filter(|word| !specifier(word)).collect();
            let template = signature.template_types.iter().any(|t| ty.contains(&t.as_str()));
            !template && !ty.is_empty() && (head.contains('*') || self.names_plain(&ty.join(" ")))
        })
    }
}

/// The fields of the classes of that name, as (type, declarator).
pub(crate) fn fields_of(db: &dyn Db, file: SourceFile, class: &str) -> impl Iterator<Item = (String, String)> {
    let files = included_files(db, file).iter();
    let classes = files.flat_map(|f| items(db, *f).types.iter().filter(|t| t.name == class));
    let fields: Vec<(String, String)> = classes.flat_map(|t| t.fields.iter().cloned()).collect();
    fields.into_iter()
}
