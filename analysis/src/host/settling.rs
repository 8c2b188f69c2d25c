//! What a file that is being edited says, kept apart from its text.
//!
//! Salsa looks at everything again that an input of low durability reaches. The text of an open file changes with every key, and all
//! functions of the workspace hang on it, through the file's items, macros and the names that it mentions; but what they hang on hardly
//! ever changes. So the host asks for these facts after each change and keeps them as inputs of high durability ([`SourceFile`]'s
//! `settled_lines`, [`SettledFile`]), which it sets where they differ. Only the text of the few functions that were edited last is an input of low
//! durability, [`EditedFunction`]: what doesn't hang on one of these isn't even looked at.
//!
//! Whoever asks for such a fact gets what was settled, or where nothing was, what the text says. Each of them has a query that says the
//! latter (`…_in_text`), which nobody else asks.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use salsa::{Durability, Setter};

use super::Host;
use crate::base::db::SourceFile;
use crate::base::preprocess::{Line, lines_in_text};
use crate::facts::launch::limits_set_in_text;
use crate::facts::uniformity::memory::constant_values_in_text;
use crate::hir::items::{FunctionItem, FunctionText, Written, items};
use crate::hir::mentions::{counts_outside_in_text, names_in_text};
use crate::hir::outline::{Outline, OutlinedFunction, outline_in_text};
use crate::hir::parameters_in_text;
use crate::hir::resolve::launched_in_text;
use crate::hir::settled::{
    EditedFunction, FunctionFacts, PatchedItems, SettledFile, SettledFiles, SettledRest, kept_of, settled_outline,
    settled_rest,
};

/// How many functions have a text of their own. One moves between a few; what hangs on them is looked at again after each change.
const EDITED: usize = 4;

/// The most functions that one change of a human touches.
const MANY: usize = 2;

/// Bytes of a file that is settled: this is done before anything else is answered.
const MOST: usize = 4 << 20;

/// How often the facts are asked for before they have to stay as they are: each may hang on those before it.
const ROUNDS: usize = 8;

/// The files that are settled, and the functions in them that are being edited.
#[derive(Default)]
pub(crate) struct Settling {
    files: Vec<SourceFile>,
    /// What was kept of files that are settled no longer: salsa never frees an input.
    spare: Vec<SettledFile>,
    /// The last edited one last.
    edited: Vec<EditedFunction>,
    /// Those that stand for no function any more.
    free: Vec<EditedFunction>,
}

impl Host {
    /// From now on what a file says is kept apart from its text.
    pub(crate) fn begin_settling(&mut self, file: SourceFile) {
        if !self.settling.files.contains(&file) && file.text(&self.db).len() <= MOST {
            self.settling.files.push(file);
            let kept = match self.settling.spare.pop() {
                Some(kept) => kept,
                None => SettledFile::builder(None, None, None)
                    .durability(Durability::HIGH)
                    .patched_durability(Durability::LOW)
                    .new(&self.db),
            };
            self.keep_files(|files| files.insert(file, kept));
            self.keep_trees(file);
            self.settle();
        }
    }

    /// Asks the text of a file again, which hardly ever changes from now on.
    pub(crate) fn end_settling(&mut self, file: SourceFile) {
        let files = &mut self.settling.files;
        let Some(index) = files.iter().position(|settled| *settled == file) else {
            return;
        };
        files.remove(index);
        self.set_lines(file, None);
        self.set_outline(file, None);
        self.set_rest(file, None);
        file.set_last_trees(&mut self.db)
            .with_durability(Durability::HIGH)
            .to(None);
        self.set_patched_items(file, None);
        if let Some(kept) = kept_of(&self.db, file) {
            self.settling.spare.push(kept);
        }
        self.keep_files(|files| files.remove(&file));
        self.free_unused();
    }

    /// Brings what is settled up to date. Has to be the last thing that is done after each change of an input.
    pub(crate) fn settle(&mut self) {
        // A change has to be made even if a query panics because of it: then what is settled may be that of an earlier text, and the
        // texts are asked from then on. Whoever asks that query learns of the panic.
        let settled = catch_unwind(AssertUnwindSafe(|| self.settle_all()));
        if !matches!(settled, Ok(true)) {
            for file in self.settling.files.clone() {
                self.end_settling(file);
            }
        }
    }

