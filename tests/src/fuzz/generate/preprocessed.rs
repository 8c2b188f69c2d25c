//! Macros that mean something else than a glance at their directives says: conditions in unsigned arithmetic, macros that are pushed and
//! popped, comments that go on in the next line, directives that don't look like ones, macros of the system's headers. They decide who
//! launches, with what, and how often.

use super::Generator;
use super::plan::Role;
use crate::fuzz::ast::{
    Launch, LaunchForm, Stmt, assign, atom, binary, call, declare, index, int, member, text, unary, when,
};

impl Generator {
    /// Adds a parent for which such a macro decides something.
    pub fn preprocessed(&mut self) {
        match self.random.below(8) {
            0 | 1 => self.read_launcher(),
            2 | 3 => self.read_launcher_of_self(),
            4 => self.read_argument(),
            5 => self.read_block(),
            6 => self.read_rows(),
            _ => self.read_times(),
        }
    }

    /// A macro that stands for `real`, though it looks as if it stood for `seeming`.
    fn misread(&mut self, real: &str, seeming: &str) -> String {
        let wanted = *self.random.pick(&["IDX", "WHICH", "PART"]);
        let name = self.fresh(wanted);
        let lines = match self.random.below(8) {
            0 | 1 => self.unsigned_condition(&name, real, seeming),
            2 => self.popped(&name, real, seeming),
            3 => self.comment_goes_on(&name, real, seeming),
            4 => self.of_the_system(&name, real, seeming),
            _ => self.odd_directive(&name, real, seeming),
        };
        self.text(lines);
        name
    }

    /// `#if SIZE - USED > 0`, where one of them is unsigned.
    fn unsigned_condition(&mut self, name: &str, real: &str, seeming: &str) -> String {
        self.feature("macro under an unsigned condition");
        let (size, used) = (self.fresh("SIZE"), self.fresh("USED"));
        let (defined, condition, holds) = match self.random.below(8) {
            0 | 1 => (
                format!("#define {size} 16U\n#define {used} 17\n"),
                format!("{size} - {used} > 0"),
                true,
            ),
            2 => (format!("#define {size} 0u\n"), format!("{size} - 1 < 0"), false),
            3 => (
                format!("#define {used} 3ul\n#define {size}(n) (2 - (n))\n"),
                format!("{size}({used}) >= 1"),
                true,
            ),
            4 => (String::new(), "-1 < 0u".to_owned(), false),
            5 => (String::new(), "~0u > 5".to_owned(), true),
            6 => (String::new(), "0 - 1 > 0u".to_owned(), true),
            _ => (String::new(), "-1 % 4u == 3".to_owned(), true),
        };
        let (then, otherwise) = if holds { (real, seeming) } else { (seeming, real) };
        format!("{defined}#if {condition}\n#define {name} {then}\n#else\n#define {name} {otherwise}\n#endif")
    }

    /// `#pragma pop_macro` gives it its first meaning again.
    fn popped(&mut self, name: &str, real: &str, seeming: &str) -> String {
        self.feature("macro that is popped");
        let form = *self.random.pick(&[
            "#pragma @_macro(\"%\")",
            "# pragma @_macro ( \"%\" )",
            "_Pragma(\"@_macro(\\\"%\\\")\")",
        ]);
        let line = |what: &str| form.replace('@', what).replace('%', name);
        format!(
            "#define {name} {real}\n{}\n#undef {name}\n#define {name} {seeming}\n{}",
            line("push"),
            line("pop")
        )
    }

    /// The next line belongs to the comment, too.
    fn comment_goes_on(&mut self, name: &str, real: &str, seeming: &str) -> String {
        self.feature("comment that goes on in front of a directive");
        self.beyond_the_grammar = true;
        match self.random.below(4) {
            0 => format!("#define {name} {real}\n// the old one: \\\n#define {name} {seeming}"),
            1 => format!("#define {name} {real}\n// the old one \\\nand why: \\\n#define {name} {seeming}"),
            // A blank behind the backslash changes nothing.
            2 => format!("#define {name} {real}\n// the old one: \\ \n#define {name} {seeming}"),
            _ => format!(
                "#define {name} {seeming}\n// note \\\n/* this begins no comment\n#undef {name}\n#define {name} {real}\n/* */"
            ),
        }
    }

