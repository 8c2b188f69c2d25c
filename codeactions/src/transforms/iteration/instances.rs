//! Which instances of templates the kernels of a cycle are, in terms of the parameters of the first kernel's template: `turn<TPB>` of
//! `advance<TPB>`. A walk over the launches shows that each kernel is one instance, so that the kernel that stays is a template of the
//! same parameters, and runs these.

use super::cycle::Turn;
use crate::api::refusal::Refusals;
use crate::edit::lex;
use crate::emit::split::with_values;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::instance;
use crate::facts::moved::{Spot, different};
use crate::facts::site::Site;

/// A kernel of a cycle.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// The kernel's template parameters, and what they are in terms of those of the first kernel.
    pub values: Vec<(String, String)>,
    /// The first kernel's template parameters, and what the kernel calls them. Only of one that launches.
    pub of_head: Vec<(String, String)>,
}

impl Instance {
    /// Code with the kernel's template parameters, in terms of those of the first kernel. `None` where that can't be written.
    pub fn in_terms_of_head(&self, kernel: &Child<'_>, code: &str) -> Option<String> {
        let signature = kernel.item.signature(kernel.db);
        let mentioned = |name: &str| lex::identifiers(code).any(|word| word == name);
        let plain = |value: &str| {
            let qualified = lex::code_words(value)
                .iter()
                .any(|word| matches!(*word, "const" | "volatile"));
            !qualified && !value.contains(['*', '&', '(', '[', '{'])
        };
        let fits = |(name, value): &(String, String)| name == value || plain(value) || !mentioned(name);
        self.values.iter().all(fits).then_some(())?;
        with_values(code, signature, &self.values)
    }
}

/// Finds the instances of all kernels. Two of one kernel, and what can't be told, are refused.
pub fn find<'db>(turns: &[Turn<'db>], kernels: &[Child<'db>], refusals: &mut Refusals) -> Vec<Instance> {
    let mut walk = Walk {
        turns,
        kernels,
        found: vec![None; kernels.len()],
    };
    let Some(head) = kernels.first() else {
        return Vec::new();
    };
    let names = &head.item.signature(head.db).template_names;
    let own: Vec<(String, String)> = names.iter().map(|name| (name.clone(), name.clone())).collect();
    walk.found[0] = Some(own);
    let mut todo = vec![0];
    while let Some(from) = todo.pop() {
        for turn in turns.iter().filter(|turn| turn.from == from) {
            let Some(values) = walk.values(turn, refusals) else {
                continue;
            };
            match &walk.found[turn.to] {
                None => {
                    walk.found[turn.to] = Some(values);
                    todo.push(turn.to);
                }
                Some(known) if alike(known, &values) => {}
                Some(known) => {
                    let name = &kernels[turn.to].name;
                    refusals.add(
                        format!(
                            "two instances of `{name}` come by turns, `{name}{}` and `{name}{}`: a loop runs one",
                            instance::list(known),
                            instance::list(&values)
                        ),
                        Some(turn.site.place(turn.site.launch.name_span)),
                    );
                }
            }
        }
    }
    if !refusals.is_empty() {
        return Vec::new();
    }
    (0..kernels.len()).map(|at| walk.instance(at, refusals)).collect()
}

fn alike(a: &[(String, String)], b: &[(String, String)]) -> bool {
    let mut both = a.iter().zip(b);
    a.len() == b.len() && both.all(|(a, b)| lex::code_words(&a.1) == lex::code_words(&b.1))
}

struct Walk<'a, 'db> {
    turns: &'a [Turn<'db>],
    kernels: &'a [Child<'db>],
    found: Vec<Option<Vec<(String, String)>>>,
}

impl Walk<'_, '_> {
    /// The template parameters of the kernel that a launch is of, in terms of those of the first kernel.
    fn values(&self, turn: &Turn<'_>, refusals: &mut Refusals) -> Option<Vec<(String, String)>> {
        let (site, launched) = (&turn.site, &self.kernels[turn.to]);
        let place = Some(site.place(site.launch.name_span));
        let Some(values) = instance::at_launch(site, launched) else {
            refusals.add(
                format!("the template arguments of `{}` are deduced", launched.name),
                place,
            );
            return None;
        };
        let from = self.found.get(turn.from)?.as_ref()?;
        let signature = site.parent.signature(site.db);
        let mut all = Vec::new();
        for (name, value) in values {
            let known = self.means_the_same(site, &value);
            let Some(value) = with_values(&value, signature, from).filter(|_| known) else {
                refusals.add(
                    format!(
                        "the template argument `{value}` of `{}` can't be written in another function",
                        launched.name
                    ),
                    place,
                );
                return None;
            };
            all.push((name, value));
        }
        Some(all)
    }

