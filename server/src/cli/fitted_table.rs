//! Tables that fit the terminal: no row takes more than one line. Reasons that have no room in their row stand below, each once, on a line
//! of its own, and the row has their numbers.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// More reasons than these aren't told: who wants them all asks for JSON. Those of the first rows, which fit, come first.
const MOST_LINES: usize = 16;

/// Fewer characters are no room for reasons.
const LEAST_ROOM: usize = 12;

/// Where neither `COLUMNS` nor a terminal says how wide it is.
const USUAL_WIDTH: usize = 120;

/// A table, one column of which has reasons.
pub struct FittedTable {
    header: Vec<String>,
    /// The column with the reasons.
    reasons_at: usize,
    /// Reasons stand below in any case.
    below: bool,
    /// The columns with numbers, which stand at their right.
    numbers: Vec<usize>,
    rows: Vec<(Vec<String>, Vec<String>)>,
}

impl FittedTable {
    /// A table without rows; `reasons_at`: the column that has reasons.
    pub fn new(header: &[&str], reasons_at: usize) -> FittedTable {
        FittedTable {
            header: header.iter().map(|title| (*title).to_owned()).collect(),
            reasons_at,
            below: false,
            numbers: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// The same, with all reasons below: rows that share most of them.
    pub fn with_reasons_below(self) -> FittedTable {
        FittedTable { below: true, ..self }
    }

    /// The same, with numbers in some columns.
    pub fn with_numbers_in(self, columns: impl IntoIterator<Item = usize>) -> FittedTable {
        let numbers = columns.into_iter().collect();
        FittedTable { numbers, ..self }
    }

    /// Adds a row: its cells without that of the reasons.
    pub fn row(&mut self, mut cells: Vec<String>, mut reasons: Vec<String>) {
        cells.insert(self.reasons_at.min(cells.len()), String::new());
        reasons.retain(|reason| !reason.is_empty());
        self.rows.push((cells, reasons));
    }

    /// Prints it, as wide as the terminal at most.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print_in(terminal_width(), out)
    }

    fn print_in(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let (widths, room) = self.widths(width);
        let numbered = self.numbered(room);
        let told = match numbered.len() {
            all if all <= MOST_LINES => all,
            _ => MOST_LINES - 1,
        };
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(&self.header);
        for column in &self.numbers {
            if let Some(column) = table.column_mut(*column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (cells, reasons) in &self.rows {
            let number = |reason: &String| numbered.iter().position(|known| known == reason);
            let mut numbers: Vec<usize> = reasons.iter().filter_map(number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let mut words: Vec<String> = numbers
                .iter()
                .filter(|n| **n < told)
                .map(|n| format!("({})", n + 1))
                .collect();
            words.extend(numbers.iter().any(|n| *n >= told).then(|| "…".to_owned()));
            let reason = match numbers.is_empty() {
                true => reasons.join("; "),
                false => words.join(" "),
            };
            let fitted = cells
                .iter()
                .enumerate()
                .map(|(column, cell)| match column == self.reasons_at {
                    true => cut(&reason, room),
                    false => cut(cell, widths[column]),
                });
            table.add_row(fitted.collect::<Vec<String>>());
        }
        writeln!(out, "{table}")?;
        for (index, reason) in numbered.iter().take(told).enumerate() {
            writeln!(out, "  ({}) {}", index + 1, reason.trim_end().replace('\n', "\n      "))?;
        }
        if numbered.len() > told {
            let reasons = match numbered.len() - told {
                1 => "1 more reason".to_owned(),
                more => format!("{more} more reasons"),
            };
            writeln!(out, "  … and {reasons}, which --format json has")?;
        }
        Ok(())
    }

    /// The widths of the columns, and the room for reasons. Where there is none, the widest column gives some.
    fn widths(&self, width: usize) -> (Vec<usize>, usize) {
        let mut widths: Vec<usize> = self.header.iter().map(|title| length(title)).collect();
        for (cells, _) in &self.rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(length(cell));
            }
        }
        let title = widths.get(self.reasons_at).copied().unwrap_or_default();
        // A blank at both sides of each cell, and lines between and around.
        let frame = 3 * widths.len() + 1;
        let least = LEAST_ROOM.max(title);
        loop {
            let others = widths.iter().sum::<usize>() - title;
            let room = width.saturating_sub(frame + others);
            let rest = widths
                .iter_mut()
                .enumerate()
                .filter(|(column, _)| *column != self.reasons_at);
            match rest.max_by_key(|(_, width)| **width) {
                Some((_, widest)) if room < least && *widest > LEAST_ROOM => *widest -= 1,
                _ => return (widths, room.max(least)),
            }
        }
    }

    /// The reasons that stand below, in the order of the rows.
    fn numbered(&self, room: usize) -> Vec<String> {
        let mut below: Vec<&String> = Vec::new();
        // What stands below for one row does for others: then all that these have.
        loop {
            let before = below.len();
            for (_, reasons) in &self.rows {
                let lines = reasons.iter().any(|reason| reason.trim_end().contains('\n'));
                let fits = !self.below && !lines && length(&reasons.join("; ")) <= room;
                if fits && !reasons.iter().any(|reason| below.contains(&reason)) {
                    continue;
                }
                for reason in reasons {
                    if !below.contains(&reason) {
                        below.push(reason);
                    }
                }
            }
            if below.len() == before {
                break;
            }
        }
        let row = |reason: &String| self.rows.iter().position(|(_, reasons)| reasons.contains(reason));
        below.sort_by_key(|reason| row(reason));
        below.into_iter().cloned().collect()
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let head: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

fn terminal_width() -> usize {
    known_width().unwrap_or(USUAL_WIDTH)
}

/// How wide `COLUMNS` or the terminal says that it is.
pub fn known_width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &FittedTable, width: usize) -> io::Result<String> {
        let mut out = Vec::new();
        table.print_in(width, &mut out)?;
        let text = String::from_utf8_lossy(&out).into_owned();
        for row in text.lines().filter(|line| !line.starts_with(' ')) {
            assert!(length(row) <= width, "{width}: {text}");
        }
        Ok(text)
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn rows_take_one_line() -> io::Result<()> {
        let mut table = FittedTable::new(&["", "value", "why", "loop"], 2);
        let long = "read from `row`, which line 49 may change";
        table.row(words(&["grid", "(count + 127) / 128", "no"]), words(&[long]));
        table.row(words(&["block", "128", "no"]), Vec::new());
        table.row(words(&["col", "col", "no"]), words(&["a parameter"]));
        table.row(words(&["begin", "begin", "yes"]), words(&[long]));
        let wide = printed(&table, 120)?;
        assert_eq!(wide.matches(long).count(), 2, "{wide}");
        let narrow = printed(&table, 60)?;
        assert_eq!(narrow.matches(long).count(), 1, "{narrow}");
        assert!(
            narrow.contains("a parameter ") && narrow.contains(&format!("\n  (1) {long}\n")),
            "{narrow}"
        );
        assert_eq!(
            narrow.lines().filter(|line| line.starts_with('│')).count(),
            5,
            "{narrow}"
        );
        // A value that leaves no room is cut.
        table.row(words(&["n", &"x".repeat(200), "no"]), Vec::new());
        assert!(printed(&table, 80)?.contains("x…"));
        Ok(())
    }

    #[test]
    fn reasons_of_several_lines_stand_below() -> io::Result<()> {
        let mut table = FittedTable::new(&["program", "ms", "result"], 2).with_numbers_in([1]);
        table.row(words(&["original", "12.5"]), Vec::new());
        table.row(words(&["promote", "-"]), words(&["does not compile:\nx.cu:7: error\n"]));
        table.row(words(&["threshold", "2.5"]), words(&["agrees"]));
        let text = printed(&table, 120)?;
        assert!(
            text.contains("│  2.5 ┆ agrees ") || text.contains("┆  2.5 ┆ agrees "),
            "{text}"
        );
        assert!(
            text.ends_with("\n  (1) does not compile:\n      x.cu:7: error\n"),
            "{text}"
        );
        Ok(())
    }

    #[test]
    fn reasons_are_told_once_and_not_without_end() -> io::Result<()> {
        let mut table = FittedTable::new(&["rewrite", "because"], 1).with_reasons_below();
        let many: Vec<String> = (0..20).map(|n| format!("reason {n}")).collect();
        table.row(words(&["a"]), many);
        table.row(words(&["b"]), words(&["reason 19"]));
        table.row(words(&["c"]), Vec::new());
        let text = printed(&table, 80)?;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(lines.len(), MOST_LINES, "{text}");
        assert_eq!(lines[0], "  (1) reason 0", "{text}");
        assert_eq!(lines[15], "  … and 5 more reasons, which --format json has", "{text}");
        assert!(text.contains("(14) (15)"), "{text}");
        Ok(())
    }
}
