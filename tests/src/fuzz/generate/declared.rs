//! Declarations that don't look like ones, and names that a block declares without a declarator: what stands behind them speaks of another
//! variable than it seems to.

use super::Generator;
use crate::fuzz::ast::{Stmt, atom, binary, declare, int, member, text, when};

impl Generator {
    /// Adds a parent whose guard `t == 0` picks more threads of a block than one, as `t` isn't the thread's number any more.
    pub fn declared(&mut self) {
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let launch = self.tally_launch(&march, None, 2);
        let guarded = when(binary(atom("t"), "==", int(0)), vec![launch]);
        let inside = match self.random.below(2) {
            0 => {
                let mut inside = self.set_by_brackets();
                inside.push(guarded);
                inside
            }
            _ => {
                let mut block = self.another_of_that_name();
                block.push(guarded);
                vec![Stmt::Block(block)]
            }
        };
        let mut inner = vec![declare("int", "t", member(atom("threadIdx"), "x"))];
        inner.extend(inside);
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// A name of `int`.
    fn number_type(&mut self) -> String {
        let way = self.random.below(4);
        if way == 0 {
            return "int".to_owned();
        }
        let name = self.fresh("Number");
        match way {
            1 => self.text(format!("using {name} = int;")),
            2 => self.text(format!("typedef int {name};")),
            _ => {
                let space = self.fresh("numbers");
                self.text(format!("namespace {space} {{ using {name} = int; }}"));
                return format!("{space}::{name}");
            }
        }
        name
    }

    /// `t` is halved by a reference or a pointer whose name stands in brackets.
    fn set_by_brackets(&mut self) -> Vec<Stmt> {
        self.feature("reference whose name stands in brackets");
        let ty = self.number_type();
        let lines = match self.random.below(6) {
            0 => vec![format!("{ty} (&to) = t;"), "to = to % 2;".to_owned()],
            1 => vec![format!("{ty} ((&to)) = t;"), "to %= 2;".to_owned()],
            2 => vec![format!("{ty} (*to) = &t;"), "*to = *to % 2;".to_owned()],
            3 => vec![format!("for ({ty} (&to) = t; to > 1;) to -= 2;")],
            4 => vec![format!("if ({ty} (&to) = t; to >= 0) to = to % 2;")],
            _ => vec![format!("{ty} (&to) = t, other = 2;"), "to = to % other;".to_owned()],
        };
        lines.iter().map(|line| text(line)).collect()
    }

    /// Another `t` in a block, which is 0 for several threads.
    fn another_of_that_name(&mut self) -> Vec<Stmt> {
        self.feature("name that a block declares without a declarator");
        let halved = "t = threadIdx.x % 2;";
        let lines = match self.random.below(5) {
            0 => {
                let ty = self.number_type();
                vec![format!("{ty} (t) = threadIdx.x % 2;")]
            }
            1 => {
                let ty = self.number_type();
                vec![format!("{ty} (t);"), halved.to_owned()]
            }
            2 => vec!["enum { t = 0 };".to_owned()],
            3 => vec!["union { int t; int other; };".to_owned(), halved.to_owned()],
            _ => {
                let space = self.fresh("turns");
                self.text(format!("namespace {space} {{ __device__ const int t = 0; }}"));
                vec![format!("using {space}::t;")]
            }
        };
        lines.iter().map(|line| text(line)).collect()
    }
}
