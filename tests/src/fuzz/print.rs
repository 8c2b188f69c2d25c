//! The text of a program.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Expr, Function, Item, Launch, LaunchForm, Layout, Program, Stmt};

/// Name of the file with `main`.
pub const MAIN_FILE: &str = "program.cu";

/// The texts of a program's files.
#[derive(Clone, Debug)]
pub struct Printed {
    /// By name.
    pub files: BTreeMap<String, String>,
    /// Where each launch by device code begins: site, file, byte offset.
    pub launches: Vec<(u32, String, u32)>,
    /// Kernels whose blocks have two dimensions, which stands in the program.
    pub two_dimensional: BTreeSet<String>,
    /// The grammar doesn't know all of it.
    pub beyond_the_grammar: bool,
    /// Files that the compiler finds and gridfuse doesn't, by name.
    pub unfound: BTreeMap<String, String>,
    /// How often kernels wait for their children, as they could before CUDA 12.
    pub waits: usize,
}

impl Printed {
    /// What the compiler finds, given the files that are there: the program's, or those that rewrites have made of them.
    pub fn whole(&self, files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let unfound = self.unfound.iter().map(|(name, text)| (name.clone(), text.clone()));
        files.clone().into_iter().chain(unfound).collect()
    }
}

/// Prints a program.
pub fn print(program: &Program) -> Printed {
    let mut printed = Printed {
        files: BTreeMap::new(),
        launches: Vec::new(),
        two_dimensional: program.two_dimensional.clone(),
        beyond_the_grammar: program.beyond_the_grammar,
        unfound: program.unfound.clone(),
        waits: program.waits,
    };
    let mut cuts: Vec<usize> = program.cuts.iter().map(|cut| (*cut).min(program.items.len())).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|cut| *cut > 0 && *cut < program.items.len());
    let mut from = 0;
    let mut included: Option<String> = None;
    for number in 0..=cuts.len() {
        let last = number == cuts.len();
        let to = if last { program.items.len() } else { cuts[number] };
        let name = match (last, number) {
            (true, _) => MAIN_FILE.to_owned(),
            (false, 0) => format!("children{}", program.layout.header_suffix),
            (false, _) => format!("parents{}", program.layout.header_suffix),
        };
        let mut printer = Printer::new(program.layout);
        if !last {
            printer.line("#pragma once");
        }
        if let Some(included) = &included {
            printer.line(&format!("#include \"{included}\""));
        }
        if last {
            printer.line("#include <cstdio>");
        }
        for item in &program.items[from..to] {
            printer.line("");
            match item {
                Item::Text(text) => text.lines().for_each(|line| printer.line(line)),
                Item::Function(function) => printer.function(function),
            }
        }
        let launches = printer.launches.iter().map(|(site, at)| (*site, name.clone(), *at));
        printed.launches.extend(launches);
        printed.files.insert(name.clone(), printer.out);
        included = Some(name);
        from = to;
    }
    printed
}

struct Printer {
    layout: Layout,
    out: String,
    level: usize,
    launches: Vec<(u32, u32)>,
    /// Inside a text that isn't written yet, launches are recorded relative to its begin.
    pending: Vec<(u32, usize)>,
}

