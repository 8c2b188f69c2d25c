//! What the loop's text means above the function, where the kernel stands: names, and constants that are parameters there.

use gridfuse_analysis::hir::ExprId;

use super::super::variables::Variable;
use super::Translation;
use crate::edit::lex;
use crate::facts::moved::{self, Spot};
use crate::facts::site::Site;

/// Words of the language, and names that all device code has.
const KNOWN: [&str; 17] = [
    "blockIdx",
    "gridDim",
    "blockDim",
    "dim3",
    "uint3",
    "break",
    "continue",
    "else",
    "do",
    "const",
    "constexpr",
    "unsigned",
    "signed",
    "long",
    "short",
    "auto",
    "cudaError_t",
];

impl Translation<'_, '_> {
    /// Refuses a loop in which a name means something else above the function.
    pub(super) fn refuse_other_meanings(&mut self, text: &str, variables: &[Variable]) {
        let function = &self.host.function;
        let inner = self.host.inner.iter().map(|b| self.body.binding(*b).name.clone());
        let mut known: Vec<String> = inner.collect();
        known.extend(variables.iter().map(|variable| variable.name.clone()));
        known.extend(self.params.iter().map(|param| param.name.clone()));
        known.extend(self.workers.iter().map(|worker| worker.name.clone()));
        known.push(self.rounds.clone());
        known.extend(KNOWN.map(str::to_owned));
        let (from, to) = (Spot::within(function, self.host.span()), Spot::head(function));
        // The parameters have types, too.
        let types = self.params.iter().map(|param| param.ty.as_str());
        let types = types.chain(variables.iter().map(|variable| variable.ty.as_str()));
        let text = types.fold(text.to_owned(), |text, ty| format!("{text}\n{ty};"));
        if let Some(name) = moved::different(&text, from, to, &known) {
            let function = function.name();
            self.refuse(
                format!("`{name}` means something else above `{function}`, where the kernel with the loop stands"),
                self.host.span(),
            );
        }
    }

    /// Refuses what has to be a constant, where the kernel has it from parameters.
    pub(super) fn refuse_inconstant(&mut self, expr: Option<ExprId>, needed: bool) {
        if let Some(expr) = expr.filter(|e| needed && !self.is_constant(*e)) {
            let what = self.host.flat(expr);
            self.refuse(
                format!("`{what}` has to be a constant, and the kernel with the loop gets it as a parameter: write its value"),
                self.span(expr),
            );
        }
    }

    /// Refuses template arguments that are made of the function's own constants.
    pub(super) fn refuse_template_arguments(&mut self, site: &Site<'_>) {
        let Some(span) = site.launch.template_args else { return };
        let own = |word: &&str| self.body.bindings.iter().any(|b| b.name == **word);
        let found = lex::identifiers(self.host.source(span)).find(own);
        if let Some(name) = found.map(str::to_owned) {
            self.refuse(
                format!("the template argument `{name}` has to be a constant, which the kernel with the loop doesn't have: write its value"),
                span,
            );
        }
    }
}

/// Whether what computes nothing says something about names or constants: `static_assert`, `using`, `typedef`.
pub(super) fn declares(source: &str) -> bool {
    let first = lex::identifiers(source).next();
    matches!(
        first,
        Some("static_assert" | "_Static_assert" | "using" | "typedef" | "namespace")
    )
}

/// Whether a declaration is one of constants that the compiler has to know.
pub(super) fn is_constant_declaration(source: &str) -> bool {
    lex::identifiers(source).any(|word| matches!(word, "constexpr" | "constinit"))
}
