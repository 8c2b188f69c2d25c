//! The child kernel as rewrites need it: the parts of its head, its parameters, and what forbids moving its body.

use std::sync::Arc;

use crate::api::refusal::Refusals;
use crate::edit::lex::{self, TokenKind, code_tokens_of};
use crate::edit::names::Names;
use crate::edit::names::untaken;
use crate::edit::names::words_with_macros;
use crate::edit::style;
use crate::facts::alignment::{Asked, MOST_ALIGNED, asked_of};
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;
use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::parse::masked;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::preprocess::reads_as_restrict;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, TypeItem, items};
use gridfuse_analysis::hir::mentions::anchor;
use gridfuse_analysis::hir::names::{unqualified, without_template_arguments};
use gridfuse_analysis::hir::resolve::{functions_in, functions_named};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::syntax_error::syntax_error;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{Binding, Body, Builtin, ExprKind, Name, StmtKind, Type, body, parameters};

/// A parameter of the child.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name; a fresh one when it has none.
    pub name: String,
    /// Its declaration with that name and without default argument.
    pub decl: String,
    /// The same as a field of a struct: without `const` and `__restrict__` of the variable itself.
    pub field: String,
    /// Its type.
    pub ty: Type,
}

/// A body that an earlier rewrite has moved out: the child does nothing but call it.
#[derive(Clone, Debug)]
pub struct Outlined<'db> {
    /// The function with the body.
    pub function: FunctionItem<'db>,
    /// Its name.
    pub name: String,
    /// `threadIdx` is a parameter, too.
    pub takes_thread: bool,
}

/// A kernel that is launched.
pub struct Child<'db> {
    /// The database.
    pub db: &'db dyn Db,
    /// The kernel.
    pub item: FunctionItem<'db>,
    /// Its file.
    pub file: SourceFile,
    /// The file's text.
    pub text: Arc<str>,
    /// Its offset.
    pub start: u32,
    /// Its body.
    pub body: Arc<Body>,
    /// Its name without namespaces.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// `template <class T>`, where it is one.
    pub template: Option<String>,
    /// `<T>`, or nothing.
    pub template_args: String,
    /// `static`
    pub is_static: bool,
    /// `inline`: a header defines it, which several sources may include.
    pub is_inline: bool,
    /// `__launch_bounds__(128)`, where it has them.
    pub launch_bounds: Option<String>,
    /// Where the head begins that is in front of the name: behind the template header, with `extern "C"`.
    pub head_start: u32,
    /// The body that an earlier rewrite has moved out.
    pub outlined: Option<Outlined<'db>>,
}

