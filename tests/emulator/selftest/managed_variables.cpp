// expect: pass
// Variables at namespace scope, and copies to and from them.
#include "selftest.hpp"
__attribute__((section("emu_globals"))) int counter;
DEVICE_VARIABLE(counter);
__attribute__((section("emu_globals"))) float factors[3];
static const ::emu::RegisterGlobal emu_reg_factors{&factors, sizeof factors, "factors", ::emu::Space::Constant};
__global__ void k() { atomicAdd(&counter, int(factors[threadIdx.x])); }
int main() {
    const float values[3] = {1, 2, 3};
    if (cudaMemcpyToSymbol(factors, values, sizeof values) != cudaSuccess) return 2;
    LAUNCH(k, 2, 3)();
    int result = 0;
    if (cudaMemcpyFromSymbol(&result, counter, sizeof result) != cudaSuccess) return 3;
    return result == 12 ? 0 : 1;
}
