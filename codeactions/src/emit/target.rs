//! What the rewrites that replace a launch statement share: which statements can be replaced, what is copied from them, and
//! how the replacement is put in place.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::closures::captures_variables;
use gridfuse_analysis::facts::launch::Places;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::mentions::anchor;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, Name, StmtId, StmtKind, parameters};

use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self, TokenKind};
use crate::edit::one_line::has_long_literal;
use crate::edit::style;
use crate::facts::child::Child;
use crate::facts::movable;
use crate::facts::pure;
use crate::facts::site::Site;

impl Child<'_> {
    /// The first byte of the child: of its template header, of `extern "C"`, or of its first word.
    pub fn front(&self) -> u32 {
        self.start.min(self.head_start)
    }
}

/// Refuses a launch that is not a statement of its own.
pub fn refuse_place(site: &Site<'_>, refusals: &mut Refusals) {
    if site.facts.statement.is_none() {
        refusals.add("the launch is part of a larger expression", Some(site.here()));
    }
    let in_head = site.facts.statement.is_some_and(
        |s| matches!(site.around(s), Some(StmtKind::For { init, .. } | StmtKind::If { init, .. }) if *init == Some(s)),
    );
    if in_head {
        refusals.add("the launch stands in the head of a loop or an `if`", Some(site.here()));
    }
    // Indented anew, it would read differently.
    if site
        .facts
        .statement
        .is_some_and(|s| has_long_literal(site.source(site.body.stmt(s).span)))
    {
        refusals.add("the launch holds a string over several lines", Some(site.here()));
    }
}

/// Refuses a launch under an `#if` that isn't decided, for rewrites that make all of its kernel anew. Where only the statement is replaced
/// and the rest stays right without it, the other branch is as good as an `if` that isn't taken.
pub fn refuse_undecided(site: &Site<'_>, refusals: &mut Refusals) {
    if site.facts.conditional {
        refusals.add("the launch stands under an #if", Some(site.here()));
    }
}

/// Refuses a configuration that can't be evaluated twice.
pub fn refuse_effects_in_config(site: &Site<'_>, refusals: &mut Refusals) {
    for (index, config) in site.launch.config.iter().enumerate() {
        if let Some(part) = pure::not_repeatable(site, *config) {
            let what = match index {
                0 => "grid size",
                1 => "block size",
                2 => "shared memory size",
                _ => "stream",
            };
            let place = site.place(site.body.expr(part).span);
            refusals.add(
                format!("the {what} calls or changes something, so it can't be evaluated twice"),
                Some(place),
            );
        }
    }
}

/// Refuses operands that are not understood, and arguments that are left to default values, for what stands where the launch stands.
pub fn refuse_operands(site: &Site<'_>, refusals: &mut Refusals) {
    // A lambda is made there as it is for the launch.
    refuse_but(site, false, &|arg| is_made_of_variables(site, arg), refusals);
}

/// The same where the operands are evaluated elsewhere; with `defaults`, a plain default value takes the place of an argument.
pub fn refuse_operands_but_defaults(site: &Site<'_>, defaults: bool, refusals: &mut Refusals) {
    refuse_but(site, defaults, &|_| false, refusals);
}

/// Whether an argument is a lambda, made of nothing but variables.
fn is_made_of_variables(site: &Site<'_>, arg: ExprId) -> bool {
    let lambda = site.body.strip_parens(arg);
    let expr = site.body.expr(lambda);
    // A copy of it would have static variables of its own, and a comment or a directive would end elsewhere.
    let source = site.expr_source(lambda);
    let odd = ["#", "//", "/*"].iter().any(|odd| source.contains(odd))
        || lex::identifiers(source).any(|word| word == "static");
    matches!(expr.kind, ExprKind::Lambda { .. }) && !expr.from_macro && !odd && captures_variables(source)
}

/// Refuses what isn't understood but for the arguments that `known` knows.
fn refuse_but(site: &Site<'_>, defaults: bool, known: &dyn Fn(ExprId) -> bool, refusals: &mut Refusals) {
    let args = || site.launch.args.iter().filter(|arg| !known(**arg));
    for operand in site.launch.config.iter().chain(args()) {
        if let Some(part) = pure::unknown_part(&site.body, *operand) {
            let place = site.place(site.body.expr(part).span);
            refusals.add("an operand of the launch is not understood", Some(place));
        }
    }
    for arg in args() {
        if pure::assigns(&site.body, *arg) {
            let place = site.place(site.body.expr(*arg).span);
            refusals.add("an argument of the launch changes a variable", Some(place));
        }
    }
    refuse_args_that_change_config(site, refusals);
    if let gridfuse_analysis::facts::launch::Child::Kernel(kernel) = site.facts.child {
        let wanted = gridfuse_analysis::hir::body(site.db, kernel).params.len();
        let given = site.launch.args.len();
        let written = defaults && (given..wanted).all(|index| plain_default(site.db, kernel, index).is_some());
        if given < wanted && !written {
            refusals.add(
                "the launch leaves out arguments that have default values",
                Some(site.here()),
            );
        } else if given > wanted {
            refusals.add(
                "the launch has more arguments than the kernel has parameters",
                Some(site.here()),
            );
        }
    }
}