impl<'db> Child<'db> {
    /// Looks at a kernel; what can't be moved or copied is refused. Unnamed parameters get names from `names`.
    pub fn read(db: &'db dyn Db, item: FunctionItem<'db>, names: &mut Names, refusals: &mut Refusals) -> Child<'db> {
        let mut reading = Reading {
            db,
            item,
            file: item.file(db),
            start: item.start(db),
            text: item.file(db).text(db),
            name: unqualified(item.name(db)).to_owned(),
            body: body(db, item),
            refusals,
        };
        reading.refuse_misunderstood();
        reading.refuse_other_definitions();
        let (head, head_start) = reading.head();
        refuse_uncertain(db, item, reading.refusals);
        let head = head.unwrap_or_default();
        let (template, template_args) = reading.template();
        let params = reading.params(names);
        let outlined = already_outlined(db, item, &reading.body, &template_args);
        Child {
            db,
            item,
            file: reading.file,
            text: reading.text,
            start: reading.start,
            body: reading.body,
            name: reading.name,
            params,
            template,
            template_args,
            is_static: head.is_static,
            is_inline: head.is_inline,
            launch_bounds: head.launch_bounds,
            head_start,
            outlined,
        }
    }

    /// A name that is none of the child's parameters: `wanted`, or something like it.
    pub fn local(&self, wanted: &str) -> String {
        untaken(self.db, self.file, wanted, |name| self.has_param(name))
    }

    /// The same where the child's body stands below it, which uses names of its own, by macros, too.
    pub fn local_around_body(&self, wanted: &str) -> String {
        let words = words_with_macros(self.db, self.file, self.source(self.item.body_span(self.db)));
        untaken(self.db, self.file, wanted, |name| {
            self.has_param(name) || words.contains(name)
        })
    }

    fn has_param(&self, name: &str) -> bool {
        self.params.iter().any(|p| p.name == name)
    }

    /// The template header of what is generated from the child, with its newline, or nothing.
    pub fn template_line(&self) -> String {
        let template = self.template.as_ref();
        template.map_or(String::new(), |t| format!("{}\n", crate::edit::one_line::one_line(t)))
    }

    /// What stands in front of `__global__` of kernels that are generated from the child, with a space: that they may be defined in every
    /// source that includes them, as the child may.
    pub fn linkage(&self) -> &'static str {
        match (self.is_static, self.is_inline) {
            (true, _) => "static ",
            (false, true) => "inline ",
            (false, false) => "",
        }
    }

    /// The function whose body does the child's work.
    pub fn worker(&self) -> FunctionItem<'db> {
        self.outlined.as_ref().map_or(self.item, |o| o.function)
    }

    /// The source of a span.
    pub fn source(&self, span: Span) -> &str {
        span.shift(self.start).text(&self.text)
    }

    /// The place of its name.
    pub fn place(&self) -> FileRange {
        FileRange {
            file: self.file,
            range: self.item.signature(self.db).name_span.shift(self.start),
        }
    }

    /// One past its last byte.
    pub fn end(&self) -> u32 {
        self.item.body_span(self.db).end + self.start
    }

    /// Whether the parent, which stands at `offset` of `file`, sees the child's definition.
    pub fn is_seen_from(&self, file: SourceFile, offset: u32) -> bool {
        if file == self.file {
            return self.start < offset;
        }
        included_files(self.db, file).contains(&self.file)
    }

    /// The range of its parameter list, parentheses included.
    pub fn params_range(&self) -> TextRange {
        self.item.signature(self.db).params_span.shift(self.start)
    }
}

/// A kernel that is being read, and what rules out moving or copying it so far.
struct Reading<'a, 'db> {
    db: &'db dyn Db,
    item: FunctionItem<'db>,
    file: SourceFile,
    start: u32,
    text: Arc<str>,
    name: String,
    body: Arc<Body>,
    refusals: &'a mut Refusals,
}

