//! Launches in member functions, which get an aggregator as other device functions do.

use super::{refuses, rewrite};

const ID: &str = "aggregate-block";

const DETECTOR: &str = r#"struct Image { const int* pixels; int width; };
__global__ void describe(Image image, int x, int* to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < image.width) to[i] = image.pixels[x] + i;
}
class Detector {
    Image image;
    int* out;
    int* count;
public:
    Detector(Image i, int* o, int* c) : image(i), out(o), count(c) {}
    __device__ void run(int x) const {
        if (image.pixels[x] < 3) return;
        int slot = atomicAdd(count, 1);
        if (slot < 100) describe<<<(image.width + 63) / 64, 64>>>(image, x, out + slot * image.width);
    }
};
__global__ void detect(Detector d) {
    d.run(blockIdx.x * blockDim.x + threadIdx.x);
}
void start(Image image, int* out, int* count) {
    detect<<<(image.width + 127) / 128, 128>>>(Detector(image, out, count));
}
"#;

fn at_launch(text: &str) -> String {
    text.replace("describe<<<", "$0describe<<<")
}

#[test]
fn a_member_function_gets_an_aggregator() {
    let result = rewrite(ID, &at_launch(DETECTOR));
    result.has(&[
        "void run(gridfuse::Aggregator<gridfuse::PerBlock, describe_aggregated>& describes,\n",
        "d.run(describes, blockIdx.x * blockDim.x + threadIdx.x);",
        // What the object has isn't known to the kernel.
        "{image, x, out + slot * image.width});",
        "describe_aggregated> describes(arena);",
    ]);
    for (what, by) in [
        (
            "(Detector d) {\n    d.run(",
            "(Detector d) {\n    const Detector& e = d;\n    e.run(",
        ),
        (
            "(Detector d) {\n    d.run(",
            "(Detector d) {\n    Detector* e = &d;\n    e->run(",
        ),
        (
            "__global__ void detect",
            "__device__ void helper(Detector d, int x) { d.run(x); }\n__global__ void detect",
        ),
    ] {
        let text = DETECTOR.replace(what, by);
        assert_ne!(text, DETECTOR, "{what}");
        let text = match by.contains("helper") {
            true => text.replace("    d.run(blockIdx", "    helper(d, blockIdx"),
            false => text,
        };
        rewrite(ID, &at_launch(&text));
    }
}

#[test]
fn member_functions_that_stay() {
    let cannot = "`run` is a member function, which can't be given an aggregator";
    for (what, by) in [
        (
            "__device__ void run(int x) const {",
            "__device__ virtual void run(int x) const {",
        ),
        (
            "class Detector {",
            "struct Base { __device__ void go(); };\nclass Detector : public Base {",
        ),
        ("class Detector {", "template <class T>\nclass Detector {"),
        (
            "__device__ void run(int x) const {",
            "template <class T>\n    __device__ void run(T x) const {",
        ),
        (
            "class Detector {",
            "struct Other { __device__ void run(int x) const {} };\nclass Detector {",
        ),
        ("public:", "public:\n    __device__ void run(long x) const {}"),
        (
            "__device__ void run(int x) const {",
            "friend class Other;\n    __device__ void run(int x) const final {",
        ),
    ] {
        let text = DETECTOR.replacen(what, by, 1);
        assert_ne!(text, DETECTOR, "{what}");
        refuses(ID, &at_launch(&text), cannot);
    }
    // A type or a number of the class's own has no name outside.
    for (own, argument) in [
        ("using Value = int;", "Value"),
        ("static constexpr int kBlock = 64;", "kBlock"),
    ] {
        let parameter = if argument == "Value" { "class T" } else { "int N" };
        let text = DETECTOR
            .replace(
                "__global__ void describe",
                &format!("template <{parameter}> __global__ void describe"),
            )
            .replace("describe<<<", &format!("describe<{argument}><<<"))
            .replace("public:", &format!("{own}\npublic:"));
        refuses(ID, &text.replace("describe<", "$0describe<"), cannot);
    }
    let operator = DETECTOR
        .replace("void run(", "void operator()(")
        .replace("d.run(", "d(");
    refuses(ID, &at_launch(&operator), "`operator()` is a member function");
    let apart = DETECTOR
        .replace(
            "__device__ void run(int x) const {",
            "__device__ void run(int x) const;\n};\n__device__ void Detector::run(int x) const {",
        )
        .replace("    }\n};\n__global__ void detect", "    }\n__global__ void detect");
    refuses(ID, &at_launch(&apart), cannot);
    let host = DETECTOR.replace("__device__ void run", "__host__ __device__ void run");
    refuses(ID, &at_launch(&host), "is a function of the host, too");
    // Whose function is called isn't known.
    for (what, by) in [
        ("    d.run(", "    auto e = d;\n    e.run("),
        ("    d.run(", "    auto f = &Detector::run;\n    (d.*f)("),
        (
            "(Detector d) {\n    d.run(",
            "(Detector d) {\n    Detector all[1] = {d};\n    all[0].run(",
        ),
        (
            "__global__ void detect",
            "#define DO(d, what, x) d.r##what(x)\n__global__ void go(Detector d) { DO(d, un, 1); }\n__global__ void detect",
        ),
        (
            "__global__ void detect",
            "__global__ void go(vision::Detector d) { d.run(1); }\n__global__ void detect",
        ),
    ] {
        let text = DETECTOR.replace(what, by);
        assert_ne!(text, DETECTOR, "{what}");
        refuses(
            ID,
            &at_launch(&text),
            "`run` is mentioned where it isn't called: some calls may be unseen",
        );
    }
}
