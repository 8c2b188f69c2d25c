//! What memory an expression names: whose, from where on, in which units.
//!
//! Types tell nothing apart here: device memory may be reused as another type (writing gives it a new one), so that accesses of
//! different types to one place can be ordered, and legal.

use super::integer::{Integer, integer, unit};
use super::subscript::{Evaluator, Value};
use crate::facts::uniformity::memory::{Shape, element, written};
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::{BinOp, BindingId, ExprId, ExprKind, Name, Storage};

/// Whose memory it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub enum Root {
    /// What a pointer or reference parameter points at, by index.
    Parameter(u32),
    /// What a pointer in a struct that is passed by value points at: the parameter and the fields.
    Member(u32, String),
    /// A variable at namespace scope.
    Global(String),
    /// A variable of the thread or of its block.
    Object(BindingId),
    /// Whatever a pointer points at that isn't followed.
    Unknown,
}

/// A pointer.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    pub root: Root,
    /// Distance from the root, in units; `None`: anywhere.
    pub offset: Option<Value>,
    /// What it counts in; `None`: not known.
    pub unit: Option<String>,
}

/// A place in memory.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub root: Root,
    pub offset: Option<Value>,
    pub unit: Option<String>,
    /// The part of the unit: fields and further subscripts.
    pub path: String,
}

const UNKNOWN: Pointer = Pointer {
    root: Root::Unknown,
    offset: None,
    unit: None,
};

impl Pointer {
    fn start(root: Root, unit: Option<String>) -> Pointer {
        Pointer {
            root,
            offset: Some(Value::constant(0, Integer::INT)),
            unit,
        }
    }

    /// The place `index` units further on.
    pub fn at(self, index: Option<Value>) -> Location {
        let offset = self.offset.zip(index).and_then(|(a, b)| sum(a, b, false));
        Location {
            root: self.root,
            offset,
            unit: self.unit,
            path: String::new(),
        }
    }

    fn place(self) -> Location {
        Location {
            root: self.root,
            offset: self.offset,
            unit: self.unit,
            path: String::new(),
        }
    }
}

/// Pointer arithmetic: exact, whatever type the index has.
pub(super) fn sum(a: Value, b: Value, minus: bool) -> Option<Value> {
    let wide = Integer {
        unsigned: false,
        narrow: 64,
        wide: 64,
    };
    let (a, b) = (Value { ty: wide, ..a }, Value { ty: wide, ..b });
    a.combine(b, |a, b| if minus { a.minus(b) } else { a.plus(b) })
}

const DEPTH: u32 = 40;

impl Evaluator<'_, '_> {
    /// The unit of pointers to what has this shape.
    fn unit_of(&self, shape: Option<Shape>) -> Option<String> {
        let shape = shape?;
        let base = self.places.alias(&shape.base);
        if base == "void" || base == "auto" || base.is_empty() {
            return None;
        }
        let name = match (shape.pointers, base.contains('*')) {
            (0, false) => unit(&base),
            _ => "8".to_owned(),
        };
        Some(format!("{name}{}", "[]".repeat(shape.dims as usize)))
    }

    /// The unit of pointers to what has the type of a parameter or variable.
    pub(super) fn unit_behind(&self, b: BindingId) -> Option<String> {
        let ty = &self.body.binding(b).ty;
        if ty.complex {
            return None;
        }
        let shape = Shape {
            base: ty.base.clone(),
            pointers: u32::from(ty.pointers),
            dims: ty.array.len() as u32,
        };
        if ty.reference {
            return self.unit_of(Some(shape));
        }
        self.unit_of(element(shape))
    }

    /// Size of a place, or its type's name.
    pub(super) fn width(&self, e: ExprId) -> Option<String> {
        self.unit_of(self.places.shape(e))
    }

    /// The same of what a pointer points at.
    pub(super) fn width_behind(&self, pointer: ExprId) -> Option<String> {
        self.unit_of(self.places.shape(pointer).and_then(element))
    }

    /// The pointer points at unsigned integers.
    pub(super) fn unsigned_behind(&self, pointer: ExprId) -> bool {
        let shape = self.places.shape(pointer).and_then(element);
        let base = shape.map(|s| self.places.alias(&s.base));
        base.and_then(|b| integer(&b))
            .is_some_and(|(ty, range, _)| ty.unsigned || range.lo == Some(0))
    }

