//! Variables that something changes which doesn't name them: a reference, a class that holds one, a function or an operator that takes
//! one. Behind that, they decide who launches, with which arguments and how many threads, into which stream, and how often.

use super::Generator;
use super::ordered::steps;
use super::plan::Role;
use crate::fuzz::ast::{
    Expr, Launch, LaunchForm, Stmt, assign, atom, binary, call, declare, index, int, member, text, when,
};

/// A variable that is changed.
struct Changed<'a> {
    /// Its type.
    ty: &'a str,
    /// Its name, or a member of it.
    place: &'a str,
    /// What it becomes: of what it was, which is called so in there.
    to: fn(&str) -> String,
    /// What functions are that change it.
    by: &'a str,
}

impl Generator {
    /// Adds a parent with such a variable.
    pub fn bound(&mut self) {
        match self.random.below(7) {
            0 | 1 => self.bound_guard(),
            2 => self.bound_argument(),
            3 => self.bound_host_block(),
            4 => self.bound_block(),
            5 => self.bound_stream(),
            _ => self.bound_level(),
        }
    }

    /// Statements that change a variable without naming it where it is changed.
    fn changes(&mut self, changed: &Changed<'_>) -> Vec<Stmt> {
        let Changed { ty, place, to, by } = *changed;
        let (of_ref, of_place, of_x) = (to("to"), to(place), to("x"));
        let number = ty == "int";
        // What only kernels with a parameter `len`, or only numbers, can have.
        let ways = if by.contains("__device__") && number { 17 } else { 12 };
        match self.random.below(ways) {
            0 => {
                self.feature("reference with braces");
                vec![text(&format!("{ty}& to{{{place}}};")), text(&format!("to = {of_ref};"))]
            }
            1 => {
                self.feature("reference with parentheses");
                // With a member in them, the grammar takes it for the declaration of a function, and finds an error in that.
                let init = if place.contains('.') {
                    format!(" = {place}")
                } else {
                    format!("({place})")
                };
                vec![text(&format!("{ty}& to{init};")), text(&format!("to = {of_ref};"))]
            }
            2 => {
                self.feature("class with a reference, made with braces");
                let class = self.fresh("Link");
                self.text(format!("struct {class} {{ {ty}& to; }};"));
                vec![
                    text(&format!("{class} link{{{place}}};")),
                    text(&format!("link.to = {of_place};")),
                ]
            }
            3 => {
                self.feature("class that keeps a reference");
                let class = self.fresh("View");
                self.text(format!(
                    "struct {class} {{\n    {ty}& to;\n    {by} {class}({ty}& x) : to(x) {{}}\n    {by} void put() const {{ to = {of_ref}; }}\n}};"
                ));
                let made = *self.random.pick(&[" = {", "{", "("]);
                let end = if made == "(" { ")" } else { "}" };
                vec![text(&format!("{class} view{made}{place}{end};")), text("view.put();")]
            }
            4 => {
                self.feature("argument that becomes a class with a reference");
                let (class, put) = (self.fresh("View"), self.fresh("put"));
                self.text(format!(
                    r#"struct {class} {{
    {ty}& to;
    {by} {class}({ty}& x) : to(x) {{}}
}};
static {by} void {put}({class} view) {{ {ty}& to = view.to; to = {of_ref}; }}"#
                ));
                vec![text(&format!("{put}({place});"))]
            }
            5 => {
                self.feature("argument with braces");
                let (class, put) = (self.fresh("Link"), self.fresh("put"));
                self.text(format!(
                    "struct {class} {{ {ty}& to; }};\nstatic {by} void {put}({class} link) {{ {ty}& to = link.to; to = {of_ref}; }}"
                ));
                vec![text(&format!("{put}({{{place}}});"))]
            }
            6 => {
                self.feature("constructor that changes its argument");
                let class = self.fresh("Take");
                self.text(format!(
                    "struct {class} {{\n    {by} {class}({ty}& x) {{ x = {of_x}; }}\n}};"
                ));
                let (open, close) = *self.random.pick(&[("(", ")"), ("{", "}")]);
                vec![text(&format!("{class} taken{open}{place}{close};"))]
            }
            7 => {
                self.feature("operator that changes its operand");
                let class = self.fresh("Nop");
                let operator = *self.random.pick(&["-", "<<", ">>", "|"]);
                self.text(format!(
                    "struct {class} {{}};\nstatic {by} {class} operator{operator}({class} a, {ty}& x) {{ x = {of_x}; return a; }}"
                ));
                vec![text(&format!("{class}() {operator} {place};"))]
            }
            8 => {
                self.feature("member that keeps the address of an argument");
                let class = self.fresh("Hold");
                self.text(format!(
                    "struct {class} {{\n    {ty}* at;\n    {by} void keep({ty}& x) {{ at = &x; }}\n    {by} void go() {{ {ty}& to = *at; to = {of_ref}; }}\n}};"
                ));
                vec![
                    text(&format!("{class} hold;")),
                    text(&format!("hold.keep({place});")),
                    text("hold.go();"),
                ]
            }
            9 => {
                self.feature("template that changes its argument");
                let set = self.fresh("set");
                self.text(format!("template <class T> {by} void {set}(T& x) {{ x = {of_x}; }}"));
                vec![text(&format!("{set}({place});"))]
            }
            10 => {
                self.feature("pointer with braces");
                let to = to("*address");
                vec![
                    text(&format!("{ty}* address{{&{place}}};")),
                    text(&format!("*address = {to};")),
                ]
            }
            11 => {
                self.feature("reference of a type with a name");
                let named = *self.random.pick(&["using Name = {}&;", "typedef {}& Name;"]);
                vec![
                    text(&named.replace("{}", ty)),
                    text(&format!("Name to = {place};")),
                    text(&format!("to = {of_ref};")),
                ]
            }
            12 => {
                self.feature("overload of a library's function that changes its argument");
                let name = *self.random.pick(&["floor", "ceil", "trunc"]);
                if self.names.insert(name.to_owned()) {
                    self.text(format!("static {by} int {name}(int& x) {{ return x = {of_x}; }}"));
                }
                vec![text(&format!("{name}({place});"))]
            }
            13 => {
                self.feature("const that is cast away");
                let view = self.fresh("view");
                self.text(format!("static {by} const int& {view}(const int& x) {{ return x; }}"));
                vec![text(&format!("const_cast<int&>({view}({place})) = {of_place};"))]
            }
            14 => {
                self.feature("const that is cast away");
                let view = self.fresh("view");
                self.text(format!("static {by} const int& {view}(const int& x) {{ return x; }}"));
                vec![
                    text(&format!("const int& seen = {view}({place});")),
                    text(&format!("const_cast<int&>(seen) = {of_place};")),
                ]
            }
            15 => {
                self.feature("reference to one of two variables");
                vec![
                    text("int other = 0;"),
                    text(&format!("int& to = len > 99 ? other : {place};")),
                    text(&format!("to = {of_ref};")),
                ]
            }
            _ => {
                self.feature("lambda that changes what it captures");
                vec![
                    text(&format!("auto change = [&] {{ {place} = {of_place}; }};")),
                    text("change();"),
                ]
            }
        }
    }

    /// A variable that looks like the thread's number, or like one that all threads know.
    fn bound_guard(&mut self) {
        self.feature("bound launcher guard");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let thread = || member(atom("threadIdx"), "x");
        let changed = |to| Changed {
            ty: "int",
            place: "t",
            to,
            by: "__device__",
        };
        let (first, who, changes) = match self.random.below(3) {
            0 => (
                thread(),
                binary(atom("t"), "==", int(0)),
                self.changes(&changed(|_| "threadIdx.x % 2".to_owned())),
            ),
            1 => (
                thread(),
                binary(atom("t"), "==", int(3)),
                self.changes(&changed(|x| format!("{x} / 3 + 1"))),
            ),
            _ => (
                atom("len"),
                binary(thread(), "==", atom("t")),
                self.changes(&changed(|_| "threadIdx.x".to_owned())),
            ),
        };
        let mut inner = vec![declare("int", "t", first)];
        inner.extend(changes);
        let launch = self.tally_launch(&march, None, 2);
        inner.push(when(who, vec![launch]));
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// Grids that any number of threads launch for the elements of their block.
    pub fn tally_launch(&mut self, march: &super::ordered::March, stream: Option<Expr>, k: i64) -> Stmt {
        let tally = self.tally(march);
        let args = vec![binary(atom("next"), "+", atom("at")), atom("len"), int(k)];
        self.ordered_launch(tally, march.len, stream, args, true)
    }

    /// The argument that keeps grids apart doesn't.
    fn bound_argument(&mut self) {
        self.feature("bound argument");
        let len = *self.random.pick(&[4, 8, 16]);
        let march = self.march(len, 4);
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
        let mut inner = vec![declare("int", "j", binary(int(len), "*", atom("k")))];
        inner.extend(self.changes(&Changed {
            ty: "int",
            place: "j",
            to: |_| "0".to_owned(),
            by: "__device__",
        }));
        let site = self.site();
        self.ordered_sites.insert(site);
        inner.push(Stmt::Launch(Launch {
            site,
            kernel: name,
            config: vec![int(1), int(len)],
            args: vec![binary(atom("next"), "+", atom("j")), atom("k")],
            form: LaunchForm::Plain,
        }));
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let mut kernel = self.march_kernel(&march);
        kernel.one_block_of = Some(8);
        kernel.body = Some(vec![when(first, vec![steps(4, inner)])]);
        self.kernels.push(kernel);
    }

    /// Blocks that have a second dimension, which the host gives them by a reference.
    fn bound_host_block(&mut self) {
        self.feature("bound block size of the host");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let threads = self.fresh("threads");
        let mut host = vec![text(&format!("dim3 {threads}(8);"))];
        if self.random.chance(20) {
            self.feature("structured binding");
            host.push(Stmt::Block(vec![
                text(&format!("auto& [x, y, z] = {threads};")),
                text("y = 2;"),
            ]));
        } else {
            let place = format!("{threads}.y");
            let changes = self.changes(&Changed {
                ty: "unsigned",
                place: &place,
                to: |_| "2".to_owned(),
                by: "__host__",
            });
            host.push(Stmt::Block(changes));
        }
        let launch = self.tally_launch(&march, None, 2);
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(&march, Some(atom(threads)), vec![when(first, vec![launch])]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.host = host;
            self.two_dimensional.insert(kernel.name.clone());
        }
    }

    /// Children with a second dimension.
    fn bound_block(&mut self) {
        self.feature("bound block size");
        let units = self.random.range(2, 5);
        let march = self.march(8, units);
        let mut child = self.kernel(
            "rows",
            false,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(0, 9), "int", "k")],
        );
        let (x, y) = (member(atom("threadIdx"), "x"), member(atom("threadIdx"), "y"));
        let place = Expr::Unary("&", Box::new(index(atom("o"), x)));
        let value = binary(binary(y, "*", int(10)), "+", atom("k"));
        child.body = Some(vec![Stmt::Expr(call("atomicAdd", vec![place, value]))]);
        let name = child.name.clone();
        self.kernels.push(child);
        let mut inner = vec![text("dim3 b(8);")];
        inner.extend(self.changes(&Changed {
            ty: "unsigned",
            place: "b.y",
            to: |_| "2".to_owned(),
            by: "__device__",
        }));
        inner.push(Stmt::Launch(Launch {
            site: self.site(),
            kernel: name,
            config: vec![int(1), atom("b")],
            args: vec![
                binary(atom("next"), "+", atom("at")),
                binary(member(atom("threadIdx"), "x"), "%", int(3)),
            ],
            form: LaunchForm::Plain,
        }));
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// A stream of a thread's own that becomes the NULL stream.
    fn bound_stream(&mut self) {
        self.feature("bound stream");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let mut inner = vec![
            text("cudaStream_t s;"),
            text("cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);"),
        ];
        inner.extend(self.changes(&Changed {
            ty: "cudaStream_t",
            place: "s",
            to: |_| "0".to_owned(),
            by: "__device__",
        }));
        inner.push(self.tally_launch(&march, Some(atom("s")), 2));
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// A kernel that launches itself with a number that it counts down.
    fn bound_level(&mut self) {
        self.feature("bound level");
        let march = self.march(8, 1);
        let mut kernel = self.kernel(
            "descend",
            true,
            vec![
                (Role::Pointer(march.b), "int*", "next"),
                (Role::Scalar(8, 8), "int", "len"),
                (Role::Scalar(2, 5), "int", "n"),
            ],
        );
        kernel.one_block_of = Some(8);
        let thread = || member(atom("threadIdx"), "x");
        let place = || index(atom("next"), thread());
        let value = binary(binary(place(), "*", int(3)), "+", atom("n"));
        let mut body = vec![
            assign(place(), "=", binary(value, "%", int(1000))),
            text("__syncthreads();"),
        ];
        body.extend(self.changes(&Changed {
            ty: "int",
            place: "n",
            to: |x| format!("{x} - 1"),
            by: "__device__",
        }));
        let site = self.site();
        self.ordered_sites.insert(site);
        let mut config = vec![int(1), int(8)];
        if self.random.chance(50) {
            config.extend([int(0), atom("cudaStreamTailLaunch")]);
        }
        let goes_on = binary(atom("n"), ">", int(0));
        let again = Stmt::Launch(Launch {
            site,
            kernel: kernel.name.clone(),
            config,
            args: vec![atom("next"), atom("len"), atom("n")],
            form: LaunchForm::Plain,
        });
        let first = binary(thread(), "==", int(0));
        body.push(when(binary(first, "&&", goes_on), vec![again]));
        kernel.body = Some(body);
        self.kernels.push(kernel);
    }
}
