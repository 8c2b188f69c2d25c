//! What a file that is being edited says, kept apart from its text.
//!
//! Salsa looks at everything again that an input of low durability reaches. The text of an open file changes with every key, and all
//! functions of the workspace hang on it, through the file's items, macros and the names that it mentions; but what they hang on hardly
//! ever changes. So the host asks for these facts after each change and keeps them as inputs of high durability ([`SourceFile`]'s
//! `settled_…`), which it sets where they differ. Only the text of the few functions that were edited last is an input of low
//! durability, [`EditedFunction`]: what doesn't hang on one of these isn't even looked at.
//!
//! Whoever asks for such a fact gets what was settled, or where nothing was, what the text says. Each of them has a query that says the
//! latter (`…_in_text`), which nobody else asks.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use salsa::{Durability, Setter};

use crate::db::{Host, SourceFile};
use crate::hir::{Parameter, parameters_in_text};
use crate::items::{FunctionItem, FunctionText, Written, items};
use crate::launch::limits_set_in_text;
use crate::mentions::{CountsOutside, Word, counts_outside_in_text, names_in_text};
use crate::outline::{Outline, OutlinedFunction, outline_in_text};
use crate::preprocess::{Line, lines_in_text};
use crate::resolve::launched_in_text;
use crate::uniformity::memory::constant_values_in_text;

/// How many functions have a text of their own. One moves between a few; what hangs on them is looked at again after each change.
const EDITED: usize = 4;

/// The most functions that one change of a human touches.
const MANY: usize = 2;

/// Bytes of a file that is settled: this is done before anything else is answered.
const MOST: usize = 4 << 20;

/// How often the facts are asked for before they have to stay as they are: each may hang on those before it.
const ROUNDS: usize = 8;

/// A function that is being edited.
#[salsa::input(debug)]
pub struct EditedFunction {
    /// What is written.
    #[returns(ref)]
    pub written: Arc<Written>,
    /// What others hang on.
    #[returns(ref)]
    pub facts: FunctionFacts,
}

/// What other functions hang on, of one that is being edited; it hardly ever changes.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct FunctionFacts {
    /// The names of functions that it mentions.
    pub names: Vec<Word>,
    /// The names of the kernels that it launches, with the numbers of the launches.
    pub launched: Vec<(u32, String)>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

impl FunctionFacts {
    /// What the text of a function says now.
    fn of(host: &Host, function: FunctionItem<'_>) -> FunctionFacts {
        let db = &host.db;
        FunctionFacts {
            names: names_in_text(db, function),
            launched: launched_in_text(db, function).clone(),
            parameters: parameters_in_text(db, function).clone(),
        }
    }
}

/// What else a file says, beside its directives and its items.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct SettledRest {
    /// How often words stand outside of functions.
    pub outside: Arc<CountsOutside>,
    /// Its `__constant__` variables that hold their values themselves.
    pub constants: Arc<BTreeSet<String>>,
    /// What it sets the limit of pending launches to.
    pub limits: Arc<Vec<Option<u64>>>,
}

/// The files that are settled, and the functions in them that are being edited.
#[derive(Default)]
pub(crate) struct Settling {
    files: Vec<SourceFile>,
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
        let differ = file.settled_rest(db).as_deref() != Some(&now);
        if differ {
            self.set_rest(file, Some(Arc::new(now)));
        }
        differ
    }

    /// What others hang on, of the functions of a file that are being edited.
    fn settle_facts(&mut self, file: SourceFile) -> bool {
        let edited = edited_functions(file.settled_outline(&self.db).as_deref());
        let mut changed = false;
        for (index, edited) in edited {
            let db = &self.db;
            let Some(function) = items(db, file).functions.get(index).copied() else {
                continue;
            };
            let facts = FunctionFacts::of(self, function);
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
        let Some(before) = file.settled_outline(&self.db).clone() else {
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
        let facts = FunctionFacts::of(self, function);
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
                let Some(outline) = file.settled_outline(&self.db) else {
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
        let outlines = files.filter_map(|file| file.settled_outline(&self.db).as_deref());
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
        file.set_settled_outline(&mut self.db)
            .with_durability(Durability::HIGH)
            .to(outline);
    }

    fn set_rest(&mut self, file: SourceFile, rest: Option<Arc<SettledRest>>) {
        file.set_settled_rest(&mut self.db)
            .with_durability(Durability::HIGH)
            .to(rest);
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
            types,
            aliases,
            includes,
            blanked,
        } = outline;
        (globals, types, aliases, includes, blanked)
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