    fn is_array(&self, e: ExprId) -> bool {
        let parameter = |e: ExprId| {
            matches!(&self.body.expr(self.body.strip_parens(e)).kind,
                ExprKind::Name(Name::Local(b)) if self.body.binding(*b).storage == Storage::Param)
        };
        self.places.shape(e).is_some_and(|s| s.dims > 0) && !parameter(e)
    }

    /// The place that an expression names; `None`: a built-in variable, or no place.
    pub(super) fn location(&self, e: ExprId) -> Option<Location> {
        self.place_within(e, DEPTH)
    }

    /// What a pointer points at.
    pub(super) fn pointer(&self, e: ExprId) -> Pointer {
        self.pointer_within(e, DEPTH)
    }

    fn place_within(&self, e: ExprId, depth: u32) -> Option<Location> {
        let unknown = || Some(UNKNOWN.place());
        let Some(depth) = depth.checked_sub(1) else {
            return unknown();
        };
        match &self.body.expr(e).kind {
            ExprKind::Paren(inner) | ExprKind::Comma(_, inner) => self.place_within(*inner, depth),
            ExprKind::Assign { place, .. }
            | ExprKind::IncDec {
                place, prefix: true, ..
            } => self.place_within(*place, depth),
            ExprKind::Name(Name::Builtin(_)) => None,
            ExprKind::Name(Name::Local(b)) => {
                let binding = self.body.binding(*b);
                if !binding.ty.reference {
                    let unit = self.unit_of(self.places.shape(e));
                    return Some(Pointer::start(Root::Object(*b), unit).place());
                }
                if let Some(index) = self.body.params.iter().position(|p| p == b)
                    && !binding.ty.complex
                {
                    let root = Root::Parameter(index as u32);
                    return Some(Pointer::start(root, self.unit_behind(*b)).place());
                }
                match self.variables.referent(*b) {
                    Some(referent) => self.place_within(referent, depth).or_else(unknown),
                    None => unknown(),
                }
            }
            ExprKind::Name(Name::Other(name)) => match self.global(name) {
                Some(root) => Some(Pointer::start(root, self.unit_of(self.places.shape(e))).place()),
                None => unknown(),
            },
            ExprKind::Deref(pointer) => Some(self.pointer_within(*pointer, depth).place()),
            ExprKind::Index { base, index } => {
                if !self.is_array(*base) {
                    return Some(self.pointer_within(*base, depth).at(Some(self.index(*index))));
                }
                let mut place = self.place_within(*base, depth)?;
                let whole = matches!(
                    self.body.expr(self.body.strip_parens(*base)).kind,
                    ExprKind::Name(Name::Local(_) | Name::Other(_))
                );
                if whole && place.path.is_empty() && !matches!(place.root, Root::Unknown) {
                    place.offset = Some(self.index(*index));
                    place.unit = self.unit_of(self.places.shape(e));
                } else {
                    place.path.push_str("[]");
                    // It may be in the next object, or behind that.
                    if self.places.is_flexible_array(*base) {
                        (place.offset, place.unit) = (None, None);
                    }
                }
                Some(place)
            }
            ExprKind::Field { base, field, arrow } => {
                if matches!(
                    self.body.expr(self.body.strip_parens(*base)).kind,
                    ExprKind::Name(Name::Builtin(_))
                ) {
                    return None;
                }
                let mut place = if *arrow {
                    self.pointer_within(*base, depth).place()
                } else {
                    self.place_within(*base, depth)?
                };
                place.path.push('.');
                place.path.push_str(field);
                Some(place)
            }
            _ => unknown(),
        }
    }

    /// A variable at namespace scope that holds its value itself.
    fn global(&self, name: &str) -> Option<Root> {
        match meaning_in(self.db, self.function, name) {
            // A reference stands for another variable.
            Meaning::Global(global) if !global.pointer => Some(Root::Global(unqualified(name).to_owned())),
            _ => None,
        }
    }

