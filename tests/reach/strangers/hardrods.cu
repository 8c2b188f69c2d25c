#include <cassert>
#include <cstddef>
#include <iostream>
#include <vector>

namespace Mechanics {
    template<class ScalarType>
    struct Phase {
        ScalarType* pos;
        ScalarType* vel;
        size_t numParticle;
    };

    namespace Internal {
        constexpr unsigned int WarpSize = 32;

        template<class ScalarType>
        __global__ void move_kernel(Phase<ScalarType> phase) {
            const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < phase.numParticle)
                phase.pos[i] += phase.vel[i];
        }

        // equal masses exchange their velocities; even and odd pairs in turn
        template<class ScalarType>
        __global__ void collide_kernel(Phase<ScalarType> phase, size_t parity, unsigned int* numCollision) {
            const size_t i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + parity;
            if (i + 1 >= phase.numParticle)
                return;
            const bool isClose = phase.pos[i + 1] - phase.pos[i] < ScalarType(2);
            if (isClose && phase.vel[i] > phase.vel[i + 1]) {
                const ScalarType temp = phase.vel[i];
                phase.vel[i] = phase.vel[i + 1];
                phase.vel[i + 1] = temp;
                atomicAdd(numCollision, 1U);
            }
        }

        template<class ScalarType>
        __global__ void removeDrift_kernel(Phase<ScalarType> phase) {
            __shared__ ScalarType buffer[64];
            ScalarType sum(0);
            for (size_t i = threadIdx.x; i < phase.numParticle; i += 64)
                sum += phase.vel[i];
            buffer[threadIdx.x] = sum;
            __syncthreads();
            for (int i = 32; i != 0; i /= 2) {
                if (threadIdx.x < i)
                    buffer[threadIdx.x] += buffer[threadIdx.x + i];
                __syncthreads();
            }
            const ScalarType drift = buffer[0] / ScalarType(phase.numParticle);
            for (size_t i = threadIdx.x; i < phase.numParticle; i += 64)
                phase.vel[i] -= drift;
        }

        template<class ScalarType>
        __global__ void step_kernel(Phase<ScalarType> phase, unsigned int* numCollision, size_t maxHandleNum, size_t handleNum) {
            const bool isDone = handleNum != 0 && *numCollision == 0;
            if (isDone || handleNum == maxHandleNum) {
                removeDrift_kernel<ScalarType><<<1, 64, 0, cudaStreamTailLaunch>>>(phase);
            }
            else {
                *numCollision = 0;
                const unsigned int numBlock = (phase.numParticle + WarpSize - 1) / WarpSize;
                move_kernel<ScalarType><<<numBlock, WarpSize, 0>>>(phase);
                {
                    const unsigned int numPair = (phase.numParticle + 1) / 2;
                    const unsigned int numPairBlock = (numPair + WarpSize - 1) / WarpSize;
                    collide_kernel<ScalarType><<<numPairBlock, WarpSize, 0>>>(phase, 0, numCollision);
                    collide_kernel<ScalarType><<<numPairBlock, WarpSize, 0>>>(phase, 1, numCollision);
                }
                step_kernel<ScalarType><<<1, 1, 0, cudaStreamTailLaunch>>>(phase, numCollision, maxHandleNum, handleNum + 1);
            }
        }
    }
}

int main() {
    using ScalarType = int;
    const size_t numParticle = 777;
    std::vector<ScalarType> pos(numParticle), vel(numParticle);
    for (size_t i = 0; i < numParticle; ++i) {
        pos[i] = ScalarType(i * 12);
        vel[i] = ScalarType((i * 37) % 9) - 4;
    }
    Mechanics::Phase<ScalarType> phase;
    phase.numParticle = numParticle;
    unsigned int* numCollision;
    cudaMalloc(&phase.pos, numParticle * sizeof(ScalarType));
    cudaMalloc(&phase.vel, numParticle * sizeof(ScalarType));
    cudaMalloc(&numCollision, sizeof(unsigned int));
    cudaMemcpy(phase.pos, pos.data(), numParticle * sizeof(ScalarType), cudaMemcpyHostToDevice);
    cudaMemcpy(phase.vel, vel.data(), numParticle * sizeof(ScalarType), cudaMemcpyHostToDevice);
    cudaMemset(numCollision, 0, sizeof(unsigned int));
    Mechanics::Internal::step_kernel<ScalarType><<<1, 1>>>(phase, numCollision, 60, 0);
    const auto status = cudaDeviceSynchronize();
    assert(status == cudaSuccess);
    cudaMemcpy(pos.data(), phase.pos, numParticle * sizeof(ScalarType), cudaMemcpyDeviceToHost);
    cudaMemcpy(vel.data(), phase.vel, numParticle * sizeof(ScalarType), cudaMemcpyDeviceToHost);
    long long sum = 0;
    for (size_t i = 0; i < numParticle; ++i)
        sum += (long long)(pos[i]) * (i % 7 + 1) + vel[i] * 1000;
    std::cout << "checksum " << sum << (status == cudaSuccess ? "" : " failed") << '\n';
    return 0;
}
