//! Objects that `const` member functions are called for, or that are taken by reference to `const`.

use super::{refuses, rewrite, with_child};

const CHANGES: &str = "may change its parameter `shape`";

fn program(shape: &str, value: &str) -> String {
    let child = format!(
        r#"{shape}
__global__ void child(int* out, int begin, int count, Shape shape) {{
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (threadIdx.x < count) atomicAdd(&total, {value});
    __syncthreads();
    if (threadIdx.x == 0) out[begin] = total;
}}
"#
    );
    with_child(
        &child,
        "if (count > 0) child<<<1, 64>>>(out, begin, count, Shape{3, v});",
    )
}

#[test]
fn constant_objects_are_left_alone() {
    for (shape, value) in [
        (
            "struct Shape { int a, b; __device__ int at(int i) const { return a * i + b; } };",
            "shape.at(threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; __device__ int at(int i) const { return one(i) + b; } __device__ int one(int i) const { return max(a, i); } };",
            "shape.at(threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; };\n__device__ int weigh(const Shape& s, int i) { return s.a * i + s.b; }",
            "weigh(shape, threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; };\ntemplate <class S> __device__ int weigh(S const& s, int i) { return s.a * i; }",
            "weigh(shape, threadIdx.x)",
        ),
    ] {
        rewrite("threshold", &program(shape, value));
    }
}

#[test]
fn what_may_change_is_refused() {
    for (shape, value) in [
        (
            "struct Shape { int a, b; __device__ int at(int i) { return a += i; } };",
            "shape.at(threadIdx.x)",
        ),
        (
            "struct Shape { int a; mutable int b; __device__ int at(int i) const { return b += i; } };",
            "shape.at(threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; __device__ int at(int i) const { return ((Shape*)this)->a += i; } };",
            "shape.at(threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; };\n__device__ int weigh(Shape& s, int i) { return s.a += i; }",
            "weigh(shape, threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; };\n__device__ int weigh(const Shape& s, int i) { return const_cast<Shape&>(s).a += i; }",
            "weigh(shape, threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; };\nstruct View { Shape& s; __device__ View(Shape& s) : s(s) {} };\n__device__ int weigh(const View& v, int i) { return v.s.a += i; }",
            "weigh(shape, threadIdx.x)",
        ),
        (
            "struct Shape { int a, b; };\ntemplate <class S> __device__ int weigh(const S& s, int i) { return s.a += i; }",
            "weigh<Shape&>(shape, threadIdx.x)",
        ),
    ] {
        refuses("threshold", &program(shape, value), CHANGES);
    }
    let hidden = "struct Shape { int a, b; __device__ int at(int i) const { return hidden(a, i); } };";
    refuses(
        "threshold",
        &program(hidden, "shape.at(threadIdx.x)"),
        "no definition is in sight",
    );
}
