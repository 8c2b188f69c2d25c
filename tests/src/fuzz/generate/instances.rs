//! Launchers that are templates, and that the host launches with several arguments: what they launch, how large it is, and whether they
//! launch at all depends on the argument.

use super::Generator;
use super::plan::{Instances, Role};
use crate::fuzz::ast::{Launch, LaunchForm, Stmt, atom, binary, text, when};

/// What a launcher is a template of.
struct Parameter {
    /// `template <class T>`
    head: &'static str,
    /// What its launches name the child's instance by.
    handed: &'static str,
    /// The arguments of the host.
    args: Vec<String>,
    /// A number that the parameter gives, more than 0.
    number: &'static str,
}

impl Generator {
    /// Adds such a launcher.
    pub fn instances(&mut self) {
        let units = self.random.range(2, 12);
        let len = *self.random.pick(&[5, 9, 20]);
        let march = self.march(len, units);
        let parameter = self.parameter();
        let mut child = self.kernel(
            "instance",
            false,
            vec![
                (Role::Pointer(march.b), "int*", "o"),
                (Role::Count, "int", "len"),
                (Role::Scalar(0, 9), "int", "k"),
            ],
        );
        let mut body = self.thread_number(&child, "i");
        body.push(text(&format!("if (i < len) o[i] += k + {};", parameter.number)));
        child.body = Some(body);
        child.instances = Some(Instances {
            head: parameter.head,
            args: Vec::new(),
        });
        let name = format!("{}<{}>", child.name, parameter.handed);
        self.kernels.push(child);

        let mut kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        let block = match self.random.below(3) {
            0 => parameter.number.to_owned(),
            1 => format!("4 * ({})", parameter.number),
            _ => "8".to_owned(),
        };
        let launch = |generator: &mut Self, more: &str| {
            Stmt::Launch(Launch {
                site: generator.site(),
                kernel: name.clone(),
                config: vec![atom(format!("(len + {block} - 1) / ({block})")), atom(block.clone())],
                args: vec![
                    binary(atom("next"), "+", binary(atom("v"), "*", atom("len"))),
                    atom("len"),
                    atom(format!("v % 5{more}")),
                ],
                form: LaunchForm::Plain,
            })
        };
        let inside = binary(atom("v"), "<", atom("units"));
        let number = parameter.number;
        match self.random.below(4) {
            0 => {
                self.feature("launch in one instance only");
                let launched = launch(self, "");
                let other = text("next[v * len] += 3;");
                stmts.push(when(
                    inside,
                    vec![
                        text(&format!("if constexpr ({number} > 4) {{")),
                        launched,
                        text("} else {"),
                        other,
                        text("}"),
                    ],
                ));
            }
            1 => {
                self.feature("another launch in each instance");
                let (one, other) = (launch(self, ""), launch(self, " + 2"));
                stmts.push(when(
                    inside,
                    vec![
                        text(&format!("if constexpr ({number} > 4) {{")),
                        one,
                        text("} else {"),
                        other,
                        text("}"),
                    ],
                ));
            }
            _ => {
                let launched = launch(self, "");
                stmts.push(when(inside, vec![launched]));
            }
        }
        kernel.instances = Some(Instances {
            head: parameter.head,
            args: parameter.args,
        });
        self.march_parent(&march, kernel, stmts, false);
    }

    fn parameter(&mut self) -> Parameter {
        match self.random.below(5) {
            0 => {
                self.feature("launcher that is a template of a type");
                Parameter {
                    head: "template <class T>",
                    handed: "T",
                    args: ["char", "int", "double"].map(str::to_owned).to_vec(),
                    number: "(int)sizeof(T)",
                }
            }
            1 => {
                self.feature("launcher that is a template of a number");
                let twice = self.random.range(3, 9).to_string();
                Parameter {
                    head: "template <int N>",
                    handed: "N",
                    args: vec!["2".to_owned(), twice, "16".to_owned()],
                    number: "N",
                }
            }
            2 => {
                self.feature("launcher that is a template of a class with a constant");
                let (small, large) = (self.fresh("Small"), self.fresh("Large"));
                self.text(format!("struct {small} {{ static constexpr int kWide = 4; }};"));
                self.text(format!("struct {large} {{ enum {{ kWide = 16 }}; }};"));
                Parameter {
                    head: "template <class C>",
                    handed: "C",
                    args: vec![small, large],
                    number: "C::kWide",
                }
            }
            3 => {
                self.feature("launcher that is a template of a template");
                let (one, other) = (self.fresh("One"), self.fresh("Many"));
                self.text(format!("template <class T>\nstruct {one} {{ T v; }};"));
                self.text(format!("template <class T>\nstruct {other} {{ T v[3]; }};"));
                Parameter {
                    head: "template <template <class> class V>",
                    handed: "V",
                    args: vec![one, other],
                    number: "(int)sizeof(V<int>)",
                }
            }
            _ => {
                self.feature("launcher that is a template of a functor");
                let (one, other) = (self.fresh("Twice"), self.fresh("Thrice"));
                for (class, factor) in [(&one, 2), (&other, 3)] {
                    self.text(format!(
                        "struct {class} {{\n    static constexpr int kFactor = 2 * {factor};\n    __device__ int operator()(int v) const {{ return v * {factor}; }}\n}};"
                    ));
                }
                Parameter {
                    head: "template <class F>",
                    handed: "F",
                    args: vec![one, other],
                    number: "F::kFactor",
                }
            }
        }
    }
}
