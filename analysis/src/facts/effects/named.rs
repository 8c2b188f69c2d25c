//! What is done where a name stands: the one place that decides it, for lowered code as for text that isn't lowered.

use super::types::{Act, Step, What};
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::closures::Closure;
use crate::facts::groups::{Group, decided_by, made_by};
use crate::facts::unseen::misses_header;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, library};
use crate::hir::names::unqualified;
use crate::hir::plain_types::is_plain_type;
use crate::hir::resolve::{functions_named, is_made_by_macros, shares_its_name};
use crate::hir::scope::hides;
use crate::hir::visible::{Names, Visible, visible, visible_names};

/// The built-in variables that differ between threads or grids.
pub const BUILTINS: [&str; 4] = ["threadIdx", "blockIdx", "gridDim", "blockDim"];

/// What tells a function its whole head: its parameters and what it returns.
pub const OWN_HEAD: [&str; 3] = ["__PRETTY_FUNCTION__", "__FUNCSIG__", "__FUNCDNAME__"];

/// Names as they are written in a function; what they do is collected.
pub(super) struct Named<'db> {
    pub db: &'db dyn Db,
    pub function: FunctionItem<'db>,
    pub names: &'db Names,
    visible: &'db Visible<'db>,
    pub found: Vec<Step<'db>>,
}

