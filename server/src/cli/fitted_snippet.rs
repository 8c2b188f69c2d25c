//! Rendered snippets that fit the terminal: messages, labels and notes are continued, source lines and what marks them are cut. Places stay
//! as they are, and so do commands, which are copied.

use std::ops::Range;

use super::fitted_table::known_width;

/// A label that has less room than this beside what it marks stands below.
const LEAST_ROOM: usize = 28;

/// Marks of which fewer characters than this would be seen are no help.
const LEAST_SEEN: usize = 12;

/// How far the lines after the first of a message are indented where its headline is longer than this.
const MESSAGE_HANG: usize = 8;

/// How a command begins, after its title.
const COMMAND: &str = ": gridfuse ";

/// How a command begins that stands in a sentence.
const QUOTED_COMMAND: &str = "`gridfuse ";

/// What marks code, and what leads from a label to it.
const MARKS: [char; 6] = [' ', '|', '^', '-', '_', '~'];

/// A width that cuts no source line. The renderer's own way of cutting lines draws marks of a line that it has cut under other code.
const UNCUT: usize = 1 << 20;

/// What `render` makes for a width of source lines, with lines that fit the terminal, where it's known how wide that is. `usual`: a width
/// where there is no need for another one.
pub fn fitted(usual: usize, render: impl Fn(usize) -> String) -> String {
    let whole = render(UNCUT);
    match known_width() {
        Some(width) => fitted_in(&squeezed(&whole, width), width),
        None if hides_marks(&whole, usual) => {
            let squeezed = squeezed(&whole, usual);
            let lines: Vec<String> = squeezed.split('\n').map(|line| source_in(line, usual)).collect();
            lines.join("\n")
        }
        None => render(usual),
    }
}

/// A rendered text without source lines.
pub fn fitted_text(rendered: &str) -> String {
    match known_width() {
        Some(width) => fitted_in(rendered, width),
        None => rendered.to_owned(),
    }
}

/// Marks begin so far on the right that nobody would see them.
fn hides_marks(rendered: &str, width: usize) -> bool {
    let lines = rendered.split('\n').flat_map(|line| without_inner_label(line, width));
    lines.into_iter().any(|line| {
        let plain = Line::of(&line).plain();
        marks(&plain).iter().any(|run| is_hidden(run, width))
    })
}

/// A line that has no room for a label between marks: the label comes below.
///
/// ```text
///    |     ---- a label     ^^^^ another one
/// ```
fn without_inner_label(text: &str, width: usize) -> Vec<String> {
    let line = Line::of(text);
    let plain = line.plain();
    let stays = || vec![text.to_owned()];
    if plain.len() <= width || !is_below_source(&plain) {
        return stays();
    }
    let label = line.label();
    let is_mark = |at: usize| matches!(plain.get(at), Some('^' | '-' | '~'));
    let is_next = |at: &usize| begins(&plain, at - 2, "  ") && is_mark(*at) && is_mark(at + 1);
    let bar = plain.iter().position(|c| *c == '|');
    let (Some(bar), Some(next), Some(run)) = (bar, (label + 2..plain.len()).find(is_next), marks(&plain).pop()) else {
        return stays();
    };
    let mut above = line.part(0, label);
    for (escapes, _) in &line.cells[label..next] {
        above.push_str(escapes);
        above.push(' ');
    }
    above.push_str(&line.part(next, plain.len()));
    above.push_str(line.tail);
    let end = plain[..next]
        .iter()
        .rposition(|c| *c != ' ')
        .map_or(next, |last| last + 1);
    // Colours end where the label does.
    let ending = line.cells.get(end).map_or("", |(escapes, _)| escapes);
    let before = format!("{}|{}", " ".repeat(bar), " ".repeat(run.start - bar - 1));
    let mut lines = without_inner_label(&above, width);
    lines.push(format!("{before}|"));
    lines.push(format!("{before}{}{ending}", line.part(label, end)));
    lines
}