/// Refuses arguments that call something which may change what decides the configuration: which is evaluated first isn't said anywhere.
fn refuse_args_that_change_config(site: &Site<'_>, refusals: &mut Refusals) {
    let body = &site.body;
    let calling = site.launch.args.iter().find_map(|arg| pure::not_repeatable(site, *arg));
    let Some(calling) = calling.filter(|e| matches!(body.expr(*e).kind, ExprKind::Call { .. })) else {
        return;
    };
    let configs: Vec<Span> = site.launch.config.iter().map(|c| body.expr(*c).span).collect();
    let changes = |e: ExprId| match &body.expr(e).kind {
        ExprKind::Name(Name::Local(b)) => !pure::only_assigned(site.db, site.parent, body, *b),
        ExprKind::Name(Name::Other(name)) => {
            matches!(meaning_in(site.db, site.parent, name), Meaning::Global(global) if !global.constant)
        }
        _ => false,
    };
    let within = |e: &ExprId| configs.iter().any(|c| c.contains(body.expr(*e).span));
    let mut all = (0..body.exprs.len() as u32).map(ExprId).filter(within);
    if let Some(changed) = all.find(|e| changes(*e)) {
        let what = site.source(body.expr(changed).span);
        refusals.add(
            format!(
                "an argument of the launch calls something that may change `{what}`, which its configuration depends on"
            ),
            Some(site.place(body.expr(calling).span)),
        );
    }
}

/// What a parameter needs that is written behind the others of a declaration or definition: a default argument where the last one
/// has one there. Another declaration of the function may have it instead, and it may stand only once.
///
/// `declared`: the parameter, `T name`. Its type is named, as `= {}` of a parameter is nothing that the grammar knows.
pub fn default_behind(db: &dyn Db, function: FunctionItem<'_>, declared: &str) -> String {
    let last = parameters(db, function).last();
    if !last.is_some_and(|last| last.has_default) {
        return String::new();
    }
    match declared.rsplit_once(' ') {
        Some((ty, _)) if ty.ends_with('*') => " = nullptr".to_owned(),
        Some((ty, _)) => format!(" = {}()", ty.trim_start_matches("const ")),
        None => " = {}".to_owned(),
    }
}

/// The default argument of a kernel's parameter, where it is a number or the like and means the same everywhere.
pub fn plain_default(db: &dyn Db, kernel: FunctionItem<'_>, index: usize) -> Option<String> {
    let body = gridfuse_analysis::hir::body(db, kernel);
    let span = body.binding(*body.params.get(index)?).default?;
    let text = kernel.file(db).text(db);
    let source = span.shift(kernel.start(db)).text(&text);
    let words = lex::code_words(source);
    let literal = |w: &str| matches!(w, "true" | "false" | "nullptr") || w.starts_with(|c: char| c.is_ascii_digit());
    let plain = match words.as_slice() {
        [one] => literal(one),
        ["-", number] => literal(number),
        _ => false,
    };
    plain.then(|| words.concat())
}

/// Refuses a child whose definition the parent doesn't see.
pub fn refuse_unseen(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) {
    if child.is_seen_from(site.file, site.start) {
        return;
    }
    let text = if child.item == site.parent {
        movable::is_recursive(&child.name)
    } else if child.file == site.file {
        format!("`{}` is defined below `{}`", child.name, site.parent_name())
    } else {
        let path = child.file.path(site.db).file_name().unwrap_or_default();
        format!(
            "`{}` is defined in {}, which this file doesn't include",
            child.name,
            path.to_string_lossy()
        )
    };
    refusals.add(text, Some(child.place()));
}

/// The offset in front of the comment lines and the pragmas directly above `at`, which start a line.
pub fn above_comment(db: &dyn Db, file: SourceFile, at: usize) -> usize {
    let mut first = above_comments_alone(db, file, at);
    let text = &file.text(db);
    while let Some(pragma) = pragma_above(text, first) {
        first = above_comments_alone(db, file, pragma);
    }
    first
}

/// Where the line above one begins, behind its indentation, if it's a pragma, which is about what follows it.
fn pragma_above(text: &str, at: usize) -> Option<usize> {
    let line = style::line_start(text, at);
    let above = style::line_start(text, line.checked_sub(1)?);
    let written = text.get(above..line)?.trim();
    let directive = written.strip_prefix('#').map(str::trim_start);
    let pragma = match directive.and_then(|directive| directive.strip_prefix("pragma")) {
        Some(rest) => !rest.trim_start().starts_with("once"),
        None => written.starts_with("_Pragma"),
    };
    pragma.then(|| above + style::indent_at(text, above).len())
}