impl<'db> Reading<'_, 'db> {
    fn place(&self, span: Span) -> Option<FileRange> {
        Some(FileRange {
            file: self.file,
            range: span.shift(self.start),
        })
    }

    fn at_name(&self) -> Option<FileRange> {
        self.place(self.item.signature(self.db).name_span)
    }

    fn source(&self, span: Span) -> String {
        span.shift(self.start).text(&self.text).to_owned()
    }

    /// Refuses a kernel with code in it that wasn't understood, or that is another one when the file is compiled otherwise.
    fn refuse_misunderstood(&mut self) {
        let (db, item, name) = (self.db, self.item, &self.name);
        let signature = item.signature(db);
        if let Some(error) = syntax_error(db, item) {
            let place = self.place(error);
            self.refusals
                .add(format!("`{name}` isn't understood completely: a syntax error"), place);
        }
        for (span, reason) in &self.body.problems {
            let place = self.place(*span);
            self.refusals
                .add(format!("`{name}` isn't understood completely: {reason}"), place);
        }
        let head = Span::new(0, item.body_span(db).start);
        if let Some(group) = item.decided(db).iter().find(|group| group.start < head.end) {
            let place = self.place(*group);
            self.refusals
                .add(format!("an #if decides what the head of `{name}` is"), place);
        }
        if signature.conditional {
            let place = self.at_name();
            self.refusals.add(
                format!("`{name}` is defined under an #if, where another definition may take its place"),
                place,
            );
        }
    }

    /// Refuses a kernel that a second one of its name can't stand beside: a member, one that has overloads.
    fn refuse_other_definitions(&mut self) {
        let (db, item, name) = (self.db, self.item, &self.name);
        let at_name = self.at_name();
        let signature = item.signature(db);
        if signature.member {
            self.refusals.add(
                format!("`{name}` is defined with a qualified name or in a class"),
                at_name,
            );
        }
        let definitions = functions_named(db, self.file, item.name(db))
            .into_iter()
            .filter(|f| f.has_body(db) && f.name(db) == item.name(db));
        if let Some(other) = definitions.into_iter().find(|f| *f != item) {
            let other = FileRange {
                file: other.file(db),
                range: other.signature(db).name_span.shift(other.start(db)),
            };
            self.refusals.add(
                format!("`{name}` has several definitions (an overload or a specialisation)"),
                Some(other),
            );
        }
    }

    /// What stands in front of the name, where it is understood, and where that begins. What stands around the head, and what isn't
    /// understood in it, is refused.
    fn head(&mut self) -> (Option<Head>, u32) {
        let (db, item, file, name) = (self.db, self.item, self.file, &self.name);
        let at_name = self.at_name();
        let params_end = item.signature(db).params_span.end;
        let behind = self.source(Span::new(params_end, item.body_span(db).start));
        if !lex::is_blank(&behind) {
            self.refusals.add(
                format!(
                    "gridfuse doesn't understand `{}` after the parameters of `{name}`",
                    behind.trim()
                ),
                at_name,
            );
        }
        let (text, head_start) = self.head_with_linkage();
        let mut refuse = |word: &str| {
            let why = format!("`{word}` in front of `{name}` is not understood");
            self.refusals.add(why, at_name);
        };
        if let Some(word) = word_in_front(db, file, head_start.min(self.start)) {
            refuse(word);
        }
        let head = Head::read(db, file, &text, head_start);
        if let Err(word) = &head {
            refuse(word);
        }
        (head.ok(), head_start)
    }

    /// The head, and where it begins: with the `extern "C"` in front of it.
    fn head_with_linkage(&self) -> (String, u32) {
        let signature = self.item.signature(self.db);
        let start = signature.head_span.start + self.start;
        let head = self.source(signature.head_span);
        let before = self.text.get(..start as usize).unwrap_or("");
        let linkage = before
            .trim_end()
            .strip_suffix("\"C\"")
            .map(str::trim_end)
            .and_then(|line| line.strip_suffix("extern"));
        match linkage {
            Some(at) if signature.extern_c => {
                let linkage = before.get(at.len()..).unwrap_or("");
                (format!("{linkage}{head}"), at.len() as u32)
            }
            _ => (head, start),
        }
    }

    /// The template header, and its parameters as arguments.
    fn template(&mut self) -> (Option<String>, String) {
        let signature = self.item.signature(self.db);
        if signature.template_params.is_none() {
            return (None, String::new());
        }
        let header = Span::new(0, signature.head_span.start).shift(self.start);
        let header = header.text(&self.text).trim_end().to_owned();
        let words = lex::code_words(&header);
        let packs = header.contains("...");
        let closed = words.first() == Some(&"template") && words.last() == Some(&">");
        if signature.template_names.is_empty() || packs || !closed || words.contains(&"requires") {
            let place = self.at_name();
            self.refusals.add(
                format!("the template parameters of `{}` are not understood", self.name),
                place,
            );
        }
        if signature.template_names.iter().any(String::is_empty) {
            let place = self.at_name();
            self.refusals.add(
                format!(
                    "a template parameter of `{}` has no name: give it one, so that it can be handed on",
                    self.name
                ),
                place,
            );
        }
        (Some(header), format!("<{}>", signature.template_names.join(", ")))
    }

    fn params(&mut self, names: &mut Names) -> Vec<Param> {
        let body = self.body.clone();
        for binding in &body.bindings {
            names.add(&binding.name);
        }
        let ids = body.params.iter().map(|p| body.binding(*p));
        let named: Vec<&str> = ids.clone().map(|p| p.name.as_str()).collect();
        let numbered = ids.enumerate();
        numbered.map(|(index, p)| self.param(index, p, &named, names)).collect()
    }

    /// One parameter. `named`: the names of all.
    fn param(&mut self, index: usize, binding: &Binding, named: &[&str], names: &mut Names) -> Param {
        let place = self.place(binding.decl_span);
        let end = binding.default.map_or(binding.decl_span.end, |d| d.start);
        let written = self.source(Span::new(binding.decl_span.start, end));
        let mut decl = written.trim_end().trim_end_matches('=').trim_end().to_owned();
        let shown = if binding.name.is_empty() {
            decl.clone()
        } else {
            binding.name.clone()
        };
        // `int a[]` is `int* a`.
        let mut ty = binding.ty.clone();
        if let Some(pointer) = pointer_for_array(&decl, &binding.name, &ty) {
            decl = pointer;
            ty.array.clear();
            ty.pointers += 1;
        }
        if let Some(why) = unfit_param(self.db, self.item, &ty, &decl) {
            self.refusals
                .add(format!("parameter `{shown}` of `{}` {why}", self.name), place);
        }
        let mut name = binding.name.clone();
        if name.is_empty() {
            name = names.fresh(&format!("arg{}", index + 1));
            let space = if decl.ends_with(" *") { "" } else { " " };
            decl = format!("{decl}{space}{name}");
        }
        let field = field_of(&decl, &ty);
        let elaborated = elaborated(self.db, self.file, &field, named);
        if elaborated.is_none() {
            self.refusals.add(
                format!(
                    "parameter `{shown}` of `{}` has a type with the name of a parameter; give that another name",
                    self.name
                ),
                place,
            );
        }
        Param {
            field: elaborated.unwrap_or(field),
            name,
            decl,
            ty,
        }
    }
}

