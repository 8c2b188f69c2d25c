//! Kernels that the host launches a second time by a name that stands nowhere as a word: `##` puts it together, or it goes on in the next
//! line. That launch has blocks of two threads, all others have one.

use super::Generator;
use super::plan::Role;
use crate::fuzz::ast::{Item, Launch, LaunchForm, Stmt, atom, binary, call, index, int, member, text, unary, when};

/// What the host launches a second time.
struct Second {
    /// The kernel.
    name: String,
    /// Types of its parameters.
    types: &'static [&'static str],
    /// The host's arguments.
    args: String,
    blocks: i64,
}

impl Generator {
    /// Adds a parent with such a name.
    pub fn pasted(&mut self) {
        let second = if self.random.chance(50) {
            self.launched_twice()
        } else {
            self.self_launched_twice()
        };
        let (defined, stmt) = self.by_another_name(&second);
        self.main.extend(defined.map(Item::Text));
        let host = vec![stmt, text("cudaDeviceSynchronize();")];
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.host = host;
        }
    }

    /// A parent whose threads all launch.
    fn launched_twice(&mut self) -> Second {
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let launch = self.tally_launch(&march, None, 2);
        self.of_blocks(&march, Some(int(1)), vec![launch]);
        let name = self.kernels.last().map_or(String::new(), |k| k.name.clone());
        let [a, b] = [march.a, march.b].map(|buffer| self.buffers[buffer].name.clone());
        Second {
            name,
            types: &["int*", "int*", "int", "int"],
            args: format!("d_{a}, d_{b}, {units}, 8"),
            blocks: units,
        }
    }

    /// A kernel whose threads all launch it again.
    fn self_launched_twice(&mut self) -> Second {
        let march = self.march(8, 1);
        let mut kernel = self.kernel(
            "rounds",
            true,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(1, 3), "int", "n")],
        );
        kernel.one_block_of = Some(1);
        let place = unary("&", index(atom("o"), member(atom("threadIdx"), "x")));
        let add = call("atomicAdd", vec![place, binary(atom("n"), "+", int(1))]);
        let site = self.site();
        self.ordered_sites.insert(site);
        let again = Stmt::Launch(Launch {
            site,
            kernel: kernel.name.clone(),
            config: vec![int(1), int(1), int(0), atom("cudaStreamTailLaunch")],
            args: vec![atom("o"), binary(atom("n"), "-", int(1))],
            form: LaunchForm::Plain,
        });
        let goes_on = binary(atom("n"), ">", int(0));
        kernel.body = Some(vec![Stmt::Expr(add), when(goes_on, vec![again])]);
        let name = kernel.name.clone();
        self.kernels.push(kernel);
        Second {
            name,
            types: &["int*", "int"],
            args: format!("d_{}, 2", self.buffers[march.b].name),
            blocks: 1,
        }
    }

    /// What stands in front of `main`, and the statement that launches.
    fn by_another_name(&mut self, second: &Second) -> (Option<String>, Stmt) {
        let Second {
            name,
            types,
            args,
            blocks,
        } = second;
        let (cat, run) = (self.fresh("CAT"), self.fresh("second"));
        let (first, rest) = name.split_at(2);
        let named = format!("{cat}({first}, {rest})");
        let config = format!("<<<{blocks}, 2>>>");
        let params: Vec<String> = types.iter().enumerate().map(|(i, ty)| format!("{ty} a{i}")).collect();
        let passed: Vec<String> = (0..types.len()).map(|i| format!("a{i}")).collect();
        let (types, params, passed) = (types.join(", "), params.join(", "), passed.join(", "));
        let launched = |what: &str| format!("{what}{config}({args});");
        let (lines, stmt) = match self.random.below(11) {
            0 => (
                format!("static void (*const {run})({types}) = {named};"),
                launched(&run),
            ),
            1 => (
                format!("static void (*const {run}[])({types}) = {{{named}}};"),
                launched(&format!("{run}[0]")),
            ),
            2 => (String::new(), format!("{{ auto {run} = {named}; {} }}", launched(&run))),
            3 => (String::new(), launched(&named)),
            4 => (
                format!(
                    "template <void (*F)({types})> struct {run} {{\n    static void go({params}) {{ F{config}({passed}); }}\n}};"
                ),
                format!("{run}<{named}>::go({args});"),
            ),
            5 => (
                format!("static void {run}({params}, void (*f)({types}) = {named}) {{ f{config}({passed}); }}"),
                format!("{run}({args});"),
            ),
            6 => {
                let each = self.fresh("EACH");
                // A macro that stands where a declaration would, in front of a template.
                self.beyond_the_grammar = true;
                (
                    format!(
                        "#define {each}(a, b) static void {run}_##a##b({params}) {{ auto f = a##b; f{config}({passed}); }}\n{each}({first}, {rest})"
                    ),
                    format!("{run}_{name}({args});"),
                )
            }
            7 => (
                format!("struct {run} {{\n    void (*f)({types}) = {named};\n}};"),
                format!("{{ {run} r; {} }}", launched("r.f")),
            ),
            8 => (
                format!("static auto {run}() -> decltype(&{named}) {{ return {named}; }}"),
                launched(&format!("{run}()")),
            ),
            9 => {
                self.feature("kernel's name over two lines");
                self.beyond_the_grammar = true;
                return (
                    Some(format!("static void (*const {run})({types}) = {first}\\\n{rest};")),
                    text(&launched(&run)),
                );
            }
            _ => {
                self.feature("kernel's name over two lines");
                self.beyond_the_grammar = true;
                return (
                    Some(format!(
                        "static void {run}({params}) {{\n    {first}\\\n{rest}{config}({passed});\n}}"
                    )),
                    text(&format!("{run}({args});")),
                );
            }
        };
        self.feature("kernel's name put together by ##");
        (Some(format!("#define {cat}(a, b) a##b\n{lines}")), text(&stmt))
    }
}
