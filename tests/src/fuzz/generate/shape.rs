//! Blocks of two dimensions, in the ways in which host code writes a size: what its type is called, where it is kept, and how its second part
//! comes to be. Behind them, `threadIdx.x == 0` picks two threads of a block.

use super::Generator;
use crate::fuzz::ast::{atom, binary, int, member, text, when};

/// A size of 8 threads by 2 in sight: what `main` says before, and what stands in the launch.
struct Shape {
    host: Vec<String>,
    written: String,
}

fn shape(host: impl IntoIterator<Item = String>, written: impl Into<String>) -> Shape {
    Shape {
        host: host.into_iter().collect(),
        written: written.into(),
    }
}

impl Generator {
    /// Adds a parent with such blocks.
    pub fn shaped(&mut self) {
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let (ty, rows) = (self.size_type(), self.rows());
        let Shape { host, written } = match self.random.below(4) {
            0 => self.shape_of_variable(&ty, &rows),
            1 => self.shape_of_function(&ty, &rows),
            2 => self.shape_of_class(&ty, &rows),
            _ => self.shape_set_by_another_name(&ty, &rows),
        };
        let launch = self.tally_launch(&march, None, 2);
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(&march, Some(atom(written)), vec![when(first, vec![launch])]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.host = host.iter().map(|line| text(line)).collect();
            self.two_dimensional.insert(kernel.name.clone());
        }
    }

    /// A name of `dim3`.
    fn size_type(&mut self) -> String {
        let way = self.random.below(6);
        if way < 2 {
            return "dim3".to_owned();
        }
        self.feature("another name of dim3");
        let name = self.fresh("Block");
        match way {
            2 => self.text(format!("using {name} = dim3;")),
            3 => self.text(format!("typedef dim3 {name};")),
            4 => {
                let first = self.fresh("Size");
                self.text(format!("using {first} = dim3;\ntypedef {first} {name};"));
            }
            _ => {
                let space = self.fresh("shapes");
                self.text(format!("namespace {space} {{ using {name} = dim3; }}"));
                return format!("{space}::{name}");
            }
        }
        name
    }

    /// The number 2.
    fn rows(&mut self) -> String {
        let name = self.fresh("kRows");
        match self.random.below(7) {
            0 => self.text(format!("static const int {name} = 2;")),
            1 => self.text(format!("#define {name} 2")),
            2 => self.text(format!("enum {{ {name} = 2 }};")),
            3 => self.text(format!("constexpr unsigned {name} = 1 + 1;")),
            _ => return (*self.random.pick(&["2", "2u", "1 + 1"])).to_owned(),
        }
        name
    }

    /// A variable, a field, an element, as it is declared.
    fn shape_of_variable(&mut self, ty: &str, rows: &str) -> Shape {
        self.feature("shape of a variable");
        let (b, made) = (self.fresh("b"), format!("{ty}(8, {rows})"));
        match self.random.below(9) {
            0 => shape([], made),
            1 => {
                let init = *self.random.pick(&["(8, @)", "{8, @}", " = {8, @}", "{8u, @, 1}"]);
                shape([format!("const {ty} {b}{};", init.replace('@', rows))], b)
            }
            2 => shape([format!("{ty} {b}(8);"), format!("{b}.y = {rows};")], b),
            3 => {
                self.text(format!("static {ty} {b}(8, {rows});"));
                shape([], b)
            }
            4 => {
                let set_up = self.fresh("setUp");
                self.text(format!(
                    "static {ty} {b}(8);\nstatic void {set_up}() {{ {b}.y = {rows}; }}"
                ));
                shape([format!("{set_up}();")], b)
            }
            5 => {
                self.text(format!("static const {ty} {b}[] = {{{ty}(8), {made}}};"));
                shape([], format!("{b}[1]"))
            }
            6 => shape([format!("{ty} {b}[2] = {{8, {{8, {rows}}}}};")], format!("{b}[1]")),
            7 => {
                // A template may have a parameter `B`.
                let name = format!("{}_SHAPE", b.to_uppercase());
                self.text(format!("#define {name} {made}"));
                shape([], name)
            }
            _ => {
                let wide = self.fresh("wide");
                shape(
                    [
                        format!("const bool {wide} = sizeof(int) > 2;"),
                        format!("{ty} {b} = {wide} ? {made} : {ty}(8);"),
                    ],
                    b,
                )
            }
        }
    }

    /// What a function gives.
    fn shape_of_function(&mut self, ty: &str, rows: &str) -> Shape {
        self.feature("shape that a function gives");
        let (b, f) = (self.fresh("b"), self.fresh("blockOf"));
        match self.random.below(6) {
            0 => {
                let head = if self.random.chance(50) { ty } else { "auto" };
                self.text(format!("static {head} {f}() {{ return {ty}(8, {rows}); }}"));
                shape([], format!("{f}()"))
            }
            1 => {
                self.text(format!("static {ty} {f}(int y) {{ return {ty}(8, y); }}"));
                shape([format!("auto {b} = {f}({rows});")], b)
            }
            2 => {
                self.text(format!(
                    "static {ty} {f}(unsigned x) {{ {ty} made(x); made.y = {rows}; return made; }}"
                ));
                shape([], format!("{f}(8)"))
            }
            3 => {
                self.text(format!("template <int Y> static {ty} {f}() {{ return {ty}(8, Y); }}"));
                shape([], format!("{f}<2>()"))
            }
            4 => shape(
                [format!("auto {b} = [](unsigned x) {{ return {ty}(x, {rows}); }};")],
                format!("{b}(8)"),
            ),
            _ => {
                self.text(format!("static {ty} {f}({ty} from) {{ return {ty}(from.x, {rows}); }}"));
                shape([], format!("{f}({ty}(8))"))
            }
        }
    }

