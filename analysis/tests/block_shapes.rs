//! Blocks of two dimensions in all ways in which programs write their sizes: who launches isn't one thread of a block then.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::facts::launch::{Launchers, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

/// A program whose kernel `parent` launches from the threads with `threadIdx.x == 0`. `@` in its parts is the second dimension of its blocks.
struct Shape {
    name: &'static str,
    /// In front of the kernels.
    before: &'static str,
    /// Behind them.
    behind: &'static str,
    /// In `main`.
    launch: &'static str,
    /// With one thread in the second dimension, it is seen that there is no more.
    flat: bool,
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    Shape {
        name: "alias",
        before: r#"using Block = dim3;"#,
        behind: "",
        launch: r#"Block b(16, @); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "typedef",
        before: r#"typedef dim3 Block;"#,
        behind: "",
        launch: r#"parent<<<2, Block(16, @)>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "alias_braces",
        before: r#"using Block = dim3;"#,
        behind: "",
        launch: r#"const Block b{16, @}; parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "alias_part",
        before: r#"using Block = dim3;"#,
        behind: "",
        launch: r#"Block b(16); b.y = @; parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "member_function",
        before: r#"struct Plan { int n; dim3 block() const { return dim3(n, @); } };"#,
        behind: "",
        launch: r#"Plan plan{16}; parent<<<2, plan.block()>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "static_member",
        before: r#"struct Plan { static dim3 block() { dim3 b(16); b.y = @; return b; } };"#,
        behind: "",
        launch: r#"parent<<<2, Plan::block()>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "field_set",
        before: r#"struct Plan { dim3 grid, block; };"#,
        behind: "",
        launch: r#"Plan plan; plan.grid = dim3(2); plan.block = dim3(16, @); parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "field_part",
        before: r#"struct Plan { dim3 grid, block; };"#,
        behind: "",
        launch: r#"Plan plan; plan.grid = dim3(2); plan.block = dim3(16); plan.block.y = @; parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "default_member",
        before: r#"struct Plan { dim3 grid = dim3(2); dim3 block = dim3(16, @); };"#,
        behind: "",
        launch: r#"Plan plan; parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "default_member_braces",
        before: r#"struct Plan { dim3 grid{2}; dim3 block{16, @}; };"#,
        behind: "",
        launch: r#"Plan plan; parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "constructor",
        before: r#"struct Plan { dim3 grid, block; Plan(int n) : grid(n), block(16, @) {} };"#,
        behind: "",
        launch: r#"Plan plan(2); parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "made_by",
        before: r#"struct Plan { dim3 grid, block; };
Plan plan_for(int n) { Plan p; p.grid = dim3(n); p.block = dim3(16, @); return p; }"#,
        behind: "",
        launch: r#"Plan plan = plan_for(2); parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "made_by_auto",
        before: r#"struct Plan { dim3 grid, block; };
Plan plan_for(int n) { return {dim3(n), dim3(16, @)}; }"#,
        behind: "",
        launch: r#"auto plan = plan_for(2); parent<<<plan.grid, plan.block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "array",
        before: "",
        behind: "",
        launch: r#"dim3 shapes[2] = {dim3(16, @), dim3(8)}; parent<<<2, shapes[0]>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "array_braces",
        before: "",
        behind: "",
        launch: r#"const dim3 shapes[] = {{16, @}, {8, 1}}; parent<<<2, shapes[0]>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "array_global",
        before: r#"static const dim3 kShapes[] = {dim3(16, @), dim3(8)};"#,
        behind: "",
        launch: r#"parent<<<2, kShapes[0]>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "vector",
        before: r#"#include <vector>"#,
        behind: "",
        launch: r#"std::vector<dim3> shapes; shapes.push_back(dim3(16, @)); parent<<<2, shapes[0]>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "comma",
        before: r#"struct W { unsigned v; };
dim3 operator,(W a, W b) { return dim3(a.v, b.v == 9 ? 1 : @); }"#,
        behind: "",
        launch: r#"parent<<<2, (W{16}, W{2})>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "literal",
        before: r#"dim3 operator""_wide(unsigned long long n) { return dim3(n, @); }"#,
        behind: "",
        launch: r#"parent<<<2, 16_wide>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "conversion",
        before: r#"struct Shape { unsigned v; operator dim3() const { return dim3(v, @); } };"#,
        behind: "",
        launch: r#"Shape s{16}; parent<<<2, s>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "conversion_direct",
        before: r#"struct Shape { unsigned v; operator dim3() const { return dim3(v, @); } };"#,
        behind: "",
        launch: r#"parent<<<2, Shape{16}>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "derived",
        before: r#"struct Block : dim3 { Block(unsigned n) : dim3(n, @) {} };"#,
        behind: "",
        launch: r#"parent<<<2, Block(16)>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "derived_var",
        before: r#"struct Block : dim3 { Block(unsigned n) : dim3(n, @) {} };"#,
        behind: "",
        launch: r#"Block b(16); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "host_parameter",
        before: "",
        behind: r#"void run(int* o, dim3 block) { parent<<<2, block>>>(o); }"#,
        launch: r#"run(o, dim3(16, @));"#,
        flat: true,
    },
    Shape {
        name: "host_parameter_two",
        before: "",
        behind: r#"void run(int* o, dim3 block) { parent<<<2, block>>>(o); }
void go(int* o, dim3 b) { run(o, b); }"#,
        launch: r#"dim3 b(16, @); go(o, b);"#,
        flat: true,
    },
    Shape {
        name: "host_parameter_braces",
        before: "",
        behind: r#"void run(int* o, dim3 block) { parent<<<2, block>>>(o); }"#,
        launch: r#"run(o, {16, @});"#,
        flat: true,
    },
    Shape {
        name: "set_by_reference",
        before: r#"void shape(dim3& b) { b = dim3(16, @); }"#,
        behind: "",
        launch: r#"dim3 b; shape(b); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "set_by_pointer",
        before: r#"void shape(dim3* b) { b->x = 16; b->y = @; }"#,
        behind: "",
        launch: r#"dim3 b; shape(&b); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "set_by_reference_args",
        before: r#"void shape(dim3& b, int x, int y) { b = dim3(x, y); }"#,
        behind: "",
        launch: r#"dim3 b; shape(b, 16, @); parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "global_set",
        before: r#"dim3 g_block;"#,
        behind: "",
        launch: r#"g_block = dim3(16, @); parent<<<2, g_block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "global_part",
        before: r#"dim3 g_block(16);"#,
        behind: "",
        launch: r#"g_block.y = @; parent<<<2, g_block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "global_part_elsewhere",
        before: r#"dim3 g_block(16);
void setup() { g_block.y = @; }"#,
        behind: "",
        launch: r#"setup(); parent<<<2, g_block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "global",
        before: r#"dim3 g_block(16, @);"#,
        behind: "",
        launch: r#"parent<<<2, g_block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "constant",
        before: r#"constexpr dim3 kBlock{16, @};"#,
        behind: "",
        launch: r#"parent<<<2, kBlock>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "macro",
        before: r#"#define BLOCK dim3(16, @)"#,
        behind: "",
        launch: r#"parent<<<2, BLOCK>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "macro_args",
        before: r#"#define BLOCK(n, m) dim3((n), (m))"#,
        behind: "",
        launch: r#"parent<<<2, BLOCK(16, @)>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "choice",
        before: "",
        behind: "",
        launch: r#"bool wide = o[0] == 0; dim3 b = wide ? dim3(16, @) : dim3(32); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "later",
        before: "",
        behind: "",
        launch: r#"dim3 b; if (o[0] == 0) b = dim3(16, @); else b = dim3(32); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "reference",
        before: "",
        behind: "",
        launch: r#"dim3 a(16); dim3& b = a; b.y = @; parent<<<2, a>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "pointer",
        before: "",
        behind: "",
        launch: r#"dim3 a(16); dim3* b = &a; b->y = @; parent<<<2, a>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "lambda",
        before: "",
        behind: "",
        launch: r#"auto block = [](int n) { return dim3(n, @); }; parent<<<2, block(16)>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "pair",
        before: r#"#include <utility>"#,
        behind: "",
        launch: r#"std::pair<dim3, dim3> p{dim3(2), dim3(16, @)}; parent<<<p.first, p.second>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "tuple_bound",
        before: r#"#include <tuple>
std::tuple<dim3, dim3> dims() { return {dim3(2), dim3(16, @)}; }"#,
        behind: "",
        launch: r#"auto [g, b] = dims(); parent<<<g, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "template",
        before: r#"template <int X, int Y> dim3 block_of() { return dim3(X, Y); }"#,
        behind: "",
        launch: r#"parent<<<2, block_of<16, @>()>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "template_class",
        before: r#"template <int Y> struct Tile { static dim3 block() { return dim3(16, Y); } };"#,
        behind: "",
        launch: r#"parent<<<2, Tile<@>::block()>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "wrapped",
        before: "",
        behind: r#"template <class K> void run(K k, dim3 g, dim3 b, int* o) { k<<<g, b>>>(o); }"#,
        launch: r#"run(parent, dim3(2), dim3(16, @), o);"#,
        flat: true,
    },
    Shape {
        name: "kernel_api",
        before: "",
        behind: "",
        launch: r#"void* args[] = {&o}; cudaLaunchKernel((const void*)parent, dim3(2), dim3(16, @), args, 0, 0);"#,
        flat: true,
    },
    Shape {
        name: "kernel_ex",
        before: "",
        behind: "",
        launch: r#"cudaLaunchConfig_t c = {}; c.gridDim = dim3(2); c.blockDim = dim3(16, @); cudaLaunchKernelEx(&c, parent, o);"#,
        flat: true,
    },
    Shape {
        name: "kernel_ex_part",
        before: "",
        behind: "",
        launch: r#"cudaLaunchConfig_t c{}; c.gridDim.x = 2; c.blockDim.x = 16; c.blockDim.y = @; c.gridDim.y = c.gridDim.z = c.blockDim.z = 1; cudaLaunchKernelEx(&c, parent, o);"#,
        flat: false,
    },
    Shape {
        name: "uint3",
        before: "",
        behind: "",
        launch: r#"uint3 b = make_uint3(16, @, 1); parent<<<2, b>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "static_field",
        before: r#"struct Plan { static dim3 block; };
dim3 Plan::block = dim3(16, @);"#,
        behind: "",
        launch: r#"parent<<<2, Plan::block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "namespace_alias",
        before: r#"namespace cfg { using B = dim3; const B block = B(16, @); }"#,
        behind: "",
        launch: r#"parent<<<2, cfg::block>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "using_dim3",
        before: r#"namespace my { struct dim3 { unsigned a; operator ::dim3() const { return ::dim3(a, @); } }; }
namespace m = my;"#,
        behind: "",
        launch: r#"parent<<<2, m::dim3{16}>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "swap",
        before: r#"#include <utility>"#,
        behind: "",
        launch: r#"dim3 b(@, 16); std::swap(b.x, b.y); parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "operator_times",
        before: r#"dim3 operator*(dim3 a, int n) { return dim3(a.x, a.y * n); }"#,
        behind: "",
        launch: r#"parent<<<2, dim3(16) * @>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "part_given_to_a_function",
        before: r#"void set(unsigned& n, unsigned to) { n = to; }"#,
        behind: "",
        launch: r#"dim3 b(16); set(b.y, @); parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "part_in_a_view",
        before: r#"struct View { unsigned& to; void put(unsigned n) const { to = n; } };"#,
        behind: "",
        launch: r#"dim3 b(16); View view{b.y}; view.put(@); parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "part_in_a_view_argument",
        before: r#"struct View { unsigned& to; };
void put(View view, unsigned n) { view.to = n; }"#,
        behind: "",
        launch: r#"dim3 b(16); put({b.y}, @); parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "part_by_an_operator",
        before: r#"struct In { unsigned v; };
In operator>>(In in, unsigned& to) { to = in.v; return in; }"#,
        behind: "",
        launch: r#"dim3 b(16); In{@} >> b.y; parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "part_kept_by_address",
        before: r#"struct Hold { unsigned* at; void keep(unsigned& x) { at = &x; } void go(unsigned n) { *at = n; } };"#,
        behind: "",
        launch: r#"dim3 b(16); Hold hold; hold.keep(b.y); hold.go(@); parent<<<2, b>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "reference_part",
        before: "",
        behind: "",
        launch: r#"dim3 a(16); unsigned& y = a.y; y = @; parent<<<2, a>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "pointer_part",
        before: "",
        behind: "",
        launch: r#"dim3 a(16); unsigned* z{&a.z}; *z = @; parent<<<2, a>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "bound_parts",
        before: "",
        behind: "",
        launch: r#"dim3 a(16); auto& [x, y, z] = a; z = @; parent<<<2, a>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "reference_member",
        before: r#"struct Keeps { dim3& b; };"#,
        behind: "",
        launch: r#"dim3 a(16); Keeps k{a}; k.b.y = @; parent<<<2, a>>>(o);"#,
        flat: true,
    },
    Shape {
        name: "reference_part_parens",
        before: "",
        behind: "",
        launch: r#"dim3 a(16); unsigned& y(a.y); y = @; parent<<<2, a>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "min_of",
        before: r#"#include <algorithm>
dim3 smaller(dim3 a, dim3 b) { return dim3(std::min(a.x, b.x), std::min(a.y, b.y)); }"#,
        behind: "",
        launch: r#"parent<<<2, smaller(dim3(16, @), dim3(64, 4))>>>(o);"#,
        flat: false,
    },
    Shape {
        name: "part_by_reference_beside_unseen",
        before: r#"#include "missing.h"
template <class T> void set(T& x) { x = @; }"#,
        behind: "",
        launch: r#"dim3 a(16); set(a.y); parent<<<2, a>>>(o);"#,
        flat: false,
    },
];