/// What keeps a parameter's value from being written down and passed on.
fn unfit_param(db: &dyn Db, item: FunctionItem<'_>, ty: &Type, decl: &str) -> Option<String> {
    if ty.reference {
        Some("is a reference".to_owned())
    } else if ty.complex || !ty.array.is_empty() {
        Some("has a type that is not understood".to_owned())
    } else if decl.contains("__grid_constant__") {
        Some("is __grid_constant__".to_owned())
    } else if ty.restrict && !lex::identifiers(decl).any(reads_as_restrict) {
        Some("has a type that hides `__restrict__`; write it at the parameter".to_owned())
    } else {
        copies_plainly(db, item, ty, 0).err()
    }
}

/// What stands directly in front of an item, which begins at `at`, and belongs to it, though the item doesn't include it: an attribute.
/// All rewrites ask for it, and a macro of megabytes may stand there.
#[salsa::tracked]
fn word_in_front(db: &dyn Db, file: SourceFile, at: u32) -> Option<String> {
    // No further back than to the end of the function before it.
    let from = anchor(db, file, at) as usize;
    word_before(&file.text(db), from, at as usize)
}

/// What stands directly in front of `at` and belongs to what stands there; `from`: where something else ends.
fn word_before(text: &str, from: usize, at: usize) -> Option<String> {
    let before = text.get(..at)?;
    let mut tokens = lex::code_tokens(before.get(from..)?);
    for token in &mut tokens {
        (token.start, token.end) = (token.start + from, token.end + from);
    }
    let last = tokens.last()?;
    if matches!(last.text(before), ";" | "}" | "{") {
        return None;
    }
    // The end of a directive, which may go on over several lines.
    let mut line = style::line_start(before, last.start);
    while line > 0
        && before
            .get(..line)
            .is_some_and(|t| t.trim_end_matches(['\r', '\n']).ends_with('\\'))
    {
        line = style::line_start(before, line - 1);
    }
    if before.get(line..).is_some_and(|t| t.trim_start().starts_with('#')) && line < style::line_start(text, at) {
        return None;
    }
    let first = tokens
        .iter()
        .rposition(|t| matches!(t.text(before), ";" | "}" | "{"))
        .map_or(0, |i| i + 1);
    let words = tokens.get(first..)?;
    let start = words.iter().map(|t| t.start).find(|s| *s >= line).unwrap_or(last.start);
    before.get(start..last.end).map(str::to_owned)
}

