//! Kernels that launch each other in turn: one grid that stays, whose blocks run those of each kernel. The arguments of an iteration
//! say which kernel it is of.

use std::collections::BTreeSet;

use gridfuse_analysis::hir::Type;

use super::cycle::Cycle;
use super::driver::is_child;
use super::kernel::Iteration;
use super::many_blocks::RUNTIME;
use crate::api::refusal::{Ineligible, Refusals};
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::lex;
use crate::edit::names::Names;
use crate::edit::one_line::one_line;
use crate::edit::style;
use crate::emit::described;
use crate::emit::outline::{self, Behind, Collecting, Worker};
use crate::emit::replaced_launch::replace_launch_by;
use crate::emit::split::Split;
use crate::emit::target;
use crate::facts::child::{Child, Param};
use crate::facts::graphs;
use crate::facts::instance;
use crate::facts::made_from_nothing::made_from_nothing;
use crate::facts::movable::Form;
use crate::transforms::self_launch::{bounds, entries, replace_entry};

/// What stands for `__syncthreads` in blocks that are smaller than those of the loop.
const BARRIER: &str = "gridfuse::BlockBarrier";

/// The whole edit.
///
/// # Errors
/// The reasons why it can't be done.
pub fn write<'db>(cycle: &Cycle<'db>, header: &Header, draft: &mut Draft<'db>) -> Result<(), Ineligible> {
    let Some(head) = cycle.kernels.first() else {
        return Err(draft.not_understood());
    };
    let db = head.site.db;
    let Draft {
        names, edit, refusals, ..
    } = draft;
    let record = Record::new(&cycle.kernels, names, refusals);
    let splits: Vec<Split<'_>> = cycle
        .launches
        .iter()
        .map(|turn| {
            let launched = &cycle.kernels[turn.to];
            Split::at_launch(&turn.site, &launched.kernel, &launched.uniform, refusals)
        })
        .collect();
    let entries = entries(&head.kernel, &head.uniform, &RUNTIME, refusals);
    refusals.check()?;
    for (host, _) in &entries {
        names.add_file(db, host.file);
        graphs::keep(host, refusals, edit);
    }
    let bounds = bounds(
        &head.kernel,
        record.fields.iter().map(|f| &f.ty),
        &entries,
        // The host launches blocks of that size where they are the first kernel's own.
        cycle
            .block
            .as_ref()
            .filter(|block| head.threads.is_some() || block.constant().is_some()),
        refusals,
        edit,
    );
    refusals.check()?;
    let writer = Writer {
        cycle,
        head: &head.kernel,
        kernel: names.fresh(&format!("{}_loop", head.kernel.name)),
        launches: names.fresh("loop"),
        launches_type: names.fresh("Launches"),
        record,
        bounds,
    };
    header.include_in(db, edit, head.kernel.file);
    writer.declare(edit);
    writer.generate(names, edit);
    for (turn, split) in cycle.launches.iter().zip(&splits) {
        let fields = writer.record.initialisers(turn.to, split);
        let function = match is_child(&turn.site) {
            true => "launch_child",
            false => "launch",
        };
        let function = format!("{}.{function}", writer.launches);
        let block = writer.block(turn.to, &cycle.kernels[turn.from].instance.of_head);
        replace_launch_by(&turn.site, &fields, block, &function, edit);
    }
    let launch = if head.same_grid {
        "launch_loop"
    } else {
        "launch_growing_loop"
    };
    for (host, split) in &entries {
        header.include_in(db, edit, host.file);
        let fields = writer.record.initialisers(0, split);
        let kernel = (launch, writer.kernel.as_str(), &head.kernel);
        let values = instance::at_launch(host, &head.kernel).unwrap_or_default();
        replace_entry(kernel, host, split, &fields, writer.block(0, &values), edit);
    }
    Ok(())
}

