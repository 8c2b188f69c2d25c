//! Builds the graph. A stack of tasks replaces recursion: the nesting of the input is not limited.

use std::collections::HashMap;

use super::{BasicBlock, BlockId, Condition, Flow, Step, Terminator, graph};
use crate::base::span::Span;
use crate::hir::walk::operands;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Literal, StmtId, StmtKind};

enum Task {
    Stmt(StmtId),
    Expr(ExprId),
    /// Evaluates the expression itself, its operands being done.
    Emit(ExprId),
    Step(Step),
    /// Ends the current block and goes on in a new one that nothing reaches.
    Goto(BlockId),
    Branch(Condition, Vec<BlockId>),
    Enter(BlockId),
    PushTarget(Targets),
    PopTarget,
    /// Ends a `switch`: the block that holds its branch, and its selector.
    EndSwitch(BlockId, ExprId, BlockId),
}

/// Where `break` and `continue` go.
struct Targets {
    on_break: BlockId,
    on_continue: Option<BlockId>,
    /// The cases of a `switch`, as they are found, and whether one is the default.
    cases: Option<(Vec<BlockId>, bool)>,
}

struct Builder<'a> {
    body: &'a Body,
    blocks: Vec<BasicBlock>,
    ended: Vec<bool>,
    current: BlockId,
    tasks: Vec<Task>,
    targets: Vec<Targets>,
    labels: HashMap<String, BlockId>,
    gotos: Vec<(BlockId, String)>,
    /// Blocks that may jump to any label: their branch is completed at the end.
    wild: Vec<BlockId>,
    stmt_block: HashMap<StmtId, BlockId>,
    expr_block: HashMap<ExprId, BlockId>,
}

pub(super) fn build(body: &Body) -> Flow {
    let mut b = Builder {
        body,
        blocks: Vec::new(),
        ended: Vec::new(),
        current: Flow::ENTRY,
        tasks: Vec::new(),
        targets: Vec::new(),
        labels: HashMap::new(),
        gotos: Vec::new(),
        wild: Vec::new(),
        stmt_block: HashMap::new(),
        expr_block: HashMap::new(),
    };
    b.new_block();
    b.new_block();
    b.blocks[Flow::EXIT.index()].end = Terminator::Exit;
    b.ended[Flow::EXIT.index()] = true;
    if let Some(root) = body.root {
        b.tasks.push(Task::Goto(Flow::EXIT));
        b.tasks.push(Task::Stmt(root));
    } else {
        b.tasks.push(Task::Goto(Flow::EXIT));
    }
    while let Some(task) = b.tasks.pop() {
        b.run(task);
    }
    b.finish()
}