    /// A macro that a header of the system defines.
    fn of_the_system(&mut self, name: &str, real: &str, seeming: &str) -> String {
        self.feature("macro of the system in a condition");
        let (header, tested) = *self.random.pick(&[
            ("climits", "LINE_MAX"),
            ("climits", "MB_LEN_MAX"),
            ("cstdio", "FOPEN_MAX"),
            ("cstdio", "L_tmpnam"),
            ("ctime", "TIME_UTC"),
        ]);
        format!("#include <{header}>\n#ifdef {tested}\n#define {name} {real}\n#else\n#define {name} {seeming}\n#endif")
    }

    /// A directive that doesn't look like one.
    fn odd_directive(&mut self, name: &str, real: &str, seeming: &str) -> String {
        self.beyond_the_grammar = true;
        let spelled: &[&str] = match self.random.below(4) {
            0 => {
                self.feature("comment in a directive");
                &[
                    "#/**/@",
                    "# /* next */ @",
                    "#/* over\n   two lines */ @",
                    "/* first */ # /**/ @",
                ]
            }
            1 => {
                self.feature("form feed in a directive");
                &["\u{c}#@", "\u{b}#@", "#\u{c}@", " \u{c} # \u{b}@"]
            }
            2 => {
                self.feature("directive over two lines");
                if self.random.chance(25) {
                    // Its name is the other one.
                    let (first, rest) = name.split_at(1);
                    return format!(
                        "#define {name} {seeming}\n#undef {first}\\\n{rest}\n#define {first}\\\n{rest} {real}"
                    );
                }
                &["#\\\n@", "# \\\n @", "\\\n#@", "#%"]
            }
            _ => {
                self.feature("directive by a digraph");
                &["%:@", "%: @", " %:@", "%:/**/@"]
            }
        };
        let form = *self.random.pick(spelled);
        let line = |word: &str| {
            let (first, rest) = word.split_at(2);
            form.replace('@', word).replace("#%", &format!("#{first}\\\n{rest}"))
        };
        match self.random.below(4) {
            0 => format!(
                "#define {name} {real}\n{} 0\n#undef {name}\n#define {name} {seeming}\n#endif",
                line("if")
            ),
            1 => format!(
                "#if 1\n#define {name} {real}\n{}\n#define {name} {seeming}\n#endif",
                line("else")
            ),
            _ => format!(
                "#define {name} {seeming}\n{} {name}\n{} {name} {real}",
                line("undef"),
                line("define")
            ),
        }
    }

    /// What chooses two threads of a block, though it looks like one: statements before it, and the condition.
    fn two_threads(&mut self) -> (Vec<Stmt>, crate::fuzz::ast::Expr) {
        if self.random.chance(30) {
            let name = self.misread("((int)threadIdx.x < 2)", "(threadIdx.x == 0)");
            return (Vec::new(), atom(name));
        }
        let name = self.misread("((int)threadIdx.x / 2)", "((int)threadIdx.x)");
        let zero = |number: &str| binary(atom(number), "==", int(0));
        if self.random.chance(50) {
            return (Vec::new(), zero(&name));
        }
        (vec![declare("int", "t", atom(name))], zero("t"))
    }