/// The words of the types of all parameters: a field that has one of them for its name would hide what it means for the fields behind it.
/// And the parameters of the template that the struct may be.
fn words_of_types(kernels: &[Iteration<'_>]) -> BTreeSet<String> {
    let params = kernels
        .iter()
        .flat_map(|iteration| iteration.kernel.params.iter().map(move |param| (iteration, param)));
    let words = params.flat_map(|(iteration, param)| {
        let code = field(iteration, param);
        let mut words: Vec<String> = lex::identifiers(&code).map(str::to_owned).collect();
        let own = words.iter().rposition(|word| *word == param.name);
        own.into_iter().for_each(|at| drop(words.remove(at)));
        words
    });
    let head = kernels.first().map(|head| &head.instance.values);
    let of_template = head.into_iter().flatten().map(|(name, _)| name.clone());
    words.chain(of_template).collect()
}

/// A parameter as a field, in terms of the first kernel's template parameters.
fn field(iteration: &Iteration<'_>, param: &Param) -> String {
    let code = one_line(&param.field);
    iteration
        .instance
        .in_terms_of_head(&iteration.kernel, &code)
        .unwrap_or(code)
}

/// The struct of the arguments that differ: those of all kernels, and whose they are.
struct Record {
    /// Its name.
    name: String,
    /// The field that says which kernel it is.
    tag: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    /// Its declaration.
    decl: String,
    ty: Type,
    /// For each kernel its parameter, by number.
    params: Vec<Option<usize>>,
}

impl Record {
    fn new(kernels: &[Iteration<'_>], names: &mut Names, refusals: &mut Refusals) -> Record {
        let mut fields: Vec<Field> = Vec::new();
        let of_types = words_of_types(kernels);
        for (at, iteration) in kernels.iter().enumerate() {
            let Iteration { kernel, uniform, .. } = iteration;
            for (index, param) in kernel.params.iter().enumerate().filter(|(index, _)| !uniform[*index]) {
                let decl = field(iteration, param);
                let shared = fields.iter_mut().find(|f| f.decl == decl);
                if let Some(field) = shared {
                    field.params[at] = Some(index);
                    continue;
                }
                let taken = fields.iter().any(|f| f.name == param.name) || of_types.contains(&param.name);
                let name = match taken {
                    true => names.fresh(&format!("{}_{}", kernel.name, param.name)),
                    false => param.name.clone(),
                };
                let mut params = vec![None; kernels.len()];
                params[at] = Some(index);
                fields.push(Field {
                    decl: renamed(&decl, &param.name, &name),
                    name,
                    ty: param.ty.clone(),
                    params,
                });
            }
        }
        for field in &fields {
            let owner = field
                .params
                .iter()
                .position(Option::is_some)
                .and_then(|at| kernels.get(at));
            let plain = owner.is_some_and(|k| made_from_nothing(k.kernel.db, k.kernel.item, &field.ty));
            let missing = field.params.iter().position(Option::is_none);
            if let Some(at) = missing.filter(|_| !plain) {
                refusals.add(
                    format!(
                        "the arguments of `{}` have no `{}`, which may need one to be made from",
                        kernels[at].kernel.name, field.name
                    ),
                    Some(kernels[at].kernel.place()),
                );
            }
        }
        let mut tag = "kernel".to_owned();
        while fields.iter().any(|f| f.name == tag) || of_types.contains(&tag) {
            tag.push('_');
        }
        Record {
            name: names.fresh(&format!("{}_args", kernels.first().map_or("", |k| &k.kernel.name))),
            tag,
            fields,
        }
    }

    /// What a launch of a kernel makes it from.
    fn initialisers(&self, kernel: usize, split: &Split<'_>) -> Vec<String> {
        let value = |field: &Field| {
            let part = field.params[kernel].and_then(|param| split.parts.get(param));
            part.map_or_else(|| "{}".to_owned(), |part| part.initialiser.clone())
        };
        let tag = std::iter::once(kernel.to_string());
        tag.chain(self.fields.iter().map(value)).collect()
    }
}

/// `propose, accept and count`
fn listed(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// A declaration with another name.
fn renamed(decl: &str, from: &str, to: &str) -> String {
    let tokens = lex::code_tokens(decl);
    let Some(name) = tokens.iter().rev().find(|token| token.text(decl) == from) else {
        return decl.to_owned();
    };
    format!(
        "{}{to}{}",
        decl.get(..name.start).unwrap_or(""),
        decl.get(name.end..).unwrap_or("")
    )
}

struct Writer<'a, 'db> {
    cycle: &'a Cycle<'db>,
    /// The kernel that the host launches.
    head: &'a Child<'db>,
    /// The kernel that stays.
    kernel: String,
    /// The variable that stands for its iterations.
    launches: String,
    /// Its type in functions that are templates, where one that names a kernel by their parameters isn't understood by nvcc.
    launches_type: String,
    record: Record,
    /// `__launch_bounds__(…) `
    bounds: String,
}

impl<'db> Writer<'_, 'db> {
    /// The block size of a kernel's launches where it isn't the one that is written there. `values`: what the first kernel's template
    /// parameters are there.
    fn block(&self, kernel: usize, values: &[(String, String)]) -> Option<String> {
        let narrow = self.cycle.kernels.get(kernel).is_some_and(|k| k.threads.is_some());
        let block = self.cycle.block.as_ref().filter(|_| narrow)?;
        Some(block.operand(values))
    }

    /// Whether the struct's fields have types that depend on the template.
    fn record_is_template(&self) -> bool {
        let names = &self.head.item.signature(self.head.db).template_names;
        let depends = |field: &Field| lex::identifiers(&field.decl).any(|word| names.iter().any(|name| name == word));
        self.record.fields.iter().any(depends)
    }

    /// The struct as the kernel that stays names it.
    fn record_type(&self) -> String {
        let args = match self.record_is_template() {
            true => self.head.template_args.as_str(),
            false => "",
        };
        format!("{}{args}", self.record.name)
    }

    /// The object that stands for the iterations. `values`: what the first kernel's template parameters are there.
    fn runner(&self, values: &[(String, String)]) -> String {
        format!(
            "gridfuse::{}<{}{}>",
            RUNTIME.runner,
            self.kernel,
            instance::list(values)
        )
    }

    /// What the kernel that stays, and its launches, are made of: the struct, and how many grids an iteration launches.
    fn memory(&self) -> String {
        let several = self
            .cycle
            .several
            .map(|(children, tails)| format!(", {children}, {tails}"));
        format!(
            "gridfuse::{}<{}{}>",
            RUNTIME.memory,
            self.record_type(),
            several.unwrap_or_default()
        )
    }

    /// Head and parameters of the kernel that stays. They aren't `__restrict__`: what one block has written another one reads.
    fn head(&self, memory: &str) -> (String, Vec<String>) {
        let head = format!(
            "{}{}__global__ void {}{}(",
            self.head.template_line(),
            self.head.linkage(),
            self.bounds,
            self.kernel
        );
        let mut params = vec![format!("{} {memory}", self.memory())];
        let own = self
            .cycle
            .uniform
            .iter()
            .filter_map(|same| self.head.params.get((*same.first()?)?));
        params.extend(own.map(|param| one_line(&param.field)));
        (head, params)
    }

    /// The statement that declares the object of the runtime, in the kernel with this number.
    fn declaration(&self, kernel: usize, memory: &str, behind: &Behind) -> String {
        let Iteration {
            kernel: own, instance, ..
        } = &self.cycle.kernels[kernel];
        let params = &own.params;
        let uniform = self
            .cycle
            .uniform
            .iter()
            .filter_map(|same| params.get((*same.get(kernel)?)?));
        let items: Vec<String> = std::iter::once(memory.to_owned())
            .chain(uniform.map(|param| param.name.clone()))
            .collect();
        let prefix = format!("{} {}(", self.runner(&instance.of_head), self.launches);
        behind.call(1, &prefix, &items, ");")
    }

    /// The struct, and the declaration of the kernel that stays, above all of the kernels.
    fn declare(&self, edit: &mut EditBuilder<'db>) {
        let kernels = self.cycle.kernels.iter().map(|k| &k.kernel);
        let Some(first) = kernels.min_by_key(|kernel| kernel.start) else {
            return;
        };
        let behind = outline::behind(edit, first);
        let names: Vec<&str> = self.cycle.kernels.iter().map(|k| k.kernel.name.as_str()).collect();
        let numbered: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{at} for {name}"))
            .collect();
        let fields: Vec<String> = std::iter::once(format!("int {};", self.record.tag))
            .chain(self.record.fields.iter().map(|f| format!("{};", f.decl)))
            .collect();
        let template = match self.record_is_template() {
            true => self.head.template_line(),
            false => String::new(),
        };
        let line = format!("struct {} {{ {} }};", self.record.name, fields.join(" "));
        let wide = behind.column() + line.chars().count() > behind.style().width;
        let structure = if wide || behind.style().brace_on_own_line {
            let open = behind.style().open_brace();
            format!("struct {}{open}\n\t{}\n}};", self.record.name, fields.join("\n\t"))
        } else {
            line
        };
        let arguments = format!(
            "The arguments of {} that differ between their launches.",
            listed(&names)
        );
        let numbered = format!("{}: {}.", self.record.tag, numbered.join(", "));
        let together = format!("// {arguments} {numbered}");
        let comment = match behind.column() + together.chars().count() <= behind.style().width {
            true => together,
            false => format!(
                "{}\n{}",
                described::lines(&arguments, behind.style(), behind.column()),
                described::lines(&numbered, behind.style(), behind.column())
            ),
        };
        let (head, params) = self.head(&self.head.local(RUNTIME.variable));
        let (before, last) = head
            .rsplit_once('\n')
            .map_or(("", head.as_str()), |(before, last)| (before, last));
        let newline = if before.is_empty() { "" } else { "\n" };
        let list = behind.style().list(behind.column(), last, &params, ");");
        let at = target::above_comment(first.db, first.file, first.front() as usize);
        let indent = style::indent_at(&first.text, at).to_owned();
        let code = format!("{comment}\n{template}{structure}\n\n{before}{newline}{list}\n\n");
        let text = format!("{}{indent}", edit.style(first.file).fit(&code, &indent));
        edit.insert(first.file, at as u32, text);
    }

    /// The functions with the bodies, the kernels that call them, and the kernel that stays behind the last of them.
    fn generate(&self, names: &mut Names, edit: &mut EditBuilder<'db>) {
        let last = (0..self.cycle.kernels.len()).max_by_key(|at| self.cycle.kernels[*at].kernel.start);
        let mut workers: Vec<Worker> = Vec::new();
        let mut behind_last = None;
        for (at, iteration) in self.cycle.kernels.iter().enumerate() {
            let kernel = &iteration.kernel;
            let mut behind = outline::behind(edit, kernel);
            let launching = self.cycle.launches.iter().any(|turn| turn.from == at);
            let mut collecting = Collecting {
                unrestricted: true,
                ..Collecting::default()
            };
            if launching {
                collecting.args.push(self.launches.clone());
                if kernel.template.is_some() {
                    collecting
                        .params
                        .push(format!("{}& {}", self.launches_type, self.launches));
                    collecting.template_params.push(format!("class {}", self.launches_type));
                } else {
                    let runner = self.runner(&iteration.instance.of_head);
                    collecting.params.push(format!("{runner}& {}", self.launches));
                }
                collecting.declarations = vec![
                    "// One grid, which launches the next one by itself.".to_owned(),
                    self.declaration(at, "{}", &behind).trim_start().to_owned(),
                ];
            }
            if iteration.waits {
                collecting.args.push(format!("{BARRIER}()"));
                collecting.params.push(format!("{BARRIER} __syncthreads"));
            }
            workers.push(outline::outline_collecting(
                edit,
                &mut behind,
                kernel,
                Form::Block,
                iteration.kept(),
                &collecting,
                names,
            ));
            match last == Some(at) {
                true => behind_last = Some((behind, kernel)),
                false => behind.finish(edit, kernel),
            }
        }
        if let Some((mut behind, kernel)) = behind_last {
            let code = self.kernel_that_stays(&workers, &behind);
            let names: Vec<&str> = self.cycle.kernels.iter().map(|k| k.kernel.name.as_str()).collect();
            let what = behind.taken_back(&format!("{} {}", RUNTIME.purpose, listed(&names)));
            behind.add(format!("{what}{code}"));
            behind.finish(edit, kernel);
        }
    }

    fn kernel_that_stays(&self, workers: &[Worker], behind: &Behind) -> String {
        let memory = self.head.local(RUNTIME.variable);
        let args = self.head.local("args");
        let mut branches = String::new();
        for (at, worker) in workers.iter().enumerate() {
            let Iteration {
                kernel,
                threads,
                instance,
                ..
            } = &self.cycle.kernels[at];
            let value = |index: usize| {
                let same = self
                    .cycle
                    .uniform
                    .iter()
                    .find(|same| same.get(at) == Some(&Some(index)));
                let common = same.and_then(|same| self.head.params.get((*same.first()?)?));
                let field = || self.record.fields.iter().find(|f| f.params[at] == Some(index));
                match common {
                    Some(param) => param.name.clone(),
                    None => format!("{args}.{}", field().map_or("", |f| &f.name)),
                }
            };
            let (_, mut items) = worker.call(kernel, (0..kernel.params.len()).map(value));
            let prefix = format!("{}{}(", worker.name, instance::list(&instance.values));
            let call = match threads {
                None => behind.call(3, &prefix, &items, ");"),
                Some(threads) => {
                    let own = threads.dimensions(&[]);
                    let of_block = items.iter_mut().filter(|item| *item == "blockDim");
                    of_block.for_each(|item| item.clone_from(&own));
                    let barrier = items.iter_mut().filter(|item| **item == format!("{BARRIER}()"));
                    barrier.for_each(|item| *item = format!("{BARRIER}{{{}}}", threads.0[0].code(&[])));
                    let largest = self.cycle.block.as_ref().unwrap_or(threads);
                    let dimensions = ["x", "y", "z"].iter().zip(threads.0.iter().zip(&largest.0));
                    let has: Vec<String> = dimensions
                        .filter(|(_, (own, of_loop))| own != of_loop)
                        .map(|(dimension, (own, _))| match own.code(&[]).as_str() {
                            "1" => format!("threadIdx.{dimension} == 0"),
                            own => format!("threadIdx.{dimension} < {own}"),
                        })
                        .collect();
                    let has = has.join(" && ");
                    format!("\t\t\tif ({has})\n{}", behind.call(4, &prefix, &items, ");"))
                }
            };
            let condition = match at {
                0 => format!("\t\tif ({args}.{} == 0)", self.record.tag),
                _ if at + 1 == workers.len() => "else".to_owned(),
                _ => format!("else if ({args}.{} == {at})", self.record.tag),
            };
            // An `else` would belong to the condition within.
            let braced = self.cycle.block.is_some();
            branches.push_str(match at {
                0 => "",
                _ if braced => " ",
                _ => "\n\t\t",
            });
            branches.push_str(&condition);
            branches.push_str(if braced { " {\n" } else { "\n" });
            branches.push_str(&call);
            branches.push_str(if braced { "\n\t\t}" } else { "" });
        }
        let declaration = self.declaration(0, &memory, behind);
        let own = format!("const {}& {args}", self.record_type());
        let parameters = ["uint3 blockIdx", "dim3 gridDim", "dim3 blockDim", &own];
        let each = format!("{}.for_each_block", self.launches);
        let each = behind.call_with_lambda(&each, &[], &parameters, &branches);
        let body = format!("{declaration}\n{each}");
        let (head, params) = self.head(&memory);
        behind.function(&head, &params, &body)
    }
}
