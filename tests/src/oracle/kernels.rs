//! Random kernels, full of control flow. They are never run, so nothing in them has to end or stay within bounds.

use std::fmt::Write as _;

use crate::fuzz::random::Random;

/// What every source has: a class, functions that return early, that change what they are handed, that ask who calls.
const HEAD: &str = "struct Pair {
    int x, y;
    __device__ int sum() const { return x + y; }
    __device__ void set(int v) { x = v; }
    __device__ Pair& operator+=(int v) { y += v; return *this; }
};
struct Mine {
    int at = threadIdx.x;
    int of;
};
__device__ int early(int a, int b) {
    for (int i = 0; i < a; ++i) {
        if (i == b) return i;
    }
    return b;
}
__device__ int own(int a) { return a > 3 ? threadIdx.x : a; }
__device__ int where(int a) { return a + blockIdx.x; }
__device__ void put(int& to, int v) { if (v > 2) to = v; }
__device__ void put_by(int* to, int v) { *to = v; }
__device__ Pair pair_of(int a, int b) { Pair p; p.x = a; p.y = b; return p; }
__device__ bool swap_if(int& a, int& b, bool c) { if (!c) return false; int t = a; a = b; b = t; return true; }
template <int N> __device__ int times(int a) { int r = a; for (int i = 0; i < N; ++i) r += a; return r; }
";

/// A source of so many kernels.
pub fn source(seed: u64, kernels: usize) -> String {
    let mut text = HEAD.to_owned();
    for number in 0..kernels {
        let mut writer = Writer {
            random: Random::new(seed.wrapping_mul(7919).wrapping_add(number as u64)),
            text: String::new(),
            level: 1,
            loops: 0,
            switches: 0,
            labels: 0,
            names: 0,
            left: 26,
            scope: Vec::new(),
        };
        writer.kernel(number);
        text.push_str(&writer.text);
    }
    text
}

