//! Grids of one block: the block runs one iteration after the other. Who launches the kernel needn't know.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;

use crate::api::refusal::Ineligible;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::names::plural;
use crate::edit::one_line::one_line;
use crate::edit::one_line::without_restrict;
use crate::edit::style;
use crate::emit::described;
use crate::emit::outline::{self, verbatim, written_params};
use crate::emit::replaced_launch::replace_by_call;
use crate::emit::split::Split;
use crate::emit::target;
use crate::emit::was;

use super::kernel::Iteration;

/// The whole edit.
///
/// # Errors
/// The reasons why it can't be done.
pub fn write<'db>(iteration: &Iteration<'db>, header: &Header, draft: &mut Draft<'db>) -> Result<(), Ineligible> {
    let (site, kernel) = (&iteration.site, &iteration.kernel);
    let split = Split::of(site, kernel, &iteration.uniform, &mut draft.refusals);
    draft.refusals.check()?;
    let Draft { names, edit, .. } = draft;
    let writer = Writer {
        iteration,
        split: &split,
        record: names.fresh(&format!("{}_args", kernel.name)),
        body: names.fresh(&format!("{}_body", kernel.name)),
        launches: names.fresh(&plural(&kernel.name)),
        args: names.fresh("args"),
    };
    header.include_in(site.db, edit, kernel.file);
    writer.front(edit);
    writer.launch(edit);
    writer.kernel(edit);
    Ok(())
}

struct Writer<'a, 'db> {
    iteration: &'a Iteration<'db>,
    split: &'a Split<'a>,
    /// The struct of the arguments that differ.
    record: String,
    /// The function with the body.
    body: String,
    /// The variable of type `gridfuse::BlockLoop`.
    launches: String,
    /// The arguments of an iteration.
    args: String,
}

impl<'db> Writer<'_, 'db> {
    fn has_record(&self) -> bool {
        self.split.varying().next().is_some()
    }

    fn loop_type(&self) -> String {
        let record = if self.has_record() { &self.record } else { "" };
        format!("gridfuse::BlockLoop<{record}>")
    }

    /// The struct, and the head of the function that has the body now.
    fn front(&self, edit: &mut EditBuilder<'db>) {
        let kernel = &self.iteration.kernel;
        let style = edit.style(kernel.file);
        let indent = style::indent_at(&kernel.text, kernel.start as usize).to_owned();
        if self.has_record() {
            let fields: String = self
                .split
                .varying()
                .map(|p| format!("{}; ", one_line(&p.param.field)))
                .collect();
            let comment = format!("The arguments of {} that differ between its iterations.", kernel.name);
            let comment = described::lines(&comment, &style, style::columns(&indent));
            let code = format!("{comment}\nstruct {} {{ {fields}}};\n\n", self.record);
            let at = target::above_comment(kernel.db, kernel.file, kernel.front() as usize);
            edit.insert(kernel.file, at as u32, format!("{}{indent}", style.fit(&code, &indent)));
        }
        let is_static = if kernel.is_static { "static " } else { "" };
        let head = format!("{is_static}__device__ __forceinline__ void {}(", self.body);
        let mut params = vec![format!("{}& {}", self.loop_type(), self.launches)];
        params.extend(kernel.params.iter().map(|p| one_line(&without_restrict(&p.decl))));
        let brace = style.open_brace();
        let list = style.list(style::columns(&indent), &head, &params, &format!("){brace}"));
        let list = list.strip_suffix(brace).unwrap_or(&list).to_owned();
        let range = TextRange::new(kernel.head_start, kernel.params_range().end);
        edit.replace(
            FileRange {
                file: kernel.file,
                range,
            },
            style.fit(&list, &indent),
        );
        let what = format!("The body of {}, for one of its iterations", kernel.name);
        let comment = described::taken_back(&what, &style, style::columns(&indent));
        edit.insert_directly(kernel.file, kernel.front(), &comment);
    }

    /// The launch of the next iteration.
    fn launch(&self, edit: &mut EditBuilder<'db>) {
        let site = &self.iteration.site;
        let fields: Vec<String> = self.split.varying().map(|p| p.initialiser.clone()).collect();
        let items = if fields.is_empty() {
            Vec::new()
        } else {
            vec![format!("{{{}}}", fields.join(", "))]
        };
        was::note(site, edit);
        replace_by_call(site, &format!("{}.launch(", self.launches), &items, edit);
    }

    /// The kernel under its old head, where a pointer isn't `__restrict__` any more: what one iteration has written another one
    /// reads.
    fn kernel(&self, edit: &mut EditBuilder<'db>) {
        let kernel = &self.iteration.kernel;
        let mut behind = outline::behind(edit, kernel);
        let indent = style::indent_at(&kernel.text, kernel.start as usize).to_owned();
        let name_end = kernel.item.signature(kernel.db).name_span.end + kernel.start;
        let head = verbatim(TextRange::new(kernel.head_start, name_end).text(&kernel.text), &indent);
        let params = verbatim(&without_restrict(&written_params(kernel, true)), &indent);
        let launches = &self.launches;
        let first: Vec<&str> = self.split.varying().map(|p| p.param.name.as_str()).collect();
        let given = if self.has_record() {
            format!("({{{}}})", first.join(", "))
        } else {
            String::new()
        };
        let mut items = vec![launches.clone()];
        items.extend(self.split.parts.iter().map(|p| match p.uniform {
            true => p.param.name.clone(),
            false => format!("{}.{}", self.args, p.param.name),
        }));
        let call = behind.call(2, &format!("{}(", self.body), &items, ");");
        let declared = format!("\t{} {launches}{given};\n", self.loop_type());
        let body = if self.has_record() {
            let args = format!("\t\tconst {} {} = {launches}.args();\n", self.record, self.args);
            format!("{declared}\twhile ({launches}.next()) {{\n{args}{call}\n\t}}")
        } else {
            format!("{declared}\twhile ({launches}.next())\n{call}")
        };
        // Its parameters were others.
        let written = verbatim(&written_params(kernel, true), &indent);
        let was = match written == params {
            true => String::new(),
            false => was::lines(&format!("{head}{written}"), behind.style(), &indent),
        };
        behind.add(format!(
            "{was}{head}{params}{}\n{body}\n}}",
            behind.style().open_brace()
        ));
        behind.finish(edit, kernel);
    }
}
