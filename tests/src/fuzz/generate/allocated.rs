//! Threads that allocate memory in a kernel, have a child grid fill it, and leave it to another kernel, which frees it.

use super::Generator;
use super::plan::{Fill, Kernel, Role};
use crate::fuzz::ast::{Expr, Launch, LaunchForm, Stmt, atom, binary, call, declare, int, text, when};

impl Generator {
    /// Adds a parent that allocates, and the kernel that frees.
    pub fn allocated(&mut self) {
        self.feature("memory that a kernel allocates");
        let units = self.random.range(2, 40);
        let lists = self.buffer("lists", "int*", units, Fill::Value(0));
        let sums = self.buffer("sums", "int", units, Fill::Value(0));
        self.buffers[sums].shown = true;
        let child = self.filling();
        let (allocate, free): (&[&str], &str) = *self.random.pick(&[
            (
                &["int* list = (int*)malloc(count * sizeof(int));"] as &[&str],
                "free(list);",
            ),
            (
                &["int* list = static_cast<int*>(malloc(sizeof(int) * count));"],
                "free(list);",
            ),
            (&["int* list = new int[count];"], "delete[] list;"),
            (
                &[
                    "int* list = nullptr;",
                    "cudaMalloc((void**)&list, count * sizeof(int));",
                ],
                "cudaFree(list);",
            ),
            (
                &[
                    "int* list = 0;",
                    "if (cudaMalloc(&list, count * sizeof(int)) != cudaSuccess) list = 0;",
                ],
                "cudaFree(list);",
            ),
            (
                &[
                    "int* list = nullptr;",
                    "errors[v] = cudaMalloc(&list, count * sizeof(int));",
                ],
                "cudaFree(list);",
            ),
        ]);
        let tells = allocate.iter().any(|line| line.starts_with("errors"));
        let mut of_make = vec![(Role::Pointer(lists), "int**", "lists"), (Role::Count, "int", "units")];
        let mut of_release = of_make.clone();
        of_release.insert(1, (Role::Pointer(sums), "int*", "sums"));
        if tells {
            let errors = self.buffer("errors", "int", units, Fill::Value(-1));
            self.buffers[errors].shown = true;
            of_make.insert(1, (Role::Pointer(errors), "int*", "errors"));
        }
        let mut make = self.kernel("make", true, of_make);
        make.numbers = units;
        let mut stmts = self.of_units(&make);
        let (times, plus) = (self.random.range(1, 9), self.random.range(0, 3));
        let count = binary(binary(binary(atom("v"), "*", int(times)), "%", int(7)), "+", int(plus));
        stmts.push(declare("int", "count", count));
        // Allocations of nothing are an error for some, and a place for others.
        if plus == 0 && tells {
            self.feature("allocations of nothing");
        } else if plus == 0 {
            self.feature("threads that don't allocate");
            stmts.push(when(binary(atom("count"), "==", int(0)), vec![text("return;")]));
        }
        if self.random.chance(20) {
            stmts.push(text("__syncwarp(__activemask());"));
        }
        stmts.extend(allocate.iter().map(|line| text(line)));
        stmts.push(text("lists[v] = list;"));
        let block = *self.random.pick(&[4, 8, 32]);
        let grid = binary(binary(atom("count"), "+", int(block - 1)), "/", int(block));
        let launch = Stmt::Launch(Launch {
            site: self.site(),
            kernel: child,
            config: vec![grid, int(block)],
            args: vec![atom("list"), atom("v"), atom("count")],
            form: LaunchForm::Plain,
        });
        let has_it = *self.random.pick(&["list", "list != nullptr"]);
        let some = binary(atom(has_it), "&&", binary(atom("count"), ">", int(0)));
        stmts.push(when(if tells { some } else { atom(has_it) }, vec![launch]));
        make.body = Some(stmts);
        self.kernels.push(make);

        let mut release = self.kernel("release", true, of_release);
        release.numbers = units;
        let mut stmts = self.of_units(&release);
        stmts.push(declare(
            "int*",
            "list",
            Expr::Index(Box::new(atom("lists")), Box::new(atom("v"))),
        ));
        stmts.push(text("if (!list) return;"));
        let count = binary(binary(binary(atom("v"), "*", int(times)), "%", int(7)), "+", int(plus));
        stmts.push(declare("int", "count", count));
        stmts.push(text("for (int i = 0; i < count; ++i) sums[v] += list[i];"));
        stmts.push(text("lists[v] = nullptr;"));
        stmts.push(text(free));
        release.body = Some(stmts);
        self.kernels.push(release);
    }

    /// Each thread has a number, or leaves.
    fn of_units(&mut self, kernel: &Kernel) -> Vec<Stmt> {
        let mut stmts = self.thread_number(kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        stmts
    }

    /// `fill(list, value, count)`: one element a thread.
    fn filling(&mut self) -> String {
        let params = vec![
            (Role::Scalar(0, 0), "int*", "list"),
            (Role::Scalar(0, 9), "int", "value"),
            (Role::Scalar(0, 9), "int", "count"),
        ];
        let mut kernel = self.kernel("fill", false, params);
        let mut stmts = self.thread_number(&kernel, "i");
        let value = binary(binary(atom("value"), "*", int(self.random.range(2, 9))), "+", atom("i"));
        let write = Stmt::Expr(binary(
            Expr::Index(Box::new(atom("list")), Box::new(atom("i"))),
            "=",
            call("int", vec![value]),
        ));
        stmts.push(when(binary(atom("i"), "<", atom("count")), vec![write]));
        kernel.body = Some(stmts);
        let name = kernel.name.clone();
        self.kernels.push(kernel);
        name
    }
}
