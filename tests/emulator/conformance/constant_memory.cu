// __constant__ variables: initialised, set from the host, in parts, from a stream.
#include "conformance.cuh"

struct Settings {
    float scale;
    int offset;
    int powers[4];
};

__constant__ int primes[5] = {2, 3, 5, 7, 11};
__constant__ Settings settings;
__constant__ double weights[3];

__global__ void use(double* out) {
    int t = threadIdx.x;
    out[t] = primes[t % 5] * settings.scale + settings.offset + settings.powers[t % 4] + weights[t % 3];
}

int main() {
    Array<double> out(12);
    use<<<1, 12>>>(out);
    out.show("initial");
    Settings values = {0.5f, 100, {1, 10, 100, 1000}};
    CHECK(cudaMemcpyToSymbol(settings, &values, sizeof values));
    const double two[2] = {0.25, 0.125};
    CHECK(cudaMemcpyToSymbol(weights, two, sizeof two, sizeof(double)));
    use<<<1, 12>>>(out);
    out.show("set");
    const int thirteen = 13;
    CHECK(cudaMemcpyToSymbolAsync(primes, &thirteen, sizeof(int), 4 * sizeof(int), cudaMemcpyHostToDevice, 0));
    use<<<1, 12>>>(out);
    out.show("later");
    int back[5];
    CHECK(cudaMemcpyFromSymbol(back, primes, sizeof back));
    show("primes", back, 5);
}
