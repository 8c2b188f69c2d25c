// expect: invalid-address
#include "selftest.hpp"
__attribute__((section("emu_globals"))) int table[3];
static const ::emu::RegisterGlobal emu_reg_table{&table, sizeof table, "table", ::emu::Space::Constant};
__global__ void k() { table[threadIdx.x] = 1; }
int main() {
    LAUNCH(k, 1, 3)();
    cudaDeviceSynchronize();
}