    /// What a class keeps or becomes.
    fn shape_of_class(&mut self, ty: &str, rows: &str) -> Shape {
        self.feature("shape of a class");
        let (c, p) = (self.fresh("Plan"), self.fresh("plan"));
        match self.random.below(9) {
            0 => {
                let init = *self.random.pick(&[" = @(8, #)", "{8, #}", " = {8, #}"]);
                let init = init.replace('@', ty).replace('#', rows);
                self.text(format!("struct {c} {{ {ty} grid; {ty} block{init}; }};"));
                shape([format!("{c} {p};")], format!("{p}.block"))
            }
            1 => {
                self.text(format!(
                    "struct {c} {{ {ty} grid, block; {c}(int n) : grid(n), block(8, {rows}) {{}} }};"
                ));
                shape([format!("{c} {p}(1);")], format!("{p}.block"))
            }
            2 => {
                self.text(format!(
                    "struct {c} {{ {ty} block; {c}() : block(8) {{ block.y = {rows}; }} }};"
                ));
                shape([], format!("{c}().block"))
            }
            3 => {
                self.text(format!(
                    "struct {c} {{ int n; {ty} block() const {{ return {ty}(n, {rows}); }} }};"
                ));
                shape([format!("const {c} {p}{{8}};")], format!("{p}.block()"))
            }
            4 => {
                self.text(format!(
                    "struct {c} {{ unsigned n; operator dim3() const {{ return {ty}(n, {rows}); }} }};"
                ));
                shape([], format!("{c}{{8}}"))
            }
            5 => {
                self.text(format!(
                    "struct {c} : {ty} {{ {c}(unsigned n) : {ty}(n, {rows}) {{}} }};"
                ));
                shape([format!("{c} {p}(8);")], p)
            }
            6 => {
                self.text(format!(
                    "struct {c} {{ static {ty} block() {{ return {ty}(8, {rows}); }} }};"
                ));
                shape([], format!("{c}::block()"))
            }
            7 => {
                let mut field = format!("{p}.block");
                if self.random.chance(50) {
                    self.text(format!("struct {c} {{ {ty} grid, block; }};"));
                } else {
                    let inner = self.fresh("Sizes");
                    self.text(format!(
                        "struct {inner} {{ {ty} grid, block; }};\nstruct {c} {{ {inner} sizes; int n; }};"
                    ));
                    field = format!("{p}.sizes.block");
                }
                let set = if self.random.chance(50) {
                    format!("{field} = {ty}(8, {rows});")
                } else {
                    format!("{field}.x = 8, {field}.y = {rows};")
                };
                shape([format!("{c} {p};"), set], field)
            }
            _ => {
                let make = self.fresh("planFor");
                self.text(format!(
                    "struct {c} {{ {ty} grid, block; }};\nstatic {c} {make}(int n) {{ return {{{ty}(n), {ty}(8, {rows})}}; }}"
                ));
                let ty = if self.random.chance(50) { c.as_str() } else { "auto" };
                shape([format!("{ty} {p} = {make}(1);")], format!("{p}.block"))
            }
        }
    }

    /// A variable whose second part is set by a reference, a pointer or a function.
    fn shape_set_by_another_name(&mut self, ty: &str, rows: &str) -> Shape {
        self.feature("shape that is set by another name");
        let (b, to, f) = (self.fresh("b"), self.fresh("to"), self.fresh("widen"));
        let declared = format!("{ty} {b}(8);");
        let lines = match self.random.below(9) {
            0 => {
                let init = *self.random.pick(&[" = @", "(@)", "{@}"]);
                let init = init.replace('@', &b);
                vec![format!("{ty}& {to}{init};"), format!("{to}.y = {rows};")]
            }
            1 => {
                let init = *self.random.pick(&[" = @.y", "{@.y}"]);
                let init = init.replace('@', &b);
                vec![format!("unsigned& {to}{init};"), format!("{to} = {rows};")]
            }
            2 => vec![format!("{ty}* {to} = &{b};"), format!("{to}->y = {rows};")],
            3 => vec![format!("auto* {to}{{&{b}.y}};"), format!("*{to} = {rows};")],
            4 => {
                self.text(format!("static void {f}({ty}& size) {{ size.y = {rows}; }}"));
                vec![format!("{f}({b});")]
            }
            5 => {
                self.text(format!("static void {f}({ty}* size) {{ *size = {ty}(8, {rows}); }}"));
                vec![format!("{f}(&{b});")]
            }
            6 => vec![
                format!("auto {to} = [&] {{ {b} = {ty}(8, {rows}); }};"),
                format!("{to}();"),
            ],
            7 => vec![format!(
                "for (auto* {to} = &{b}; {to} != nullptr; {to} = nullptr) {to}->y = {rows};"
            )],
            _ => vec![format!("auto&& [x, y, z] = {b};"), format!("y = {rows};")],
        };
        let mut host = vec![declared];
        if lines.iter().any(|line| line.contains("[x, y, z]")) {
            // The names are this block's own.
            host.push(format!("{{ {} }}", lines.join(" ")));
        } else {
            host.extend(lines);
        }
        shape(host, b)
    }
}
