//! Loops of grids whose loads take for granted that nobody writes, and what the template arguments of such loops leave out.

use super::{refuses, rewrite};

const ID: &str = "persistent-loop";

const RANK: &str = r#"struct Graph { int n; const int* first; const float* weight; };
struct State { float* change; int* rounds; };
__global__ void rank(Graph g, State st, float* cur, float* next, int round) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < g.n) {
        next[v] = cur[__ldg(&g.first[v])] * __ldg(g.weight + v);
        atomicAdd(st.change, next[v] - cur[v]);
    }
    if (v == 0 && round < 9) {
        *st.rounds = round + 1;
        rank<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(g, st, next, cur, round + 1);
    }
}
int main() {
    int n = 1000;
    int* first;
    float *weight, *a, *b;
    cudaMalloc(&first, 4 * n);
    cudaMalloc(&weight, 4 * n);
    cudaMalloc(&a, 4 * n);
    cudaMalloc(&b, 4 * n);
    Graph g{n, first, weight};
    State st{nullptr, nullptr};
    cudaMalloc(&st.change, 4);
    cudaMalloc(&st.rounds, 4);
    rank<<<(n + 127) / 128, 128>>>(g, st, a, b, 0);
    cudaDeviceSynchronize();
}
"#;

#[test]
fn loads_of_what_no_iteration_writes() {
    let result = rewrite(ID, RANK);
    assert_eq!(result.assumes, Vec::<String>::new());
    result.has(&["__ldg(&g.first[v])", "gridfuse::launch_loop<rank_loop>("]);
    for (what, by) in [
        ("__ldg(g.weight + v)", "__ldg(&cur[v])"),
        ("(g, st, a, b, 0);", "(g, st, weight, b, 0);"),
        ("(g, st, a, b, 0);", "(g, st, a, weight, 0);"),
        ("Graph g{n, first, weight};", "Graph g{n, first, a};"),
        ("Graph g{n, first, weight};", "Graph g{n, first, weight}; g.weight = b;"),
        ("State st{nullptr, nullptr};", "State st{weight, nullptr};"),
        ("    cudaMalloc(&st.rounds, 4);", "    st.rounds = first;"),
        ("*st.rounds = round + 1;", "*(int*)(g.first + 3) = round + 1;"),
        (
            "*st.rounds = round + 1;",
            "float* w = const_cast<float*>(g.weight); w[0] = 1;",
        ),
        (
            "    cudaDeviceSynchronize();",
            "    rank<<<1, 128>>>(g, st, b, weight, 0);\n    cudaDeviceSynchronize();",
        ),
    ] {
        let text = RANK.replace(what, by);
        assert_ne!(text, RANK, "{what}");
        refuses(ID, &text, "makes read-only loads by __ldg()");
    }
    // In a function, and after what isn't known any more.
    let called = RANK.replace("__ldg(g.weight + v)", "load(g.weight, v)").replace(
        "__global__ void rank",
        "__device__ float load(const float* p, int i) { return __ldg(p + i); }\n__global__ void rank",
    );
    assert_eq!(rewrite(ID, &called).assumes, Vec::<String>::new());
    refuses(
        ID,
        &called.replace("load(g.weight, v)", "load(cur, v)"),
        "makes read-only loads",
    );
}