impl Printer {
    fn new(layout: Layout) -> Self {
        Printer {
            layout,
            out: String::new(),
            level: 0,
            launches: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Writes a line (which may hold line breaks of its own) and places the launches that were printed into it.
    fn line(&mut self, text: &str) {
        let newline = if self.layout.crlf { "\r\n" } else { "\n" };
        let directive = text.starts_with('#');
        if !text.is_empty() && !directive {
            self.out.push_str(&self.layout.indent.repeat(self.level));
        }
        let mut at = 0;
        let starts: Vec<(u32, usize)> = std::mem::take(&mut self.pending);
        for (offset, c) in text.char_indices() {
            while starts.get(at).is_some_and(|(_, start)| *start == offset) {
                self.launches.push((starts[at].0, self.out.len() as u32));
                at += 1;
            }
            if c == '\n' {
                self.out.push_str(newline);
                self.out.push_str(&self.layout.indent.repeat(self.level + 1));
            } else {
                self.out.push(c);
            }
        }
        self.out.push_str(newline);
    }

    fn function(&mut self, function: &Function) {
        if let Some(template) = &function.template {
            self.line(template);
        }
        let params: Vec<String> = function
            .params
            .iter()
            .map(|p| {
                let default = p.default.as_ref().map_or(String::new(), |d| format!(" = {d}"));
                format!("{} {}{default}", p.ty, p.name)
            })
            .collect();
        let head = format!("{} {}(", function.head, function.name);
        let mut text = head.clone();
        let mut width = head.len();
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                text.push(',');
                if width + param.len() > 100 {
                    text.push('\n');
                    width = 0;
                } else {
                    text.push(' ');
                }
            }
            width += param.len() + 2;
            text.push_str(param);
        }
        text.push(')');
        self.open(text);
        self.stmts(&function.body);
        self.close("");
    }

    fn open(&mut self, head: String) {
        if self.layout.allman {
            self.line(&head);
            self.line("{");
        } else {
            self.line(&format!("{head} {{"));
        }
        self.level += 1;
    }