struct Writer {
    random: Random,
    text: String,
    level: usize,
    /// Loops around this place.
    loops: usize,
    /// Switches around this place.
    switches: usize,
    /// Labels so far.
    labels: usize,
    /// Variables so far.
    names: usize,
    /// Statements that may still be written.
    left: usize,
    /// Variables.
    scope: Vec<String>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(self.level));
    }

    fn kernel(&mut self, number: usize) {
        let _ = writeln!(
            self.text,
            "__global__ void k{number}(const int* in, int n, int m, bool flag) {{"
        );
        for name in ["a", "b", "c", "d"] {
            let value = self.leaf();
            self.line(&format!("int {name} = {value};"));
            self.scope.push(name.to_owned());
        }
        if self.random.chance(60) {
            let (x, y) = (self.value(1), self.value(1));
            self.line(&format!("Pair p; p.x = {x}; p.y = {y};"));
        } else {
            self.line("Pair p = pair_of(n, m);");
        }
        self.line("int& r = b;");
        self.statements(8);
        self.line("}");
        self.level = 1;
        let end = self.text.rfind("    }").unwrap_or(self.text.len());
        self.text.replace_range(end.., "}\n");
    }

    fn leaf(&mut self) -> String {
        let all = [
            "n",
            "m",
            "0",
            "1",
            "3",
            "blockIdx.x",
            "blockIdx.x",
            "threadIdx.x",
            "threadIdx.y",
            "blockDim.x",
            "gridDim.x",
            "(int)flag",
            "in[n]",
            "in[blockIdx.x]",
        ];
        (*self.random.pick(&all)).to_owned()
    }

    fn variable(&mut self) -> String {
        let own = self.scope.len();
        match self.random.below(own + 3) {
            at if at < own => self.scope[at].clone(),
            at if at == own => "p.x".to_owned(),
            at if at == own + 1 => "p.y".to_owned(),
            _ => "r".to_owned(),
        }
    }

    fn value(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.chance(25) {
            return if self.random.chance(70) && !self.scope.is_empty() {
                self.variable()
            } else {
                self.leaf()
            };
        }
        let a = self.value(depth - 1);
        let b = self.value(depth - 1);
        match self.random.below(20) {
            0..=6 => format!(
                "({a} {} {b})",
                self.random.pick::<&str>(&["+", "-", "*", "&", "|", "%", ">>"])
            ),
            7 => format!("early({a}, {b})"),
            8 => format!("own({a})"),
            9 => format!("where({a})"),
            10 => format!("p.sum() + {a}"),
            11 => format!("pair_of({a}, {b}).y"),
            12 => format!("times<3>({a})"),
            13 => format!("min({a}, {b})"),
            14 => {
                let c = self.condition(1);
                format!("({c} ? {a} : {b})")
            }
            15 => format!("in[{a}]"),
            16 => format!("(unsigned char)({a})"),
            17 => format!("({a}, {b})"),
            _ => format!("({a} + {b})"),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let a = self.value(1);
        let b = self.value(1);
        let op = *self.random.pick(&["<", ">", "==", "!=", "<="]);
        match self.random.below(10) {
            0 if depth > 0 => {
                let (x, y) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({x} && {y})")
            }
            1 if depth > 0 => {
                let (x, y) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({x} || {y})")
            }
            2 => "flag".to_owned(),
            3 => format!("threadIdx.x < {a}"),
            4 => format!("n > {}", self.random.below(9)),
            5 => format!("swap_if(a, b, {a} {op} {b})"),
            6 if depth > 0 => {
                let v = self.variable();
                format!("({v} = {a}) {op} {b}")
            }
            _ => format!("{a} {op} {b}"),
        }
    }

    fn statements(&mut self, most: usize) {
        let scope = self.scope.len();
        let count = 1 + self.random.below(most);
        for _ in 0..count {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.statement();
        }
        self.scope.truncate(scope);
    }

    fn braces(&mut self, head: &str, most: usize) {
        self.line(&format!("{head} {{"));
        self.level += 1;
        self.statements(most);
        self.level -= 1;
        self.line("}");
    }

    fn looped(&mut self, head: &str) {
        let switches = std::mem::take(&mut self.switches);
        self.loops += 1;
        self.braces(head, 5);
        self.loops -= 1;
        self.switches = switches;
    }

    fn statement(&mut self) {
        match self.random.below(32) {
            0..=7 => self.change(),
            8..=10 => {
                let value = self.value(2);
                self.names += 1;
                let name = format!("v{}", self.names);
                self.line(&format!("int {name} = {value};"));
                self.scope.push(name);
            }
            11..=15 => {
                let condition = self.condition(2);
                self.braces(&format!("if ({condition})"), 4);
                if self.random.chance(45) {
                    let end = self.text.trim_end().len();
                    self.text.truncate(end);
                    self.text.push_str(" else {\n");
                    self.level += 1;
                    self.statements(4);
                    self.level -= 1;
                    self.line("}");
                }
            }
            16 => {
                let condition = self.condition(1);
                self.looped(&format!("while ({condition})"));
            }
            // Left by `break` and `return` alone.
            17 => {
                let condition = self.condition(0);
                let leave = *self.random.pick(&["break", "break", "return"]);
                self.looped("for (;;)");
                let end = self.text.trim_end().trim_end_matches('}').trim_end().len();
                self.text.truncate(end);
                self.level += 1;
                self.text.push('\n');
                self.line(&format!("if ({condition}) {leave};"));
                self.level -= 1;
                self.line("}");
            }
            18 => {
                self.looped("do");
                let end = self.text.trim_end().len();
                self.text.truncate(end);
                let condition = self.condition(1);
                let _ = writeln!(self.text, " while ({condition});");
            }
            19 | 20 => {
                self.names += 1;
                let name = format!("i{}", self.names);
                let (from, to) = (self.value(1), self.value(1));
                let step = *self.random.pick(&["++", " += blockDim.x", " += n"]);
                self.scope.push(name.clone());
                self.looped(&format!("for (int {name} = {from}; {name} < {to}; {name}{step})"));
                self.scope.pop();
            }
            21 => self.switch(),
            22 | 23 if self.loops > 0 || self.switches > 0 => {
                let condition = self.condition(1);
                self.line(&format!("if ({condition}) break;"));
            }
            24 if self.loops > 0 => {
                let condition = self.condition(1);
                self.line(&format!("if ({condition}) continue;"));
            }
            25 | 26 => {
                let condition = self.condition(1);
                self.line(&format!("if ({condition}) return;"));
            }
            27 => self.forward(),
            28 => {
                let value = self.value(1);
                self.line(&format!("Mine own_{}; own_{}.of = {value};", self.names, self.names));
                let to = self.variable();
                let member = *self.random.pick(&["at", "of"]);
                self.line(&format!("{to} = own_{}.{member};", self.names));
                self.names += 1;
            }
            _ => self.change(),
        }
    }

    fn change(&mut self) {
        let to = self.variable();
        let value = self.value(2);
        let line = match self.random.below(12) {
            0..=5 => format!("{to} = {value};"),
            6 | 7 => format!("{to} {}= {value};", self.random.pick::<&str>(&["+", "-", "^"])),
            8 => format!("{to}++;"),
            9 => format!("put({to}, {value});"),
            10 => format!("put_by(&{to}, {value});"),
            _ if self.random.chance(50) => format!("p.set({value});"),
            _ => format!("p += {value};"),
        };
        self.line(&line);
    }

    fn switch(&mut self) {
        let on = self.value(1);
        self.line(&format!("switch ({on}) {{"));
        self.switches += 1;
        let cases = 2 + self.random.below(3);
        for case in 0..cases {
            let label = if case + 1 == cases {
                "default:".to_owned()
            } else {
                format!("case {case}:")
            };
            self.braces(&label, 2);
            if self.random.chance(60) {
                self.line("break;");
            }
        }
        self.switches -= 1;
        self.line("}");
    }

    /// A jump over some statements.
    fn forward(&mut self) {
        self.labels += 1;
        let label = format!("over{}", self.labels);
        let condition = self.condition(1);
        self.line(&format!("if ({condition}) goto {label};"));
        self.braces("", 3);
        self.line(&format!("{label}:;"));
    }
}
