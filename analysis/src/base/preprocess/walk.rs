//! Reading a file as the preprocessor does: which branches are compiled, and what macros mean where.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::MacroState;
use super::branch::Branch;
use super::condition::holds;
use super::libraries::{is_of_a_library, may_be_of_a_library};
use super::line::{IncludeItem, Line, macro_item};
use super::lines::lines;
use crate::base::budget::FILE_BYTES;
use crate::base::command::CompileCommand;
use crate::base::command::DefaultStream;
use crate::base::command::MacroFlag;
use crate::base::compile::{Origin, compilation};
use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::file_settings::{self as settings, file_settings};
use crate::base::include::{including_files, resolve_with};
use crate::base::preprocess::MacroItem;

/// Directives that one pass reads, those of included files included.
const MAX_LINES: usize = 400_000;
/// Times that one pass goes into an included file.
const MAX_INCLUDES: usize = 10_000;
/// Conditionals and included files within each other.
const MAX_NESTING: u32 = 120;
/// Branches of one group times names that change in them.
const MAX_OUTCOMES: usize = 1_000_000;
/// The versions of the toolkit between which one is that isn't said.
const OLDEST: (u32, u32) = (12, 0);
const NEWEST: (u32, u32) = (13, 99);
/// Passes that are told apart.
const MAX_PASSES: usize = 12;

/// What preprocessing finds out about a file.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Preprocessed {
    /// For each directive of the file: what becomes of the text behind it, if it is `#if`, `#elif` or `#else`.
    pub branches: Vec<Branch>,
    /// The same in the passes that compile for devices: for code that is compiled for nothing else.
    pub device: Vec<Branch>,
    /// The same in the passes that compile for the host.
    pub host: Vec<Branch>,
    /// What names mean: by name, from which number of directives on.
    pub states: BTreeMap<String, Vec<(u32, MacroState)>>,
    /// A pass didn't come to the end: it would have to read too much.
    pub gave_up: bool,
    /// Names that were taken for undefined, so that the value which the program gives them then counts: no command line is known, and
    /// nobody in sight defines them otherwise.
    pub defaulted: BTreeSet<String>,
}

/// What becomes of the branches of a file.
#[salsa::tracked]
pub(crate) fn branches(db: &dyn Db, file: SourceFile) -> Vec<Branch> {
    preprocessed(db, file).branches.clone()
}

/// Whether a file includes more than is read.
#[salsa::tracked(returns(copy))]
pub(crate) fn gave_up(db: &dyn Db, file: SourceFile) -> bool {
    preprocessed(db, file).gave_up
}