    fn close(&mut self, tail: &str) {
        self.level = self.level.saturating_sub(1);
        self.line(&format!("}}{tail}"));
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt, "");
        }
    }

    /// The body of `head`: with braces, or, where it is one plain statement, perhaps without.
    fn body(&mut self, head: String, body: &[Stmt], braces: bool, before_else: bool) -> bool {
        let bare = match body {
            [Stmt::Declare { .. } | Stmt::Construct { .. }] => false,
            [Stmt::Text(text)] => text.ends_with(';') && !text.contains(' '),
            [Stmt::If { .. } | Stmt::For { .. } | Stmt::While { .. } | Stmt::DoWhile { .. } | Stmt::Switch { .. }] => {
                !before_else
            }
            [Stmt::Expr(_) | Stmt::Return(_) | Stmt::Launch(_)] => true,
            _ => false,
        };
        if braces || !bare {
            self.open(head);
            self.stmts(body);
            self.level = self.level.saturating_sub(1);
            return true;
        }
        self.line(&head);
        self.level += 1;
        self.stmts(body);
        self.level -= 1;
        false
    }

    /// A statement; `prefix` stands before it on its line.
    fn stmt(&mut self, stmt: &Stmt, prefix: &str) {
        match stmt {
            Stmt::Declare { ty, name, init } => {
                let head = format!("{ty} {name}");
                let text = match init {
                    Some(init) => self.after(format!("{head} = "), init, 1) + ";",
                    None => head + ";",
                };
                self.line(&text);
            }
            Stmt::Construct { ty, name, args } => {
                let mut text = format!("{ty} {name}");
                if !args.is_empty() {
                    text = self.list(text + "(", args, ", ") + ")";
                }
                self.line(&(text + ";"));
            }
            Stmt::Expr(expr) => {
                let text = self.after(String::new(), expr, 0) + ";";
                self.line(&text);
            }
            Stmt::Return(expr) => {
                let text = self.after("return ".to_owned(), expr, 0) + ";";
                self.line(&text);
            }
            Stmt::Launch(launch) => {
                let text = self.launch(String::new(), launch) + ";";
                self.line(&text);
            }
            Stmt::If {
                cond,
                then,
                otherwise,
                braces,
            } => {
                let head = self.after(format!("{prefix}if ("), cond, 0) + ")";
                let braced = self.body(head, then, *braces, !otherwise.is_empty());
                if otherwise.is_empty() {
                    if braced {
                        self.line("}");
                    }
                    return;
                }
                let mut lead = "else".to_owned();
                if braced {
                    if self.layout.allman {
                        self.line("}");
                    } else {
                        lead = "} else".to_owned();
                    }
                }
                if let [chained @ Stmt::If { .. }] = otherwise.as_slice() {
                    self.stmt(chained, &format!("{lead} "));
                } else if self.body(lead, otherwise, *braces, false) {
                    self.line("}");
                }
            }
            Stmt::For {
                init: (ty, name, first),
                cond,
                step,
                body,
                braces,
                unroll,
            } => {
                if *unroll {
                    self.line("#pragma unroll 2");
                }
                let mut head = self.after(format!("for ({ty} {name} = "), first, 1) + "; ";
                head = self.after(head, cond, 0) + "; ";
                head = self.after(head, step, 0) + ")";
                if self.body(head, body, *braces, false) {
                    self.line("}");
                }
            }
            Stmt::While { cond, body } => {
                let head = self.after("while (".to_owned(), cond, 0) + ")";
                if self.body(head, body, true, false) {
                    self.line("}");
                }
            }
            Stmt::DoWhile { body, cond } => {
                self.open("do".to_owned());
                self.stmts(body);
                self.level = self.level.saturating_sub(1);
                let text = self.after("} while (".to_owned(), cond, 0) + ");";
                self.line(&text);
            }
            Stmt::Switch { on, cases } => {
                let head = self.after("switch (".to_owned(), on, 0) + ")";
                self.open(head);
                for (value, stmts) in cases {
                    self.line(&match value {
                        Some(value) => format!("case {value}:"),
                        None => "default:".to_owned(),
                    });
                    self.level += 1;
                    self.stmts(stmts);
                    self.level -= 1;
                }
                self.close("");
            }
            Stmt::Block(stmts) => {
                self.line("{");
                self.level += 1;
                self.stmts(stmts);
                self.close("");
            }
            Stmt::Text(text) => self.line(text),
        }
    }

    fn after(&mut self, before: String, expr: &Expr, least: u8) -> String {
        let mut text = before;
        self.expr(&mut text, expr, least);
        text
    }

    fn list(&mut self, mut text: String, exprs: &[Expr], separator: &str) -> String {
        for (index, expr) in exprs.iter().enumerate() {
            if index > 0 {
                text.push_str(separator);
            }
            self.expr(&mut text, expr, 1);
        }
        text
    }

    fn launch(&mut self, mut text: String, launch: &Launch) -> String {
        if launch.site != 0 {
            self.pending.push((launch.site, text.len()));
        }
        let (open, close) = match launch.form {
            LaunchForm::Spaced => ("<< <", ">> >("),
            _ => ("<<<", ">>>("),
        };
        let separator = match launch.form {
            LaunchForm::Broken => ",\n",
            LaunchForm::Commented => ", /* next */ ",
            _ => ", ",
        };
        text.push_str(&launch.kernel);
        text.push_str(open);
        for (index, config) in launch.config.iter().enumerate() {
            if index > 0 {
                text.push_str(", ");
            }
            // A comparison would be legal here, and nobody could read it.
            self.expr(&mut text, config, 10);
        }
        text.push_str(close);
        self.list(text, &launch.args, separator) + ")"
    }

    /// Prints an expression, with parentheses if it binds weaker than `least`.
    fn expr(&mut self, out: &mut String, expr: &Expr, least: u8) {
        let own = precedence(expr);
        if own < least {
            out.push('(');
        }
        match expr {
            Expr::Atom(text) => out.push_str(text),
            Expr::Unary(op, x) => {
                out.push_str(op);
                // `- -x` is not `--x`.
                let doubled = matches!(**x, Expr::Unary(..));
                self.expr(out, x, if doubled { 16 } else { 13 });
            }
            Expr::Postfix(op, x) => {
                self.expr(out, x, 14);
                out.push_str(op);
            }
            Expr::Binary(op, x, y) => {
                let assigns = own == 1;
                self.expr(out, x, if assigns { 13 } else { own });
                if *op != "," {
                    out.push(' ');
                }
                out.push_str(op);
                out.push(' ');
                self.expr(out, y, if assigns { own } else { own + 1 });
            }
            Expr::Conditional(c, x, y) => {
                self.expr(out, c, 3);
                out.push_str(" ? ");
                self.expr(out, x, 2);
                out.push_str(" : ");
                self.expr(out, y, 2);
            }
            Expr::Index(x, y) => {
                self.expr(out, x, 14);
                out.push('[');
                self.expr(out, y, 0);
                out.push(']');
            }
            Expr::Member(x, name) => {
                self.expr(out, x, 14);
                out.push('.');
                out.push_str(name);
            }
            Expr::Call(name, args) => {
                let text = std::mem::take(out) + name + "(";
                *out = self.list(text, args, ", ") + ")";
            }
            Expr::Braces(name, args) => {
                let text = std::mem::take(out) + name + "{";
                *out = self.list(text, args, ", ") + "}";
            }
            Expr::Cast(ty, x) => {
                out.push('(');
                out.push_str(ty);
                out.push(')');
                self.expr(out, x, 13);
            }
            Expr::Launch(launch) => *out = self.launch(std::mem::take(out), launch),
        }
        if own < least {
            out.push(')');
        }
    }
}

