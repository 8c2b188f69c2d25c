//! Launches that the device runtime refuses, beside others: an empty grid, blocks of no thread or of too many. Nothing runs for them.

use super::Generator;
use crate::fuzz::ast::{Expr, Stmt, atom, binary, call, conditional, declare, int, text, when};

impl Generator {
    /// Adds a parent some of whose launches are refused.
    pub fn refused(&mut self) {
        let units = self.random.range(3, 9);
        let march = self.march(8, units);
        let again = self.step(&march, "again", false);
        let place = || binary(atom("next"), "+", atom("at"));
        let args = |k: i64| vec![place(), place(), atom("len"), int(k)];
        let mut refused = self.ordered_launch(again, march.len, None, args(3), false);
        // Refused for some threads, or for all of them.
        let some = self.random.chance(60);
        let (good, bad, of_grid) = self.refused_size();
        let mut size = bad.clone();
        let mut inner = Vec::new();
        if some {
            let every = self.random.range(2, 3);
            let which = binary(binary(atom("v"), "%", int(every)), "==", int(1));
            size = conditional(which, bad, good);
        }
        if self.random.chance(50) && !matches!(size, Expr::Call(..)) {
            let ty = if matches!(&size, Expr::Atom(_)) || !some {
                "int"
            } else {
                "auto"
            };
            inner.push(declare(ty, "size", size));
            size = atom("size");
        }
        if let Stmt::Launch(launch) = &mut refused {
            launch.config = if of_grid {
                vec![size, int(8)]
            } else {
                vec![int(1), size]
            };
        }
        let asks = self.random.chance(40);
        let beside = (!some || self.random.chance(30)).then(|| {
            let other = self.step(&march, "other", false);
            let launch = self.ordered_launch(other, march.len, None, args(2), some);
            if some && let (Stmt::Launch(launch), Stmt::Launch(refused)) = (&launch, &refused) {
                // One after the other, for the same elements.
                self.ordered_sites.extend([launch.site, refused.site]);
            }
            launch
        });
        let mut launches = vec![refused];
        launches.extend(beside);
        if self.random.chance(50) {
            launches.reverse();
        }
        inner.extend(launches);
        if asks {
            self.feature("error of a refused launch that changes nothing");
            inner.extend(self.asked());
        }
        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        stmts.push(declare("int", "at", binary(atom("v"), "*", atom("len"))));
        stmts.extend(inner);
        self.march_parent(&march, kernel, stmts, false);
    }

    /// A size that is taken, one that is refused, and whether it is the grid's.
    fn refused_size(&mut self) -> (Expr, Expr, bool) {
        let dim3 = |parts: &[i64]| call("dim3", parts.iter().map(|n| int(*n)).collect());
        match self.random.below(8) {
            0 | 1 => {
                self.feature("refused empty grid");
                (int(1), int(0), true)
            }
            2 => {
                self.feature("refused empty grid");
                (dim3(&[1, 1]), dim3(&[1, 0]), true)
            }
            3 => {
                self.feature("refused block of no thread");
                (int(8), int(0), false)
            }
            4 | 5 => {
                self.feature("refused block of too many threads");
                let many = *self.random.pick(&[1025, 2000, 4096]);
                (int(8), int(many), false)
            }
            6 => {
                self.feature("refused block of too many threads");
                (dim3(&[8, 1]), dim3(&[64, 32]), false)
            }
            _ => {
                self.feature("refused block of too many layers");
                (dim3(&[8, 1, 1]), dim3(&[8, 1, 65]), false)
            }
        }
    }

    /// Asks for the error, and does the same whatever it is.
    fn asked(&mut self) -> Vec<Stmt> {
        match self.random.below(3) {
            0 => vec![text("(void)cudaGetLastError();")],
            1 => vec![
                text("cudaError_t error = cudaGetLastError();"),
                text("state[at] = error == cudaSuccess ? 7 : 7;"),
            ],
            _ => vec![text("if (cudaPeekAtLastError() != cudaSuccess) cudaGetLastError();")],
        }
    }
}