/// Preprocesses a file.
#[salsa::tracked]
pub fn preprocessed(db: &dyn Db, file: SourceFile) -> Preprocessed {
    let compiled = compilation(db, file);
    let settings = file_settings(db, file);
    let mut commands: Vec<Option<Arc<CompileCommand>>> = Vec::new();
    if compiled.certain() {
        for command in &compiled.commands {
            let same = |known: &Option<Arc<CompileCommand>>| {
                known.as_ref().is_some_and(|known| {
                    (
                        &known.macros,
                        &known.forced_includes,
                        known.relocatable,
                        known.default_stream,
                    ) == (
                        &command.macros,
                        &command.forced_includes,
                        command.relocatable,
                        command.default_stream,
                    )
                })
            };
            if !commands.iter().any(same) {
                commands.push(Some(command.clone()));
            }
        }
    }
    if commands.is_empty() || commands.len() > MAX_PASSES {
        commands = vec![None];
    }
    let known = !commands.contains(&None);
    let defines = &settings::settings(db, file).defines;
    let mut archs: Vec<Option<u32>> = settings.archs.iter().map(|arch| Some(*arch)).collect();
    if archs.is_empty() || archs.len() > MAX_PASSES {
        archs = vec![None];
    }
    let include_dirs = compiled
        .commands
        .first()
        .map(|c| c.include_dirs.clone())
        .unwrap_or_default();
    let switches = match compiled.origin {
        Origin::Own => build_switches(db),
        _ => &BTreeSet::new(),
    };
    // What includes it may say before what a name means.
    let included = !including_files(db, file).is_empty();
    // What a file begins with is read once for all that begin with it.
    let shared = match lines(db, file).first() {
        Some(Line::Include(Some(item))) if compiled.commands.is_empty() && defines.is_empty() && !included => {
            resolve_with(db, file, item, &[])
        }
        _ => None,
    };
    let pass = |command: Option<&CompileCommand>, target: Target, version: (u32, u32)| {
        let switches = if command.is_some() { Some(switches) } else { None };
        let mut walk = Walk::new(db, &include_dirs, switches);
        walk.branches = vec![None; lines(db, file).len()];
        (walk.command_known, walk.included) = (known, included);
        let begun = shared.map(|header| begun_with(db, header, target, version));
        match begun.filter(|begun| !begun.read.contains(&file)) {
            Some(begun) => walk.go_on(begun, file),
            None => {
                walk.predefine(command, target, version);
                walk.define(defines);
                walk.file(file, 0);
            }
        }
        if settings.cuda.is_none() {
            walk.forget_version();
        }
        walk
    };
    let (mut hosts, mut devices) = (Vec::new(), Vec::new());
    for command in &commands {
        let targets = std::iter::once(Target::Host).chain(archs.iter().map(|arch| Target::Device(*arch)));
        for target in targets {
            let to = if target == Target::Host {
                &mut hosts
            } else {
                &mut devices
            };
            let Some(version) = settings.cuda else {
                // A current one: what holds for the first and for the last of them is decided.
                let first = pass(command.as_deref(), target, OLDEST);
                if first.asked_for_version.get() {
                    to.push(pass(command.as_deref(), target, NEWEST));
                }
                to.push(first);
                continue;
            };
            to.push(pass(command.as_deref(), target, version));
        }
    }
    let count = lines(db, file).len();
    let (hosts, devices): (Vec<_>, Vec<_>) = (hosts.iter().collect(), devices.iter().collect());
    let all = [hosts.as_slice(), devices.as_slice()].concat();
    Preprocessed {
        branches: agreed(count, &all),
        device: agreed(count, &devices),
        host: agreed(count, &hosts),
        states: joined(&all),
        gave_up: all.iter().any(|walk| walk.left == 0),
        defaulted: all.iter().flat_map(|walk| walk.defaulted.iter().cloned()).collect(),
    }
}

/// What is known behind an `#include` on the first line of a file, for which no command is known.
struct Begun {
    states: FxHashMap<Arc<str>, Arc<MacroState>>,
    timeline: Vec<(u32, Arc<str>, Arc<MacroState>)>,
    once: FxHashSet<SourceFile>,
    defaulted: BTreeSet<String>,
    unseen: bool,
    asked_for_version: bool,
    left: usize,
    includes_left: usize,
    /// The files that were read. One that begins with this and is among them would not be read.
    read: FxHashSet<SourceFile>,
}

#[salsa::tracked(returns(ref), no_eq, unsafe(non_salsa_values))]
fn begun_with(db: &dyn Db, header: SourceFile, target: Target, cuda: (u32, u32)) -> Begun {
    let mut walk = Walk::new(db, &[], None);
    walk.predefine(None, target, cuda);
    // The line itself.
    walk.left -= 1;
    walk.index = 1;
    walk.stack.push(header);
    walk.included(header);
    Begun {
        states: walk.states,
        timeline: walk.timeline,
        once: walk.once,
        defaulted: walk.defaulted,
        unseen: walk.unseen,
        asked_for_version: walk.asked_for_version.get(),
        left: walk.left,
        includes_left: walk.includes_left,
        read: walk.read,
    }
}