/// What the host does with an object may set a field of it by no name that can be followed.
#[test]
fn what_may_set_a_field_of_an_object() {
    let launch = "    rank<<<(n + 127) / 128, 128>>>(g, st, a, b, 0);";
    for (classes, code) in [
        // The first field has the object's own address.
        ("", "cudaMemcpy(&g.n, a, sizeof(Graph), cudaMemcpyDeviceToHost);"),
        ("", "const float* Graph::*field = &Graph::weight; g.*field = b;"),
        ("", "const float* Graph::*field = &Graph::weight; (&g)->*field = b;"),
        ("", "auto& [count, begin, heavy] = g; heavy = b;"),
        ("struct Box { PRef p; };\n", "Box box{g.weight}; box.p = b;"),
        (
            "struct Box { RefOf<const float*> p; };\n",
            "Box box{g.weight}; box.p = b;",
        ),
        (
            "template <class T> struct Box { T p; };\n",
            "Box<const float*&> box{g.weight}; box.p = b;",
        ),
        ("struct Sink { Sink(Graph& g); };\n", "Sink sink = g;"),
        ("struct Sink { Sink(Graph& g); };\nvoid use(Sink sink);\n", "use(g);"),
        (
            "struct Sink { Sink(Graph& g); };\n__global__ void keep(Sink sink) {}\n",
            "keep<<<1, 1>>>(g);",
        ),
        ("struct Sink { void operator=(Graph& g); };\n", "Sink sink; sink = g;"),
        ("struct Sink { void operator+=(Graph& g); };\n", "Sink sink; sink += g;"),
        (
            "struct Sink { void operator=(const float*& p); };\n",
            "Sink sink; sink = g.weight;",
        ),
        (
            "struct Sink { void operator+=(const float*& p); };\n",
            "Sink sink; sink += g.weight;",
        ),
        (
            "struct Sink { void operator,(const float*& p); };\n",
            "Sink sink; sink, g.weight;",
        ),
        (
            "struct Sink { int operator[](const float*& p); };\n",
            "Sink sink; sink[g.weight];",
        ),
    ] {
        let front = "using PRef = const float*&;\ntemplate <class T> using RefOf = T&;\n";
        let text = RANK.replace(launch, &format!("    {code}\n{launch}"));
        let text = text.replace("struct State", &format!("{front}{classes}struct State"));
        let text = text.replace(
            "Graph g{n, first, weight};",
            "Graph g; g.n = n; g.first = first; g.weight = weight;",
        );
        refuses(ID, &text, "makes read-only loads by __ldg()");
    }
    // Another file's definition may be meant.
    for (head, known) in [("static ", true), ("__attribute__((weak)) ", false)] {
        let allocates = format!("{head}int* device(size_t n) {{ int* p; cudaMalloc(&p, n); return p; }}\nstruct State");
        let text = RANK
            .replace("struct State", &allocates)
            .replace("    cudaMalloc(&first, 4 * n);", "    first = device(4 * n);");
        match known {
            true => assert_eq!(rewrite(ID, &text).assumes, Vec::<String>::new()),
            false => refuses(ID, &text, "makes read-only loads by __ldg()"),
        }
    }
    let by_itself = RANK.replace(
        "Graph g{n, first, weight};",
        "Graph g; g.n = n; g.first = first; g.weight = weight;",
    );
    assert_eq!(rewrite(ID, &by_itself).assumes, Vec::<String>::new());
    // What may be allocated for an object's own fields doesn't hide what the object is made of, or what else sets them.
    let own = "if (n < 9) { cudaMalloc((void**)&g.first, 4 * n); cudaMalloc((void**)&g.weight, 4 * n); }";
    let begins = |object: &str, own: &str| {
        let text = RANK.replace("Graph g{n, first, weight};", object);
        text.replace(launch, &format!("    {own}\n{launch}"))
    };
    let all = "Graph all[] = {{n, first, weight}, {n, first, weight}};";
    let known = rewrite(ID, &begins("Graph g; g.n = n;", own));
    assert_eq!(known.assumes, Vec::<String>::new());
    // A list of one object is a copy of it.
    for list in [
        "Graph g{all[0]};",
        "Graph g = {all[1]};",
        "Graph g; g = {all[0]};",
        "Graph* p = all; Graph g{*p};",
    ] {
        let text = begins(&format!("{all} {list}"), own);
        refuses(ID, &text, "makes read-only loads by __ldg()");
    }
    // One of several, of which each may hold anything.
    let each = begins(all, &format!("for (Graph g : all) {{ {own}"));
    let each = each.replace(launch, &format!("{launch}\n    }}"));
    refuses(ID, &each, "makes read-only loads by __ldg()");
    // A pointer to a member, through which any of them is set.
    let other = "float* other = a; const float* Graph::*field = &Graph::weight;";
    for set in ["g.*field = other;", "(g).*field = other;"] {
        let text = begins("Graph g; g.n = n;", &format!("{own} {other} {set}"));
        refuses(ID, &text, "makes read-only loads by __ldg()");
    }
}

/// Two kernels in turn, the first of which has a default template argument in its declaration.
const ROUNDS: &str = r#"template <typename T, int B = 128>
__global__ void turn(T* data, int round);
template <typename T, int B>
__global__ void decide(T* data, int round) {
    if (round < 5) turn<T, B><<<1, 1, 0, cudaStreamTailLaunch>>>(data, round + 1);
}
template <typename T, int B>
__global__ void work(T* data) { data[threadIdx.x] += 1; }
template <typename T, int B>
__global__ void turn(T* data, int round) {
    work<T, B><<<1, B>>>(data);
    decide<T, B><<<1, 1, 0, cudaStreamTailLaunch>>>(data, round);
}
void run(float* data) { turn<float><<<1, 1>>>(data, 0); }
"#;

#[test]
fn template_arguments_that_a_declaration_gives() {
    let at = ROUNDS.replace("work<T, B><<<", "$0work<T, B><<<");
    rewrite(ID, &at).has(&["turn_loop<float, 128>"]);
    for (what, by) in [
        // Another template, or another number.
        (
            "template <typename T, int B = 128>",
            "template <typename T, unsigned B = 128>",
        ),
        ("template <typename T, int B = 128>", "template <typename T, int B>"),
        (
            "template <typename T, int B = 128>",
            "template <typename T, int B = sizeof(T)>",
        ),
        (
            "template <typename T, int B = 128>",
            "template <typename A, int B = 128>",
        ),
    ] {
        let text = at.replacen(what, by, 1);
        assert_ne!(text, at, "{what}");
        refuses(ID, &text, "");
    }
}

/// A kernel that has a class of a class template among its parameters.
const NESTED: &str = r#"template <int D>
struct Means {
    struct Data { float* points; float* centers; int* rounds; int n; };
};
template <int D>
__global__ void assign(typename Means<D>::Data d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < d.n) d.points[i] += d.centers[i % D];
    if (i == 0 && *d.rounds < 5) {
        *d.rounds += 1;
        assign<D><<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(d);
    }
}
void run(float* points, float* centers, int* rounds) {
    Means<3>::Data d{points, centers, rounds, 100};
    assign<3><<<1, 128>>>(d);
}
"#;

#[test]
fn classes_of_class_templates() {
    let several = NESTED.replace("<<<1, 128>>>", "<<<2, 128>>>");
    rewrite(ID, &several).has(&["typename Means<D>::Data d"]);
    let alias = several.replace(
        "struct Data { float* points; float* centers; int* rounds; int n; };",
        "using Data = Unseen<D>;",
    );
    refuses(ID, &alias, "has the type `Means<D>::Data`, which isn't known");
    let two = format!("struct Data {{ int x; Data(const Data&); }};\n{several}");
    refuses(ID, &two, "has the type `Means<D>::Data`, which isn't known");
}
