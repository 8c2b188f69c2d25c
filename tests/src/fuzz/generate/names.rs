//! Names that a kernel declares anew: what they mean at its top isn't what they mean behind that.

use super::Generator;
use super::launch::Context;
use super::scope::Value;
use crate::fuzz::ast::{Stmt, atom, cast, text};

impl Generator {
    /// A constant, a type or a macro of the file that is another one from here on.
    pub fn another_meaning(&mut self, context: &mut Context) -> Vec<Stmt> {
        self.feature("names with another meaning inside of a kernel");
        let wanted = *self.random.pick(&["kWide", "Rec", "Real", "STEP"]);
        let name = self.fresh(wanted);
        let size = |name: &str| cast("int", atom(format!("sizeof({name})")));
        let (file, here, expr, value) = match self.random.below(6) {
            0 => (
                format!("enum {{ {name} = 3 }};"),
                vec![format!("enum {{ {name} = 1 }};")],
                cast("int", atom(name.clone())),
                1,
            ),
            1 => (
                format!("struct {name} {{ char a[3]; }};"),
                vec![format!("struct {name} {{ char a[2]; }};")],
                size(&name),
                2,
            ),
            2 => (
                format!("using {name} = int;"),
                vec![format!("using {name} = short;")],
                size(&name),
                2,
            ),
            3 => (
                format!("typedef double {name};"),
                vec![format!("typedef char {name};")],
                size(&name),
                1,
            ),
            4 => (
                format!("constexpr int {name} = 3;\nnamespace of_{name} {{ constexpr int {name} = 1; }}"),
                vec![format!("using of_{name}::{name};")],
                atom(name.clone()),
                1,
            ),
            _ => (
                format!("#define {name} 3"),
                vec![format!("#undef {name}"), format!("#define {name} 1")],
                atom(name.clone()),
                1,
            ),
        };
        context.taken.insert(name);
        self.text(file);
        let meant = Value::new(expr, value, value);
        context.others.push(meant.clone());
        context.scope.values.push(meant);
        here.iter().map(|line| text(line)).collect()
    }
}
