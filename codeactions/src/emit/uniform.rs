//! Which arguments are the same for all launches that one aggregator collects, and what they are called in the kernels that
//! declare it: also where the launch stands in a function that the kernel calls, or in a kernel that is launched by an
//! aggregator and knows of its parameters only those that are uniform themselves.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::ExprId;

use crate::edit::lex;
use crate::emit::split::Split;
use crate::emit::split::may_be_passed_once;
use crate::facts::child::Child;
use crate::facts::cluster::Cluster;
use crate::facts::cluster::Function;
use crate::facts::cluster::parameter;
use crate::facts::ctype;
use crate::facts::moved;
use crate::facts::moved::Spot;
use crate::facts::pure;
use crate::facts::pure::Top;

/// What an expression is called at the top of kernels, by index.
type Texts = BTreeMap<usize, String>;

/// For a group: which parameters are uniform, and for each kernel that declares the aggregator their values there.
pub type Answer = (Vec<bool>, BTreeMap<usize, Vec<String>>);

/// The question, with the answer so far: it only ever gets smaller.
pub struct Uniform<'a, 'db> {
    cluster: &'a Cluster<'db>,
    children: &'a [Child<'db>],
    /// The child and the launches of each group.
    groups: &'a [(usize, Vec<usize>)],
    level: Level,
    /// For each group and parameter.
    flags: Vec<Vec<bool>>,
}

impl<'a, 'db> Uniform<'a, 'db> {
    /// For each group (a child, and launches), which parameters are uniform, and for each kernel that declares the aggregator
    /// their values there.
    pub fn find(
        cluster: &'a Cluster<'db>,
        children: &'a [Child<'db>],
        groups: &'a [(usize, Vec<usize>)],
        level: Level,
    ) -> Vec<Answer> {
        let flags = groups
            .iter()
            .map(|(child, _)| vec![true; children[*child].params.len()])
            .collect();
        let mut uniform = Uniform {
            cluster,
            children,
            groups,
            level,
            flags,
        };
        loop {
            let before = uniform.flags.clone();
            for group in 0..groups.len() {
                for index in 0..uniform.flags[group].len() {
                    uniform.flags[group][index] &= uniform.of_parameter(group, index).is_some();
                }
            }
            if uniform.flags == before {
                break;
            }
        }
        let texts = |group: usize| {
            let mut values: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            for index in (0..uniform.flags[group].len()).filter(|i| uniform.flags[group][*i]) {
                for (kernel, text) in uniform.of_parameter(group, index).unwrap_or_default() {
                    values.entry(kernel).or_default().push(text);
                }
            }
            values
        };
        (0..groups.len())
            .map(|group| (uniform.flags[group].clone(), texts(group)))
            .collect()
    }

    /// What a parameter's argument is called in each kernel, when it is the same for all launches of the group.
    fn of_parameter(&self, group: usize, index: usize) -> Option<Texts> {
        let (child, launches) = &self.groups[group];
        let param = self.children[*child].params.get(index)?;
        let mut all = Texts::new();
        for launch in launches {
            let site = &self.cluster.sites[*launch];
            let arg = *site.launch.args.get(index)?;
            if !may_be_passed_once(site, param, arg) {
                return None;
            }
            let at = self.cluster.site_of[*launch];
            let constant = pure::names_host_constant(&self.cluster.functions[at], arg);
            // In another function the type that it is cast to has another name.
            if constant && !self.cluster.functions[at].is_kernel() && self.depends_on_template(*child, &param.ty.base) {
                return None;
            }
            let texts = self.texts(at, arg, &mut BTreeSet::new())?;
            for (kernel, text) in texts {
                if constant && !self.has_same_type(kernel, *child, &param.ty.base) {
                    return None;
                }
                let text = Split::at_top(site, &self.children[*child], param, text, constant);
                if all.get(&kernel).is_some_and(|known| *known != text) {
                    return None;
                }
                all.insert(kernel, text);
            }
        }
        Some(all)
    }

    fn depends_on_template(&self, child: usize, ty: &str) -> bool {
        let child = &self.children[child];
        let own = &child.item.signature(child.db).template_names;
        lex::identifiers(ty).any(|word| own.iter().any(|own| own == word))
    }

    /// Whether a type that the child's head names is the same at the top of a kernel.
    fn has_same_type(&self, kernel: usize, child: usize, ty: &str) -> bool {
        let db = self.cluster.functions[kernel].db;
        let child = Function::new(db, self.children[child].item);
        let own = &child.item.signature(db).template_names;
        let to = Spot::top(&self.cluster.functions[kernel]);
        moved::different(ty, Spot::head(&child), to, own).is_none()
    }

    /// What an expression of a function is called in each kernel that reaches the function.
    fn texts(&self, at: usize, expr: ExprId, seen: &mut BTreeSet<(usize, usize)>) -> Option<Texts> {
        let function = &self.cluster.functions[at];
        if function.is_kernel() {
            return self.in_kernel(at, function, expr);
        }
        let has = |_: usize| false;
        if self.top(function, false, &has).holds(expr) {
            let source = crate::edit::one_line::flat(function.source(expr));
            let kernels = (0..self.cluster.functions.len())
                .filter(|k| self.cluster.functions[*k].is_kernel() && self.cluster.reached_from(*k).contains(&at));
            return kernels
                .map(|k| {
                    let top = Spot::top(&self.cluster.functions[k]);
                    let same = moved::another_meaning(function, expr, top).is_none();
                    same.then(|| (k, source.clone()))
                })
                .collect();
        }
        // A parameter that is passed on as it is.
        let (index, binding) = parameter(&function.body, expr)?;
        if !pure::is_immutable_parameter(function.db, function.item, &function.body, binding) {
            return None;
        }
        if !seen.insert((at, index)) {
            return Some(Texts::new());
        }
        let wanted = &function.body.binding(binding).ty;
        let mut all = Texts::new();
        for call in self.cluster.calls.iter().filter(|c| c.callee == at) {
            let caller = &self.cluster.functions[call.caller];
            let arg = *call.args.get(index)?;
            let (_, passed) = parameter(&caller.body, arg)?;
            let given = &caller.body.binding(passed).ty;
            let same = given.pointers == wanted.pointers
                && given.array.is_empty()
                && wanted.array.is_empty()
                && ctype::normalize(&given.base) == ctype::normalize(&wanted.base);
            if !same {
                return None;
            }
            for (kernel, text) in self.texts(call.caller, arg, seen)? {
                if all.get(&kernel).is_some_and(|known| *known != text) {
                    return None;
                }
                all.insert(kernel, text);
            }
        }
        Some(all)
    }

    fn in_kernel(&self, at: usize, function: &Function<'db>, expr: ExprId) -> Option<Texts> {
        let as_child: Vec<usize> = (0..self.groups.len())
            .filter(|g| self.children[self.groups[*g].0].item == function.item)
            .collect();
        let has = |index: usize| as_child.iter().all(|g| self.flags[*g].get(index).is_some_and(|f| *f));
        let builtins = as_child.is_empty() && function.batch().is_none();
        if !self.top(function, builtins, &has).holds(expr) {
            return None;
        }
        Some(Texts::from([(at, crate::edit::one_line::flat(function.source(expr)))]))
    }

    fn top<'t>(&self, function: &'t Function<'db>, builtins: bool, has: &'t dyn Fn(usize) -> bool) -> Top<'t, 'db> {
        Top {
            function,
            level: self.level,
            builtins,
            has,
        }
    }
}