    /// Whether that came to an end.
    fn settle_all(&mut self) -> bool {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for file in self.settling.files.clone() {
                changed |= self.settle_lines(file);
            }
            for file in self.settling.files.clone() {
                changed |= self.settle_outline(file);
            }
            self.free_unused();
            for file in self.settling.files.clone() {
                changed |= self.settle_facts(file);
                changed |= self.settle_rest(file);
            }
            if !changed {
                return true;
            }
        }
        // No facts hang on each other in circles; should some do so, the texts are asked.
        false
    }

    fn settle_lines(&mut self, file: SourceFile) -> bool {
        let now = lines_in_text(&self.db, file).clone();
        let differ = file.settled_lines(&self.db).as_ref() != Some(&now);
        if differ {
            self.set_lines(file, Some(now));
        }
        differ
    }

    fn settle_rest(&mut self, file: SourceFile) -> bool {
        let db = &self.db;
        let now = SettledRest {
            outside: counts_outside_in_text(db, file).clone(),
            constants: constant_values_in_text(db, file).clone(),
            limits: limits_set_in_text(db, file).clone(),
        };
        let differ = settled_rest(db, file).map(|rest| &**rest) != Some(&now);
        if differ {
            self.set_rest(file, Some(Arc::new(now)));
        }
        differ
    }

    /// What others hang on, of the functions of a file that are being edited.
    fn settle_facts(&mut self, file: SourceFile) -> bool {
        let edited = edited_functions(settled_outline(&self.db, file).map(|outline| &**outline));
        let mut changed = false;
        for (index, edited) in edited {
            let db = &self.db;
            let Some(function) = items(db, file).functions.get(index).copied() else {
                continue;
            };
            let facts = self.facts_of(function);
            if *edited.facts(db) != facts {
                self.set_facts(edited, facts);
                changed = true;
            }
        }
        changed
    }

    /// The items of a file. Whether more has changed than the text of functions that are being edited.
    fn settle_outline(&mut self, file: SourceFile) -> bool {
        let now = outline_in_text(&self.db, file).outline.clone();
        let Some(before) = settled_outline(&self.db, file).cloned() else {
            self.set_outline(file, Some(now));
            return true;
        };
        let next = if is_same_but_texts(&before, &now) {
            let mut touched: Vec<(usize, FunctionText)> = Vec::new();
            for (index, (old, new)) in before.functions.iter().zip(&now.functions).enumerate() {
                match (&old.source, &new.source) {
                    (FunctionText::Edited(text), FunctionText::Kept(written)) => self.write(*text, written.clone()),
                    (old, new) if old != new => touched.push((index, new.clone())),
                    _ => {}
                }
            }
            if touched.is_empty() {
                return false;
            }
            let mut next = Outline::clone(&before);
            let by_hand = touched.len() <= MANY;
            for (index, source) in touched {
                if let Some(function) = next.functions.get_mut(index) {
                    function.source = source;
                }
                if by_hand {
                    self.begin_editing(file, index, &mut next);
                }
            }
            next
        } else {
            self.same_texts(&before, &now)
        };
        self.set_outline(file, Some(Arc::new(next)));
        true
    }

    /// The items `now`, with the texts of functions that were being edited `before`: of those with the same name and number.
    fn same_texts(&mut self, before: &Outline, now: &Outline) -> Outline {
        let mut edited: HashMap<(&str, bool, usize), EditedFunction> = HashMap::new();
        for (function, key) in numbered(&before.functions) {
            if let FunctionText::Edited(text) = function.source {
                edited.insert(key, text);
            }
        }
        let mut next = now.clone();
        for (index, (function, key)) in numbered(&now.functions).enumerate() {
            if let (Some(text), FunctionText::Kept(written)) = (edited.get(&key), &function.source)
                && let Some(function) = next.functions.get_mut(index)
            {
                self.write(*text, written.clone());
                function.source = FunctionText::Edited(*text);
            }
        }
        next
    }

    /// Gives a function of a file's new outline a text of its own.
    fn begin_editing(&mut self, file: SourceFile, index: usize, outline: &mut Outline) {
        let Some(function) = items(&self.db, file).functions.get(index).copied() else {
            return;
        };
        let Some(outlined) = outline.functions.get_mut(index) else {
            return;
        };
        let FunctionText::Kept(written) = &outlined.source else {
            return;
        };
        let facts = self.facts_of(function);
        let text = match self.settling.free.pop() {
            Some(text) => {
                self.write(text, written.clone());
                self.set_facts(text, facts);
                text
            }
            None => EditedFunction::builder(written.clone(), facts)
                .facts_durability(Durability::HIGH)
                .new(&self.db),
        };
        outlined.source = FunctionText::Edited(text);
        self.settling.edited.push(text);
        if self.settling.edited.len() > EDITED {
            let oldest = self.settling.edited.remove(0);
            self.keep(oldest, outline);
        }
    }

    /// Makes the text of a function that is no longer edited a part of its file's outline again; `next` is the one that is being made.
    fn keep(&mut self, text: EditedFunction, next: &mut Outline) {
        let source = FunctionText::Kept(text.written(&self.db).clone());
        let is_it = |function: &&mut OutlinedFunction| function.source == FunctionText::Edited(text);
        if let Some(function) = next.functions.iter_mut().find(is_it) {
            function.source = source;
        } else {
            for file in self.settling.files.clone() {
                let Some(outline) = settled_outline(&self.db, file) else {
                    continue;
                };
                let mut outline = Outline::clone(outline);
                if let Some(function) = outline.functions.iter_mut().find(is_it) {
                    function.source = source;
                    self.set_outline(file, Some(Arc::new(outline)));
                    break;
                }
            }
        }
        self.settling.free.push(text);
    }

    /// Notes which texts of functions nothing refers to any more.
    fn free_unused(&mut self) {
        let files = self.settling.files.iter();
        let outlines = files.filter_map(|file| settled_outline(&self.db, *file).map(|outline| &**outline));
        let used: Vec<EditedFunction> = outlines
            .flat_map(|outline| edited_functions(Some(outline)))
            .map(|(_, text)| text)
            .collect();
        let (used, free): (Vec<_>, Vec<_>) = self.settling.edited.iter().partition(|text| used.contains(text));
        self.settling.edited = used;
        self.settling.free.extend(free);
    }

    fn write(&mut self, text: EditedFunction, written: Arc<Written>) {
        if *text.written(&self.db) != written {
            text.set_written(&mut self.db)
                .with_durability(Durability::LOW)
                .to(written);
        }
    }

    fn set_facts(&mut self, text: EditedFunction, facts: FunctionFacts) {
        text.set_facts(&mut self.db).with_durability(Durability::HIGH).to(facts);
    }

    fn set_lines(&mut self, file: SourceFile, lines: Option<Arc<Vec<Line>>>) {
        file.set_settled_lines(&mut self.db)
            .with_durability(Durability::HIGH)
            .to(lines);
    }

    fn set_outline(&mut self, file: SourceFile, outline: Option<Arc<Outline>>) {
        if let Some(kept) = kept_of(&self.db, file) {
            kept.set_outline(&mut self.db)
                .with_durability(Durability::HIGH)
                .to(outline);
        }
    }

    fn set_rest(&mut self, file: SourceFile, rest: Option<Arc<SettledRest>>) {
        if let Some(kept) = kept_of(&self.db, file) {
            kept.set_rest(&mut self.db).with_durability(Durability::HIGH).to(rest);
        }
    }

    /// What is known of a file's items without reading its text; for a file that isn't settled, nothing.
    pub(super) fn set_patched_items(&mut self, file: SourceFile, items: Option<Arc<PatchedItems>>) {
        if let Some(kept) = kept_of(&self.db, file)
            && *kept.patched(&self.db) != items
        {
            kept.set_patched(&mut self.db)
                .with_durability(Durability::LOW)
                .to(items);
        }
    }

    /// Changes which files are settled.
    fn keep_files<T>(&mut self, change: impl FnOnce(&mut HashMap<SourceFile, SettledFile>) -> T) {
        let settled = SettledFiles::get(&self.db);
        let mut files = settled.files(&self.db).as_ref().clone();
        change(&mut files);
        settled
            .set_files(&mut self.db)
            .with_durability(Durability::HIGH)
            .to(Arc::new(files));
    }

    /// What the text of a function says now.
    fn facts_of(&self, function: FunctionItem<'_>) -> FunctionFacts {
        let db = &self.db;
        FunctionFacts {
            names: names_in_text(db, function),
            launched: launched_in_text(db, function).clone(),
            parameters: parameters_in_text(db, function).clone(),
        }
    }
}

