//! The kernels that the host launches in place of the device: the template arguments of `gridfuse::launchpad_for`.

use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::instance;
use crate::facts::room::stands_behind;
use crate::facts::site::Site;

/// A kernel of collected launches, to be launched by the host.
pub struct Listed<'a, 'db> {
    /// The child that it runs.
    pub child: &'a Child<'db>,
    /// Its name without namespaces.
    pub kernel: &'a str,
    /// A launch that it collects.
    pub launch: &'a Site<'db>,
    /// It is declared behind this offset in the child's file.
    pub behind: u32,
}

impl Listed<'_, '_> {
    /// The kernel as a launch by the host has to name it.
    pub fn name_at(&self, host: &Site<'_>) -> String {
        let name = crate::facts::qualified::qualified(host, self.child, self.kernel);
        format!("{name}{}", self.template_args())
    }

    /// `<T>`, as the launch by device code has them, or nothing.
    fn template_args(&self) -> String {
        instance::named(self.launch, self.child)
    }

    /// Refuses a kernel that the host can't name.
    pub fn refuse_unnamed(&self, host: &Site<'_>, refusals: &mut Refusals) {
        let here = Some(host.here());
        if !stands_behind(host, self.child, self.behind) {
            refusals.add(
                format!(
                    "`{}`, which the host is to launch, isn't declared before its launch of `{}`",
                    self.kernel,
                    host.child_name()
                ),
                here,
            );
        }
        let scope = |site: &Site<'_>| {
            site.parent
                .name(site.db)
                .rsplit_once("::")
                .map(|(scope, _)| scope.to_owned())
        };
        let own = &self.launch.parent.signature(host.db).template_names;
        let elsewhere = scope(host) != scope(self.launch);
        // What the host's function calls so itself is nearer there.
        let hidden = |word: &str| {
            let body = &host.body;
            body.declared.contains(word)
                || body.bindings.iter().any(|binding| binding.name == word)
                || host
                    .parent
                    .signature(host.db)
                    .template_names
                    .iter()
                    .any(|name| name == word)
        };
        let odd = lex::identifiers(&self.template_args())
            .any(|w| own.iter().any(|n| n == w) || hidden(w) || elsewhere && !crate::facts::calls::is_plain_type(w));
        if odd {
            refusals.add(
                format!(
                    "the host can't name the template arguments of `{}`: they mean something only in `{}`",
                    self.child.name,
                    self.launch.parent_name()
                ),
                Some(self.launch.place(self.launch.launch.name_span)),
            );
        }
    }
}

/// What has to hold where the host launches a parent, and what is taken for granted there: it waits for the parent.
pub fn host_waits<'db>(
    host: &Site<'db>,
    listed: &[Listed<'_, 'db>],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let parent = host.child_name();
    let here = Some(host.here());
    if host.facts.statement.is_none() {
        refusals.add(
            format!(
                "this launch of `{parent}` is part of a larger expression, and the host launches the children at its end"
            ),
            here,
        );
    }
    for kernel in listed {
        kernel.refuse_unnamed(host, refusals);
    }
    edit.assume(assumption::HOST_MAY_WAIT.of(Reason {
        text: format!(
            "the host may wait where it launches `{parent}` until that is done (nothing before it in the stream waits for what the \
             host does later), and no other thread of the host launches into the stream meanwhile"
        ),
        place: here,
    }));
}

/// `first` and what of `kernels` isn't in it.
pub fn united(first: &str, kernels: impl Iterator<Item = String>) -> String {
    let mut all = parts(first);
    for kernel in kernels {
        let words = lex::code_words(&kernel).concat();
        if !all.iter().any(|k| lex::code_words(k).concat() == words) {
            all.push(kernel);
        }
    }
    all.join(", ")
}

/// The parts of a list of template arguments.
fn parts(list: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0i32;
    for c in list.chars() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    let trimmed = parts.iter().map(|p| p.trim().to_owned());
    trimmed.filter(|p| !p.is_empty()).collect()
}