fn precedence(expr: &Expr) -> u8 {
    match expr {
        Expr::Atom(_) | Expr::Call(..) | Expr::Braces(..) => 15,
        Expr::Index(..) | Expr::Member(..) | Expr::Postfix(..) | Expr::Launch(_) => 14,
        Expr::Unary(..) | Expr::Cast(..) => 13,
        Expr::Conditional(..) => 2,
        Expr::Binary(op, ..) => match *op {
            "*" | "/" | "%" => 12,
            "+" | "-" => 11,
            "<<" | ">>" => 10,
            "<" | ">" | "<=" | ">=" => 9,
            "==" | "!=" => 8,
            "&" => 7,
            "^" => 6,
            "|" => 5,
            "&&" => 4,
            "||" => 3,
            "," => 0,
            _ => 1,
        },
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::super::ast::*;
    use super::*;

    fn layout() -> Layout {
        Layout {
            indent: "    ",
            allman: false,
            crlf: false,
            header_suffix: ".cuh",
        }
    }

    fn shown(expr: &Expr) -> String {
        Printer::new(layout()).after(String::new(), expr, 0)
    }

    #[test]
    fn parentheses_where_they_are_needed() {
        let sum = binary(atom("a"), "+", atom("b"));
        assert_eq!(shown(&binary(sum.clone(), "*", sum.clone())), "(a + b) * (a + b)");
        assert_eq!(shown(&binary(atom("x"), "-", sum.clone())), "x - (a + b)");
        assert_eq!(shown(&unary("-", unary("-", sum.clone()))), "-(-(a + b))");
        assert_eq!(shown(&index(atom("p"), binary(atom("a"), ",", sum))), "p[a, a + b]");
    }

    #[test]
    fn launches_are_found_in_the_text() {
        let launch = |site| Launch {
            site,
            kernel: "child".to_owned(),
            config: vec![int(1), binary(atom("a"), ">", int(2))],
            args: vec![atom("x"), atom("y")],
            form: LaunchForm::Broken,
        };
        let body = vec![
            Stmt::If {
                cond: atom("c"),
                then: vec![Stmt::Launch(launch(1))],
                otherwise: vec![when(atom("d"), vec![Stmt::Launch(launch(2))])],
                braces: false,
            },
            Stmt::Expr(conditional(atom("e"), Expr::Launch(Box::new(launch(3))), atom("f"))),
        ];
        let function = Function {
            template: None,
            head: "__global__ void".to_owned(),
            name: "parent".to_owned(),
            params: Vec::new(),
            body,
        };
        for crlf in [false, true] {
            let program = Program {
                items: vec![Item::Text("int x;".to_owned()), Item::Function(function.clone())],
                cuts: vec![1],
                layout: Layout { crlf, ..layout() },
                features: BTreeSet::new(),
                ordered_sites: BTreeSet::new(),
                two_dimensional: BTreeSet::new(),
                beyond_the_grammar: false,
                unfound: BTreeMap::new(),
                waits: 0,
            };
            let printed = print(&program);
            assert_eq!(printed.files.len(), 2);
            assert_eq!(printed.launches.len(), 3);
            for (site, file, at) in &printed.launches {
                let text = &printed.files[file][*at as usize..];
                assert!(text.starts_with("child<<<1, (a > 2)>>>(x,"), "{site}: {text}");
            }
        }
    }
}
