// Which GPU there is. Prints one line: name, compute capability, driver, runtime; or what is wrong.
#include <cstdio>
#include <cuda_runtime.h>

int main() {
    int count = 0, device = 0, driver = 0, runtime = 0;
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) error = cudaDriverGetVersion(&driver);
    if (error == cudaSuccess) error = cudaRuntimeGetVersion(&runtime);
    if (error != cudaSuccess) {
        std::printf("error\t%s\n", cudaGetErrorString(error));
        return 1;
    }
    std::printf("gpu\t%s\t%d%d\t%d.%d\t%d.%d\n", properties.name, properties.major, properties.minor, driver / 1000,
                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}