impl<'db> Named<'db> {
    pub(super) fn new(db: &'db dyn Db, function: FunctionItem<'db>) -> Named<'db> {
        let file = function.file(db);
        Named {
            db,
            function,
            names: visible_names(db, file),
            visible: visible(db, file),
            found: Vec::new(),
        }
    }

    pub(super) fn does(&mut self, what: What, name: impl Into<String>, span: Span, at: Span) {
        let name = name.into();
        self.found.push(Step::Does(Act { what, name, span, at }));
    }

    pub(super) fn unknown(&mut self, name: impl Into<String>, span: Span, at: Span) {
        self.does(What::Unknown, name, span, at);
    }

    pub(super) fn runs(&mut self, functions: Vec<FunctionItem<'db>>, at: Span) {
        if !functions.is_empty() {
            self.found.push(Step::Runs { functions, at });
        }
    }

    pub(super) fn runs_lambda(&mut self, closures: Vec<Closure<'db>>, at: Span) {
        if !closures.is_empty() {
            self.found.push(Step::RunsLambda { closures, at });
        }
    }

    /// A name in lowered code that is a macro's which could not be expanded: [`unlowered`](super::unlowered) looks at what it stands for.
    pub(super) fn is_unexpanded(&self, name: &str, from_macro: bool) -> bool {
        let last = unqualified(name);
        !from_macro && self.names.macros.contains_key(last) && !self.names.ambiguous_macros.contains(last)
    }

    /// A macro of which it isn't certain what it stands for.
    fn is_uncertain(&mut self, last: &str, span: Span, at: Span) -> bool {
        let uncertain = self.names.ambiguous_macros.contains(last);
        if uncertain {
            self.unknown(format!("`{last}`, a macro whose definition is not certain"), span, at);
        }
        uncertain
    }

    /// A name that isn't local, as a value.
    pub(super) fn value(&mut self, name: &str, at: Span) {
        let last = unqualified(name);
        if BUILTINS.contains(&last) && name.contains("::") {
            // No parameter stands for that.
            self.unknown(format!("`{name}`"), at, at);
            return;
        }
        if matches!(name, "__func__" | "__FUNCTION__") || OWN_HEAD.contains(&name) {
            self.does(What::OwnName, name, at, at);
            return;
        }
        if name == "__COUNTER__" {
            self.unknown("`__COUNTER__`, another number at each use", at, at);
            return;
        }
        if self.is_uncertain(last, at, at) {
            return;
        }
        // Who gets it may call it.
        if self.visible.functions.contains_key(last) && self.functions(name, false, at, at) {
            return;
        }
        if self.visible.globals.get(last).is_some_and(|g| g.shared) {
            self.does(What::Shared, format!("`{last}`, which is __shared__"), at, at);
        }
    }

    /// A call by a name that isn't local. `means`: see [`callee`](crate::facts::callee::callee).
    pub(super) fn call(&mut self, name: &str, means: &Callee<'db>, span: Span, at: Span) {
        let last = unqualified(name);
        // The default argument of a parameter says where it stands, too.
        if matches!(last, "__builtin_FUNCTION" | "__builtin_source_location")
            || name.ends_with("source_location::current")
        {
            self.does(What::OwnName, format!("{last}()"), span, at);
            return;
        }
        // A function or class that only the template's arguments, or the function's own declarations, tell.
        if hides(self.db, self.function, name) {
            self.unknown(format!("`{name}`, of which no definition is in sight"), span, at);
            return;
        }
        if self.is_uncertain(last, span, at) {
            return;
        }
        match means {
            Callee::Known(known) => self.library(name, *known, span, at),
            Callee::Type(_) => {}
            Callee::Functions(_, overloads) => {
                if let Some(known) = overloads {
                    self.library(name, *known, span, at);
                }
                self.functions(name, false, span, at);
            }
            Callee::Unknown => {
                if self.functions(name, true, span, at) {
                    return;
                }
                if is_made_by_macros(self.db, self.function.file(self.db), name) {
                    self.unknown(format!("`{name}`, which a macro may declare"), span, at);
                }
                if self.visible.globals.get(last).is_some_and(|g| g.shared) {
                    self.does(What::Shared, format!("`{last}`, which is __shared__"), span, at);
                }
                if let Some(known) = library(name) {
                    self.library(name, known, span, at);
                } else if !is_plain_type(last)
                    && !self.names.types.contains(last)
                    && !self.names.aliases.contains_key(last)
                {
                    self.unknown(format!("`{name}`, of which no definition is in sight"), span, at);
                }
            }
        }
    }

    /// The functions that a name may mean; whether there are any. `missing`: one without a definition may be meant, beside others that
    /// have one.
    fn functions(&mut self, name: &str, missing: bool, span: Span, at: Span) -> bool {
        let db = self.db;
        let functions = functions_named(db, self.function.file(db), name);
        // A kernel is only ever launched: its body runs elsewhere.
        if functions.is_empty() || functions.iter().all(|f| f.signature(db).kernel) {
            return !functions.is_empty();
        }
        let undefined = functions.iter().any(|f| !f.has_body(db));
        let bodies: Vec<_> = functions.into_iter().filter(|f| f.has_body(db)).collect();
        if bodies.is_empty() || missing && undefined {
            self.unknown(format!("`{name}`, of which no definition is in sight"), span, at);
        }
        let file = self.function.file(db);
        if is_made_by_macros(db, file, name) {
            self.unknown(
                format!("`{name}`, of which a macro, or what else isn't parsed, may make another one"),
                span,
                at,
            );
        } else if shares_its_name(db, file, name) {
            self.unknown(format!("`{name}`, which is the name of a variable, too"), span, at);
        } else if missing && misses_header(db, file) {
            let what = format!("`{name}`, of which a header that isn't found may have another one");
            self.unknown(what, span, at);
        }
        self.runs(bodies, at);
        true
    }

    /// A call of a function of the library.
    fn library(&mut self, name: &str, known: Library, span: Span, at: Span) {
        let decisive = made_by(name).map(decided_by).unwrap_or_default();
        for builtin in decisive {
            self.does(What::ReadsItself(builtin), name, span, at);
        }
        let name = format!("{}()", unqualified(name));
        self.does(What::Calls(known), name, span, at);
    }

    /// A call of a member function of a cooperative group. What makes the group has said what decides it.
    pub(super) fn group_member(&mut self, name: &str, group: Group, known: Library, span: Span, at: Span) {
        // Which block it is, the group tells as well.
        if group == Group::Block && name == "group_index" {
            self.does(What::ReadsItself("blockIdx"), name, span, at);
        }
        self.does(What::Calls(known), format!("{name}()"), span, at);
    }

    /// A call of a member function: every member of that name that is in sight may be meant.
    pub(super) fn method(&mut self, name: &str, span: Span, at: Span) {
        let db = self.db;
        let all = functions_named(db, self.function.file(db), name);
        let members: Vec<_> = all.into_iter().filter(|f| f.signature(db).member).collect();
        let defined = |f: &FunctionItem<'db>| {
            let same = |other: &FunctionItem<'db>| other.has_body(db) && other.name(db) == f.name(db);
            members.iter().any(same)
        };
        if members.is_empty() || !members.iter().all(defined) {
            self.unknown(format!("`.{name}()`, of which no definition is in sight"), span, at);
        }
        let bodies = members.into_iter().filter(|f| f.has_body(db)).collect();
        self.runs(bodies, at);
    }
}