fn is_hidden(run: &Range<usize>, width: usize) -> bool {
    run.end.min(run.start + LEAST_SEEN) > width
}

/// The columns that a line below a source line marks.
fn marks(plain: &[char]) -> Vec<Range<usize>> {
    let first = plain.iter().position(|c| *c != ' ').unwrap_or_default();
    let mut runs: Vec<Range<usize>> = Vec::new();
    if plain.get(first) != Some(&'|') {
        return runs;
    }
    for (at, c) in plain.iter().enumerate().skip(first + 1) {
        match c {
            '^' | '-' | '_' | '~' => match runs.last_mut().filter(|run| run.end == at) {
                Some(run) => run.end = at + 1,
                None => runs.push(at..at + 1),
            },
            ' ' | '|' => {}
            // The label.
            _ => break,
        }
    }
    runs
}

/// Where marks would have no room, code that isn't marked is left out before them, from the source line and from the lines below it alike:
/// marks stay under what they mark.
fn squeezed(rendered: &str, width: usize) -> String {
    let lines: Vec<String> = rendered
        .split('\n')
        .flat_map(|line| without_inner_label(line, width))
        .collect();
    let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::of(line)).collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let plain = line.plain();
        let first = plain.iter().position(|c| *c != ' ').unwrap_or_default();
        let below = lines[at + 1..].iter().take_while(|line| is_below_source(&line.plain()));
        let count = match is_source(&plain[first..]) {
            true => 1 + below.count(),
            false => 1,
        };
        let group = &lines[at..at + count];
        let left_out = left_out(group, width);
        for (nth, line) in group.iter().enumerate() {
            out.push(line.without(&left_out, nth == 0));
        }
        at += count;
    }
    out.join("\n")
}

/// Marks, and what is said of them.
fn is_below_source(plain: &[char]) -> bool {
    plain.iter().find(|c| **c != ' ') == Some(&'|')
}

/// The columns without which a source line and its marks have room.
fn left_out(group: &[Line<'_>], width: usize) -> Vec<Range<usize>> {
    let Some((source, below)) = group.split_first() else {
        return Vec::new();
    };
    let mut runs: Vec<Range<usize>> = below.iter().flat_map(|line| marks(&line.plain())).collect();
    runs.sort_by_key(|run| (run.start, run.end));
    let Some(last) = runs.last().filter(|run| is_hidden(run, width)).cloned() else {
        return Vec::new();
    };
    let source = source.plain();
    let Some(bar) = source.iter().position(|c| *c == '|') else {
        return Vec::new();
    };
    // Half of the line for the code that is out of sight.
    let mut excess = (last.start + last.len().min(width / 2)).saturating_sub(width - 1);
    let mut gaps: Vec<Range<usize>> = Vec::new();
    let mut from = bar + 2;
    for run in &runs {
        gaps.push(from..run.start.max(from));
        from = from.max(run.end);
    }
    // A gap that few columns would be taken from stays; what stands in one below the source, a label, stays too.
    gaps.retain(|gap| gap.len() > LEAST_SEEN && below.iter().all(|line| line.is_free(gap, &runs)));
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.len()));
    let mut out: Vec<Range<usize>> = Vec::new();
    for gap in gaps {
        if excess == 0 {
            break;
        }
        // `…` takes one of them.
        let taken = (excess + 1).min(gap.len());
        out.push(gap.start..gap.start + taken);
        excess = (excess + 1).saturating_sub(taken);
    }
    out.sort_by_key(|columns| columns.start);
    out
}

fn fitted_in(rendered: &str, width: usize) -> String {
    let lines: Vec<String> = rendered.split('\n').map(|line| line_in(line, width)).collect();
    lines.join("\n")
}

/// A line: characters, each with the escape sequences before it, which take no room.
struct Line<'t> {
    cells: Vec<(&'t str, char)>,
    /// Escape sequences after the last character.
    tail: &'t str,
}