fn above_comments_alone(db: &dyn Db, file: SourceFile, at: usize) -> usize {
    let text = &file.text(db);
    let line = style::line_start(text, at);
    if text.get(line..at).is_none_or(|t| !t.trim().is_empty()) {
        return at;
    }
    let mut first = line;
    let from = anchor(db, file, line as u32) as usize;
    let comments = lex::comments(text.get(from..line).unwrap_or(""));
    for comment in comments.iter().rev() {
        let comment = from + comment.start..from + comment.end;
        let own = style::line_start(text, comment.start);
        let alone = text.get(own..comment.start).is_some_and(|t| t.trim().is_empty());
        let directly = text
            .get(comment.end..first)
            .is_some_and(|t| t.trim().is_empty() && t.matches('\n').count() <= 1);
        if !alone || !directly {
            break;
        }
        first = own;
    }
    // The caller inserts behind the indentation and puts it there again.
    let indent = style::indent_at(text, first).len();
    first + indent
}

/// Whether a statement stands where the grammar wants exactly one: `if (c) launch;`.
pub fn is_sole(site: &Site<'_>, statement: StmtId) -> bool {
    !stands_in_list(&site.body, &site.places, &site.text, site.start, statement)
}

/// Whether a statement of the function that begins at `start` of `text` stands in a list, so that others may stand beside it.
/// `do launch; while (0);` counts as a block but has no braces, and what has a label stands where the label does.
pub fn stands_in_list(body: &Body, places: &Places, text: &str, start: u32, statement: StmtId) -> bool {
    let around = std::iter::successors(places.parent(statement), |s| places.parent(*s));
    for outer in around.map(|s| body.stmt(s)) {
        match outer.kind {
            StmtKind::Case { .. } | StmtKind::Label(..) => {}
            StmtKind::Block(_) => return outer.span.shift(start).text(text).starts_with('{'),
            StmtKind::Preprocessor { .. } => return true,
            _ => return false,
        }
    }
    false
}

/// Appends an item to a list in parentheses: parameters or arguments.
pub fn append_item(edit: &mut EditBuilder<'_>, file: SourceFile, list: TextRange, item: &str) {
    append_items(edit, file, list, &[item.to_owned()]);
}

/// Appends items to a list in parentheses: parameters or arguments. Each on a line of its own, aligned with the first one of the list,
/// where the line would get too wide; indented once more than the line of the parenthesis, where that would be too wide, too.
pub fn append_items(edit: &mut EditBuilder<'_>, file: SourceFile, list: TextRange, items: &[String]) {
    append_items_to_wider(edit, file, list, items, 0);
}

/// The same where the last line of the list comes to be so many columns wider by what else is changed there.
pub fn append_items_to_wider(
    edit: &mut EditBuilder<'_>,
    file: SourceFile,
    list: TextRange,
    items: &[String],
    wider: usize,
) {
    let joined = items.join(", ");
    let text = edit.text(file);
    let style = edit.style(file);
    let (open, close) = (list.start as usize, list.end as usize - 1);
    let inner = text.get(open + 1..close).unwrap_or("");
    let tokens = lex::code_tokens(inner);
    let words: Vec<&str> = tokens.iter().map(|t| t.text(inner)).collect();
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        edit.insert(file, close as u32, joined);
        return;
    };
    if words == ["void"] {
        let range = TextRange::new((open + 1 + first.start) as u32, (open + 1 + first.end) as u32);
        edit.replace(FileRange { file, range }, joined);
        return;
    }
    let at = open + 1 + last.end;
    let line = style::line_start(&text, at);
    let used = text.get(line..at).unwrap_or("");
    let rest = text.get(at..style::line_end(&text, at)).unwrap_or("").trim_end();
    let width = style::columns(style::indent_at(&text, at)) + used.trim_start().chars().count() + wider;
    if width + 2 + joined.chars().count() + rest.chars().count() <= style.width {
        edit.insert(file, at as u32, format!(", {joined}"));
        return;
    }
    let first_line = style::line_start(&text, open + 1 + first.start);
    let mut align: String = text
        .get(first_line..open + 1 + first.start)
        .unwrap_or("")
        .chars()
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let longest = items.iter().map(|item| item.chars().count()).max().unwrap_or(0);
    if style::columns(&align) + longest + rest.chars().count() > style.width {
        let shorter = format!("{}{}", style::indent_at(&text, open), style.unit);
        if style::columns(&shorter) < style::columns(&align) {
            align = shorter;
        }
    }
    let column = style::columns(&align);
    let line = |(index, item): (usize, &String)| {
        let tail = if index + 1 == items.len() { rest } else { "," };
        let code = style.list(column, "", std::slice::from_ref(item), tail);
        let code = code.strip_suffix(tail).unwrap_or(&code);
        let newline = format!("{}{align}", style.newline);
        format!(",{newline}{}", code.replace('\n', &newline))
    };
    edit.insert(file, at as u32, items.iter().enumerate().map(line).collect::<String>());
}

