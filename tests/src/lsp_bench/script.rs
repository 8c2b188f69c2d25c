//! What is done with one server and one input: the same for all servers.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::inputs::Prepared;
use super::launch::Subject;
use super::record::{Operation, Samples, Settings, Situation};
use super::servers::Program;
use super::session::{Answer, Moment, Session, Settled, Spent, since};

/// How long a server has to be idle until it counts as having read its workspace.
const INDEXED: Duration = Duration::from_millis(500);

/// What is typed, over and over: it doesn't parse until its last brace is there.
const TYPED: &str = "\n    for (int k = 0; k < 4; ++k) {\n        if (k % 2 == 0) {\n            int twice = 2 * (k + 1);\n        }\n    }\n";

/// Each time after so many keystrokes there is a wrong one, which the next one takes back.
const SLIP: usize = 13;

/// What else is known of the sessions of a server with an input.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// How many diagnostics it published first, and how many there were when it was idle.
    pub diagnostics: Option<(usize, usize)>,
    /// Its memory.
    pub memory: MemorySeries,
}

/// The memory of some sessions.
#[derive(Debug, Clone, Default)]
pub struct MemorySeries {
    /// After opening, in KiB.
    pub opened: u64,
    /// At the end, in KiB.
    pub end: u64,
    /// The most, in KiB.
    pub peak: u64,
    /// After how many edits how many KiB.
    pub edits: Vec<(usize, u64)>,
}

/// Everything that a script needs.
pub struct Script<'a> {
    /// The server.
    pub program: &'a Program,
    /// The input.
    pub input: &'a Prepared,
    /// What is asked about.
    pub subject: &'a Subject,
    /// How often.
    pub settings: &'a Settings,
    /// Where the times go.
    pub samples: &'a mut Samples,
    /// Where the rest goes.
    pub facts: &'a mut Facts,
}

/// An open document with its places, which move as it is edited.
struct Live {
    session: Session,
    launch: usize,
    same: Spot,
    elsewhere: Spot,
    edits: usize,
}

/// Where a line is inserted and taken out again.
struct Spot {
    at: usize,
    inserted: usize,
}

impl Live {
    /// The change that is next at a place: a statement more, or that statement less.
    fn change(&mut self, situation: Situation) -> (Range<usize>, String) {
        self.edits += 1;
        let spot = match situation {
            Situation::Same => &mut self.same,
            _ => &mut self.elsewhere,
        };
        let (at, old) = (spot.at, spot.inserted);
        let new = match old {
            0 => format!("\n    int edited_{0} = {0};", self.edits),
            _ => String::new(),
        };
        spot.inserted = new.len();
        self.moved(at, old, new.len());
        (at..at + old, new)
    }

    fn moved(&mut self, at: usize, old: usize, new: usize) {
        for place in [&mut self.launch, &mut self.same.at, &mut self.elsewhere.at] {
            if *place > at {
                *place = *place + new - old;
            }
        }
    }
}