/// Macros that some command of the project sets: that they aren't set by another is meant.
#[salsa::tracked]
fn build_switches(db: &dyn Db) -> BTreeSet<String> {
    let Some(workspace) = Workspace::try_get(db) else {
        return BTreeSet::new();
    };
    let commands = workspace.commands(db);
    let flags = commands.values().flatten().flat_map(|command| &command.macros);
    flags
        .filter_map(|flag| match flag {
            MacroFlag::Define(line) => macro_item(line).map(|item| item.name),
            MacroFlag::Undefine(name) => Some(name.clone()),
        })
        .collect()
}

/// Macros that say which toolkit it is.
const VERSIONS: [&str; 3] = ["__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "CUDART_VERSION"];

/// The files that define each name.
#[salsa::tracked]
fn defined_names(db: &dyn Db) -> BTreeMap<String, Vec<SourceFile>> {
    let mut found: BTreeMap<String, Vec<SourceFile>> = BTreeMap::new();
    let files = Workspace::try_get(db)
        .map(|workspace| workspace.files(db))
        .unwrap_or_default();
    for file in files.values() {
        for line in lines(db, *file) {
            if let Line::Define(state) = line
                && let MacroState::Defined(item) = state.as_ref()
            {
                let of = found.entry(item.name.clone()).or_default();
                if of.last() != Some(file) {
                    of.push(*file);
                }
            }
        }
    }
    found
}

/// What all passes say about each branch. A pass that doesn't come by says nothing.
fn agreed(count: usize, passes: &[&Walk<'_, '_>]) -> Vec<Branch> {
    (0..count)
        .map(|index| {
            let mut said = passes
                .iter()
                .filter_map(|walk| walk.branches.get(index).copied().flatten());
            let Some(first) = said.next() else { return Branch::Maybe };
            if said.all(|other| other == first) {
                first
            } else {
                Branch::Maybe
            }
        })
        .collect()
}

/// What holds for names in all passes.
fn joined(passes: &[&Walk<'_, '_>]) -> BTreeMap<String, Vec<(u32, MacroState)>> {
    // By name: for each pass the changes in order.
    let mut changes: BTreeMap<&str, Vec<Vec<(u32, &MacroState)>>> = BTreeMap::new();
    for (number, walk) in passes.iter().enumerate() {
        for (index, name, state) in &walk.timeline {
            let of = changes.entry(name).or_insert_with(|| vec![Vec::new(); passes.len()]);
            of[number].push((*index, state));
        }
    }
    let mut found = BTreeMap::new();
    for (name, by_pass) in changes {
        let places: BTreeSet<u32> = by_pass.iter().flatten().map(|(index, _)| *index).collect();
        let mut states: Vec<(u32, MacroState)> = Vec::new();
        for place in places {
            let at = |of: &Vec<(u32, &MacroState)>| {
                let before = of.partition_point(|(index, _)| *index <= place);
                before
                    .checked_sub(1)
                    .and_then(|last| of.get(last))
                    .map_or(MacroState::Undefined, |(_, state)| (*state).clone())
            };
            let state = by_pass.iter().map(at).reduce(|a, b| a.join(&b));
            let Some(state) = state else { continue };
            if states.last().is_none_or(|(_, last)| *last != state) {
                states.push((place, state));
            }
        }
        found.insert(name.to_owned(), states);
    }
    found
}

/// What a pass compiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    Host,
    Device(Option<u32>),
}

