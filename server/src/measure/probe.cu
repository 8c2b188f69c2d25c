// Which GPU there is. Prints one line: name, compute capability, driver, runtime; or the error's name, what it says, driver, runtime.
// Then a line with the name of each GPU, in their order.
#include <cstdio>
#include <cuda_runtime.h>

int main() {
    int count = 0, device = 0, driver = 0, runtime = 0;
    cudaDeviceProp properties;
    // These two work without a GPU; without a driver its version is 0.
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess) {
        std::printf("error\t%s\t%s\t%d.%d\t%d.%d\n", cudaGetErrorName(error), cudaGetErrorString(error), driver / 1000,
                    driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        return 1;
    }
    std::printf("gpu\t%s\t%d%d\t%d.%d\t%d.%d\n", properties.name, properties.major, properties.minor, driver / 1000,
                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    for (int each = 0; each < count; ++each)
        if (cudaGetDeviceProperties(&properties, each) == cudaSuccess) std::printf("each\t%s\n", properties.name);
}
