//! Arguments of launches whose names mean something else at the top of the kernel: a template parameter of the function that launches, a
//! constant or a type of a block, a macro that is another one from some line on.

use super::Generator;
use crate::fuzz::ast::{Item, Stmt, assign, atom, binary, call, cast, declare, index, int, text, when};

impl Generator {
    /// Adds a parent whose launches have such an argument.
    pub fn hoisted(&mut self) {
        self.feature("argument whose name means something else at the top");
        let units = self.random.range(2, 9);
        let len = *self.random.pick(&[4, 7, 16]);
        let march = self.march(len, units);
        let scale = self.scaling(&march);
        let name = self.fresh("K");
        let (low, high) = (self.random.range(1, 4), self.random.range(5, 9));
        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        let at = binary(atom("v"), "*", atom("len"));
        stmts.push(declare("int*", "x", binary(atom("next"), "+", at)));
        let launch = |own: &mut Self, by: crate::fuzz::ast::Expr| {
            let args = vec![atom("x"), atom("len"), by];
            own.ordered_launch(scale, len, None, args, false)
        };
        let mut before = Vec::new();
        match self.random.below(7) {
            // A template parameter of a function, beside what the file or the kernel has by its name.
            kind @ (0 | 1) => {
                let go = self.fresh("go");
                let (head, by, given) = match kind {
                    0 => (format!("template <int {name}>"), atom(name.clone()), high.to_string()),
                    _ => (
                        format!("template <class {name}>"),
                        cast("int", atom(format!("sizeof({name})"))),
                        "double".to_owned(),
                    ),
                };
                let file = match kind {
                    0 => format!("constexpr int {name} = {low};"),
                    _ => format!("typedef short {name};"),
                };
                if self.random.chance(60) {
                    self.text(file);
                } else if kind == 0 {
                    stmts.push(text(&format!("const int {name} = {low};")));
                } else {
                    stmts.push(text(&format!("using {name} = short;")));
                }
                let body = vec![launch(self, by)];
                let function = crate::fuzz::ast::Function {
                    template: Some(head),
                    head: "__device__ void".to_owned(),
                    name: go.clone(),
                    params: vec![super::param("int*", "x"), super::param("int", "len")],
                    body,
                };
                before.push(Item::Function(function));
                stmts.push(Stmt::Expr(call(
                    &format!("{go}<{given}>"),
                    vec![atom("x"), atom("len")],
                )));
            }
            // What a block declares.
            2 => {
                self.text(format!("constexpr int {name} = {low};"));
                let body = vec![text(&format!("enum {{ {name} = {high} }};")), launch(self, atom(name))];
                stmts.push(Stmt::Block(body));
            }
            3 => {
                self.text(format!("typedef char {name};"));
                let by = cast("int", atom(format!("sizeof({name})")));
                let body = vec![text(&format!("using {name} = double;")), launch(self, by)];
                stmts.push(Stmt::Block(body));
            }
            4 => {
                self.text(format!(
                    "constexpr int {name} = {low};\nnamespace of_{name} {{ constexpr int {name} = {high}; }}"
                ));
                let body = vec![text(&format!("using of_{name}::{name};")), launch(self, atom(name))];
                stmts.push(Stmt::Block(body));
            }
            // A constant object whose field changes.
            5 => {
                self.feature("mutable field of a constant object");
                let change = match self.random.below(3) {
                    0 => "meter.uses = len".to_owned(),
                    1 => "meter.use()".to_owned(),
                    _ => format!("*&meter.uses = {high}"),
                };
                self.text(format!(
                    "struct {name} {{\n    mutable int uses;\n    __device__ void use() const {{ uses += {low}; }}\n}};"
                ));
                stmts.push(text(&format!("const {name} meter{{{low}}};")));
                let early = self.random.chance(50);
                if early {
                    stmts.push(text(&format!("{change};")));
                }
                stmts.push(launch(self, atom("meter.uses")));
                if !early || self.random.chance(30) {
                    stmts.push(text(&format!("{change};")));
                }
            }
            // A macro.
            _ => {
                self.text(format!("#define {name} {low}"));
                stmts.push(text(&format!("#undef {name}")));
                stmts.push(text(&format!("#define {name} {high}")));
                stmts.push(launch(self, atom(name.clone())));
                if self.random.chance(50) {
                    stmts.push(text(&format!("#undef {name}")));
                    stmts.push(text(&format!("#define {name} {low}")));
                }
            }
        }
        let mut kernel = kernel;
        kernel.before = before;
        self.march_parent(&march, kernel, stmts, false);
    }

    /// `scale(to, len, by)`: writes to each element what tells how it was called.
    fn scaling(&mut self, march: &super::ordered::March) -> usize {
        use super::plan::Role;
        let params = vec![
            (Role::Pointer(march.b), "int*", "to"),
            (Role::Count, "int", "len"),
            (Role::Scalar(0, 9), "int", "by"),
        ];
        let mut kernel = self.kernel("scale", false, params);
        let mut stmts = self.thread_number(&kernel, "i");
        let value = binary(binary(atom("i"), "*", atom("by")), "+", int(self.random.range(1, 9)));
        stmts.push(when(
            binary(atom("i"), "<", atom("len")),
            vec![assign(index(atom("to"), atom("i")), "=", value)],
        ));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
        self.kernels.len() - 1
    }
}
