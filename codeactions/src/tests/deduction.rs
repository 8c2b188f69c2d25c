//! Template arguments that C++ deduces, and that a rewrite has to write down.

use super::{refuses, rewrite};

const ID: &str = "aggregate-block";

/// A kernel that gets a box, and a parent; `parameters`: those of the child; `before`: what the parent does; `launch`: what it launches.
fn program(classes: &str, template: &str, parameters: &str, before: &str, launch: &str) -> String {
    format!(
        r#"{classes}
template <{template}>
__global__ void child({parameters}) {{ out[blockIdx.x] = count; }}
template <class K>
__global__ void parent(Box<K, 4> given, const K* keys, int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    {before}
    if (count > 0) $0{launch};
}}
void run(Box<float, 4> box, const float* keys, int* out, const int* row, int n) {{
    parent<<<(n + 127) / 128, 128>>>(box, keys, out, row, n);
}}
"#
    )
}

const BOX: &str = "template <class K, int W> struct Box { K* slots; const K* bounds; int size; };";

#[test]
fn class_templates() {
    for (template, parameters, before, launch, written) in [
        (
            "class K, int W",
            "Box<K, W> box, int* out, int count",
            "",
            "child<<<count, 32>>>(given, out, count)",
            "<K, 4>",
        ),
        (
            "int W, class T",
            "const Box<T, W> box, int* out, int count",
            "",
            "child<<<count, 32>>>(given, out, count)",
            "<4, K>",
        ),
        (
            "class T, int W",
            "Box<T, W> box, int* out, int count",
            "const Box<K, 8> own{given.slots, keys, count};",
            "child<<<count, 32>>>(own, out, count)",
            "<K, 8>",
        ),
        (
            "class T, int W",
            "Box<T, W>* box, int* out, int count",
            "Box<K, 8>* own = nullptr;",
            "child<<<count, 32>>>(own, out, count)",
            "<K, 8>",
        ),
        (
            "class T, int W",
            "Box<const T*, W> box, int* out, int count",
            "Box<const K*, 2> own{};",
            "child<<<count, 32>>>(own, out, count)",
            "<K, 2>",
        ),
        // Behind aliases, and `auto`.
        (
            "class T, int W",
            "Box<T, W> box, int* out, int count",
            "using Own = Box<K, 16>;\n    Own own{given.slots, keys, count};",
            "child<<<count, 32>>>(own, out, count)",
            "<K, 16>",
        ),
        (
            "class T, int W",
            "Box<T, W> box, int* out, int count",
            "Ints own{};",
            "child<<<count, 32>>>(own, out, count)",
            "<int, 2>",
        ),
        (
            "class T, int W",
            "Box<T, W> box, int* out, int count",
            "auto own = given;",
            "child<<<count, 32>>>(own, out, count)",
            "<K, 4>",
        ),
        // Whole.
        (
            "class B",
            "B box, int* out, int count",
            "",
            "child<<<count, 32>>>(given, out, count)",
            "<Box<K, 4>>",
        ),
    ] {
        let classes = format!("{BOX}\nusing Ints = Box<int, 2>;");
        let text = program(&classes, template, parameters, before, launch);
        rewrite(ID, &text).has(&[&format!("child_aggregated{written}>")]);
    }
}

#[test]
fn pointers_and_values() {
    let child = |ty: &str| format!("{ty}, int* out, int count");
    for (parameter, argument, written) in [
        ("const T* p", "given.slots + begin", "K"),
        ("const T* p", "given.bounds", "K"),
        ("const T* p", "&keys[begin]", "K"),
        ("const T* p", "(keys + 1) + begin", "K"),
        ("const T* p", "begin + keys", "K"),
        ("T* p", "keys + begin", "const K"),
        ("T* p", "&out[begin]", "int"),
        ("T* p", "row + threadIdx.x", "const int"),
        ("T p", "keys", "const K*"),
        ("T p", "out + begin", "int*"),
        ("T p", "keys[begin]", "K"),
        ("T p", "given.size", "int"),
        ("T p", "(short)begin", "short"),
        ("T p", "static_cast<unsigned>(begin)", "unsigned"),
    ] {
        let launch = format!("child<<<count, 32>>>({argument}, out, count)");
        let text = program(BOX, "class T", &child(parameter), "", &launch);
        rewrite(ID, &text).has(&[&format!("child_aggregated<{written}>>")]);
    }
}