impl<'t> Line<'t> {
    fn of(text: &'t str) -> Line<'t> {
        let mut cells = Vec::new();
        let mut from = 0;
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            if c != '\u{1b}' {
                cells.push((&text[from..at], c));
                from = at + c.len_utf8();
                continue;
            }
            // `ESC [ 1 m`
            for (_, c) in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        }
        Line {
            cells,
            tail: &text[from..],
        }
    }

    fn plain(&self) -> Vec<char> {
        self.cells.iter().map(|(_, c)| *c).collect()
    }

    /// Where the label of a line below source begins.
    fn label(&self) -> usize {
        let plain = self.plain();
        plain.iter().position(|c| !MARKS.contains(c)).unwrap_or(plain.len())
    }

    /// In a line below source: without these columns, what stands to the right of them stays under `runs`. A label that begins before them
    /// stays as it is, unless another label comes after it.
    fn is_free(&self, columns: &Range<usize>, runs: &[Range<usize>]) -> bool {
        let plain = self.plain();
        let label = self.label();
        let marked = plain.iter().take(label.min(columns.end)).skip(columns.start);
        let begins = |at: usize| at > 1 && plain.get(at - 2..at) == Some(&[' ', ' ']) && plain.get(at) != Some(&' ');
        let others = runs.iter().map(|run| run.start).filter(|at| *at >= columns.end);
        marked.copied().all(|c| " _".contains(c)) && (label >= columns.end || !others.into_iter().any(begins))
    }

    /// The line without these columns, for which a source line has `…`. Of a line below source, a label stays whole.
    fn without(&self, columns: &[Range<usize>], is_source: bool) -> String {
        let whole_from = match is_source {
            true => self.cells.len(),
            false => self.label(),
        };
        let mut out = String::new();
        for (at, (escapes, c)) in self.cells.iter().enumerate() {
            out.push_str(escapes);
            match columns.iter().find(|columns| columns.contains(&at)) {
                Some(columns) if at < whole_from => match at == columns.start {
                    true if is_source => out.push('…'),
                    true => out.push(*c),
                    false => {}
                },
                _ => out.push(*c),
            }
        }
        out + self.tail
    }

    /// Source, or marks without a label, as far as there is room.
    fn cut(&self, plain: &[char], width: usize) -> String {
        let first = plain.iter().position(|c| *c != ' ').unwrap_or_default();
        let (room, ending) = match plain.get(first) {
            Some('|') if plain[first..].iter().all(|c| MARKS.contains(c)) => (width, ""),
            Some(_) if is_source(&plain[first..]) => (width - 1, "…"),
            _ => (plain.len(), ""),
        };
        let room = room.min(self.cells.len());
        let mut out = self.part(0, room) + ending;
        // Colours end as they would have.
        out.extend(self.cells[room..].iter().map(|(escapes, _)| *escapes));
        out + self.tail
    }

    fn part(&self, from: usize, to: usize) -> String {
        let mut out = String::new();
        for (escapes, c) in &self.cells[from..to] {
            out.push_str(escapes);
            out.push(*c);
        }
        out
    }
}

/// How a line is continued.
struct Layout {
    /// Where its text begins.
    text: usize,
    /// What stands before the text on the lines after the first.
    before: String,
    /// The text has no room on the first line.
    below: bool,
    /// From here on nothing is broken.
    command: Option<usize>,
}

/// A source line as far as there is room; other lines as they are.
fn source_in(text: &str, width: usize) -> String {
    let line = Line::of(text);
    let plain = line.plain();
    let first = plain.iter().position(|c| *c != ' ').unwrap_or_default();
    match plain.len() > width && is_source(&plain[first..]) {
        true => line.cut(&plain, width),
        false => text.to_owned(),
    }
}