/// The functions of a file that are being edited, with their numbers.
fn edited_functions(outline: Option<&Outline>) -> Vec<(usize, EditedFunction)> {
    let functions = outline.into_iter().flat_map(|outline| &outline.functions).enumerate();
    functions
        .filter_map(|(index, function)| match function.source {
            FunctionText::Edited(text) => Some((index, text)),
            FunctionText::Kept(_) => None,
        })
        .collect()
}

/// Functions with their names, whether they have bodies, and how many of these stand before them.
fn numbered(functions: &[OutlinedFunction]) -> impl Iterator<Item = (&OutlinedFunction, (&str, bool, usize))> {
    let mut numbers: HashMap<(&str, bool), usize> = HashMap::new();
    functions.iter().map(move |function| {
        let key = (function.name.as_str(), function.has_body);
        let number = numbers.entry(key).or_default();
        *number += 1;
        (function, (key.0, key.1, *number))
    })
}

/// Whether two outlines differ in nothing but what is written in functions.
fn is_same_but_texts(a: &Outline, b: &Outline) -> bool {
    // Taken apart, so that no field is forgotten.
    fn rest(outline: &Outline) -> impl PartialEq {
        let Outline {
            functions: _,
            globals,
            members,
            types,
            aliases,
            includes,
            inner_includes,
            blanked,
            loose,
        } = outline;
        let names = (globals, members, types, aliases);
        (names, includes, inner_includes, blanked, loose)
    }
    fn head(function: &OutlinedFunction) -> impl PartialEq {
        let OutlinedFunction {
            name,
            has_body,
            signature,
            directives_before,
            source: _,
        } = function;
        (name, has_body, signature, directives_before)
    }
    rest(a) == rest(b)
        && a.functions.len() == b.functions.len()
        && a.functions.iter().zip(&b.functions).all(|(a, b)| head(a) == head(b))
}
