//! Launches where calls have taken their place.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::names::unqualified;

use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::one_line::flat;
use crate::edit::style;
use crate::emit::was;

/// How launches and the functions around them looked, where the code that has taken their place doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// The launches as the notes above say.
    noted: bool,
    /// The functions on one line each.
    one_line: bool,
    /// The launches without the last arguments that are the child's default ones.
    by_default: bool,
}

impl Looks {
    /// All, the likeliest first.
    pub const ALL: [Looks; 8] = [
        Looks::new(true, true, false),
        Looks::new(true, false, false),
        Looks::new(false, true, false),
        Looks::new(false, false, false),
        Looks::new(true, true, true),
        Looks::new(true, false, true),
        Looks::new(false, true, true),
        Looks::new(false, false, true),
    ];

    /// The same without notes, for launches that go elsewhere than they did.
    pub const UNNOTED: [Looks; 4] = [Looks::ALL[2], Looks::ALL[3], Looks::ALL[6], Looks::ALL[7]];

    const fn new(noted: bool, one_line: bool, by_default: bool) -> Looks {
        Looks {
            noted,
            one_line,
            by_default,
        }
    }

    /// The launches as the notes above say.
    pub fn noted(self) -> bool {
        self.noted
    }

    /// The functions on one line each.
    pub fn one_line(self) -> bool {
        self.one_line
    }

    /// The launches without the last arguments that are the child's default ones.
    pub fn by_default(self) -> bool {
        self.by_default
    }
}

/// Puts a launch in place of a call: the one that a note says, or else one of this kernel, as it is named here, with this configuration
/// and these arguments. `None` where that isn't what was there: a note that isn't to be read says more of the configuration, a stream perhaps.
pub fn put_back(
    edit: &mut EditBuilder<'_>,
    call: FileRange,
    kernel: &str,
    config: &[String],
    arguments: &[String],
    looks: Looks,
) -> Option<()> {
    if looks.noted && put_noted_back(edit, call, kernel).is_some() {
        return Some(());
    }
    let noted = was::of_kernel(&edit.text(call.file), call.range.start as usize, unscoped(kernel));
    if noted.is_some_and(|note| note.config_len() > Some(config.len())) {
        return None;
    }
    let flat = |codes: &[String]| codes.iter().map(|code| flat(code)).collect::<Vec<String>>();
    let (config, arguments) = (flat(config), flat(arguments));
    let (text, style) = (edit.text(call.file), edit.style(call.file));
    let code = was::plain(&text, call.range, &style, kernel, &config, &arguments);
    edit.replace(call, code);
    Some(())
}

/// A kernel's name without scope and template arguments.
fn unscoped(kernel: &str) -> &str {
    unqualified(kernel.split('<').next().unwrap_or(kernel).trim_end())
}

/// Puts the launch of a kernel in place of a call that a note above it says; `None` where there is none.
pub fn put_noted_back(edit: &mut EditBuilder<'_>, call: FileRange, kernel: &str) -> Option<()> {
    let launch = delete_note(edit, call, kernel)?;
    edit.replace(call, launch);
    Some(())
}

/// Deletes the note above a call that says which launch of a kernel it was, and gives that.
pub fn delete_note(edit: &mut EditBuilder<'_>, call: FileRange, kernel: &str) -> Option<String> {
    let text = edit.text(call.file);
    let note = was::of_kernel(&text, call.range.start as usize, unscoped(kernel))?;
    let range = note.lines;
    edit.replace(FileRange { range, ..call }, "");
    Some(note.launch)
}

/// Puts the statements back that notes in a part of a file tell of.
pub fn put_statements_back(edit: &mut EditBuilder<'_>, part: FileRange) {
    let text = edit.text(part.file);
    let code = part.range.text(&text);
    for comment in lex::comments(code) {
        let Some(statement) = was::inline(comment.text(code)) else {
            continue;
        };
        let start = part.range.start + comment.start as u32;
        let range = TextRange::new(start, part.range.start + comment.end as u32);
        edit.replace(FileRange { range, ..part }, statement);
    }
    for note in was::in_range(&text, part.range)
        .into_iter()
        .filter(|note| !note.is_launch())
    {
        let start = note.lines.start as usize;
        let newline = edit.style(part.file).newline;
        let code = format!("{}{}{newline}", style::indent_at(&text, start), note.launch);
        edit.replace(
            FileRange {
                range: note.lines,
                ..part
            },
            code,
        );
    }
}

/// A text in which launches into a stream of ours were rewritten, with the notes that the text had before in place of those that tell of that
/// stream.
pub fn with_notes_of(before: &str, now: &str, stream: &str) -> String {
    let all = |text: &str| was::in_range(text, TextRange::new(0, text.len() as u32));
    let known = all(before);
    let is_made = |note: &was::Note| {
        note.is_launch()
            && note.launch.contains(&format!("{stream}>>>"))
            && !known.iter().any(|k| k.launch == note.launch)
    };
    let made: Vec<was::Note> = all(now).into_iter().filter(is_made).collect();
    let mut text = now.to_owned();
    for (at, note) in made.iter().enumerate().rev() {
        let of_kernel = |other: &&was::Note| other.kernel() == note.kernel();
        let number = made[..at].iter().filter(of_kernel).count();
        let others = known.iter().filter(of_kernel);
        let same = others.clone().count() == made.iter().filter(of_kernel).count();
        let own = others.clone().nth(number).filter(|_| same);
        let lines = own.map_or("", |own| own.lines.text(before));
        text.replace_range(note.lines.start as usize..note.lines.end as usize, lines);
    }
    text
}
