//! Values with what is known of them, so that generated arithmetic never overflows, divides by zero or leaves an array.

use crate::fuzz::ast::{Expr, atom, binary, call, cast, conditional, index, int};
use crate::fuzz::random::Random;

/// Greatest absolute value of an intermediate result.
const LIMIT: i64 = 100_000_000;

/// An integer expression with its bounds.
#[derive(Clone, Debug)]
pub struct Value {
    /// The expression.
    pub expr: Expr,
    /// Least value.
    pub low: i64,
    /// Greatest value.
    pub high: i64,
}

impl Value {
    /// An expression between two bounds.
    pub fn new(expr: Expr, low: i64, high: i64) -> Value {
        Value { expr, low, high }
    }

    /// A number.
    pub fn literal(value: i64) -> Value {
        Value::new(int(value), value, value)
    }

    /// A variable.
    pub fn variable(name: &str, low: i64, high: i64) -> Value {
        Value::new(atom(name), low, high)
    }
}

/// An array of numbers that nothing changes: its pointer, a mask for the index, and the bounds of its elements.
#[derive(Clone, Debug)]
pub struct Table {
    /// The pointer or array.
    pub pointer: Expr,
    /// Indices are at most this.
    pub mask: i64,
    /// Bounds of the elements.
    pub bounds: (i64, i64),
    /// May be read by `__ldg`.
    pub read_only: bool,
}

/// A function without side effects from integers to an integer.
#[derive(Clone, Debug)]
pub struct Helper {
    /// Its name, with template arguments.
    pub name: String,
    /// Number of arguments; each may be any number up to the limit of intermediate results.
    pub arity: usize,
    /// Bounds of its result.
    pub bounds: (i64, i64),
}

/// What an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Variables.
    pub values: Vec<Value>,
    /// Arrays.
    pub tables: Vec<Table>,
    /// Functions.
    pub helpers: Vec<Helper>,
    /// Variables of floating types that hold small multiples of 1/4.
    pub floats: Vec<String>,
}

impl Scope {
    /// An integer expression with so many operators at most, about.
    pub fn int(&self, random: &mut Random, budget: u32) -> Value {
        let value = self.operation(random, budget);
        if random.chance(4) {
            // Parentheses that nobody needs: `(a) - b` looks like a cast.
            return Value::new(call("", vec![value.expr]), value.low, value.high);
        }
        value
    }

    fn operation(&self, random: &mut Random, budget: u32) -> Value {
        if budget == 0 || random.chance(15) {
            return self.leaf(random);
        }
        let a = self.int(random, budget - 1);
        let simple = budget / 2;
        match random.below(16) {
            0..=3 => {
                let b = self.int(random, simple);
                let (op, low, high) = if random.chance(60) {
                    ("+", a.low + b.low, a.high + b.high)
                } else {
                    ("-", a.low - b.high, a.high - b.low)
                };
                bounded(Value::new(binary(a.expr, op, b.expr), low, high))
            }
            4 | 5 => {
                let b = self.int(random, simple);
                let corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
                let (low, high) = extremes(&corners);
                if low < -LIMIT || high > LIMIT {
                    return bounded(Value::new(binary(a.expr, "+", b.expr), a.low + b.low, a.high + b.high));
                }
                Value::new(binary(a.expr, "*", b.expr), low, high)
            }
            6 => {
                let by = random.range(1, 9);
                Value::new(binary(a.expr, "/", int(by)), a.low / by, a.high / by)
            }
            7 => {
                let by = random.range(2, 17);
                let low = if a.low < 0 { 1 - by } else { 0 };
                Value::new(binary(a.expr, "%", int(by)), low, by - 1)
            }
            8 => {
                let mask = *random.pick(&[1, 3, 7, 15, 63, 255, 12]);
                Value::new(binary(a.expr, "&", int(mask)), 0, mask)
            }
            9 if a.low >= 0 => {
                let by = random.range(1, 3);
                Value::new(binary(a.expr, ">>", int(by)), a.low >> by, a.high >> by)
            }
            10 if !self.tables.is_empty() => {
                let table = random.pick(&self.tables);
                let at = masked(a, table.mask);
                let read = if table.read_only && random.chance(8) {
                    call(
                        "__ldg",
                        vec![Expr::Unary("&", Box::new(index(table.pointer.clone(), at.expr)))],
                    )
                } else {
                    index(table.pointer.clone(), at.expr)
                };
                Value::new(read, table.bounds.0, table.bounds.1)
            }
            11 | 12 if !self.helpers.is_empty() => {
                let helper = random.pick(&self.helpers).clone();
                let mut args = vec![a.expr];
                while args.len() < helper.arity {
                    args.push(self.int(random, simple.min(1)).expr);
                }
                args.truncate(helper.arity);
                Value::new(call(&helper.name, args), helper.bounds.0, helper.bounds.1)
            }
            13 => {
                let cond = self.bool(random, simple.min(1));
                let b = self.int(random, simple);
                Value::new(conditional(cond, a.expr, b.expr), a.low.min(b.low), a.high.max(b.high))
            }
            14 => {
                let b = random.range(0, 50);
                let (name, low, high) = if random.chance(50) {
                    ("min", a.low.min(b), a.high.min(b))
                } else {
                    ("max", a.low.max(b), a.high.max(b))
                };
                Value::new(call(name, vec![a.expr, int(b)]), low, high)
            }
            15 => match random.below(3) {
                0 => Value::new(cast("int", cast("unsigned char", a.expr)), 0, 255),
                1 => Value::new(Expr::Unary("-", Box::new(a.expr)), -a.high, -a.low),
                _ => Value::new(call("abs", vec![a.expr]), 0, a.low.abs().max(a.high.abs())),
            },
            _ => a,
        }
    }