struct Walk<'w, 'db> {
    db: &'db dyn Db,
    include_dirs: &'w [std::path::PathBuf],
    /// `None`: which macros a command sets isn't known.
    switches: Option<&'w BTreeSet<String>>,
    states: FxHashMap<Arc<str>, Arc<MacroState>>,
    /// Names that changed, with what was known before.
    log: Vec<(Arc<str>, Option<Arc<MacroState>>)>,
    timeline: Vec<(u32, Arc<str>, Arc<MacroState>)>,
    /// Number of directives of the main file that were read.
    index: u32,
    branches: Vec<Option<Branch>>,
    once: FxHashSet<SourceFile>,
    stack: Vec<SourceFile>,
    left: usize,
    includes_left: usize,
    /// What the includes of each file mean, by line.
    targets: FxHashMap<(SourceFile, usize), Option<SourceFile>>,
    nesting: u32,
    /// Forced includes are behind.
    in_main_file: bool,
    /// The included files that were read.
    read: FxHashSet<SourceFile>,
    /// The command line is known.
    command_known: bool,
    /// Other files include the one that is read.
    included: bool,
    /// A header isn't found that may define something of the project's.
    unseen: bool,
    /// See [`Preprocessed::defaulted`].
    defaulted: BTreeSet<String>,
    /// What the version of the toolkit is has been asked.
    asked_for_version: Cell<bool>,
}

impl<'w, 'db> Walk<'w, 'db> {
    fn new(db: &'db dyn Db, include_dirs: &'w [std::path::PathBuf], switches: Option<&'w BTreeSet<String>>) -> Self {
        Walk {
            db,
            include_dirs,
            switches,
            states: FxHashMap::default(),
            log: Vec::new(),
            timeline: Vec::new(),
            index: 0,
            branches: Vec::new(),
            once: FxHashSet::default(),
            stack: Vec::new(),
            left: MAX_LINES,
            includes_left: MAX_INCLUDES,
            targets: FxHashMap::default(),
            nesting: 0,
            in_main_file: false,
            read: FxHashSet::default(),
            command_known: false,
            included: false,
            unseen: false,
            defaulted: BTreeSet::new(),
            asked_for_version: Cell::new(false),
        }
    }

    /// Reads the main file from the second line on.
    fn go_on(&mut self, begun: &Begun, file: SourceFile) {
        self.states.clone_from(&begun.states);
        self.timeline.clone_from(&begun.timeline);
        self.once.clone_from(&begun.once);
        self.defaulted.clone_from(&begun.defaulted);
        self.unseen = begun.unseen;
        self.asked_for_version.set(begun.asked_for_version);
        (self.left, self.includes_left) = (begun.left, begun.includes_left);
        self.index = 1;
        self.file(file, 1);
    }

    fn known(&self, name: &str) -> Option<&MacroState> {
        if VERSIONS.contains(&name) {
            self.asked_for_version.set(true);
        }
        self.states.get(name).map(Arc::as_ref)
    }

    fn state(&self, name: &str) -> MacroState {
        match self.known(name) {
            Some(state) => state.clone(),
            None if self.switches.is_some_and(|switches| switches.contains(name)) => MacroState::Undefined,
            None if self.command_known && self.is_defined_by_nobody(name) => MacroState::Undefined,
            None => MacroState::Unknown,
        }
    }

    /// Nothing in sight defines a name that isn't defined yet, but for the command line, perhaps; and no library does.
    fn is_defined_by_nobody(&self, name: &str) -> bool {
        let elsewhere = || {
            self.included
                && defined_names(self.db)
                    .get(name)
                    .is_some_and(|files| files.iter().any(|f| !self.has_begun(*f)))
        };
        !self.unseen && !may_be_of_a_library(name) && !elsewhere()
    }

    /// The file is one of those that are being read: what it defines, and what stands before, is known.
    fn has_begun(&self, file: SourceFile) -> bool {
        self.stack.contains(&file) || self.read.contains(&file)
    }

    fn set(&mut self, name: &str, state: MacroState) {
        self.set_shared(name, &Arc::new(state));
    }