impl Builder<'_> {
    fn new_block(&mut self) -> BlockId {
        let id = BlockId(self.blocks.len() as u32);
        // A block that nothing ends (unreachable code behind a jump) falls off to the exit.
        self.blocks.push(BasicBlock {
            steps: Vec::new(),
            end: Terminator::Goto(Flow::EXIT),
        });
        self.ended.push(false);
        id
    }

    fn end(&mut self, end: Terminator) {
        let i = self.current.index();
        if !self.ended[i] {
            self.ended[i] = true;
            self.blocks[i].end = end;
        }
        self.current = self.new_block();
    }

    fn step(&mut self, step: Step) {
        self.blocks[self.current.index()].steps.push(step);
    }

    /// Queues tasks so that they run in the order given.
    fn queue(&mut self, tasks: Vec<Task>) {
        self.tasks.extend(tasks.into_iter().rev());
    }

    fn run(&mut self, task: Task) {
        match task {
            Task::Stmt(id) => self.stmt(id),
            Task::Expr(id) => self.expr(id),
            Task::Emit(id) => {
                self.expr_block.insert(id, self.current);
                self.step(Step::Expr(id));
            }
            Task::Step(step) => self.step(step),
            Task::Goto(to) => self.end(Terminator::Goto(to)),
            Task::Branch(on, targets) => match self.decided(&on) {
                Some(value) if targets.len() == 2 => self.end(Terminator::Goto(targets[usize::from(!value)])),
                _ => self.end(Terminator::Branch {
                    on,
                    targets,
                    many: false,
                }),
            },
            Task::Enter(block) => self.current = block,
            Task::PushTarget(t) => self.targets.push(t),
            Task::PopTarget => {
                self.targets.pop();
            }
            Task::EndSwitch(head, cond, after) => {
                let (mut cases, default) = self.targets.pop().and_then(|t| t.cases).unwrap_or_default();
                if !default {
                    cases.push(after);
                }
                self.blocks[head.index()].end = Terminator::Branch {
                    on: Condition::Expr(cond),
                    targets: cases,
                    many: true,
                };
            }
        }
    }

    /// The value of a literal condition.
    fn decided(&self, on: &Condition) -> Option<bool> {
        let Condition::Expr(e) = on else { return None };
        match &self.body.expr(self.body.strip_parens(*e)).kind {
            ExprKind::Literal(Literal::Bool(value)) => Some(*value),
            ExprKind::Literal(Literal::Int(value)) => Some(*value != 0),
            _ => None,
        }
    }

    /// The condition of an `if` or `while` whose condition may be a declaration.
    fn condition(&self, cond: Option<ExprId>, init: Option<StmtId>) -> (Vec<Task>, Condition) {
        if let Some(e) = cond {
            return (vec![Task::Expr(e)], Condition::Expr(e));
        }
        let declared = init.and_then(|s| match &self.body.stmt(s).kind {
            StmtKind::Decl(decls) => decls.last(),
            _ => None,
        });
        match declared {
            Some(d) => (vec![], Condition::Binding(d.binding)),
            None => (
                vec![],
                Condition::Opaque(init.map(|s| self.body.stmt(s).span).unwrap_or_default()),
            ),
        }
    }

    fn stmt(&mut self, id: StmtId) {
        let body = self.body;
        let stmt = body.stmt(id);
        match &stmt.kind {
            // These begin in a block of their own, because jumps lead to them.
            StmtKind::Case { .. } | StmtKind::Label(..) => {
                let block = self.new_block();
                self.end(Terminator::Goto(block));
                self.current = block;
            }
            _ => {}
        }
        self.stmt_block.insert(id, self.current);
        self.step(Step::Stmt(id));
        match &stmt.kind {
            StmtKind::Block(stmts) => {
                let tasks = stmts.iter().map(|s| Task::Stmt(*s)).collect();
                self.queue(tasks);
            }
            StmtKind::Expr(e) => self.tasks.push(Task::Expr(*e)),
            StmtKind::Decl(decls) => {
                let mut tasks = Vec::new();
                for d in decls {
                    tasks.extend(d.init.map(Task::Expr));
                    tasks.push(Task::Step(Step::Decl {
                        binding: d.binding,
                        init: d.init,
                    }));
                }
                self.queue(tasks);
            }
            StmtKind::If {
                init,
                cond,
                constexpr,
                then,
                otherwise,
            } => self.if_else(*init, *cond, *constexpr, *then, *otherwise),
            StmtKind::While {
                cond,
                init,
                body: inner,
            } => self.while_loop(*init, *cond, *inner),
            StmtKind::DoWhile { body: inner, cond } => self.do_while(*inner, *cond),
            StmtKind::For {
                init,
                cond,
                step,
                body: inner,
            } => self.for_loop(*init, *cond, *step, *inner),
            StmtKind::RangeFor {
                binding,
                range,
                body: inner,
            } => self.range_for(*binding, *range, *inner),
            StmtKind::Switch { cond, body: inner } => self.switch(*cond, *inner),
            StmtKind::Case { value, stmts } => self.case(*value, stmts),
            StmtKind::Break => match self.targets.last().map(|t| t.on_break) {
                Some(to) => self.end(Terminator::Goto(to)),
                None => self.wild_branch(vec![]),
            },
            StmtKind::Continue => match self.targets.iter().rev().find_map(|t| t.on_continue) {
                Some(to) => self.end(Terminator::Goto(to)),
                None => self.wild_branch(vec![]),
            },
            StmtKind::Return(value) => {
                let mut tasks = Vec::new();
                if let Some(e) = value {
                    tasks.extend([Task::Expr(*e), Task::Step(Step::Return(*e))]);
                }
                tasks.push(Task::Goto(Flow::EXIT));
                self.queue(tasks);
            }
            StmtKind::Goto(label) => {
                self.gotos.push((self.current, label.clone()));
                self.end(Terminator::Goto(Flow::EXIT));
            }
            StmtKind::Label(name, inner) => self.label(name, *inner, stmt.span),
            StmtKind::Preprocessor { branches } => self.preprocessor(branches),
            StmtKind::Asm { parts, .. } => {
                let mut tasks: Vec<Task> = parts.iter().map(|e| Task::Expr(*e)).collect();
                tasks.push(Task::Step(Step::Opaque(id)));
                self.queue(tasks);
            }
            StmtKind::Empty => {}
            StmtKind::Unknown { stmts, exprs, .. } => self.unknown(id, stmts, exprs),
        }
    }

    /// `if`: the condition may be a declaration, and with `constexpr` it is the same for all threads.
    fn if_else(
        &mut self,
        init: Option<StmtId>,
        cond: Option<ExprId>,
        constexpr: bool,
        then: StmtId,
        otherwise: Option<StmtId>,
    ) {
        let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
        let mut tasks: Vec<Task> = init.into_iter().map(Task::Stmt).collect();
        let (eval, mut on) = self.condition(cond, init);
        tasks.extend(eval);
        if constexpr && self.decided(&on).is_none() {
            on = Condition::Uniform;
        }
        tasks.push(Task::Branch(on, vec![yes, no]));
        tasks.extend([Task::Enter(yes), Task::Stmt(then), Task::Goto(after), Task::Enter(no)]);
        tasks.extend(otherwise.map(Task::Stmt));
        tasks.extend([Task::Goto(after), Task::Enter(after)]);
        self.queue(tasks);
    }

    /// `while`: the condition may be a declaration.
    fn while_loop(&mut self, init: Option<StmtId>, cond: Option<ExprId>, inner: StmtId) {
        let (head, inside, after) = (self.new_block(), self.new_block(), self.new_block());
        let mut tasks = vec![Task::Goto(head), Task::Enter(head)];
        tasks.extend(init.map(Task::Stmt));
        let (eval, on) = self.condition(cond, init);
        tasks.extend(eval);
        tasks.push(Task::Branch(on, vec![inside, after]));
        tasks.push(loop_targets(after, head));
        tasks.extend([Task::Enter(inside), Task::Stmt(inner), Task::Goto(head)]);
        tasks.extend([Task::PopTarget, Task::Enter(after)]);
        self.queue(tasks);
    }

    /// `do … while`: the condition is tested behind the body, where `continue` leads.
    fn do_while(&mut self, inner: StmtId, cond: ExprId) {
        let (inside, test, after) = (self.new_block(), self.new_block(), self.new_block());
        self.queue(vec![
            Task::Goto(inside),
            Task::Enter(inside),
            loop_targets(after, test),
            Task::Stmt(inner),
            Task::Goto(test),
            Task::PopTarget,
            Task::Enter(test),
            Task::Expr(cond),
            Task::Branch(Condition::Expr(cond), vec![inside, after]),
            Task::Enter(after),
        ]);
    }

    /// `for`: `continue` leads to the step.
    fn for_loop(&mut self, init: Option<StmtId>, cond: Option<ExprId>, step: Option<ExprId>, inner: StmtId) {
        let (head, inside, next, after) = (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        let mut tasks: Vec<Task> = init.into_iter().map(Task::Stmt).collect();
        tasks.extend([Task::Goto(head), Task::Enter(head)]);
        match cond {
            Some(c) => {
                tasks.push(Task::Expr(c));
                tasks.push(Task::Branch(Condition::Expr(c), vec![inside, after]));
            }
            None => tasks.push(Task::Goto(inside)),
        }
        tasks.push(loop_targets(after, next));
        tasks.extend([Task::Enter(inside), Task::Stmt(inner), Task::Goto(next)]);
        tasks.extend([Task::PopTarget, Task::Enter(next)]);
        tasks.extend(step.map(Task::Expr));
        tasks.extend([Task::Goto(head), Task::Enter(after)]);
        self.queue(tasks);
    }

    /// `for` over the elements of a range.
    fn range_for(&mut self, binding: BindingId, range: ExprId, inner: StmtId) {
        let (head, inside, after) = (self.new_block(), self.new_block(), self.new_block());
        self.queue(vec![
            Task::Expr(range),
            Task::Goto(head),
            Task::Enter(head),
            Task::Branch(Condition::Range(range), vec![inside, after]),
            loop_targets(after, head),
            Task::Enter(inside),
            Task::Step(Step::Element { binding, range }),
            Task::Stmt(inner),
            Task::Goto(head),
            Task::PopTarget,
            Task::Enter(after),
        ]);
    }

    /// `switch`: its branch is completed when all cases have been found.
    fn switch(&mut self, cond: ExprId, inner: StmtId) {
        let (head, after) = (self.new_block(), self.new_block());
        let on_continue = self.targets.iter().rev().find_map(|t| t.on_continue);
        self.queue(vec![
            Task::Expr(cond),
            Task::Goto(head),
            Task::Enter(head),
            // Completed by `EndSwitch`; statements before the first case are unreachable.
            Task::Goto(after),
            Task::PushTarget(Targets {
                on_break: after,
                on_continue,
                cases: Some((Vec::new(), false)),
            }),
            Task::Stmt(inner),
            Task::Goto(after),
            Task::EndSwitch(head, cond, after),
            Task::Enter(after),
        ]);
    }

    /// A case of the innermost `switch`.
    fn case(&mut self, value: Option<ExprId>, stmts: &[StmtId]) {
        let block = self.current;
        if let Some((cases, default)) = self.targets.iter_mut().rev().find_map(|t| t.cases.as_mut()) {
            cases.push(block);
            *default |= value.is_none();
        }
        let tasks = stmts.iter().map(|s| Task::Stmt(*s)).collect();
        self.queue(tasks);
    }

    /// A label, to which jumps lead.
    fn label(&mut self, name: &str, inner: Option<StmtId>, span: Span) {
        let block = self.current;
        // Two labels of one name: alternatives of `#if`, say. Jumps go to either.
        if let Some(first) = self.labels.get(name).copied() {
            let both = self.new_block();
            self.blocks[both.index()].end = Terminator::Branch {
                on: Condition::Opaque(span),
                targets: vec![first, block],
                many: true,
            };
            self.ended[both.index()] = true;
            self.labels.insert(name.to_owned(), both);
        } else {
            self.labels.insert(name.to_owned(), block);
        }
        self.tasks.extend(inner.map(Task::Stmt));
    }

    /// Branches of an `#if`, one of which is compiled.
    fn preprocessor(&mut self, branches: &[Vec<StmtId>]) {
        let after = self.new_block();
        let starts: Vec<BlockId> = branches.iter().map(|_| self.new_block()).collect();
        if starts.is_empty() {
            return;
        }
        let mut tasks = vec![Task::Branch(Condition::Uniform, starts.clone())];
        for (start, stmts) in starts.iter().zip(branches) {
            tasks.push(Task::Enter(*start));
            tasks.extend(stmts.iter().map(|s| Task::Stmt(*s)));
            tasks.push(Task::Goto(after));
        }
        tasks.push(Task::Enter(after));
        self.queue(tasks);
    }

    /// What isn't understood.
    fn unknown(&mut self, id: StmtId, stmts: &[StmtId], exprs: &[ExprId]) {
        // Its parts run any number of times in any order; then anything follows.
        let (head, after) = (self.new_block(), self.new_block());
        let mut targets = vec![after];
        let mut tasks = Vec::new();
        for part in exprs
            .iter()
            .map(|e| Task::Expr(*e))
            .chain(stmts.iter().map(|s| Task::Stmt(*s)))
        {
            let block = self.new_block();
            targets.push(block);
            tasks.extend([Task::Enter(block), part, Task::Goto(head)]);
        }
        tasks.push(Task::Enter(after));
        self.end(Terminator::Goto(head));
        self.current = head;
        self.step(Step::Opaque(id));
        self.wild_branch(targets);
        self.queue(tasks);
    }

    /// Ends the block with a branch to `targets`, the exit, where `break` and `continue` lead, and any label.
    fn wild_branch(&mut self, mut targets: Vec<BlockId>) {
        targets.push(Flow::EXIT);
        targets.extend(self.targets.last().map(|t| t.on_break));
        targets.extend(self.targets.iter().rev().find_map(|t| t.on_continue));
        let block = self.current;
        let span = match self.blocks[block.index()].steps.iter().rev().find_map(|s| match s {
            Step::Stmt(id) | Step::Opaque(id) => Some(*id),
            _ => None,
        }) {
            Some(id) => self.body.stmt(id).span,
            None => Default::default(),
        };
        self.end(Terminator::Branch {
            on: Condition::Opaque(span),
            targets,
            many: true,
        });
        self.wild.push(block);
    }

    fn expr(&mut self, id: ExprId) {
        let body = self.body;
        let mut tasks = Vec::new();
        match &body.expr(id).kind {
            ExprKind::Logical { and, lhs, rhs } => {
                let (right, after) = (self.new_block(), self.new_block());
                let targets = if *and { vec![right, after] } else { vec![after, right] };
                tasks.extend([
                    Task::Expr(*lhs),
                    Task::Branch(Condition::Expr(*lhs), targets),
                    Task::Enter(right),
                    Task::Expr(*rhs),
                    Task::Goto(after),
                    Task::Enter(after),
                ]);
            }
            ExprKind::Conditional { cond, then, otherwise } => {
                let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
                tasks.extend([
                    Task::Expr(*cond),
                    Task::Branch(Condition::Expr(*cond), vec![yes, no]),
                    Task::Enter(yes),
                    Task::Expr(*then),
                    Task::Goto(after),
                    Task::Enter(no),
                    Task::Expr(*otherwise),
                    Task::Goto(after),
                    Task::Enter(after),
                ]);
            }
            kind => tasks.extend(operands(kind).into_iter().map(Task::Expr)),
        }
        tasks.push(Task::Emit(id));
        self.queue(tasks);
    }

    fn finish(mut self) -> Flow {
        let all: Vec<BlockId> = {
            let mut all: Vec<BlockId> = self.labels.values().copied().collect();
            all.sort();
            all
        };
        for (block, label) in std::mem::take(&mut self.gotos) {
            match self.labels.get(&label) {
                Some(to) => self.blocks[block.index()].end = Terminator::Goto(*to),
                None => {
                    self.blocks[block.index()].end = Terminator::Branch {
                        on: Condition::Opaque(Default::default()),
                        targets: vec![Flow::EXIT],
                        many: true,
                    };
                    self.wild.push(block);
                }
            }
        }
        // Every wild branch goes through one block that leads to all labels.
        if !self.wild.is_empty() && !all.is_empty() {
            let hub = self.new_block();
            self.blocks[hub.index()].end = Terminator::Branch {
                on: Condition::Opaque(Default::default()),
                targets: all,
                many: true,
            };
            for block in std::mem::take(&mut self.wild) {
                if let Terminator::Branch { targets, .. } = &mut self.blocks[block.index()].end {
                    targets.push(hub);
                }
            }
        }
        let preds = vec![Vec::new(); self.blocks.len()];
        let mut flow = Flow {
            blocks: self.blocks,
            preds,
            stmt_block: self.stmt_block,
            expr_block: self.expr_block,
            order: Vec::new(),
            position: Vec::new(),
        };
        (flow.order, flow.position) = graph::reverse_post_order(&flow);
        for block in &flow.order {
            for to in flow.blocks[block.index()].targets() {
                flow.preds[to.index()].push(*block);
            }
        }
        flow
    }
}

fn loop_targets(on_break: BlockId, on_continue: BlockId) -> Task {
    Task::PushTarget(Targets {
        on_break,
        on_continue: Some(on_continue),
        cases: None,
    })
}