/// Refuses a function of which it isn't certain that it is a kernel, or what kind of one.
pub fn refuse_uncertain(db: &dyn Db, item: FunctionItem<'_>, refusals: &mut Refusals) {
    let aliases = &visible_names(db, item.file(db)).aliases;
    let redefined = ctype::SYNONYMS.iter().find_map(|name| {
        // A type of the function's own, or a parameter of its template.
        let own = || hides(db, item, name).then(|| "a type of its own".to_owned());
        let other = aliases
            .get(*name)
            .filter(|to| ctype::normalize(to) != ctype::normalize(name));
        let target = other.map(|to| format!("`{to}`")).or_else(own)?;
        Some((name, target))
    });
    if let Some((name, target)) = redefined {
        let name_span = item.signature(db).name_span.shift(item.start(db));
        refusals.add(
            format!(
                "`{name}` stands for {target} in this program, not for the type that it is elsewhere; call it otherwise"
            ),
            Some(FileRange {
                file: item.file(db),
                range: name_span,
            }),
        );
    }
    let Some(span) = item.signature(db).uncertain else {
        return;
    };
    let (file, range) = (item.file(db), span.shift(item.start(db)));
    let text = file.text(db);
    let name = range.text(&text).split('(').next().unwrap_or("").trim_end();
    refusals.add(
        format!(
            "what the macro `{name}` in front of `{}` stands for is not certain",
            unqualified(item.name(db))
        ),
        Some(FileRange { file, range }),
    );
}

/// Whether a specifier that a macro stands for changes nothing for kernels that are made from this one.
fn is_kernel_specifier(word: &str) -> bool {
    matches!(word, "__global__" | "inline" | "static" | "extern" | "\"C\"")
        || word.starts_with("__launch_bounds__")
        || word.starts_with("__attribute__") && word.contains("visibility")
}

#[derive(Default)]
struct Head {
    is_static: bool,
    is_inline: bool,
    launch_bounds: Option<String>,
}

impl Head {
    /// Understands the words in front of a kernel's name, or gives the one that it doesn't know.
    fn read(db: &dyn Db, file: SourceFile, text: &str, offset: u32) -> Result<Head, String> {
        let mut head = Head::default();
        let masked = masked(db, file);
        let macros = &masked.specifiers;
        let tokens = lex::code_tokens(text);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let word = token.text(text);
            at += 1;
            match word {
                "__global__" | "void" | "extern" | "\"C\"" => {}
                "static" => head.is_static = true,
                "inline" => head.is_inline = true,
                "__launch_bounds__" => {
                    let mut depth = 0;
                    let from = token.start;
                    while let Some(token) = tokens.get(at) {
                        at += 1;
                        match token.text(text) {
                            "(" => depth += 1,
                            ")" => depth -= 1,
                            _ => {}
                        }
                        if depth == 0 {
                            head.launch_bounds = text.get(from..token.end).map(str::to_owned);
                            break;
                        }
                    }
                }
                _ => {
                    let place = offset + token.start as u32;
                    let used = macros.binary_search_by_key(&place, |m| m.start).ok();
                    let Some(used) = used.and_then(|index| macros.get(index)) else {
                        return Err(word.to_owned());
                    };
                    // With the function's name among its arguments it can't be taken apart.
                    if used.end > offset + text.len() as u32 || !used.words.iter().all(|w| is_kernel_specifier(w)) {
                        return Err(word.to_owned());
                    }
                    head.is_static |= used.has("static");
                    head.is_inline |= used.has("inline");
                    if let Some(bounds) = used.with_arguments("__launch_bounds__") {
                        head.launch_bounds = Some(bounds.to_owned());
                    }
                    while tokens.get(at).is_some_and(|t| offset + (t.start as u32) < used.end) {
                        at += 1;
                    }
                }
            }
        }
        Ok(head)
    }
}