fn launchers(shape: &Shape, second: &str) -> Launchers {
    let program = format!(
        r#"#include <cstdio>
{}
__global__ void child(int* o, int k) {{ o[threadIdx.x] += k; }}
__global__ void parent(int* o) {{
    if (threadIdx.x == 0) child<<<1, 32>>>(o + 64 * blockIdx.x, 1);
}}
{}
int main() {{
    int* o;
    cudaMallocManaged(&o, 4096 * 4);
    {}
    cudaDeviceSynchronize();
}}
"#,
        shape.before, shape.behind, shape.launch
    );
    let mut host = Host::new();
    host.set_file("/w/a.cu".as_ref(), program.replace('@', second));
    let db = host.db();
    let file = host.file("/w/a.cu".as_ref()).unwrap();
    let parent = items(db, file)
        .functions
        .iter()
        .find(|f| f.name(db) == "parent")
        .unwrap();
    launches(db, *parent)[0].launchers
}

#[test]
fn threads_of_two_dimensions_launch() {
    let taken = SHAPES
        .iter()
        .filter(|shape| launchers(shape, "2") != Launchers::ManyThreads);
    let taken: Vec<&str> = taken.map(|shape| shape.name).collect();
    assert!(taken.is_empty(), "one thread of a block is said to launch: {taken:?}");
}

#[test]
fn one_thread_of_a_flat_block_launches() {
    let lost = SHAPES
        .iter()
        .filter(|shape| (launchers(shape, "1") == Launchers::ManyThreads) == shape.flat);
    let lost: Vec<&str> = lost.map(|shape| shape.name).collect();
    assert!(lost.is_empty(), "seen otherwise than the table says: {lost:?}");
}