/// Puts generated code in the place of an argument, on a line of its own where it would be too wide.
pub fn replace_argument(edit: &mut EditBuilder<'_>, place: FileRange, code: &str) {
    let (text, style) = (edit.text(place.file), edit.style(place.file));
    let (start, end) = (place.range.start as usize, place.range.end as usize);
    let before = text.get(style::line_start(&text, start)..start).unwrap_or("");
    let indent = style::indent_at(&text, start);
    let column = style::columns(indent) + before.trim_start().chars().count();
    let rest = text.get(end..style::line_end(&text, end)).unwrap_or("").trim_end();
    if column + code.chars().count() + rest.chars().count() <= style.width {
        edit.replace(place, code);
        return;
    }
    let align = match before.trim().is_empty() {
        true => indent.to_owned(),
        false => format!("{indent}{}", style.unit),
    };
    let code = style.list(style::columns(&align), "", &[code.to_owned()], rest);
    let code = code.strip_suffix(rest).unwrap_or(&code);
    let newline = format!("{}{align}", style.newline);
    let code = code.replace('\n', &newline);
    if before.trim().is_empty() {
        edit.replace(place, code);
        return;
    }
    let gap = before.len() - before.trim_end().len();
    let range = TextRange::new((start - gap) as u32, place.range.end);
    edit.replace(FileRange { range, ..place }, format!("{newline}{code}"));
}

/// Puts items in front of the others in a list in parentheses: parameters or arguments.
pub fn prepend_items(edit: &mut EditBuilder<'_>, file: SourceFile, list: TextRange, items: &[String]) {
    let text = edit.text(file);
    let inner = text.get(list.start as usize + 1..list.end as usize - 1).unwrap_or("");
    let words = lex::code_words(inner);
    let mut items = items.join(", ");
    if words == ["void"] {
        let range = TextRange::new(list.start + 1, list.end - 1);
        edit.replace(FileRange { file, range }, items);
    } else {
        let style = edit.style(file);
        let open = list.start as usize + 1;
        let line = style::line_start(&text, open);
        let before = text.get(line..open).unwrap_or("");
        let rest = text.get(open..style::line_end(&text, open)).unwrap_or("").trim_end();
        let own = style::indent_at(&text, open);
        let column = style::columns(own) + before.trim_start().chars().count();
        let comma = if words.is_empty() {
            String::new()
        } else if column + items.chars().count() + 2 + rest.chars().count() <= style.width {
            ", ".to_owned()
        } else {
            let head = before.trim_start();
            let align = match column + items.chars().count() < style.width {
                true => format!("{own}{}", " ".repeat(head.chars().count())),
                false => {
                    // Behind the parenthesis there is no room: the items begin a line of their own, and the others the next.
                    let align = format!("{own}{}", style.unit);
                    let broken = style.declaration(style::columns(&align), "", &items, ",");
                    let broken = broken.strip_suffix(',').unwrap_or(&broken);
                    let newline = format!("{}{align}", style.newline);
                    items = format!("{newline}{}", broken.replace('\n', &newline));
                    align
                }
            };
            format!(",{}{align}", style.newline)
        };
        edit.insert(file, list.start + 1, format!("{items}{comma}"));
    }
}

/// Replaces a launch statement by generated code (`\n`, a tab a level). Where only one statement may stand it gets braces.
pub fn replace_statement(site: &Site<'_>, statement: StmtId, code: &str, edit: &mut EditBuilder<'_>) {
    let place = site.place(site.body.stmt(statement).span);
    if !is_sole(site, statement) {
        edit.replace_code(place, code);
        return;
    }
    // The brace goes behind `if (…)` or `else`, where nothing but white space stands in between.
    let start = place.range.start as usize;
    let before = site.text.get(..start).unwrap_or("");
    let head_end = before.trim_end().len();
    let comment_before = lex::tokens(before.get(style::line_start(before, head_end)..head_end).unwrap_or(""))
        .last()
        .is_some_and(|t| t.kind == TokenKind::Comment);
    let body = code.replace('\n', "\n\t");
    if comment_before {
        edit.replace_code(place, &format!("{{\n\t{body}\n}}"));
        return;
    }
    let range = TextRange::new(head_end as u32, place.range.end);
    let code = format!(" {{\n\t{body}\n}}");
    let place = FileRange { file: site.file, range };
    edit.replace_code(place, &code);
}