    fn set_shared(&mut self, name: &str, state: &Arc<MacroState>) {
        let known = self.states.get_key_value(name).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| Arc::from(name));
        let before = self.states.insert(name.clone(), state.clone());
        self.log.push((name.clone(), before));
        self.timeline.push((self.index, name, state.clone()));
    }

    /// Takes back what was set since `mark`; gives what it was.
    fn undo(&mut self, mark: usize) -> FxHashMap<Arc<str>, Arc<MacroState>> {
        let mut taken = FxHashMap::default();
        while self.log.len() > mark {
            let Some((name, before)) = self.log.pop() else { break };
            if let Some(state) = self.states.get(&name) {
                taken.entry(name.clone()).or_insert_with(|| state.clone());
            }
            match before {
                Some(state) => {
                    self.states.insert(name, state);
                }
                None => {
                    self.states.remove(&name);
                }
            }
        }
        for name in taken.keys() {
            self.timeline
                .push((self.index, name.clone(), Arc::new(self.state(name))));
        }
        taken
    }

    /// Which version it is was tried only.
    fn forget_version(&mut self) {
        let somehow = Arc::new(MacroState::DefinedSomehow);
        for (_, name, state) in &mut self.timeline {
            let number = matches!(state.as_ref(), MacroState::Defined(_));
            if number && VERSIONS.contains(&name.as_ref()) {
                *state = somehow.clone();
            }
        }
    }

    /// Defines what the project's settings do.
    fn define(&mut self, defines: &[String]) {
        for item in defines.iter().filter_map(|line| macro_item(line)) {
            self.set(&item.name.clone(), MacroState::Defined(item));
        }
    }

    fn predefine(&mut self, command: Option<&CompileCommand>, target: Target, (major, minor): (u32, u32)) {
        let number = |name: &str, value: u32| {
            MacroState::Defined(MacroItem {
                name: name.to_owned(),
                params: None,
                body: value.to_string(),
            })
        };
        self.set("__cplusplus", MacroState::DefinedSomehow);
        self.set("__CUDACC__", MacroState::DefinedSomehow);
        match target {
            Target::Host => self.set("__CUDA_ARCH__", MacroState::Undefined),
            Target::Device(None) => self.set("__CUDA_ARCH__", MacroState::DefinedSomehow),
            Target::Device(Some(arch)) => self.set("__CUDA_ARCH__", number("__CUDA_ARCH__", arch * 10)),
        }
        self.set("__CUDACC_VER_MAJOR__", number("__CUDACC_VER_MAJOR__", major));
        self.set("__CUDACC_VER_MINOR__", number("__CUDACC_VER_MINOR__", minor));
        // nvcc includes cuda_runtime.h by itself.
        self.set("CUDART_VERSION", number("CUDART_VERSION", major * 1000 + minor * 10));
        let Some(command) = command else { return };
        let switch = |on: bool| {
            if on {
                MacroState::DefinedSomehow
            } else {
                MacroState::Undefined
            }
        };
        self.set("__CUDACC_RDC__", switch(command.relocatable));
        let per_thread = command.default_stream == DefaultStream::PerThread;
        self.set("CUDA_API_PER_THREAD_DEFAULT_STREAM", switch(per_thread));
        for flag in &command.macros {
            match flag {
                MacroFlag::Define(line) => {
                    if let Some(item) = macro_item(line) {
                        self.set(&item.name.clone(), MacroState::Defined(item));
                    }
                }
                MacroFlag::Undefine(name) => self.set(name, MacroState::Undefined),
            }
        }
        if let Some(workspace) = Workspace::try_get(self.db) {
            let files = workspace.files(self.db);
            for forced in &command.forced_includes {
                if let Some(file) = files.get(forced) {
                    self.stack.push(*file);
                    self.included(*file);
                    self.stack.pop();
                }
            }
        }
    }

    /// Reads the main file from a line on.
    fn file(&mut self, file: SourceFile, from: usize) {
        self.stack.push(file);
        self.in_main_file = true;
        let read = lines(self.db, file);
        self.run(file, read, &shape(self.db, file).next, from, read.len());
        if self.left == 0 {
            // Not to the end: nothing is certain.
            for branch in self.branches.iter_mut() {
                *branch = Some(Branch::Maybe);
            }
            self.index = 0;
            let unknown = Arc::new(MacroState::Unknown);
            self.timeline.clear();
            for name in self.states.keys() {
                self.timeline.push((0, name.clone(), unknown.clone()));
            }
        }
    }

    fn in_main(&self) -> bool {
        self.in_main_file && self.stack.len() == 1
    }

    fn at(&mut self, line: usize) {
        if self.in_main() {
            self.index = line as u32 + 1;
        }
    }

    fn included(&mut self, file: SourceFile) {
        if self.nesting >= MAX_NESTING || self.includes_left == 0 || file.text(self.db).len() > FILE_BYTES {
            self.left = 0;
            return;
        }
        self.nesting += 1;
        self.includes_left -= 1;
        self.read.insert(file);
        let read = lines(self.db, file);
        self.run(file, read, &shape(self.db, file).next, 0, read.len());
        self.nesting -= 1;
    }

    fn include(&mut self, from: SourceFile, line: usize, item: &IncludeItem) {
        let (db, include_dirs) = (self.db, self.include_dirs);
        let target = self.targets.entry((from, line));
        let Some(target) = *target.or_insert_with(|| resolve_with(db, from, item, include_dirs)) else {
            self.unseen |= !is_of_a_library(item);
            return;
        };
        if self.once.contains(&target) || self.stack.contains(&target) {
            return;
        }
        if let Some((_, guard)) = &shape(self.db, target).guard
            && matches!(
                self.states.get(guard.as_str()).map(Arc::as_ref),
                Some(MacroState::Defined(_))
            )
        {
            return;
        }
        self.stack.push(target);
        self.included(target);
        self.stack.pop();
    }

    fn run(&mut self, file: SourceFile, read: &[Line], next: &[usize], from: usize, to: usize) {
        let mut line = from;
        while line < to {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.at(line);
            match &read[line] {
                Line::If(_) => {
                    line = self.group(file, read, next, line, to);
                    continue;
                }
                Line::Define(state) => {
                    if let MacroState::Defined(item) = state.as_ref() {
                        self.set_shared(&item.name, state);
                    }
                }
                Line::Undef(name) => self.set(name, MacroState::Undefined),
                Line::PopMacro(name) => self.set(name, MacroState::Unknown),
                // A macro names the file.
                Line::Include(None) => self.unseen = true,
                Line::Include(Some(item)) => self.include(file, line, item),
                Line::PragmaOnce => {
                    self.once.insert(file);
                }
                _ => {}
            }
            line += 1;
        }
    }

    fn holds(&self, condition: &str) -> Option<bool> {
        let find = |name: &str| match self.known(name) {
            Some(MacroState::Defined(item)) => Some(item),
            _ => None,
        };
        holds(condition, &find, &|name| self.state(name))
    }

    /// Reads `#if … #endif`; gives the line behind it.
    fn group(&mut self, file: SourceFile, read: &[Line], next: &[usize], first: usize, to: usize) -> usize {
        let mut heads = vec![first];
        let mut end = next[first].min(to);
        while end < to && !matches!(read[end], Line::Endif) {
            heads.push(end);
            end = next[end].min(to);
        }
        let behind = |position: usize| heads.get(position + 1).copied().unwrap_or(end);
        if self.nesting >= MAX_NESTING {
            self.left = 0;
            return to;
        }
        self.nesting += 1;
        if shape(self.db, file)
            .guard
            .as_ref()
            .is_some_and(|(line, _)| *line == first)
        {
            // Whoever reads the file reads this branch; in the main file the lines stay as they are.
            self.decide(first, Branch::Maybe);
            self.run(file, read, next, first + 1, end);
            self.nesting -= 1;
            return end + 1;
        }
        if let [only] = heads.as_slice()
            && let Some(name) = self.default_of(read, *only, end)
        {
            self.defaulted.insert(name.to_owned());
            self.at(first);
            self.decide(first, Branch::Live);
            self.set(name, MacroState::Undefined);
            self.run(file, read, next, first + 1, end);
            self.nesting -= 1;
            return end + 1;
        }
        let decisions = self.decisions(read, &heads, end);
        let mut outcomes: Vec<FxHashMap<Arc<str>, Arc<MacroState>>> = Vec::new();
        let exhaustive = decisions.exhaustive;
        for (position, (&head, &branch)) in heads.iter().zip(&decisions.branches).enumerate() {
            self.at(head);
            self.decide(head, branch);
            match branch {
                Branch::Dead => {}
                Branch::Live => self.run(file, read, next, head + 1, behind(position)),
                Branch::Maybe => {
                    let mark = self.log.len();
                    if let Line::If(condition) | Line::Elif(condition) = &read[head] {
                        self.assume(condition);
                    }
                    self.run(file, read, next, head + 1, behind(position));
                    self.at(behind(position));
                    outcomes.push(self.undo(mark));
                }
            }
        }
        self.at(end);
        if !outcomes.is_empty() {
            if !exhaustive {
                let mut nothing = FxHashMap::default();
                if let (Line::If(condition), true) = (&read[first], heads.len() == 1)
                    && let Some(name) = undefined_name(condition)
                {
                    nothing.insert(Arc::from(name), Arc::new(MacroState::DefinedSomehow));
                }
                outcomes.push(nothing);
            }
            let names: BTreeSet<Arc<str>> = outcomes.iter().flat_map(|o| o.keys().cloned()).collect();
            // What changes in each branch is looked at in all: not where a ladder of many is long.
            let many = names.len().saturating_mul(outcomes.len()) > MAX_OUTCOMES;
            for name in names {
                if many {
                    self.set(&name, MacroState::Unknown);
                    continue;
                }
                let before = Arc::new(self.state(&name));
                let mut states = outcomes.iter().map(|o| o.get(&name).unwrap_or(&before));
                let Some(first) = states.next() else { continue };
                let joined = states.fold(first.clone(), |a, b| if a == *b { a } else { Arc::new(a.join(b)) });
                self.set_shared(&name, &joined);
            }
        }
        self.nesting -= 1;
        end + 1
    }

    /// X of `#ifndef X`, `#define X 32`, `#endif`, where nothing in sight says that it is another value: the command line may, which isn't
    /// known.
    fn default_of<'l>(&self, read: &'l [Line], head: usize, end: usize) -> Option<&'l str> {
        let Line::If(condition) = read.get(head)? else {
            return None;
        };
        let name = undefined_name(condition)?;
        let defines = |line: &Line| matches!(line, Line::Define(state) if matches!(state.as_ref(), MacroState::Defined(item) if item.name == name));
        let inside = read.get(head + 1..end)?;
        let is_default = inside.iter().all(|line| matches!(line, Line::Define(_))) && inside.iter().any(defines);
        (is_default
            && !self.states.contains_key(name)
            && self.state(name) == MacroState::Unknown
            && self.is_defined_by_nobody(name))
        .then_some(name)
    }

    fn decide(&mut self, line: usize, branch: Branch) {
        if self.in_main()
            && let Some(known) = self.branches.get_mut(line)
        {
            *known = Some(branch);
        }
    }

    /// What becomes of the branches of a group.
    fn decisions(&self, read: &[Line], heads: &[usize], end: usize) -> Decisions {
        let mut branches = Vec::new();
        // `None`: an earlier branch may be taken; `Some(true)`: one is.
        let mut taken = Some(false);
        let mut exhaustive = false;
        for (position, &head) in heads.iter().enumerate() {
            let holds = match &read[head] {
                _ if taken == Some(true) => Some(false),
                Line::If(condition) | Line::Elif(condition) => self.holds(condition),
                _ => Some(true),
            };
            let behind = heads.get(position + 1).copied().unwrap_or(end);
            let stops = read[head + 1..behind.max(head + 1)].first() == Some(&Line::Error);
            let branch = match holds {
                Some(false) => Branch::Dead,
                Some(true) if taken == Some(false) => Branch::Live,
                // What can't be compiled isn't taken.
                _ if stops => Branch::Dead,
                _ => Branch::Maybe,
            };
            match holds {
                Some(true) => {
                    exhaustive = true;
                    taken = Some(true);
                }
                None if taken == Some(false) && !stops => taken = None,
                _ => {}
            }
            branches.push(branch);
        }
        let open = branches.iter().filter(|b| **b == Branch::Maybe).count();
        if exhaustive && open == 1 {
            for branch in &mut branches {
                if *branch == Branch::Maybe {
                    *branch = Branch::Live;
                }
            }
        }
        Decisions { branches, exhaustive }
    }

    /// What an undecided condition says about names, in its own branch.
    fn assume(&mut self, condition: &str) {
        if let Some(name) = undefined_name(condition) {
            let name = name.to_owned();
            self.set(&name, MacroState::Undefined);
        } else if let Some(name) = defined_name(condition)
            && self.state(name) == MacroState::Unknown
        {
            let name = name.to_owned();
            self.set(&name, MacroState::DefinedSomehow);
        }
    }
}