    fn pointer_within(&self, e: ExprId, depth: u32) -> Pointer {
        let Some(depth) = depth.checked_sub(1) else {
            return UNKNOWN;
        };
        let body = self.body;
        match &body.expr(e).kind {
            ExprKind::Paren(inner) | ExprKind::Comma(_, inner) => self.pointer_within(*inner, depth),
            ExprKind::Name(Name::Local(b)) => {
                let binding = body.binding(*b);
                if binding.ty.complex {
                    return UNKNOWN;
                }
                if self.is_array(e) {
                    return match self.place_within(e, depth) {
                        Some(place) if !binding.ty.reference => Pointer::start(place.root, self.unit_behind(*b)),
                        _ => UNKNOWN,
                    };
                }
                if let Some(index) = body.params.iter().position(|p| p == b) {
                    return if self.variables.keeps_argument(*b) && !binding.ty.reference {
                        Pointer::start(Root::Parameter(index as u32), self.unit_behind(*b))
                    } else {
                        UNKNOWN
                    };
                }
                match self.variables.initialiser(*b) {
                    Some(init) => {
                        let inner = self.pointer_within(init, depth);
                        if binding.ty.base == "auto" {
                            return inner;
                        }
                        self.converted(inner, self.unit_behind(*b))
                    }
                    None => UNKNOWN,
                }
            }
            ExprKind::Name(Name::Other(name)) => match (self.global(name), self.is_array(e)) {
                (Some(root), true) => Pointer::start(root, self.unit_of(self.places.shape(e).and_then(element))),
                _ => UNKNOWN,
            },
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub), a, b) => {
                let is_pointer = |e: ExprId| self.places.shape(e).is_some_and(|s| s.pointers > 0 || s.dims > 0);
                let (base, index) = match (is_pointer(*a), is_pointer(*b)) {
                    (true, false) => (*a, *b),
                    (false, true) if *op == BinOp::Add => (*b, *a),
                    _ => return UNKNOWN,
                };
                let pointer = self.pointer_within(base, depth);
                let index = self.index(index);
                Pointer {
                    offset: pointer.offset.and_then(|o| sum(o, index, *op == BinOp::Sub)),
                    ..pointer
                }
            }
            ExprKind::AddrOf(place) => match self.place_within(*place, depth) {
                Some(place) => Pointer {
                    offset: place.offset.filter(|_| place.path.is_empty()),
                    unit: place.unit.filter(|_| place.path.is_empty()),
                    root: place.root,
                },
                None => UNKNOWN,
            },
            ExprKind::Cast { ty, operand, .. } if ty.contains('*') && !ty.contains('&') => {
                let inner = self.pointer_within(*operand, depth);
                self.converted(inner, self.unit_of(written(ty).and_then(element)))
            }
            // A pointer in a struct that was passed by value.
            ExprKind::Field { .. } if !self.is_array(e) => {
                let mut path = String::new();
                let mut at = e;
                loop {
                    match &body.expr(at).kind {
                        ExprKind::Paren(inner) => at = *inner,
                        ExprKind::Field {
                            base,
                            field,
                            arrow: false,
                        } => {
                            path = if path.is_empty() {
                                field.clone()
                            } else {
                                format!("{field}.{path}")
                            };
                            at = *base;
                        }
                        ExprKind::Name(Name::Local(b)) => {
                            let index = body.params.iter().position(|p| p == b);
                            let by_value = body.binding(*b).ty.is_value() && self.variables.keeps_argument(*b);
                            return match index {
                                Some(index) if by_value => {
                                    let unit = self.unit_of(self.places.shape(e).and_then(element));
                                    Pointer::start(Root::Member(index as u32, path), unit)
                                }
                                _ => UNKNOWN,
                            };
                        }
                        _ => return UNKNOWN,
                    }
                }
            }
            // An array in something bigger.
            ExprKind::Field { .. } | ExprKind::Index { .. } | ExprKind::Deref(_) if self.is_array(e) => {
                match self.place_within(e, depth) {
                    Some(place) => Pointer {
                        root: place.root,
                        offset: None,
                        unit: None,
                    },
                    None => UNKNOWN,
                }
            }
            _ => UNKNOWN,
        }
    }

    /// The pointer as one to something else: other units have other distances.
    fn converted(&self, pointer: Pointer, unit: Option<String>) -> Pointer {
        let same = unit.is_some() && unit == pointer.unit;
        Pointer {
            offset: pointer.offset.filter(|_| same),
            unit,
            root: pointer.root,
        }
    }
}
