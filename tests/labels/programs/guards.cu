// Ways to leave one thread, or fewer, or more.

__global__ void child(int* out, int tag) { out[threadIdx.x] = tag; }

__global__ void early(int* out, int n) {
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i > 0) return;
    child<<<1, 32>>>(out, n);
}

__global__ void two_steps(int* out, int n) {
    if (blockIdx.x != 0) return;
    if (n == 0) return;
    const bool leader = threadIdx.x == 0;
    if (!leader) return;
    child<<<1, 32>>>(out, n);
}

__global__ void by_switch(int* out) {
    switch (threadIdx.x) {
        case 0:
            child<<<1, 32>>>(out, 0);
            break;
        case 1:
        case 2:
            child<<<1, 32>>>(out, threadIdx.x);
            break;
        default:
            break;
    }
}

__global__ void plane(int* out, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int line = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= n || line >= n) return;
    if (threadIdx.x == 0) {
        child<<<1, 32>>>(out, line);
    }
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        child<<<1, 32>>>(out, blockIdx.x);
    }
    if (column == 0 && line == 0) {
        child<<<1, 32>>>(out, gridDim.y);
    }
    int linear = threadIdx.y * blockDim.x + threadIdx.x;
    if (!linear) {
        child<<<1, 32>>>(out, n);
    }
}

__global__ void last_thread(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i != n - 1) return;
    child<<<1, 32>>>(out, n);
}

__global__ void half(int* out) {
    if (threadIdx.x < blockDim.x / 2) {
        out[threadIdx.x] = 0;
    } else if (threadIdx.x == blockDim.x - 1) {
        child<<<1, 32>>>(out, blockIdx.x * 2);
    }
}

__global__ void some_blocks(int* out, int every) {
    if (blockIdx.x % every == 0) {
        child<<<1, 32>>>(out, blockIdx.x / every);
    }
}

__global__ void taken(int* out, unsigned* counter) {
    unsigned ticket = atomicAdd(counter, 1);
    if (ticket == gridDim.x * blockDim.x - 1) {
        child<<<1, 32>>>(out, ticket);
    }
}