    /// Whether a template argument means the same in the kernel that stays: behind the last kernel, with the parameters of the first one.
    fn means_the_same(&self, site: &Site<'_>, value: &str) -> bool {
        let parent = Function::new(site.db, site.parent);
        let own = &site.parent.signature(site.db).template_names;
        let last = self.kernels.iter().max_by_key(|kernel| kernel.start);
        let head = self.kernels.first();
        let functions = head
            .into_iter()
            .chain(last)
            .map(|kernel| Function::new(kernel.db, kernel.item));
        let from = Spot::within(&parent, site.launch.name_span);
        let mut functions = functions.map(|function| different(value, from, Spot::top(&function), own).is_none());
        functions.all(|same| same) && self.names_no_parameter(value, own)
    }

    /// Whether code that isn't the first kernel's names no parameter of its template: it would mean that there.
    fn names_no_parameter(&self, code: &str, own: &[String]) -> bool {
        let Some(head) = self.kernels.first() else {
            return true;
        };
        let of_head = &head.item.signature(head.db).template_names;
        !lex::identifiers(code).any(|word| {
            let is = |names: &[String]| names.iter().any(|name| name == word);
            is(of_head) && !is(own)
        })
    }

    fn instance(&self, at: usize, refusals: &mut Refusals) -> Instance {
        let kernel = &self.kernels[at];
        let values = self.found[at].clone().unwrap_or_default();
        let own: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        let place = Some(kernel.place());
        if let Some(param) = kernel
            .params
            .iter()
            .find(|param| !self.names_no_parameter(&param.field, &own))
        {
            let why = format!(
                "the type of `{}`'s parameter `{}` names a template parameter of another kernel of the loop",
                kernel.name, param.name
            );
            refusals.add(why, place);
        }
        let mut of_head = Vec::new();
        if self.turns.iter().any(|turn| turn.from == at) {
            let head = self.found.first().and_then(Option::as_ref);
            for (name, _) in head.into_iter().flatten() {
                match values.iter().find(|(_, value)| value == name) {
                    Some((own, _)) => of_head.push((name.clone(), own.clone())),
                    None => refusals.add(
                        format!(
                            "the template arguments of `{}` don't say which instance of `{}` it belongs to: it has none for `{name}`",
                            kernel.name, self.kernels[0].name
                        ),
                        place,
                    ),
                }
            }
            self.refuse_further(at, &own, &of_head, refusals);
        }
        Instance { values, of_head }
    }

    /// A kernel that launches may be another instance where it isn't run by the loop. Then it goes on with another loop, which its template
    /// arguments say; those that don't can't matter to what it launches.
    fn refuse_further(&self, at: usize, own: &[String], of_head: &[(String, String)], refusals: &mut Refusals) {
        let kernel = &self.kernels[at];
        let further = |word: &str| own.iter().any(|name| name == word) && !of_head.iter().any(|(_, name)| name == word);
        let launched = self.turns.iter().filter(|turn| turn.from == at);
        let launched = launched.filter_map(|turn| instance::at_launch(&turn.site, &self.kernels[turn.to]));
        let arguments = launched.flatten().map(|(_, value)| value);
        let types = kernel.params.iter().map(|param| param.field.clone());
        let code: Vec<String> = arguments.chain(types).collect();
        if let Some(word) = code
            .iter()
            .flat_map(|code| lex::identifiers(code))
            .find(|word| further(word))
        {
            refusals.add(
                format!(
                    "`{word}` of `{}` matters to what it launches, and isn't a template parameter of `{}`, which the loop begins with",
                    kernel.name, self.kernels[0].name
                ),
                Some(kernel.place()),
            );
        }
    }
}
