// One tick of a tower-defence style simulation on a W x H board.
// Towers fire: mortars hit a square area, lasers a straight line of cells.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace game {

struct Board { int w, h; };
enum class Kind : char { Idle, Mortar, Laser };
enum class Dir : char { East, South };

struct Tower {
    Kind kind;
    Dir dir;
    short x, y;
    short range;
    int power;
};

// splash damage falls off with Chebyshev distance
__global__ void splash(Board b, Tower t, int *damage)
{
    int dx = int(threadIdx.x) + int(blockIdx.x * blockDim.x) - t.range;
    int dy = int(threadIdx.y) + int(blockIdx.y * blockDim.y) - t.range;
    if (dx > t.range || dy > t.range) return;
    int x = t.x + dx, y = t.y + dy;
    if (x < 0 || y < 0 || x >= b.w || y >= b.h) return;
    int d = max(abs(dx), abs(dy));
    atomicAdd(damage + y * b.w + x, t.power / (d + 1));
}

__global__ void beam(int *damage, int first, int step, int power)
{
    atomicAdd(damage + first + int(threadIdx.x) * step, power);
}

__global__ void fireTowers(Board b, const Tower *towers, int n, int *damage)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Tower t = towers[i];

    if (t.kind == Kind::Mortar) {
        const int side = 2 * t.range + 1;
        const dim3 threads(8, 8, 1);
        const dim3 blocks((side + 7) / 8, (side + 7) / 8, 1);
        splash<<<blocks, threads>>>(b, t, damage);
    } else if (t.kind == Kind::Laser) {
        int room = t.dir == Dir::East ? b.w - t.x : b.h - t.y;
        int cells = min(int(t.range) * 3, room);
        if (cells > 0)
            beam<<<1, cells>>>(damage, t.y * b.w + t.x, t.dir == Dir::East ? 1 : b.w, t.power);
    }
}

__global__ void applyDamage(const int *damage, int *hp, int n, int *dead)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || hp[i] <= 0) return;
    hp[i] -= damage[i];
    if (hp[i] <= 0) atomicAdd(dead, 1);
}

void fireOnHost(Board b, const Tower &t, std::vector<int> &dmg)
{
    if (t.kind == Kind::Mortar) {
        for (int y = std::max(0, t.y - t.range); y <= std::min(b.h - 1, t.y + t.range); ++y)
            for (int x = std::max(0, t.x - t.range); x <= std::min(b.w - 1, t.x + t.range); ++x)
                dmg[y * b.w + x] += t.power / (std::max(std::abs(x - t.x), std::abs(y - t.y)) + 1);
    } else if (t.kind == Kind::Laser) {
        for (int k = 0; k < t.range * 3; ++k) {
            int x = t.x + (t.dir == Dir::East ? k : 0), y = t.y + (t.dir == Dir::South ? k : 0);
            if (x < b.w && y < b.h) dmg[y * b.w + x] += t.power;
        }
    }
}

} // namespace game

struct CudaFree { void operator()(void *p) const { cudaFree(p); } };
template <class T> using DevPtr = std::unique_ptr<T[], CudaFree>;
template <class T> DevPtr<T> dev(const std::vector<T> &v)
{
    T *p = nullptr;
    cudaMalloc(&p, v.size() * sizeof(T));
    cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
    return DevPtr<T>(p);
}

int main()
{
    using namespace game;
    const Board b{96, 64};
    std::vector<Tower> towers(320);
    unsigned s = 5;
    auto roll = [&](int sides) { s = s * 214013u + 2531011u; return int((s >> 16) & 0x7fff) % sides; };
    for (auto &t : towers) {
        t.kind = std::array<Kind, 4>{Kind::Idle, Kind::Mortar, Kind::Laser, Kind::Mortar}[roll(4)];
        t.dir = roll(2) ? Dir::East : Dir::South;
        t.x = short(roll(b.w)); t.y = short(roll(b.h));
        t.range = short(1 + roll(9));
        t.power = 10 + roll(50);
    }
    std::vector<int> hp(b.w * b.h), dmg(b.w * b.h, 0);
    for (auto &v : hp) v = 200 + roll(900);

    auto dT = dev(towers); auto dD = dev(dmg); auto dH = dev(hp); auto dDead = dev(std::vector<int>(1, 0));
    for (int tick = 0; tick < 2; ++tick) {
        fireTowers<<<5, 64>>>(b, dT.get(), int(towers.size()), dD.get());
        applyDamage<<<(b.w * b.h + 255) / 256, 256>>>(dD.get(), dH.get(), b.w * b.h, dDead.get());
    }
    std::vector<int> out(hp.size());
    int dead = -1, deadRef = 0;
    cudaMemcpy(out.data(), dH.get(), out.size() * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(&dead, dDead.get(), sizeof(int), cudaMemcpyDeviceToHost);

    for (int tick = 0; tick < 2; ++tick) {
        for (auto &t : towers) fireOnHost(b, t, dmg);
        for (size_t i = 0; i < hp.size(); ++i)
            if (hp[i] > 0 && (hp[i] -= dmg[i]) <= 0) ++deadRef;
    }
    long long sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += (long long)(i + 1) * out[i];
    const bool ok = out == hp && dead == deadRef;
    std::printf("board checksum %lld dead %d %s [%s]\n", sum, dead, ok ? "ok" : "FAIL", cudaGetErrorName(cudaGetLastError()));
    return ok ? 0 : 1;
}