impl Script<'_> {
    /// Runs all of it.
    ///
    /// # Errors
    /// When the server ends.
    pub fn run(&mut self) -> Result<()> {
        let begin = Instant::now();
        for _ in 1..self.settings.opens {
            if let Some(live) = self.start(false, true)? {
                live.session.end();
            }
            if self.over_budget(begin) {
                break;
            }
        }
        let mut live = self.start(false, true)?;
        if let Some(opened) = live.as_mut() {
            self.edit_and_wait(opened, self.settings.edits, Operation::EditPush, false)?;
        }
        for operation in [Operation::Hover, Operation::Menu, Operation::Lens, Operation::Hints] {
            live = self.ask_after_edits(live, operation)?;
        }
        if self.settings.keystrokes > 0 {
            live = match live {
                Some(live) => Some(live),
                None => self.start(false, false)?,
            };
            if let Some(opened) = live.as_mut() {
                self.typing(opened)?;
            }
        }
        if let Some(mut opened) = live {
            self.memory_over_edits(&mut opened)?;
            opened.session.end();
        }
        if !self.pulls()? {
            for situation in [Situation::Elsewhere, Situation::Same] {
                self.samples.unsupported(Operation::EditPull, situation);
            }
        } else if let Some(mut live) = self.start(true, false)? {
            self.edit_and_wait(&mut live, self.settings.edits, Operation::EditPull, true)?;
            live.session.end();
        }
        Ok(())
    }

    /// Whether the server gives diagnostics to those who ask: it may say so only to a client that does.
    fn pulls(&self) -> Result<bool> {
        let mut command = self.program.command(self.input)?;
        let mut session = Session::start(&mut command, Duration::from_secs(self.settings.limit_s))?;
        session.initialize(&self.input.root, true)?;
        let pulls = session.can("diagnosticProvider");
        session.end();
        Ok(pulls)
    }

    /// A server with the document open; `None` when its diagnostics don't come in time. `counts`: the times do.
    fn start(&mut self, pull: bool, counts: bool) -> Result<Option<Live>> {
        let limit = Duration::from_secs(self.settings.limit_s);
        let mut command = self.program.command(self.input)?;
        let mut session = Session::start(&mut command, limit)?;
        session.initialize(&self.input.root, pull)?;
        let begin = session.beginning();
        let Some((spent, arrived)) = session.open(&self.input.file, &self.input.text, pull)? else {
            if counts {
                self.samples.late(Operation::Open, Situation::Any);
                self.samples.late(Operation::ColdFirst, Situation::Any);
            }
            return Ok(None);
        };
        let first = session.diagnostics();
        let settled = session.settle(INDEXED, Duration::from_secs(self.settings.index_s))?;
        if counts {
            self.facts.diagnostics = Some((first, session.diagnostics()));
            self.samples.add(Operation::Open, Situation::Any, spent);
            self.samples
                .add(Operation::ColdFirst, Situation::Any, since(begin, arrived));
            self.indexed(begin, settled);
            let memory = session.memory().context("the server has ended")?;
            self.facts.memory.opened = self.facts.memory.opened.max(memory.resident);
        }
        let subject = self.subject;
        Ok(Some(Live {
            session,
            launch: subject.at,
            same: Spot {
                at: subject.same.body.start,
                inserted: 0,
            },
            elsewhere: Spot {
                at: subject.elsewhere.body.start,
                inserted: 0,
            },
            edits: 0,
        }))
    }

    fn indexed(&mut self, begin: Moment, settled: Settled) {
        if settled.idle {
            let end = Moment {
                at: settled.at,
                cpu: settled.cpu,
            };
            self.samples
                .add(Operation::ColdIndexed, Situation::Any, since(begin, end));
        } else {
            self.samples.late(Operation::ColdIndexed, Situation::Any);
        }
    }

    fn settle(&self, live: &mut Live) -> Result<Settled> {
        let quiet = Duration::from_millis(self.settings.quiet_ms);
        live.session.settle(quiet, Duration::from_secs(self.settings.limit_s))
    }

    /// One edit, without recording how long it takes; false when its diagnostics don't come in time.
    fn edit(&self, live: &mut Live, situation: Situation) -> Result<bool> {
        let (bytes, new) = live.change(situation);
        let in_time = live.session.edit(bytes, &new, false)?.is_some();
        self.settle(live)?;
        Ok(in_time)
    }

    fn over_budget(&self, begin: Instant) -> bool {
        begin.elapsed() > Duration::from_secs(self.settings.budget_s)
    }

    fn edit_and_wait(&mut self, live: &mut Live, edits: usize, operation: Operation, pull: bool) -> Result<()> {
        let begin = Instant::now();
        for done in 0..edits {
            for situation in [Situation::Elsewhere, Situation::Same] {
                let (bytes, new) = live.change(situation);
                let before = live.session.now()?;
                match live.session.edit(bytes, &new, pull)? {
                    Some(spent) => {
                        self.samples.add(operation, situation, spent);
                        let settled = self.settle(live)?;
                        let cpu = settled.cpu.saturating_sub(before.cpu);
                        self.samples.add_settled(operation, situation, cpu);
                    }
                    None => self.samples.late(operation, situation),
                }
            }
            if done > 0 && self.over_budget(begin) {
                break;
            }
        }
        Ok(())
    }

    /// One kind of request after edits, and again. A server that is late is started anew, since it may still be at it.
    fn ask_after_edits(&mut self, mut live: Option<Live>, operation: Operation) -> Result<Option<Live>> {
        let begin = Instant::now();
        for _ in 0..self.settings.requests {
            for situation in [Situation::Elsewhere, Situation::Same] {
                let mut opened = match live.take() {
                    Some(live) => live,
                    None => match self.start(false, false)? {
                        Some(live) => live,
                        None => return Ok(None),
                    },
                };
                let in_time = self.edit(&mut opened, situation)?
                    && self.ask(&mut opened, operation, situation)?
                    && self.ask(&mut opened, operation, Situation::Again)?;
                if in_time {
                    live = Some(opened);
                }
            }
            if self.over_budget(begin) {
                break;
            }
        }
        Ok(live)
    }

    /// Asks once; false when the answer doesn't come in time.
    fn ask(&mut self, live: &mut Live, operation: Operation, situation: Situation) -> Result<bool> {
        let position = live.session.position(live.launch);
        let (capability, method, extra) = match operation {
            Operation::Menu => (
                "codeActionProvider",
                "textDocument/codeAction",
                json!({
                    "range": { "start": position, "end": position },
                    "context": { "diagnostics": [], "triggerKind": 1 },
                }),
            ),
            Operation::Lens => ("codeLensProvider", "textDocument/codeLens", Value::Null),
            Operation::Hints => (
                "inlayHintProvider",
                "textDocument/inlayHint",
                json!({ "range": live.session.whole() }),
            ),
            _ => ("hoverProvider", "textDocument/hover", json!({ "position": position })),
        };
        let behind = match operation {
            Operation::Menu => Some((Operation::Resolve, "codeAction/resolve")),
            Operation::Lens => Some((Operation::LensResolve, "codeLens/resolve")),
            _ => None,
        };
        if !live.session.can(capability) {
            self.samples.unsupported(operation, situation);
            if let Some((resolve, _)) = behind {
                self.samples.unsupported(resolve, situation);
            }
            return Ok(true);
        }
        let Some(result) = self.timed(operation, situation, live.session.ask(method, &extra)?) else {
            return Ok(false);
        };
        let Some((resolve, method)) = behind else {
            return Ok(true);
        };
        if !live.session.resolves(capability) {
            self.samples.unsupported(resolve, situation);
            return Ok(true);
        }
        let items = match operation {
            Operation::Menu => rewrites(&result),
            _ => around(&result, &position),
        };
        self.resolve_all(live, resolve, situation, method, &items)
    }

    /// Resolves all and records the slowest one.
    fn resolve_all(
        &mut self,
        live: &mut Live,
        operation: Operation,
        situation: Situation,
        method: &str,
        items: &[&Value],
    ) -> Result<bool> {
        let begin = Instant::now();
        let mut slowest: Option<(Spent, &Value)> = None;
        for item in items {
            match live.session.request(method, item)? {
                Answer::Came(spent, _) => {
                    if slowest.is_none_or(|(slowest, _)| slowest.cpu < spent.cpu) {
                        slowest = Some((spent, item));
                    }
                }
                Answer::Refused(_) => {}
                Answer::Late => {
                    self.samples.late(operation, situation);
                    return Ok(false);
                }
            }
            if self.over_budget(begin) {
                break;
            }
        }
        if let Some((spent, item)) = slowest {
            self.samples.add(operation, situation, spent);
            if let Some(title) = item["title"].as_str() {
                // What is assumed stands behind a dash.
                let title = title.split(" — ").next().unwrap_or(title);
                self.samples.name(operation, situation, spent, title);
            }
        }
        Ok(true)
    }

    /// Records an answer; `None` when there is none. An error is an answer without a result.
    fn timed(&mut self, operation: Operation, situation: Situation, answer: Answer) -> Option<Value> {
        match answer {
            Answer::Came(spent, result) => {
                self.samples.add(operation, situation, spent);
                Some(result)
            }
            Answer::Refused(_) => Some(Value::Null),
            Answer::Late => {
                self.samples.late(operation, situation);
                None
            }
        }
    }

    /// Types into the launch's function at a steady pace, whatever the server does meanwhile.
    fn typing(&mut self, live: &mut Live) -> Result<()> {
        let pace = Duration::from_millis(self.settings.pace_ms);
        let begin_at = live.same.at;
        let mut at = begin_at;
        let mut slipped = false;
        let mut text = TYPED.chars().cycle();
        let mut waiting: Vec<(i64, Moment)> = Vec::new();
        let mut last: Option<Moment> = None;
        let mut next = Instant::now();
        let mut spent = Vec::new();
        for stroke in 0..self.settings.keystrokes {
            let (bytes, new) = if slipped {
                (at - 1..at, String::new())
            } else if stroke % SLIP == SLIP - 1 {
                (at..at, "}".to_owned())
            } else {
                (at..at, text.next().unwrap_or(' ').to_string())
            };
            slipped = !slipped && stroke % SLIP == SLIP - 1;
            at = bytes.start + new.len();
            let sent = live.session.send_edit(bytes, &new)?;
            if let Some(last) = last {
                spent.push(sent.cpu.saturating_sub(last.cpu));
            }
            last = Some(sent);
            waiting.push((live.session.version()?, sent));
            next += pace;
            while let Some((version, moment)) = live.session.next_published(next)? {
                self.typed(&mut waiting, version, moment);
            }
        }
        let until = Instant::now() + Duration::from_secs(self.settings.limit_s);
        while !waiting.is_empty() {
            let Some((version, moment)) = live.session.next_published(until)? else {
                break;
            };
            self.typed(&mut waiting, version, moment);
        }
        for _ in waiting {
            self.samples.late(Operation::Typing, Situation::Any);
        }
        let settled = self.settle(live)?;
        if let Some(last) = last {
            spent.push(settled.cpu.saturating_sub(last.cpu));
        }
        for cpu in spent {
            self.samples.add_settled(Operation::Typing, Situation::Any, cpu);
        }
        live.session.edit(begin_at..at, "", false)?;
        self.settle(live)?;
        Ok(())
    }

    /// Diagnostics of a version answer all keystrokes up to it.
    fn typed(&mut self, waiting: &mut Vec<(i64, Moment)>, version: i64, moment: Moment) {
        waiting.retain(|(of, sent)| {
            if *of <= version {
                let spent = since(*sent, moment);
                self.samples.add(Operation::Typing, Situation::Any, spent);
            }
            *of > version
        });
    }

    fn memory_over_edits(&mut self, live: &mut Live) -> Result<()> {
        let begin = Instant::now();
        let edits = self.settings.memory_edits;
        let mut series = Vec::new();
        for done in 1..=edits {
            let situation = if done % 2 == 0 {
                Situation::Same
            } else {
                Situation::Elsewhere
            };
            let (bytes, new) = live.change(situation);
            let in_time = live.session.edit(bytes, &new, false)?.is_some();
            if done % edits.div_ceil(10) == 0 || done == edits {
                let memory = live.session.memory().context("the server has ended")?;
                series.push((done, memory.resident));
            }
            if !in_time || self.over_budget(begin) {
                break;
            }
        }
        self.settle(live)?;
        let memory = live.session.memory().context("the server has ended")?;
        self.facts.memory.end = self.facts.memory.end.max(memory.resident);
        self.facts.memory.peak = self.facts.memory.peak.max(memory.peak);
        self.facts.memory.edits = series;
        Ok(())
    }
}

