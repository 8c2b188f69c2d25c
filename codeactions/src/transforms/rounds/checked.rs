//! Calls of CUDA's runtime with what programs put around them to look for errors: macros, functions, conditions. What runs only where a
//! call has failed may be anything.

use gridfuse_analysis::hir::resolve::{Meaning, functions_in, meaning_in};
use gridfuse_analysis::hir::{BinOp, BindingId, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, UnOp};

use super::api;
use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::cluster::Function;
use crate::facts::ctype;

/// Functions of NVIDIA's samples that end the program where there was an error.
const WELL_KNOWN: [&str; 3] = ["checkCudaErrors", "getLastCudaError", "sdkCheckErrors"];

/// The calls that a statement makes where none of them fails, in order; `None` where it does anything else then.
pub fn calls(function: &Function<'_>, stmt: StmtId) -> Option<Vec<ExprId>> {
    let mut search = Search {
        function,
        calls: Vec::new(),
        handler: false,
    };
    search.statement(stmt).then_some(search.calls)
}

struct Search<'a, 'db> {
    function: &'a Function<'db>,
    calls: Vec<ExprId>,
    /// It is a function that looks for errors, and may return.
    handler: bool,
}

impl Search<'_, '_> {
    fn statement(&mut self, stmt: StmtId) -> bool {
        match &self.function.body.stmt(stmt).kind {
            StmtKind::Empty => true,
            StmtKind::Block(stmts) => stmts.iter().all(|s| self.statement(*s)),
            StmtKind::Expr(e) => self.value(*e),
            StmtKind::Decl(decls) => decls.iter().all(|decl| {
                api::is_error(self.function, decl.binding) && decl.init.is_none_or(|init| self.value(init))
            }),
            StmtKind::If {
                init: None,
                cond: Some(cond),
                then,
                otherwise,
                ..
            } => match self.test(*cond) {
                Some(true) => otherwise.is_none_or(|s| self.statement(s)),
                Some(false) => self.statement(*then),
                None => false,
            },
            StmtKind::Return(value) => self.handler && value.is_none_or(|e| self.value(e)),
            _ => false,
        }
    }

    /// What computes an error, and nothing else.
    fn value(&mut self, expr: ExprId) -> bool {
        let function = self.function;
        match &function.body.expr(expr).kind {
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => self.value(*e),
            ExprKind::Name(Name::Local(binding)) => api::is_error(function, *binding),
            ExprKind::Name(Name::Other(name)) => name == "cudaSuccess",
            ExprKind::Assign { op: None, place, value } => self.value(*place) && self.value(*value),
            ExprKind::Call {
                name: Some(name), args, ..
            } => match api::named(function, name) {
                Some(api::Call::Swap) => false,
                Some(_) => {
                    self.calls.push(expr);
                    true
                }
                None => {
                    !self.handler
                        && !has_template_arguments(function, expr)
                        && looks_for_errors(function, name)
                        && args.iter().all(|arg| self.passed(*arg))
                }
            },
            _ => false,
        }
    }

    /// An argument of a function that looks for errors.
    fn passed(&mut self, expr: ExprId) -> bool {
        let Function { db, item, body, .. } = self.function;
        let plain = |base: &str| is_plain_type(&ctype::normalize(base));
        let harmless = match &body.expr(body.strip_parens(expr)).kind {
            ExprKind::Literal(_) => true,
            // An object may be converted by code of its class.
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                ty.pointers > 0 || !ty.array.is_empty() || plain(&ty.base)
            }
            ExprKind::Name(Name::Other(name)) => match meaning_in(*db, *item, name) {
                Meaning::Global(global) => global.pointer || global.dims > 0 || plain(&global.base),
                _ => true,
            },
            ExprKind::Name(_) => true,
            _ => false,
        };
        harmless || self.value(expr)
    }

    /// A condition that asks whether there was an error: whether it holds then.
    fn test(&mut self, cond: ExprId) -> Option<bool> {
        let body = &self.function.body;
        let success = |e: ExprId| match &body.expr(body.strip_parens(e)).kind {
            ExprKind::Name(Name::Other(name)) => name == "cudaSuccess",
            ExprKind::Literal(Literal::Int(0)) => true,
            _ => false,
        };
        match &body.expr(cond).kind {
            ExprKind::Paren(e) => self.test(*e),
            ExprKind::Unary(UnOp::Not, e) => self.test(*e).map(|on_error| !on_error),
            ExprKind::Binary(op @ (BinOp::Ne | BinOp::Eq), a, b) => {
                let asked = match (success(*a), success(*b)) {
                    (false, true) => *a,
                    (true, false) => *b,
                    _ => return None,
                };
                self.value(asked).then_some(*op == BinOp::Ne)
            }
            _ => self.value(cond).then_some(true),
        }
    }
}

/// Whether a call writes template arguments, by which a value may become an object of a class.
fn has_template_arguments(function: &Function<'_>, call: ExprId) -> bool {
    let callee = function.source(call).split('(').next().unwrap_or("");
    callee.contains('<')
}

/// Whether a function does nothing where there was no error.
fn looks_for_errors(function: &Function<'_>, name: &str) -> bool {
    let found = functions_in(function.db, function.item, name);
    if found.is_empty() {
        let own = matches!(
            meaning_in(function.db, function.item, name),
            Meaning::Global(_) | Meaning::Type
        );
        return WELL_KNOWN.contains(&name) && !own && !function.body.declared.contains(name);
    }
    found.iter().all(|item| {
        let handler = Function::new(function.db, *item);
        // What it gets is made by no code of a class.
        let plain = |param: &BindingId| {
            let ty = &handler.body.binding(*param).ty;
            let base = ctype::normalize(&ty.base);
            api::is_error(&handler, *param) || ty.pointers > 0 || is_plain_type(&base)
        };
        if !handler.body.params.iter().all(plain) || !has_a_plain_head(&handler) {
            return false;
        }
        let mut search = Search {
            function: &handler,
            calls: Vec::new(),
            handler: true,
        };
        let Some(root) = handler.body.root else { return false };
        search.statement(root)
            && search.calls.iter().all(|call| match &handler.body.expr(*call).kind {
                ExprKind::Call { name: Some(name), .. } => {
                    matches!(api::named(&handler, name), Some(api::Call::Waits { .. }))
                }
                _ => false,
            })
    })
}

/// Whether a function returns an error, a number or nothing, and its parameters have default values that compute nothing.
fn has_a_plain_head(function: &Function<'_>) -> bool {
    const WORDS: [&str; 9] = [
        "static",
        "inline",
        "constexpr",
        "void",
        "bool",
        "cudaError_t",
        "cudaError",
        "__host__",
        "__forceinline__",
    ];
    let name = function.name_place().range;
    let Some(head) = function.text.get(function.start as usize..name.start as usize) else {
        return false;
    };
    let returned = head.rsplit('>').next().unwrap_or(head);
    let known = |word: &str| WORDS.contains(&word) || is_plain_type(word);
    let behind = function.text.get(name.end as usize..).unwrap_or("");
    let parameters = behind.split(['{', ';']).next().unwrap_or("");
    let defaults = parameters.split('=').skip(1);
    lex::identifiers(returned).all(known)
        && defaults
            .filter_map(|text| text.split(',').next())
            .all(|text| !text.contains("++") && !text.contains("--") && !text.trim_end_matches(')').contains('('))
}
