// Conway's Game of Life, on a torus, played until nothing moves any more (or a
// blinker is all that is left) or until the generation limit.
#include <iostream>
#include <vector>
#include <cstdlib>

constexpr int SIZE = 192;
constexpr int TILE = 16;
constexpr int LIMIT = 400;

struct Game {
    unsigned char *board[3];      // now, before, before that
    int *moved1;                  // cells differing from one generation ago
    int *moved2;                  // ... and from two generations ago
    int *generation;
    cudaError_t *err;
};

__global__ void advance(const unsigned char *now, const unsigned char *before, unsigned char *out,
                        int *moved1, int *moved2)
{
    __shared__ unsigned char t[TILE + 2][TILE + 2];
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

    // halo
    for (int k = threadIdx.y * TILE + threadIdx.x; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
        int gx = (blockIdx.x * TILE + k % (TILE + 2) + SIZE - 1) % SIZE;
        int gy = (blockIdx.y * TILE + k / (TILE + 2) + SIZE - 1) % SIZE;
        t[k / (TILE + 2)][k % (TILE + 2)] = now[gy * SIZE + gx];
    }
    __syncthreads();

    int n = 0;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            if (dx != 1 || dy != 1) n += t[threadIdx.y + dy][threadIdx.x + dx];
    unsigned char alive = t[threadIdx.y + 1][threadIdx.x + 1];
    unsigned char next = (n == 3 || (n == 2 && alive)) ? 1 : 0;
    out[y * SIZE + x] = next;

    // __syncthreads_count is a cheap block reduction
    int d1 = __syncthreads_count(next != alive);
    int d2 = __syncthreads_count(next != before[y * SIZE + x]);
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        if (d1) atomicAdd(moved1, d1);
        if (d2) atomicAdd(moved2, d2);
    }
}

__global__ void play(Game g)
{
    int gen = *g.generation;
    if (gen >= LIMIT) return;
    if (gen >= 2 && (*g.moved1 == 0 || *g.moved2 == 0)) return;

    *g.generation = gen + 1;
    *g.moved1 = 0;
    *g.moved2 = 0;
    advance<<<dim3(SIZE / TILE, SIZE / TILE), dim3(TILE, TILE), 0, cudaStreamTailLaunch>>>(
        g.board[0], g.board[1], g.board[2], g.moved1, g.moved2);

    Game nextTurn = g;
    nextTurn.board[0] = g.board[2];
    nextTurn.board[1] = g.board[0];
    nextTurn.board[2] = g.board[1];
    play<<<1, 1, 0, cudaStreamTailLaunch>>>(nextTurn);
    *g.err = cudaGetLastError();
}

static int stepCpu(const std::vector<unsigned char> &a, std::vector<unsigned char> &b)
{
    int moved = 0;
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            int n = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    if (dx || dy) n += a[(y + dy + SIZE) % SIZE * SIZE + (x + dx + SIZE) % SIZE];
            b[y * SIZE + x] = n == 3 || (n == 2 && a[y * SIZE + x]);
            moved += b[y * SIZE + x] != a[y * SIZE + x];
        }
    return moved;
}

int main()
{
    std::vector<unsigned char> now(SIZE * SIZE, 0), before(SIZE * SIZE, 0), next(SIZE * SIZE, 0);
    srand(1970);
    for (int i = 0; i < SIZE * SIZE; i++) now[i] = rand() % 100 < 9;

    Game g;
    int *ints;
    for (int i = 0; i < 3; i++) {
        cudaMalloc(&g.board[i], SIZE * SIZE);
        cudaMemset(g.board[i], 0, SIZE * SIZE);
    }
    cudaMalloc(&ints, 3 * sizeof(int));
    cudaMemset(ints, 0, 3 * sizeof(int));
    cudaMalloc(&g.err, sizeof(cudaError_t));
    cudaMemset(g.err, 0, sizeof(cudaError_t));
    g.moved1 = ints;
    g.moved2 = ints + 1;
    g.generation = ints + 2;
    cudaMemcpy(g.board[0], now.data(), SIZE * SIZE, cudaMemcpyHostToDevice);

    play<<<1, 1>>>(g);
    cudaError_t e = cudaDeviceSynchronize();
    cudaError_t inner = cudaSuccess;
    int gens = 0;
    cudaMemcpy(&inner, g.err, sizeof inner, cudaMemcpyDeviceToHost);
    cudaMemcpy(&gens, g.generation, sizeof gens, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess || inner != cudaSuccess) {
        std::cout << "CUDA: " << cudaGetErrorString(e) << " / " << cudaGetErrorString(inner) << "\n";
        return 1;
    }

    int want = 0, moved1 = 1, moved2 = 1;
    while (want < LIMIT && !(want >= 2 && (moved1 == 0 || moved2 == 0))) {
        moved1 = stepCpu(now, next);
        moved2 = 0;
        for (int i = 0; i < SIZE * SIZE; i++) moved2 += next[i] != before[i];
        before.swap(now);
        now.swap(next);
        want++;
    }

    std::vector<unsigned char> got(SIZE * SIZE);
    // the boards rotate: generation k is in board[(3 - k % 3) % 3]
    cudaMemcpy(got.data(), g.board[(3 - gens % 3) % 3], SIZE * SIZE, cudaMemcpyDeviceToHost);
    int diff = 0;
    for (int i = 0; i < SIZE * SIZE; i++) diff += got[i] != now[i];
    if (diff || gens != want) std::cout << diff << " cells differ, " << gens << " generations, expected " << want << "\n";
    else std::cout << "OK (" << gens << " generations)\n";
    return diff || gens != want;
}
