//! Bodies of the kernels that the host launches.

use super::Generator;
use super::plan::Role;
use super::scope::Value;
use crate::fuzz::ast::{Expr, Stmt, assign, atom, binary, call, cast, declare, index, int, member, text, unary, when};

impl Generator {
    pub fn parent_body(&mut self, kernel: usize) -> Vec<Stmt> {
        let spec = self.kernels[kernel].clone();
        let mut context = self.context(kernel);
        let mut stmts = Vec::new();
        let v = context.fresh(["v", "id", "tid", "u"][self.random.below(4)]);
        stmts.extend(self.thread_number(&spec, &v));
        let n = spec
            .params
            .iter()
            .find(|p| matches!(p.role, Role::Count))
            .map_or_else(|| int(self.n), |p| atom(p.name.clone()));
        context.scope.values.push(Value::new(n.clone(), 1, self.n));
        context.number = (atom(v.clone()), self.n);
        for (builtin, most) in [("threadIdx", 63), ("blockIdx", 15)] {
            let x = member(atom(builtin), "x");
            context.scope.values.push(Value::new(cast("int", x), 0, most));
        }
        let v_value = Value::variable(&v, 0, self.n - 1);

        // The body under its guard.
        let mut inner = Vec::new();
        context.scope.values.push(v_value);
        let tally = context.fresh(["tally", "found", "args"][self.random.below(3)]);
        let has_tally = !spec.slots.is_empty() || self.random.chance(30);
        if has_tally {
            inner.push(declare("int", &tally, int(0)));
            context.scope.values.push(Value::variable(&tally, -1008, 1008));
            context.locals.push(tally.clone());
        }
        if let Some(row) = self.pointer_in(&spec, 1).filter(|_| self.random.chance(75)) {
            let begin = context.fresh(["begin", "first", "from"][self.random.below(3)]);
            let degree = context.fresh(["degree", "count", "edges"][self.random.below(3)]);
            let most = self.degrees.iter().copied().max().unwrap_or(0);
            let next = index(row.clone(), binary(atom(v.clone()), "+", int(1)));
            inner.push(declare("int", &begin, index(row, atom(v.clone()))));
            let word = if self.random.chance(50) { "int" } else { "const int" };
            inner.push(declare(word, &degree, binary(next, "-", atom(begin.clone()))));
            let count = Value::variable(&degree, 0, most);
            context.scope.values.push(count.clone());
            context.edges = Some((atom(begin), count));
        }
        if self.random.chance(40) {
            inner.extend(self.effect(&mut context, 1));
        }
        if self.random.chance(30) {
            self.change_parameter(&mut context, &spec, "parent changes a parameter", &mut inner);
        }
        if self.random.chance(8) {
            inner.extend(self.another_meaning(&mut context));
        }
        let who = self.random.weighted(&[66, 16, 7, 6, 5]);
        let mut reduced = Vec::new();
        let sites = spec.launches.clone();
        let mut launches = Vec::new();
        for (site, child) in sites.iter().enumerate() {
            context.launches_left = if sites.len() > 1 { 3 } else { 6 };
            let depth = self.random.weighted(&[12, 38, 35, 15]) as u32;
            if who == 4 && site == 0 {
                self.feature("launch of a block's sum");
                reduced = self.reduced_launch(&mut context, *child, &v, &n);
                continue;
            }
            launches.extend(self.place(&mut context, *child, depth));
            if self.random.chance(30) {
                launches.extend(self.effect(&mut context, 1));
            }
        }
        let leader = match who {
            1 => {
                self.feature("one launcher a block");
                let mut number = member(atom("threadIdx"), "x");
                if self.random.chance(15) {
                    // By then several threads have it.
                    self.feature("a thread's number that a reference changes");
                    let (lead, again) = (context.fresh("lead"), context.fresh("again"));
                    let bound = ["{@}", "(@)", " = @"][self.random.below(3)].replace('@', &lead);
                    inner.push(declare("int", &lead, number));
                    inner.push(text(&format!("int& {again}{bound};")));
                    let halves = binary(cast("int", member(atom("threadIdx"), "x")), "%", int(2));
                    inner.push(assign(atom(again), "=", halves));
                    number = atom(lead);
                }
                let mut leader = binary(number, "==", int(0));
                if spec.dims > 1 {
                    leader = binary(leader, "&&", binary(member(atom("threadIdx"), "y"), "==", int(0)));
                }
                Some(leader)
            }
            2 => {
                self.feature("one launcher");
                Some(binary(atom(v.clone()), "==", int(0)))
            }
            3 => {
                self.feature("one launcher a warp");
                Some(binary(
                    binary(member(atom("threadIdx"), "x"), "%", int(32)),
                    "==",
                    int(0),
                ))
            }
            _ => None,
        };
        match leader {
            Some(leader) => inner.push(Stmt::If {
                cond: leader,
                then: launches,
                otherwise: Vec::new(),
                braces: false,
            }),
            None => inner.append(&mut launches),
        }
        if has_tally {
            match spec.slots.first().and_then(|s| self.pointer_in(&spec, *s)) {
                Some(mine) => inner.push(assign(index(mine, atom(v.clone())), "=", atom(tally))),
                None => inner.push(Stmt::Expr(call("(void)", vec![atom(tally)]))),
            }
        }

        stmts.extend(reduced);
        let over = binary(atom(v.clone()), ">=", n.clone());
        if self.random.chance(60) {
            self.feature("early return in a parent");
            let cond = if self.random.chance(15) {
                binary(
                    over,
                    "||",
                    unary("!", Expr::Call(String::new(), vec![binary(n, ">", int(0))])),
                )
            } else {
                over
            };
            stmts.push(Stmt::If {
                cond,
                then: vec![text("return;")],
                otherwise: Vec::new(),
                braces: false,
            });
            stmts.extend(inner);
        } else {
            stmts.push(when(binary(atom(v), "<", n), inner));
        }
        stmts
    }

    /// The first thread of each block launches for all of them.
    fn reduced_launch(&mut self, context: &mut super::launch::Context, child: usize, v: &str, n: &Expr) -> Vec<Stmt> {
        let total = context.fresh("wanted");
        let values = context.scope.values.clone();
        let edges = context.edges.take();
        // Only what every thread of the block can evaluate.
        context.scope.values = vec![Value::variable(&total, 0, 3 * 64)];
        let locals = std::mem::take(&mut context.locals);
        let launch = self.place(context, child, 1);
        context.scope.values = values;
        context.edges = edges;
        context.locals = locals;
        let by = binary(binary(atom(v), "%", int(3)), "+", int(0));
        let mut leader = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let spec = &self.kernels[context.kernel];
        if spec.dims > 1 {
            leader = binary(leader, "&&", binary(member(atom("threadIdx"), "y"), "==", int(0)));
        }
        let inside = binary(atom(v), "<", n.clone());
        vec![
            text(&format!("__shared__ int {total};")),
            when(leader.clone(), vec![assign(atom(total.clone()), "=", int(0))]),
            text("__syncthreads();"),
            when(
                inside.clone(),
                vec![Stmt::Expr(call("atomicAdd", vec![unary("&", atom(total)), by]))],
            ),
            text("__syncthreads();"),
            when(binary(leader, "&&", inside), launch),
        ]
    }
}
