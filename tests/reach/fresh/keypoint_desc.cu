// Orientation histograms around corner points. The detector kernel runs over
// the image, every pixel which is a local maximum describes its own
// neighbourhood by launching a 16x16 block.
#include <iostream>
#include <vector>
#include <cstdlib>
#include <cstring>

const int WIDTH = 512;
const int HEIGHT = 384;
const int RADIUS = 8;
const int BINS = 8;
const int MAXKP = 4096;

class Image {
public:
    const int *pix;
    __host__ __device__ int at(int x, int y) const { return pix[y * WIDTH + x]; }
    __host__ __device__ int gradx(int x, int y) const { return at(x + 1, y) - at(x - 1, y); }
    __host__ __device__ int grady(int x, int y) const { return at(x, y + 1) - at(x, y - 1); }
    // octant of the gradient, no floating point
    __host__ __device__ int octant(int x, int y) const
    {
        int gx = gradx(x, y), gy = grady(x, y);
        int ax = gx < 0 ? -gx : gx, ay = gy < 0 ? -gy : gy;
        return (gx < 0 ? 4 : 0) + (gy < 0 ? 2 : 0) + (ay > ax ? 1 : 0);
    }
    __host__ __device__ bool isPeak(int x, int y) const
    {
        int v = at(x, y);
        if (v < 200) return false;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                if ((dx || dy) && at(x + dx, y + dy) >= v) return false;
        return true;
    }
};

struct Keypoint {
    int x, y;
    int hist[BINS];
};

__global__ void describe(Image img, int x, int y, Keypoint *kp)
{
    __shared__ int h[BINS];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    if (t < BINS) h[t] = 0;
    __syncthreads();
    int px = x - RADIUS + threadIdx.x, py = y - RADIUS + threadIdx.y;
    int gx = img.gradx(px, py), gy = img.grady(px, py);
    atomicAdd(&h[img.octant(px, py)], (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy));
    __syncthreads();
    if (t < BINS) kp->hist[t] = h[t];
    if (t == 0) { kp->x = x; kp->y = y; }
}

class Detector {
    Image img;
    Keypoint *out;
    int *count;
public:
    Detector(const int *p, Keypoint *o, int *c) : out(o), count(c) { img.pix = p; }
    __device__ void run(int x, int y) const
    {
        if (x < RADIUS + 1 || y < RADIUS + 1 || x >= WIDTH - RADIUS - 1 || y >= HEIGHT - RADIUS - 1)
            return;
        if (!img.isPeak(x, y)) return;
        int slot = atomicAdd(count, 1);
        if (slot < MAXKP)
            describe<<<1, dim3(2 * RADIUS, 2 * RADIUS)>>>(img, x, y, out + slot);
    }
};

__global__ void detect(Detector d)
{
    d.run(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
}

int main()
{
    std::vector<int> pix(WIDTH * HEIGHT);
    unsigned s = 3;
    for (int &p : pix) { s = s * 69069u + 1u; p = (s >> 24) * 0.7; }
    for (int k = 0; k < 900; k++) {
        s = s * 69069u + 1u; int x = (s >> 10) % WIDTH;
        s = s * 69069u + 1u; int y = (s >> 10) % HEIGHT;
        pix[y * WIDTH + x] = 200 + k % 56;
    }

    int *dPix, *dCount;
    Keypoint *dKp;
    if (cudaMalloc(&dPix, pix.size() * sizeof(int)) || cudaMalloc(&dCount, sizeof(int)) ||
        cudaMalloc(&dKp, MAXKP * sizeof(Keypoint))) {
        std::cerr << "out of memory" << std::endl;
        return 1;
    }
    cudaMemcpy(dPix, pix.data(), pix.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(dCount, 0, sizeof(int));

    detect<<<dim3((WIDTH + 31) / 32, (HEIGHT + 7) / 8), dim3(32, 8)>>>(Detector(dPix, dKp, dCount));
    if (cudaError_t e = cudaDeviceSynchronize()) {
        std::cerr << cudaGetErrorString(e) << std::endl;
        return 1;
    }
    int count = 0;
    cudaMemcpy(&count, dCount, sizeof(int), cudaMemcpyDeviceToHost);
    std::vector<Keypoint> kps(count);
    cudaMemcpy(kps.data(), dKp, count * sizeof(Keypoint), cudaMemcpyDeviceToHost);

    // host: expected histograms
    Image himg;
    himg.pix = pix.data();
    std::vector<char> seen(WIDTH * HEIGHT, 0);
    int bad = 0, expect = 0;
    for (const Keypoint &k : kps) {
        if (!himg.isPeak(k.x, k.y) || seen[k.y * WIDTH + k.x]++) { bad++; continue; }
        int h[BINS] = {0};
        for (int py = k.y - RADIUS; py < k.y + RADIUS; py++)
            for (int px = k.x - RADIUS; px < k.x + RADIUS; px++)
                h[himg.octant(px, py)] += std::abs(himg.gradx(px, py)) + std::abs(himg.grady(px, py));
        if (memcmp(h, k.hist, sizeof h)) bad++;
    }
    for (int y = RADIUS + 1; y < HEIGHT - RADIUS - 1; y++)
        for (int x = RADIUS + 1; x < WIDTH - RADIUS - 1; x++)
            expect += himg.isPeak(x, y);
    if (bad || expect != count)
        std::cout << "difference: " << bad << " bad, " << count << " found, " << expect << " expected" << std::endl;
    else
        std::cout << "OK " << count << " keypoints" << std::endl;
    return bad || expect != count;
}