struct Decisions {
    branches: Vec<Branch>,
    /// One of the branches is taken in any case.
    exhaustive: bool,
}

/// The `#elif`, `#else` or `#endif` that follows each `#if`, `#elif` and `#else` of the same group; the end for others.
fn next_heads(read: &[Line]) -> Vec<usize> {
    let mut next = vec![read.len(); read.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, line) in read.iter().enumerate() {
        match line {
            Line::If(_) => open.push(index),
            Line::Elif(_) | Line::Else => {
                if let Some(last) = open.last_mut() {
                    next[*last] = index;
                    *last = index;
                }
            }
            Line::Endif => {
                if let Some(last) = open.pop() {
                    next[last] = index;
                }
            }
            _ => {}
        }
    }
    next
}

/// How the directives of a file hang together.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
struct Shape {
    /// See [`next_heads`].
    next: Vec<usize>,
    /// See [`guard`].
    guard: Option<(usize, String)>,
}

/// The same for everyone who includes the file.
#[salsa::tracked]
fn shape(db: &dyn Db, file: SourceFile) -> Shape {
    let read = lines(db, file);
    let next = next_heads(read);
    let guard = guard(read, &next).map(|(line, name)| (line, name.to_owned()));
    Shape { next, guard }
}

/// The line and the name of a file's include guard.
fn guard<'l>(read: &'l [Line], next: &[usize]) -> Option<(usize, &'l str)> {
    let first = read.iter().position(|line| *line != Line::PragmaOnce)?;
    let (Line::If(condition), Line::Define(defined)) = (read.get(first)?, read.get(first + 1)?) else {
        return None;
    };
    let MacroState::Defined(item) = defined.as_ref() else {
        return None;
    };
    let name = undefined_name(condition)?;
    let closed = next.get(first) == Some(&(read.len() - 1)) && read.last() == Some(&Line::Endif);
    // With a value it is more likely a default that a command may replace.
    (closed && item.name == name && item.params.is_none() && item.body.is_empty()).then_some((first, name))
}

/// X of `!defined(X)`.
fn undefined_name(condition: &str) -> Option<&str> {
    defined_name(condition.strip_prefix('!')?.trim_start())
}

/// X of `defined(X)`.
fn defined_name(condition: &str) -> Option<&str> {
    let rest = condition.strip_prefix("defined")?.trim_start();
    let name = match rest.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')')?.trim(),
        None => rest.trim(),
    };
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}