fn line_in(text: &str, width: usize) -> String {
    let line = Line::of(text);
    let plain = line.plain();
    let layout = match plain.len() <= width {
        true => None,
        false => layout(&plain, width),
    };
    // No room for anything.
    let Some(layout) = layout.filter(|layout| layout.before.chars().count() + LEAST_ROOM / 2 <= width) else {
        return match plain.len() > width && width >= LEAST_ROOM {
            true => line.cut(&plain, width),
            false => text.to_owned(),
        };
    };
    let hang = layout.before.chars().count();
    let mut out = match layout.below {
        true => line.part(0, layout.text.min(width)),
        false => line.part(0, layout.text),
    };
    let mut column = layout.text;
    if layout.below {
        out.truncate(out.trim_end().len());
        out.push_str(&format!("\n{}", layout.before));
        column = hang;
    }
    let mut is_first = true;
    for (from, to) in words(&plain, layout.text, layout.command) {
        let length = to - from;
        if !is_first && column + length > width {
            out.truncate(out.trim_end().len());
            out.push_str(&format!("\n{}", layout.before));
            column = hang;
        }
        out.push_str(&line.part(from, to));
        column += length;
        // The blank after it.
        if to < plain.len() {
            out.push_str(&line.part(to, to + 1));
            column += 1;
        }
        is_first = false;
    }
    out + line.tail
}

