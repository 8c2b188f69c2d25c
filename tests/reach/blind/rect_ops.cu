// 2-D drawing operations from a display list; every op covers its own rectangle.
#include <cassert>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef uint32_t u32;
typedef int32_t  i32;

enum OpCode : u32 { OP_NOP = 0, OP_XOR, OP_ADD, OP_MAX, OP_COUNT };

struct DrawOp {
    u32 code;
    i32 x0, y0, x1, y1;   // half open
    u32 value;
};

struct Surface {
    i32 w, h;
    u32 *planeXor, *planeAdd, *planeMax;
};

#define BW 16
#define BH 8
#define DIV_UP(a, b) (((a) + (b) - 1) / (b))

#define PIXEL_COORDS(op)                                   \
    const i32 px = (op).x0 + blockIdx.x * BW + threadIdx.x; \
    const i32 py = (op).y0 + blockIdx.y * BH + threadIdx.y; \
    if (px >= (op).x1 || py >= (op).y1) return

#define LAUNCH_OP(kern, op, surf)                                                  \
    do {                                                                           \
        dim3 grid_(DIV_UP((op).x1 - (op).x0, BW), DIV_UP((op).y1 - (op).y0, BH));   \
        kern<<<grid_, dim3(BW, BH)>>>(surf, op);                                   \
        if (cudaPeekAtLastError() != cudaSuccess) __trap();                        \
    } while (0)

__global__ void k_xor(Surface s, DrawOp op) { PIXEL_COORDS(op); atomicXor(&s.planeXor[py * s.w + px], op.value); }
__global__ void k_add(Surface s, DrawOp op) { PIXEL_COORDS(op); atomicAdd(&s.planeAdd[py * s.w + px], op.value); }
__global__ void k_max(Surface s, DrawOp op) { PIXEL_COORDS(op); atomicMax(&s.planeMax[py * s.w + px], op.value); }

__global__ void execute_list(const DrawOp *list, u32 count, Surface surf)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    DrawOp op = list[i];
    if (op.x0 < 0) op.x0 = 0;
    if (op.y0 < 0) op.y0 = 0;
    if (op.x1 > surf.w) op.x1 = surf.w;
    if (op.y1 > surf.h) op.y1 = surf.h;
    if (op.x0 >= op.x1 || op.y0 >= op.y1) return;   // clipped away

    switch (op.code) {
    case OP_XOR: LAUNCH_OP(k_xor, op, surf); break;
    case OP_ADD: LAUNCH_OP(k_add, op, surf); break;
    case OP_MAX: LAUNCH_OP(k_max, op, surf); break;
    default: break;
    }
}

static void run_host(const std::vector<DrawOp> &ops, i32 w, i32 h, std::vector<u32> &out)
{
    for (auto &op : ops)
        for (i32 y = op.y0; y < op.y1; ++y)
            for (i32 x = op.x0; x < op.x1; ++x) {
                if (x < 0 || y < 0 || x >= w || y >= h) continue;
                u32 *p = &out[y * w + x];
                if (op.code == OP_XOR) p[0] ^= op.value;
                if (op.code == OP_ADD) p[w * h] += op.value;
                if (op.code == OP_MAX && p[2 * w * h] < op.value) p[2 * w * h] = op.value;
            }
}

int main(int, char **)
{
    const i32 w = 320, h = 200;
    std::vector<DrawOp> ops(500);
    u32 st = 0xC0FFEE;
    auto rnd = [&st](u32 n) { st = st * 22695477u + 1u; return (st >> 16) % n; };
    for (auto &op : ops) {
        op.code = rnd(OP_COUNT);
        op.x0 = (i32)rnd(w + 40) - 20;
        op.y0 = (i32)rnd(h + 40) - 20;
        op.x1 = op.x0 + (i32)(rnd(20) == 0 ? rnd(200) : rnd(24));
        op.y1 = op.y0 + (i32)rnd(30);
        op.value = rnd(65536);
    }

    const size_t bytes = sizeof(u32) * w * h * 3;
    u32 *planes = nullptr;
    DrawOp *list = nullptr;
    cudaMalloc(&planes, bytes);
    cudaMemset(planes, 0, bytes);
    cudaMalloc(&list, ops.size() * sizeof(DrawOp));
    cudaMemcpy(list, ops.data(), ops.size() * sizeof(DrawOp), cudaMemcpyHostToDevice);

    Surface surf = {w, h, planes, planes + w * h, planes + 2 * w * h};
    execute_list<<<DIV_UP((u32)ops.size(), 96u), 96>>>(list, (u32)ops.size(), surf);

    std::vector<u32> got(w * h * 3), ref(w * h * 3, 0);
    cudaError_t rc = cudaMemcpy(got.data(), planes, bytes, cudaMemcpyDeviceToHost);
    if (rc != cudaSuccess) { printf("%s\n", cudaGetErrorString(rc)); return 1; }
    run_host(ops, w, h, ref);

    uint64_t fnv = 1469598103934665603ull;
    for (u32 v : got) fnv = (fnv ^ v) * 1099511628211ull;
    printf("surface hash %016" PRIx64 " %s\n", fnv, got == ref ? "equal" : "DIFFERENT");
    return got == ref ? 0 : 1;
}