    fn leaf(&self, random: &mut Random) -> Value {
        if self.values.is_empty() || random.chance(20) {
            return Value::literal(random.range(0, 20));
        }
        random.pick(&self.values).clone()
    }

    /// A condition.
    pub fn bool(&self, random: &mut Random, budget: u32) -> Expr {
        match random.below(if budget == 0 { 4 } else { 8 }) {
            0..=2 => {
                let a = self.int(random, budget.min(2));
                let op = *random.pick(&["<", ">", "<=", ">=", "==", "!="]);
                let b = if random.chance(60) {
                    let middle = a.low + (a.high - a.low) / 2;
                    int(random.range(a.low.max(-20).min(middle), a.high.min(60).max(middle.min(60))))
                } else {
                    self.leaf(random).expr
                };
                binary(a.expr, op, b)
            }
            3 => {
                let a = self.int(random, budget.min(1));
                let by = random.range(2, 4);
                binary(binary(a.expr, "%", int(by)), "==", int(random.range(0, by - 1)))
            }
            4 | 5 => binary(self.bool(random, budget - 1), "&&", self.bool(random, budget / 2)),
            6 => binary(self.bool(random, budget - 1), "||", self.bool(random, budget / 2)),
            _ => Expr::Unary("!", Box::new(self.bool(random, budget - 1))),
        }
    }

    /// An expression between two bounds.
    pub fn within(&self, random: &mut Random, budget: u32, low: i64, high: i64) -> Value {
        let value = self.int(random, budget);
        clamped(value, low, high)
    }

    /// A floating expression: a small multiple of 1/4, exact in single precision.
    pub fn float(&self, random: &mut Random) -> Expr {
        let a = self.within(random, 2, -500, 500);
        let a = if random.chance(50) {
            cast("float", a.expr)
        } else {
            binary(a.expr, "*", atom("1.0f"))
        };
        match random.below(4) {
            0 => binary(a, "*", atom("0.25f")),
            1 => binary(a, "+", atom("0.5f")),
            2 if !self.floats.is_empty() => binary(a, "+", atom(random.pick(&self.floats).clone())),
            _ => a,
        }
    }
}

/// The value, brought between two bounds by arithmetic.
pub fn clamped(value: Value, low: i64, high: i64) -> Value {
    if value.low >= low && value.high <= high {
        return value;
    }
    let width = high - low + 1;
    let positive = if value.low >= 0 { value } else { masked(value, 1023) };
    let expr = if width == 1 {
        return Value::literal(low);
    } else if positive.high < width {
        positive.expr
    } else {
        binary(positive.expr, "%", int(width))
    };
    let top = (width - 1).min(positive.high);
    if low == 0 {
        return Value::new(expr, 0, top);
    }
    Value::new(binary(expr, "+", int(low)), low, low + top)
}

/// The value as an index of an array whose length is a power of two.
pub fn masked(value: Value, mask: i64) -> Value {
    if value.low >= 0 && value.high <= mask {
        return value;
    }
    Value::new(binary(value.expr, "&", int(mask)), 0, mask)
}

fn bounded(value: Value) -> Value {
    if value.low < -LIMIT || value.high > LIMIT {
        return Value::new(binary(value.expr, "%", int(1009)), -1008, 1008);
    }
    value
}

fn extremes(values: &[i64]) -> (i64, i64) {
    let low = values.iter().copied().min().unwrap_or(0);
    let high = values.iter().copied().max().unwrap_or(0);
    (low, high)
}