/// Whether a value of this type can be passed on by value in device code and copied byte by byte.
pub(crate) fn copies_plainly(db: &dyn Db, function: FunctionItem<'_>, ty: &Type, depth: u32) -> Result<(), String> {
    if ty.pointers > 0 {
        return Ok(());
    }
    if function.signature(db).template_types.contains(&ty.base) {
        return Ok(());
    }
    if hides(db, function, ty.base.trim_start_matches("struct ").trim()) {
        return Err(format!("has the type `{}`, which isn't known", ty.base));
    }
    plain_base(db, function.file(db), &ty.base, depth)
}

/// A type's name as it is looked up, without the word that says that it's a type.
fn without_keyword(base: &str) -> &str {
    let base = base.trim();
    let word = ["struct ", "typename "].iter().find_map(|word| base.strip_prefix(word));
    word.unwrap_or(base).trim()
}

fn plain_base(db: &dyn Db, file: SourceFile, base: &str, depth: u32) -> Result<(), String> {
    let short = without_keyword(base);
    if is_plain_type(short) || is_plain_type(&ctype::normalize(short)) {
        return Ok(());
    }
    let unknown = || format!("has the type `{short}`, which isn't known");
    if depth > 8 {
        return Err(unknown());
    }
    // `KMeans<D>::Data`: what the class template has of that name.
    let name = without_template_arguments(short);
    let key = unqualified(name.trim());
    let mut found: Vec<TypeItem> = Vec::new();
    for file in included_files(db, file) {
        found.extend(items(db, *file).types.iter().filter(|t| t.name == key).cloned());
    }
    let aliases = &visible_names(db, file).aliases;
    // An alias in a class template stands for another type in each instance.
    if short.contains('<') && name.contains("::") && aliases.contains_key(key) && depth == 0 {
        return Err(unknown());
    }
    match found.as_slice() {
        [] => match aliases.get(key) {
            Some(target) if target.contains('*') => Ok(()),
            Some(target) if !target.contains('(') => plain_base(db, file, target, depth + 1),
            _ => Err(unknown()),
        },
        [one] if one.is_enum => Ok(()),
        [one] if one.nontrivial => Err(format!("has the type `{short}`, whose copying may run code")),
        [_] if matches!(asked_of(db, file, key), Asked::Bytes(bytes) if bytes > MOST_ALIGNED) => Err(format!(
            "has the type `{short}`, which is aligned to more than {MOST_ALIGNED} bytes"
        )),
        [one] if short.contains('<') => {
            // Its members may be of the types that are its arguments.
            for argument in lex::identifiers(short).skip(1) {
                let is_class = included_files(db, file)
                    .iter()
                    .any(|f| items(db, *f).types.iter().any(|t| t.name == argument));
                if argument != key && is_class {
                    plain_base(db, file, argument, depth + 1).map_err(|_| {
                        format!("has the type `{short}`, which holds `{argument}`, whose copying may run code")
                    })?;
                }
            }
            let known = one
                .fields
                .iter()
                .all(|(ty, name)| !name.contains('(') || declares_function(ty, name, key));
            known.then_some(()).ok_or_else(unknown)
        }
        [one] => {
            for (ty, name) in &one.fields {
                if !name.contains('*') && !declares_function(ty, name, key) {
                    plain_base(db, file, ty, depth + 1)
                        .map_err(|_| format!("has the type `{short}`, whose field `{name}` isn't known to be plain"))?;
                }
            }
            Ok(())
        }
        _ => Err(unknown()),
    }
}