    fn read_launcher(&mut self) {
        self.feature("launcher by a misread macro");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let (mut inner, who) = self.two_threads();
        let launch = self.tally_launch(&march, None, 2);
        inner.push(when(who, vec![launch]));
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// A kernel that launches itself again from two threads.
    fn read_launcher_of_self(&mut self) {
        self.feature("launcher by a misread macro in a kernel that launches itself");
        let march = self.march(8, 1);
        let mut kernel = self.kernel(
            "rounds",
            true,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(1, 3), "int", "n")],
        );
        kernel.one_block_of = Some(8);
        let (mut stmts, who) = self.two_threads();
        let place = unary("&", index(atom("o"), member(atom("threadIdx"), "x")));
        let add = call("atomicAdd", vec![place, binary(atom("n"), "+", int(1))]);
        stmts.push(Stmt::Expr(add));
        let site = self.site();
        self.ordered_sites.insert(site);
        let again = Stmt::Launch(Launch {
            site,
            kernel: kernel.name.clone(),
            config: vec![int(1), int(8), int(0), atom("cudaStreamTailLaunch")],
            args: vec![atom("o"), binary(atom("n"), "-", int(1))],
            form: LaunchForm::Plain,
        });
        stmts.push(when(binary(who, "&&", binary(atom("n"), ">", int(0))), vec![again]));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }

    /// The argument that keeps grids apart doesn't.
    fn read_argument(&mut self) {
        self.feature("argument by a misread macro");
        let march = self.march(8, 4);
        let mut child = self.kernel(
            "mix",
            false,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(0, 9), "int", "k")],
        );
        let place = || index(atom("o"), member(atom("threadIdx"), "x"));
        let value = binary(binary(place(), "*", int(3)), "+", atom("k"));
        child.body = Some(vec![assign(place(), "=", binary(value, "%", int(1000)))]);
        let name = child.name.clone();
        self.kernels.push(child);
        let offset = self.misread("0", "(8 * k)");
        let mut inner = Vec::new();
        let mut at = atom(offset);
        if self.random.chance(50) {
            inner.push(declare("int", "j", at));
            at = atom("j");
        }
        let site = self.site();
        self.ordered_sites.insert(site);
        inner.push(Stmt::Launch(Launch {
            site,
            kernel: name,
            config: vec![int(1), int(8)],
            args: vec![binary(atom("next"), "+", at), atom("k")],
            form: LaunchForm::Plain,
        }));
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let mut kernel = self.march_kernel(&march);
        kernel.one_block_of = Some(8);
        kernel.body = Some(vec![when(first, vec![super::ordered::steps(4, inner)])]);
        self.kernels.push(kernel);
    }

    /// All threads launch, and there are more of them than it seems.
    fn read_block(&mut self) {
        self.feature("block size of the host by a misread macro");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let real = *self.random.pick(&["2", "8"]);
        let size = self.misread(real, "1");
        let launch = self.tally_launch(&march, None, 2);
        self.of_blocks(&march, Some(atom(size)), vec![launch]);
    }

    /// Blocks of the child have a second dimension.
    fn read_rows(&mut self) {
        self.feature("block size by a misread macro");
        let units = self.random.range(2, 5);
        let march = self.march(8, units);
        let mut child = self.kernel(
            "rows",
            false,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(0, 9), "int", "k")],
        );
        let (x, y) = (member(atom("threadIdx"), "x"), member(atom("threadIdx"), "y"));
        let place = unary("&", index(atom("o"), x));
        let value = binary(binary(y, "*", int(10)), "+", atom("k"));
        child.body = Some(vec![Stmt::Expr(call("atomicAdd", vec![place, value]))]);
        let name = child.name.clone();
        self.kernels.push(child);
        let rows = self.misread("2", "1");
        let mut inner = Vec::new();
        let mut block = call("dim3", vec![int(8), atom(rows.clone())]);
        if self.random.chance(50) {
            inner.push(text(&format!("dim3 b(8, {rows});")));
            block = atom("b");
        }
        let site = self.site();
        self.ordered_sites.insert(site);
        inner.push(Stmt::Launch(Launch {
            site,
            kernel: name,
            config: vec![int(1), block],
            args: vec![
                binary(atom("next"), "+", atom("at")),
                binary(member(atom("threadIdx"), "x"), "%", int(3)),
            ],
            form: LaunchForm::Plain,
        }));
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// A loop that seems to launch once.
    fn read_times(&mut self) {
        self.feature("number of launches by a misread macro");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let times = self.misread("3", "1");
        let launch = self.tally_launch(&march, None, 2);
        let mut launches = super::ordered::steps(1, vec![launch]);
        if let Stmt::For { cond, .. } = &mut launches {
            *cond = binary(atom("k"), "<", atom(times));
        }
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(&march, Some(int(8)), vec![when(first, vec![launches])]);
    }
}