/// The words of a text from `start` on, each from its first character to the blank after it. A command is one word.
fn words(plain: &[char], start: usize, command: Option<usize>) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut from = start;
    let mut is_quoted_command = false;
    for (at, c) in plain.iter().enumerate().skip(start) {
        match c {
            '`' => is_quoted_command = !is_quoted_command && begins(plain, at, QUOTED_COMMAND),
            ' ' if !is_quoted_command && command.is_none_or(|command| at < command) => {
                words.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    words.push((from, plain.len()));
    words
}

fn begins(plain: &[char], at: usize, with: &str) -> bool {
    plain[at..].iter().copied().take(with.len()).eq(with.chars())
}

/// How a line that is too long is continued; `None`: not at all.
fn layout(plain: &[char], width: usize) -> Option<Layout> {
    let first = plain.iter().position(|c| *c != ' ')?;
    match plain[first] {
        '|' => label(plain, first, width),
        '=' => Some(message(plain, plain.len().min(first + 2))),
        // `--> a.cu:1:2` and `::: b.cu:3:4` are places, `12 | …` is source.
        '-' | ':' => None,
        _ if is_source(&plain[first..]) => None,
        _ => Some(message(plain, first)),
    }
}

fn is_source(plain: &[char]) -> bool {
    let digits = plain.iter().take_while(|c| c.is_ascii_digit()).count();
    digits > 0 && matches!(plain[digits..], [' ', '|', ..])
}

/// A headline, a note or what follows it, from `first` on: continued below what it says.
fn message(plain: &[char], first: usize) -> Layout {
    let mut text = first;
    // `warning[id]: `, `help: `, `assumes `
    let is_head = |c: &char| c.is_ascii_alphanumeric() || "[]-".contains(*c);
    let head = plain[first..].iter().take_while(|c| is_head(c)).count();
    if begins(plain, first + head, ": ") {
        text = first + head + 2;
    } else if begins(plain, first, "assumes ") {
        text = first + "assumes ".len();
    }
    // `(12) `
    let digits = plain.iter().skip(text + 1).take_while(|c| c.is_ascii_digit()).count();
    if plain.get(text) == Some(&'(') && digits > 0 && begins(plain, text + 1 + digits, ") ") {
        text += digits + 3;
    }
    let hang = match text - first > MESSAGE_HANG + 4 {
        true => first + MESSAGE_HANG,
        false => text,
    };
    let command = (text.saturating_sub(2)..plain.len()).find(|at| begins(plain, *at, COMMAND));
    Layout {
        text,
        before: " ".repeat(hang),
        below: false,
        command: command.map(|at| at + 2),
    }
}

/// What is said of marked code: continued below itself, or, where the marks leave no room for it, below these.
fn label(plain: &[char], gutter: usize, width: usize) -> Option<Layout> {
    let text = gutter + plain[gutter..].iter().position(|c| !MARKS.contains(c))?;
    let below = text + LEAST_ROOM > width;
    let hang = match below {
        false => text,
        true => {
            let marks = text - plain[..text].iter().rev().take_while(|c| **c == ' ').count();
            let run = plain[..marks]
                .iter()
                .rev()
                .take_while(|c| !matches!(c, ' ' | '|'))
                .count();
            Some(marks - run)
                .filter(|hang| hang + LEAST_ROOM <= width)
                .unwrap_or(gutter + 2)
        }
    };
    // The lines that lead to labels below go on.
    let before: String = plain[..hang]
        .iter()
        .map(|c| if *c == '|' { '|' } else { ' ' })
        .collect();
    Some(Layout {
        text,
        before,
        below,
        command: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{fitted_in, hides_marks, is_source, line_in, squeezed};

    const RENDERED: &str = "\u{1b}[1m\u{1b}[33mwarning[serialized-launches]\u{1b}[0m: child grids of `expand` run one at a time: all threads of a block launch into the same stream
  --> a/very/long/path/that/leads/to/some/directory/far/away/bfs.cu:49:9
   |
48 |     if (count > 0) {
   |         --------- only threads with `count > 0` get here, and only some of these
49 |         expand<<<(count + 127) / 128, 128>>>(col, dist, deepest, level, begin, count);
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ serialized with the other launches of the block
   |
   = help: let one grid run all rounds, and ask `gridfuse explain bfs.cu:49` how that is done
help: Collect launches per grid: gridfuse rewrite bfs.cu --at 49:9 --apply aggregate-grid
            assumes grids of `expand` are independent of each other in all that they do
note: (1) grids of `expand` are independent of each other in all that they do";

    #[test]
    fn messages_labels_and_notes_are_continued() {
        let expected = "\u{1b}[1m\u{1b}[33mwarning[serialized-launches]\u{1b}[0m: child grids of
        `expand` run one at a time: all threads
        of a block launch into the same stream
  --> a/very/long/path/that/leads/to/some/directory/far/away/bfs.cu:49:9
   |
48 |     if (count > 0) {
   |         ---------
   |         only threads with `count > 0` get
   |         here, and only some of these
49 |         expand<<<(count + 127) / 128, 128>>…
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |         serialized with the other launches
   |         of the block
   |
   = help: let one grid run all rounds, and ask
           `gridfuse explain bfs.cu:49` how that
           is done
help: Collect launches per grid:
      gridfuse rewrite bfs.cu --at 49:9 --apply aggregate-grid
            assumes grids of `expand` are
                    independent of each other in
                    all that they do
note: (1) grids of `expand` are independent of
          each other in all that they do";
        assert_eq!(fitted_in(RENDERED, 49), expected);
        // A label that has room beside what it marks goes on there.
        let label = "
   |         --------- only threads with `count > 0` get
   |                   here, and only some of these
";
        assert!(fitted_in(RENDERED, 57).contains(label));
        assert_eq!(fitted_in(RENDERED, 200), RENDERED);
        assert_eq!(fitted_in(RENDERED, 5), RENDERED);
    }

    #[test]
    fn source_and_marks_are_cut() {
        let bold = "\u{1b}[1m";
        let end = "\u{1b}[0m";
        let source = format!("12 |     {bold}child<<<grid, block>>>{end}(first, second);");
        assert_eq!(line_in(&source, 28), format!("12 |     {bold}child<<<grid, bloc…{end}"));
        let marks = format!("   |     {bold}{}{end}", "^".repeat(28));
        let cut = format!("   |     {bold}{}{end}", "^".repeat(19));
        assert_eq!(line_in(&marks, 28), cut);
        let place = "  --> some/long/path/to/a/file.cu:1:2";
        assert_eq!(line_in(place, 28), place);
        let many = format!("   |         {} a label", "^".repeat(40));
        let cut = format!("   |         {}\n   | a label", "^".repeat(27));
        assert_eq!(line_in(&many, 40), cut);
        // Far on the right.
        assert!(!hides_marks(&marks, 28) && hides_marks(&marks, 18));
    }

    /// Far on the right: a mark and its label, below code of which a part left of it is marked as well.
    const FAR: &str = "
  |
5 |     if (sizes[t] > 10) child<<<(sizes[t] + 255) / 256, 256>>>(out, sizes[t]); else child<<<1, 32>>>(out, 7);
  |         -------------                                                              ^^^^^^^^^^^^^^^^ serialized with others
  |         |
  |         threads with `sizes[t] > 10` don't get here, whatever the other threads of their blocks may do
  |
6 |     int nothing = 0;";

    #[test]
    fn marks_stay_under_what_they_mark() {
        let expected = "
  |
5 |     if (sizes[t] > 10… sizes[t]); else child<<<1, 32>>>…
  |         -------------                  ^^^^^^^^^^^^^^^^
  | serialized with others
  |         |
  |         threads with `sizes[t] > 10` don't get here,
  |         whatever the other threads of their blocks may
  |         do
  |
6 |     int nothing = 0;";
        assert_eq!(fitted_in(&squeezed(FAR, 60), 60), expected);
        assert_eq!(squeezed(FAR, 120), FAR);
        // The renderer puts a label between marks where that has room.
        let between = "
5 |     if (sizes[t] > 10) child<<<(sizes[t] + 255) / 256, 256>>>(out, sizes[t]); else child<<<1, 32>>>(out, 7);
  |         ------------- some don't get here                                          ^^^^^^^^^^^^^^^^ serialized";
        let expected = "
5 |     if (sizes[t] > 10… sizes[t]); else child<<<1, 32>>>…
  |         -------------                  ^^^^^^^^^^^^^^^^
  | serialized
  |         |
  |         some don't get here";
        assert_eq!(fitted_in(&squeezed(between, 60), 60), expected);
        // One mark alone.
        let one = "
18 |         for (int y = 0; y < p.ny; ++y) for (int x = 0; x < p.nx; ++x) s += p.fine[y * pitch + x];
   |                                                                            ------------- perhaps reads what `smooth` writes";
        let expected = "
18 | … for (int x = 0; x < p.nx; ++x) s += p.fine[y * pi…
   |                                       -------------
   | perhaps reads what `smooth` writes";
        assert_eq!(fitted_in(&squeezed(one, 57), 57), expected);
        // Wherever the terminal ends, what stands above the carets is what they mark.
        for width in 30..130 {
            let squeezed = squeezed(FAR, width);
            let lines: Vec<Vec<char>> = squeezed.lines().map(|line| line.chars().collect()).collect();
            let caret = lines[3].iter().position(|c| *c == '^');
            let above: Option<String> = caret.map(|at| lines[2][at..].iter().collect());
            assert_eq!(
                above.as_deref(),
                Some("child<<<1, 32>>>(out, 7);"),
                "{width}: {squeezed}"
            );
        }
    }

    #[test]
    fn nothing_is_lost() {
        let told = |line: &&str| !is_source(&line.chars().collect::<Vec<char>>());
        let letters = |text: &str| -> String {
            let lines = text.lines().filter(told);
            lines
                .flat_map(str::chars)
                .filter(|c| !c.is_whitespace() && !"|^-".contains(*c))
                .collect()
        };
        for width in 0..130 {
            assert_eq!(letters(&fitted_in(RENDERED, width)), letters(RENDERED), "{width}");
        }
        for odd in [
            "",
            "   |",
            "   | ^",
            "\u{1b}",
            "\u{1b}[1m",
            "=",
            "   =",
            "12 |",
            "a: ",
            "   | ^ ä",
            "(1) ",
        ] {
            for width in 0..40 {
                line_in(odd, width);
                line_in(&format!("{odd}{}", "wörd ".repeat(20)), width);
            }
        }
    }
}