/// Whether `ty declarator;` in a class declares a member function for sure: nothing that is stored is `void`, or of the class itself.
fn declares_function(ty: &str, declarator: &str, class: &str) -> bool {
    let words: Vec<&str> = lex::identifiers(ty).filter(|word| *word != "const").collect();
    declarator.contains('(') && matches!(words.as_slice(), [one] if *one == "void" || *one == class)
}

/// `const int* a` for a parameter that is declared as `const int a[]`: that's what it is.
fn pointer_for_array(decl: &str, name: &str, ty: &Type) -> Option<String> {
    let (before, extent) = decl.strip_suffix(']')?.split_once('[')?;
    if ty.array.len() != 1 || extent.contains(['[', ']']) || name.is_empty() || ty.reference || ty.complex {
        return None;
    }
    let before = before.trim_end().strip_suffix(name)?;
    let apart = before.ends_with(|c: char| c.is_whitespace() || c == '*');
    apart.then(|| format!("{}* {name}", before.trim_end()))
}

/// A parameter's declaration as a struct field.
fn field_of(decl: &str, ty: &Type) -> String {
    let tokens = lex::code_tokens(decl);
    let last_star = tokens.iter().rposition(|t| t.text(decl) == "*");
    let mut angle = 0i32;
    let mut out = String::new();
    let mut copied = 0;
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(decl);
        match word {
            "<" => angle += 1,
            ">" => angle -= 1,
            _ => {}
        }
        let restrict = matches!(word, "__restrict__" | "__restrict" | "restrict");
        let own_const = word == "const"
            && angle == 0
            && match last_star {
                Some(star) => index > star,
                None => ty.pointers == 0,
            };
        if restrict || own_const {
            out.push_str(decl.get(copied..token.start).unwrap_or(""));
            copied = token.end;
            // The space behind it goes, too.
            while decl.as_bytes().get(copied).is_some_and(u8::is_ascii_whitespace) {
                copied += 1;
            }
        }
    }
    out.push_str(decl.get(copied..).unwrap_or(""));
    out.trim().to_owned()
}

/// A field whose type isn't taken for a field of its struct that has the type's name: `struct node* node`. `named`: the fields. `None`
/// where the type is known by that name alone.
fn elaborated(db: &dyn Db, file: SourceFile, field: &str, named: &[&str]) -> Option<String> {
    let tokens = lex::code_tokens(field);
    let words = tokens.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word);
    let own = words.clone().next_back()?.0;
    let mut out = String::new();
    let mut copied = 0;
    for (index, token) in words {
        let word = token.text(field);
        let before = index.checked_sub(1).map_or("", |i| tokens[i].text(field));
        let told = matches!(before, "struct" | "class" | "union" | "enum" | ":");
        if index == own || told || !named.contains(&word) {
            continue;
        }
        let keys = ["struct", "class", "union", "enum"];
        let key = keys.into_iter().find(|key| declares_type(db, file, key, word))?;
        out.push_str(field.get(copied..token.start)?);
        out.push_str(key);
        out.push(' ');
        copied = token.start;
    }
    out.push_str(field.get(copied..)?);
    Some(out)
}

/// Whether `struct node` stands outside of functions.
fn declares_type(db: &dyn Db, file: SourceFile, key: &str, name: &str) -> bool {
    included_files(db, file).iter().any(|file| {
        let types = &items(db, *file).types;
        types.iter().any(|t| t.name == name && t.is_enum == (key == "enum")) && {
            let text = file.text(db);
            let words = code_tokens_of(db, *file);
            words
                .windows(2)
                .any(|pair| pair[0].text(&text) == key && pair[1].text(&text) == name)
        }
    })
}

