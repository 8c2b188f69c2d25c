//! What threads have in common though no name says so: bit-fields of one unit, arrays that go on into the next record, a loop's memory of its
//! last round, and flags for which a thread waits by a reference, a lambda or a function.

use super::Generator;
use crate::fuzz::ast::{Item, text};

/// A kernel that launches, with its children, and what the host does with it.
struct Common {
    /// Classes and kernels.
    device: String,
    /// The parent's launch with its memory: `parent3<<<2, 32>>>(memory)`.
    run: String,
    /// Integers of the memory.
    len: i64,
}

impl Generator {
    /// Adds a parent whose children share something.
    pub fn in_common(&mut self) {
        let n = self.site();
        let common = match self.random.below(4) {
            0 => self.bit_fields(n),
            1 => self.long_records(n),
            2 => self.kept_in_rounds(n),
            _ => self.waiting_for_a_flag(n),
        };
        self.main.push(Item::Text(common.device));
        let (x, y) = (self.random.range(1, 9), self.random.range(0, 5));
        let (run, len) = (common.run, common.len);
        let flags = match run.contains("flags") {
            true => format!(
                "int* flags;\n    cudaMalloc(&flags, {len} * sizeof(int));\n    cudaMemset(flags, 0, {len} * sizeof(int));\n    "
            ),
            false => String::new(),
        };
        let call = format!(
            "{{
    int* memory;
    cudaMallocManaged(&memory, {len} * sizeof(int));
    for (int i = 0; i < {len}; ++i) memory[i] = i * {x} + {y};
    {flags}{run};
    cudaDeviceSynchronize();
    show(\"memory\", memory, {len});
    cudaFree(memory);
    }}"
        );
        if let Some(kernel) = self.kernels.iter_mut().find(|kernel| kernel.parent) {
            kernel.host_behind.push(text(&call));
        }
    }

    /// The stream of a launch, as its configuration has it.
    fn some_stream(&mut self) -> &'static str {
        match self.random.below(3) {
            0 => ", 0, cudaStreamFireAndForget",
            _ => "",
        }
    }

    /// Two children of a thread write fields of one unit.
    fn bit_fields(&mut self, n: u32) -> Common {
        self.feature("bit-fields of one unit");
        self.ordered_sites.insert(0);
        let (a, b) = (self.random.range(1, 8), self.random.range(1, 8));
        let launcher = *self
            .random
            .pick(&["threadIdx.x == 0", "threadIdx.x == 1", "threadIdx.x % 32 == 0"]);
        let records = 64;
        Common {
            device: format!(
                "struct Bits{n} {{ unsigned a : {a}; unsigned b : {b}; unsigned c : 16; }};
__global__ void set_a{n}(Bits{n}* bits, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) bits[i].a = i + 1;
}}
__global__ void set_b{n}(Bits{n}* bits, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) bits[i].b = i + 1;
}}
__global__ void parent{n}(int* memory) {{
    Bits{n}* bits = (Bits{n}*)memory + {records} * blockIdx.x;
    if ({launcher}) {{
        set_a{n}<<<2, 32>>>(bits, {records});
        set_b{n}<<<2, 32>>>(bits, {records});
    }}
}}"
            ),
            run: format!("parent{n}<<<2, 32>>>(memory)"),
            len: 2 * records,
        }
    }

    /// Records whose last array goes on into the next one.
    fn long_records(&mut self, n: u32) -> Common {
        self.feature("array that goes on into the next record");
        self.ordered_sites.insert(0);
        let array = *self.random.pick(&["int d[]", "int d[1]"]);
        let (launches, reach) = (self.random.range(2, 6), *self.random.pick(&[4, 8, 16]));
        Common {
            device: format!(
                "struct Record{n} {{ int n; {array}; }};
__global__ void scale{n}(Record{n}* record, int v) {{ record->d[threadIdx.x] = (record->d[threadIdx.x] * 3 + v) % 1000; }}
__global__ void parent{n}(int* memory) {{
    if (threadIdx.x != 0) return;
    for (int v = 0; v < {launches}; ++v) scale{n}<<<1, {reach}>>>((Record{n}*)(memory + 2 * v), v);
}}"
            ),
            run: format!("parent{n}<<<1, 32>>>(memory)"),
            len: 64,
        }
    }

    /// A loop over the grid that goes on with what it has written in its last round.
    fn kept_in_rounds(&mut self, n: u32) -> Common {
        self.feature("loop over the grid that keeps something in memory");
        let stream = self.some_stream();
        let (blocks, threads) = (self.random.range(2, 5), *self.random.pick(&[8, 16, 32]));
        let step = blocks * threads;
        let rounds = self.random.range(2, 4);
        let own = step * (rounds + 1);
        let change = match self.random.below(3) {
            0 => format!("if (i >= {step}) out[i] += out[i - {step}] % 50;"),
            1 => format!("out[i % {step}] = (out[i % {step}] * 2 + i) % 999;"),
            _ => "out[blockIdx.x * blockDim.x + threadIdx.x] += i % 7;".to_owned(),
        };
        Common {
            device: format!(
                "__global__ void march{n}(int* out, int count) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {{ {change} }}
}}
__global__ void parent{n}(int* memory) {{
    march{n}<<<{blocks}, {threads}{stream}>>>(memory + {own} * (blockIdx.x * blockDim.x + threadIdx.x), {step} * {rounds});
}}"
            ),
            run: format!("parent{n}<<<1, 2>>>(memory)"),
            len: 2 * own,
        }
    }

    /// The first thread of a child waits for another one, and no assignment says so.
    fn waiting_for_a_flag(&mut self, n: u32) -> Common {
        self.feature("wait for a flag that no assignment shows");
        let stream = self.some_stream();
        let (before, wait) = match self.random.below(5) {
            0 => (
                String::new(),
                "int seen = 0; int& r = seen; while (!seen) r = atomicAdd(flag, 0);".to_owned(),
            ),
            1 => (
                String::new(),
                "int seen = 0; auto poll = [&] { seen = atomicAdd(flag, 0); }; while (!seen) poll();".to_owned(),
            ),
            2 => (
                format!("__device__ void poll{n}(int* flag, int& seen) {{ seen = atomicAdd(flag, 0); }}"),
                format!("int seen = 0; while (!seen) poll{n}(flag, seen);"),
            ),
            3 => (
                format!("__device__ bool set{n}(int* flag) {{ return atomicAdd(flag, 0) != 0; }}"),
                format!("for (;;) if (set{n}(flag)) break;"),
            ),
            _ => (
                String::new(),
                "int seen = 0; int* p = &seen; do { *p = atomicAdd(flag, 0); } while (seen == 0);".to_owned(),
            ),
        };
        let threads = *self.random.pick(&[33, 64]);
        let last = threads - 1;
        Common {
            device: format!(
                "{before}
__global__ void pair{n}(int* out, int* flag, int v) {{
    if (threadIdx.x == 0) {{
        {wait}
        out[1] = v;
    }} else if (threadIdx.x == {last}) {{
        out[2] = v + 1;
        __threadfence();
        atomicExch(flag, 1);
    }}
}}
__global__ void parent{n}(int* memory, int* flags) {{
    pair{n}<<<1, {threads}{stream}>>>(memory + 4 * threadIdx.x, flags + threadIdx.x, threadIdx.x);
}}"
            ),
            run: format!("parent{n}<<<1, 4>>>(memory, flags)"),
            len: 16,
        }
    }
}