/// The actions of a menu that can be chosen and whose edit is still to come.
fn rewrites(menu: &Value) -> Vec<&Value> {
    let actions = menu.as_array().map(Vec::as_slice).unwrap_or_default();
    let open = |action: &&Value| {
        action.get("disabled").is_none_or(Value::is_null)
            && action.get("edit").is_none_or(Value::is_null)
            && action.get("data").is_some()
    };
    actions.iter().filter(open).collect()
}

/// The lenses of the function around a position that have no command yet: the last ones that begin before it.
fn around<'a>(lenses: &'a Value, position: &Value) -> Vec<&'a Value> {
    let line = |position: &Value| position["line"].as_u64().unwrap_or_default();
    let begin = |lens: &Value| line(&lens["range"]["start"]);
    let lenses = lenses.as_array().map(Vec::as_slice).unwrap_or_default();
    let before = |lens: &&Value| begin(lens) <= line(position);
    let last = lenses.iter().filter(before).map(begin).max();
    let open = |lens: &&Value| Some(begin(lens)) == last && lens.get("command").is_none_or(Value::is_null);
    lenses.iter().filter(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resolved() {
        let menu = json!([
            { "title": "a", "data": 1 }, { "title": "b", "data": 1, "edit": {} }, { "title": "c" },
            { "title": "d", "data": 1, "disabled": { "reason": "no" } },
        ]);
        assert_eq!(rewrites(&menu), [&menu[0]]);
        let lens = |line: u32, number: u32| json!({ "range": { "start": { "line": line } }, "data": number });
        let mut lenses = json!([lens(3, 0), lens(9, 1), lens(9, 2), lens(9, 3), lens(12, 4)]);
        lenses[3]["command"] = json!({ "title": "done" });
        assert_eq!(around(&lenses, &json!({ "line": 11 })), [&lenses[1], &lenses[2]]);
        assert!(around(&lenses, &json!({ "line": 1 })).is_empty() && rewrites(&Value::Null).is_empty());
    }
}