/// Recognises a child whose body is one call `name(blockIdx, gridDim, blockDim, params…)`.
fn already_outlined<'db>(
    db: &'db dyn Db,
    item: FunctionItem<'db>,
    body: &Body,
    template_args: &str,
) -> Option<Outlined<'db>> {
    let StmtKind::Block(stmts) = &body.stmt(body.root?).kind else {
        return None;
    };
    let [only] = stmts.as_slice() else { return None };
    let StmtKind::Expr(expr) = body.stmt(*only).kind else {
        return None;
    };
    let ExprKind::Call {
        name: Some(name),
        args,
        template_args: written,
        ..
    } = &body.expr(expr).kind
    else {
        return None;
    };
    let builtin = |index: usize| match args.get(index).map(|a| &body.expr(*a).kind) {
        Some(ExprKind::Name(Name::Builtin(builtin))) => Some(*builtin),
        _ => None,
    };
    let takes_thread = builtin(0) == Some(Builtin::ThreadIdx);
    let first = usize::from(takes_thread);
    let expected = [Builtin::BlockIdx, Builtin::GridDim, Builtin::BlockDim];
    if !expected.iter().enumerate().all(|(i, b)| builtin(first + i) == Some(*b)) {
        return None;
    }
    let rest = args.get(first + 3..)?;
    let same = rest.len() == body.params.len()
        && rest
            .iter()
            .zip(&body.params)
            .all(|(a, p)| matches!(body.expr(*a).kind, ExprKind::Name(Name::Local(b)) if b == *p));
    let text = item.file(db).text(db);
    let written = written.map_or("", |s| s.shift(item.start(db)).text(&text));
    if !same || lex::code_words(written) != lex::code_words(template_args) {
        return None;
    }
    let mut bodies = functions_in(db, item, name).into_iter().filter(|f| f.has_body(db));
    let function = bodies.next()?;
    let moved = function.signature(db).device && takes_what_it_reads(db, function, takes_thread);
    (bodies.next().is_none() && moved).then(|| Outlined {
        function,
        name: name.clone(),
        takes_thread,
    })
}

/// The function has what a moved body has: parameters in the place of the built-in variables, with their names, so that it can't read
/// those, and copies of the kernel's parameters. A function of the user's that is called in the same way may do anything.
fn takes_what_it_reads(db: &dyn Db, function: FunctionItem<'_>, takes_thread: bool) -> bool {
    const NAMES: [&str; 4] = ["threadIdx", "blockIdx", "gridDim", "blockDim"];
    let parameters = parameters(db, function);
    let names = &NAMES[usize::from(!takes_thread)..];
    parameters.len() >= names.len()
        && parameters.iter().zip(names).all(|(p, name)| p.name == *name)
        && parameters.iter().all(|p| !p.ty.reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_front() {
        let word = |text: &str| word_before(text, 0, text.len());
        assert_eq!(word("int x;\n__cluster_dims__(2) "), Some("__cluster_dims__(2)".into()));
        for fine in [
            "",
            "int x;\n",
            "}\n",
            "namespace a {\n",
            "#define A \\\n  b(c)\n",
            "#include <a>\r\n// x\n",
        ] {
            assert_eq!(word(fine), None, "{fine}");
        }
    }

    #[test]
    fn arrays_are_pointers() {
        let array = Type {
            array: vec![None],
            ..Type::default()
        };
        let pointer = |decl: &str| pointer_for_array(decl, "a", &array);
        assert_eq!(pointer("const int a[]").as_deref(), Some("const int* a"));
        assert_eq!(pointer("int* a [ 4 ]").as_deref(), Some("int** a"));
        assert_eq!(pointer("int (&a)[4]"), None);
        assert_eq!(pointer("int a[2][3]"), None);
        assert_eq!(pointer("int* a"), None);
    }

    #[test]
    fn fields() {
        let value = Type::default();
        let pointer = Type {
            pointers: 1,
            ..Type::default()
        };
        assert_eq!(field_of("const int n", &value), "int n");
        assert_eq!(field_of("int const n", &value), "int n");
        assert_eq!(field_of("const int* __restrict__ const p", &pointer), "const int* p");
        assert_eq!(field_of("int *__restrict__ p", &pointer), "int *p");
        assert_eq!(field_of("Pair<const int> p", &value), "Pair<const int> p");
    }
}