#[test]
fn some_are_written() {
    for (template, launch, written) in [
        ("int S, class T", "child<2><<<count, 32>>>(keys, out, count)", "<2, K>"),
        (
            "int S, class T, int R = 3",
            "child<2><<<count, 32>>>(keys, out, count)",
            "<2, K, 3>",
        ),
        (
            "class T, class A = T",
            "child<<<count, 32>>>(keys, out, count)",
            "<K, K>",
        ),
        (
            "class T, class A = double",
            "child<K><<<count, 32>>>(keys, out, count)",
            "<K, double>",
        ),
        (
            "class T, bool B = false",
            "child<<<count, 32>>>(keys, out, count)",
            "<K, false>",
        ),
    ] {
        let text = program(BOX, template, "const T* p, int* out, int count", "", launch);
        rewrite(ID, &text).has(&[&format!("child_aggregated{written}>")]);
    }
    // A default that isn't written where the kernel is, or that is more than a number or a type.
    for template in [
        "class T, int R = sizeof(T)",
        "class T, class A = Box<T, 1>",
        "class T, int R = SIZE",
    ] {
        let classes = format!("constexpr int SIZE = 3;\n{BOX}");
        let text = program(
            &classes,
            template,
            "const T* p, int* out, int count",
            "",
            "child<<<count, 32>>>(keys, out, count)",
        );
        refuses(ID, &text, "are deduced");
    }
}

#[test]
fn what_is_deduced_in_other_ways() {
    let parameters = "Box<T, W> box, int* out, int count";
    let launch = "child<<<count, 32>>>(own, out, count)";
    let with = |more: &str| format!("{BOX}\n{more}");
    for (classes, template, parameters, before, launch) in [
        // Of a base.
        (
            with("template <class K> struct Part : Box<K, 4> {};"),
            "class T, int W",
            parameters,
            "Part<K> own{};",
            launch,
        ),
        (
            with("struct Part : Box<float, 4> {};"),
            "class T, int W",
            parameters,
            "Part own{};",
            launch,
        ),
        // Not deduced at all, so it has to come from elsewhere.
        (
            with("template <class K> struct Trait { using type = K; };"),
            "class T",
            "typename Trait<T>::type box, T* q, int* out, int count",
            "auto own = count, *p = &own;",
            "child<<<count, 32>>>(own, p, out, count)",
        ),
        // An alias of a template is what it stands for.
        (
            with("template <class K> using Wide = Box<K, 8>;"),
            "class T, int W",
            parameters,
            "Wide<K> own{};",
            launch,
        ),
        // An array, a pointer to a pointer, a type of the function's own, and what isn't written down.
        (
            with(""),
            "class T",
            "T box, int* out, int count",
            "int own[2][2] = {};",
            launch,
        ),
        (
            with(""),
            "class T",
            "T* box, int* out, int count",
            "int** own = nullptr;",
            launch,
        ),
        (
            with(""),
            "class T",
            "T box, int* out, int count",
            "struct Local { int x; }; Local own{};",
            launch,
        ),
        (
            with(""),
            "class T",
            "T box, int* out, int count",
            "",
            "child<<<count, 32>>>(begin * 2u, out, count)",
        ),
        (
            with(""),
            "class T",
            "T box, int* out, int count",
            "",
            "child<<<count, 32>>>('a', out, count)",
        ),
        // Which number's type it is the class says.
        (with(""), "class T, auto W", parameters, "Box<K, 8> own{};", launch),
        // Two classes of that name.
        (
            with("namespace a { template <class K, int W> struct Box { K* slots; }; }"),
            "class T, int W",
            parameters,
            "Box<K, 8> own{};",
            launch,
        ),
        (
            with("template <> struct Box<int, 4> { int* slots; };"),
            "class T, int W",
            parameters,
            "Box<K, 8> own{};",
            launch,
        ),
        // An operator of the user's.
        (
            with("struct Big { int n; };\n__device__ int operator+(const float* p, Big b) { return b.n; }"),
            "class T",
            "T box, int* out, int count",
            "Big own{count};",
            "child<<<count, 32>>>(keys + own, out, count)",
        ),
    ] {
        let text = program(&classes, template, parameters, before, launch);
        let reasons = super::rewrite_files(ID, &[("a.cu", &text)], &[])
            .err()
            .unwrap_or_default();
        let deduced = |reason: &String| reason.contains("are deduced") || reason.contains("Trait<T>::type");
        assert!(reasons.iter().any(deduced), "{text}\n{reasons:#?}");
    }
}
