//! Types of the user's that are called like ones of CUDA's and are narrower: the number of a thread wraps around in them, and more threads
//! than the count says work.

use super::Generator;
use crate::fuzz::ast::{Stmt, atom, binary, declare, int, text, when};

impl Generator {
    /// Adds a parent whose child has such a type.
    pub fn narrowed(&mut self) {
        let units = self.random.range(2, 5);
        let march = self.march(8, units);
        let (ty, like) = *self.random.pick(&[
            ("uint", "unsigned"),
            ("uint", "unsigned"),
            ("uint32_t", "unsigned"),
            ("ushort", "unsigned short"),
            ("uint16_t", "unsigned short"),
            ("size_t", "size_t"),
        ]);
        let child = self.fresh("fill");
        let body =
            format!("    {ty} i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < len) atomicAdd(&to[i], k);");
        let kernel = format!("__global__ void {child}(int* to, {ty} len, int k) {{\n{body}\n}}");
        let (lines, called) = match self.random.below(6) {
            0 | 1 => {
                self.feature("narrower type in a namespace");
                let space = self.fresh("own");
                let other = *self
                    .random
                    .pick(&["using @ = unsigned char;", "typedef unsigned char @;"]);
                (
                    format!("namespace {space} {{\n{}\n{kernel}\n}}", other.replace('@', ty)),
                    format!("{space}::{child}"),
                )
            }
            2 => {
                self.feature("narrower type in a function");
                let other = *self
                    .random
                    .pick(&["using @ = unsigned char;", "typedef unsigned char @;"]);
                (
                    format!(
                        "__global__ void {child}(int* to, {like} len, int k) {{\n    {}\n{body}\n}}",
                        other.replace('@', ty)
                    ),
                    child,
                )
            }
            3 | 4 => {
                self.feature("narrower type in a template");
                let word = *self.random.pick(&["class", "typename"]);
                (
                    format!("template <{word} {ty}> {kernel}"),
                    format!("{child}<unsigned char>"),
                )
            }
            _ => {
                self.feature("narrower type of a namespace that is used");
                let space = self.fresh("own");
                (
                    format!(
                        "namespace {space} {{\nusing {ty} = unsigned char;\n}}\nnamespace {space}_inner {{\nusing {space}::{ty};\n{kernel}\n}}"
                    ),
                    format!("{space}_inner::{child}"),
                )
            }
        };
        self.text(lines);
        // Blocks in which the number of a thread wraps around.
        let block = *self.random.pick(&[512, 768]);
        let args = vec![binary(atom("next"), "+", atom("at")), atom("m"), int(2)];
        let site = self.site();
        let up = binary(binary(atom("m"), "+", int(block - 1)), "/", int(block));
        let launch = Stmt::Launch(crate::fuzz::ast::Launch {
            site,
            kernel: called,
            config: vec![if self.random.chance(50) { int(1) } else { up }, int(block)],
            args,
            form: crate::fuzz::ast::LaunchForm::Plain,
        });
        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        stmts.push(declare("int", "at", binary(atom("v"), "*", atom("len"))));
        let count_type = if self.random.chance(50) { like } else { "int" };
        stmts.push(declare(
            count_type,
            "m",
            binary(int(5), "+", binary(atom("v"), "%", int(3))),
        ));
        stmts.push(launch);
        self.march_parent(&march, kernel, stmts, false);
    }
}
