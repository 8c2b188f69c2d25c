// Special registers of PTX: %laneid and the %lanemask family.
#include "conformance.cuh"

__global__ void registers(unsigned* out) {
    unsigned lane, lt, le, gt, ge, eq;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    unsigned* mine = out + 6 * (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    mine[0] = lane;
    mine[1] = lt;
    mine[2] = le;
    mine[3] = gt;
    mine[4] = ge;
    mine[5] = eq;
}

int main() {
    Array<unsigned> out(3 * 5 * 4 * 6);
    registers<<<1, dim3(3, 5, 4)>>>(out);
    for (int thread : {0, 1, 31, 32, 59}) show("thread", out.read() + 6 * thread, 6);
    out.show_digest("all");
}
