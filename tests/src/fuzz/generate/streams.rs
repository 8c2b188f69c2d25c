//! Streams that a kernel keeps in an array: it creates all of them, launches into some, and destroys them.

use super::Generator;
use super::plan::{Fill, Role};
use crate::fuzz::ast::{Launch, LaunchForm, Stmt, atom, binary, int, text, unary, when};

impl Generator {
    /// Adds a parent with such streams.
    pub fn streams(&mut self) {
        self.feature("streams in an array");
        let units = self.random.range(2, 12);
        let len = *self.random.pick(&[4, 9, 20]);
        let march = self.march(len, units);
        let count = self.random.range(1, 5);
        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        stmts.push(text("int at = v * len;"));
        stmts.push(text(&format!("cudaStream_t s[{count}];")));
        let step = *self.random.pick(&["++i", "i++", "i += 1"]);
        stmts.push(text(&format!(
            "for (int i = 0; i < {count}; {step}) cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);"
        )));
        let chosen = match self.random.below(5) {
            0 => format!("s[threadIdx.x % {count}]"),
            1 => format!("s[v % {count}]"),
            2 => "s[0]".to_owned(),
            3 => format!("s[(v + units) % {count}]"),
            _ => format!("s[{}]", count - 1),
        };
        let place = || binary(atom("next"), "+", atom("at"));
        if self.random.chance(50) {
            self.feature("order in a stream of an array");
            let again = self.step(&march, "again", false);
            for k in 0..self.random.range(1, 3) {
                let args = vec![place(), place(), atom("len"), int(k + 1)];
                stmts.push(self.ordered_launch(again, march.len, Some(atom(chosen.clone())), args, true));
            }
        } else {
            // No two of them have an element in common.
            let tally = self.tally(&march);
            let args = vec![place(), atom("len"), binary(atom("v"), "%", int(4))];
            stmts.push(self.ordered_launch(tally, march.len, Some(atom(chosen)), args, false));
        }
        if self.random.chance(20) {
            self.feature("launch into each stream of an array");
            let fresh = self.buffer("parts", "int", units * count, Fill::Value(0));
            self.buffers[fresh].shown = true;
            let mut kernel_part = self.kernel(
                "part",
                false,
                vec![(Role::Pointer(fresh), "int*", "o"), (Role::Scalar(0, 9), "int", "k")],
            );
            kernel_part.body = Some(vec![text("if (threadIdx.x == 0) *o += k * 3 + 1;")]);
            let name = kernel_part.name.clone();
            self.kernels.push(kernel_part);
            let launch = Stmt::Launch(Launch {
                site: self.site(),
                kernel: name,
                config: vec![int(1), int(4), int(0), atom("s[i]")],
                args: vec![atom(format!("parts + v * {count} + i")), atom("i")],
                form: LaunchForm::Plain,
            });
            stmts.push(Stmt::For {
                init: ("int".to_owned(), "i".to_owned(), int(0)),
                cond: binary(atom("i"), "<", int(count)),
                step: unary("++", atom("i")),
                body: vec![launch],
                braces: true,
                unroll: false,
            });
            let extra = self.kernel("unused", true, vec![(Role::Pointer(fresh), "int*", "parts")]);
            let mut kernel = kernel;
            kernel.params.extend(extra.params);
            self.destroy(&mut stmts, count);
            self.march_parent(&march, kernel, stmts, false);
            return;
        }
        self.destroy(&mut stmts, count);
        self.march_parent(&march, kernel, stmts, false);
    }

    fn destroy(&mut self, stmts: &mut Vec<Stmt>, count: i64) {
        if self.random.chance(85) {
            stmts.push(text(&format!(
                "for (int i = 0; i < {count}; ++i) cudaStreamDestroy(s[i]);"
            )));
        }
    }
}
