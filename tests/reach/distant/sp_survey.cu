// Survey propagation, one message update per literal of each clause.
// Clause sizes differ a lot (encoded at-least-one constraints), so big clauses get a grid.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct FactorGraph {
    int nVars, nClauses, nLits;
    int *clauseStart;   // [nClauses+1] into lits
    int *litVar;        // [nLits] variable of literal
    char *litNeg;       // [nLits] 1 when negated
    int *varStart;      // [nVars+1] into occ
    int *occ;           // [nLits] literal index
};

#define TRY(x) do { cudaError_t err = x; if (err) { \
    printf("%s failed: %s\n", #x, cudaGetErrorString(err)); exit(1); } } while (0)

// probability that the variable of literal `l` is forced to violate it by its other clauses
__host__ __device__ inline float cavity(const FactorGraph &fg, const float *eta, int l)
{
    const int v = fg.litVar[l];
    const char mine = fg.litNeg[l];
    float same = 1.f, opp = 1.f;
    for (int k = fg.varStart[v]; k < fg.varStart[v + 1]; k++) {
        const int o = fg.occ[k];
        if (o == l) continue;
        if (fg.litNeg[o] == mine) same *= 1.f - eta[o];
        else                      opp  *= 1.f - eta[o];
    }
    const float pu = (1.f - opp) * same, ps = (1.f - same) * opp, p0 = same * opp;
    const float sum = pu + ps + p0;
    return sum > 1e-12f ? pu / sum : 0.f;
}

__global__ void cavityClause(FactorGraph fg, const float *eta, float *pi, int first, int num)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < num) pi[first + i] = cavity(fg, eta, first + i);
}

__device__ void launchCavity(const FactorGraph &fg, const float *eta, float *pi, int first, int num)
{
    const int threads = num < 128 ? 32 : 128;
    const int blocks  = (num + (threads - 1)) / threads;
    cavityClause<<<blocks, threads>>>(fg, eta, pi, first, num);
    if (cudaGetLastError() != cudaSuccess)          // queue full: do it here
        for (int i = 0; i < num; i++) pi[first + i] = cavity(fg, eta, first + i);
}

__global__ void updatePi(FactorGraph fg, const float *eta, float *pi)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= fg.nClauses) return;
    int first = fg.clauseStart[c], num = fg.clauseStart[c + 1] - first;
    if (num > 16)
        launchCavity(fg, eta, pi, first, num);
    else
        for (int i = 0; i < num; i++) pi[first + i] = cavity(fg, eta, first + i);
}

__global__ void updateEta(FactorGraph fg, const float *pi, float *eta)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= fg.nClauses) return;
    int first = fg.clauseStart[c], last = fg.clauseStart[c + 1];
    float zeros = 0, prod = 1.f;
    for (int l = first; l < last; l++) { if (pi[l] < 1e-9f) zeros++; else prod *= pi[l]; }
    for (int l = first; l < last; l++) {
        bool z = pi[l] < 1e-9f;
        if (zeros == 0) eta[l] = prod / pi[l];
        else if (zeros == 1 && z) eta[l] = prod;
        else eta[l] = 0.f;
    }
}

template <typename T> static T *toDevice(const std::vector<T> &h)
{
    T *d; TRY(cudaMalloc((void **)&d, h.size() * sizeof(T)));
    TRY(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
    return d;
}

int main()
{
    const int nVars = 3000, nClauses = 5000, iters = 6;
    std::vector<int> cs(1, 0), lv, vs(nVars + 1, 0);
    std::vector<char> ln;
    srand(31);
    for (int c = 0; c < nClauses; c++) {
        int k = c % 40 == 0 ? 20 + rand() % 300 : 3;
        for (int i = 0; i < k; i++) { lv.push_back(rand() % nVars); ln.push_back(rand() & 1); }
        cs.push_back((int)lv.size());
    }
    const int nLits = (int)lv.size();
    std::vector<int> occ(nLits);
    for (int v : lv) vs[v + 1]++;
    for (int v = 0; v < nVars; v++) vs[v + 1] += vs[v];
    std::vector<int> pos(vs.begin(), vs.end());
    for (int l = 0; l < nLits; l++) occ[pos[lv[l]]++] = l;
    std::vector<float> eta(nLits), pi(nLits);
    for (auto &e : eta) e = 0.9f * rand() / RAND_MAX;

    FactorGraph h = {nVars, nClauses, nLits, cs.data(), lv.data(), ln.data(), vs.data(), occ.data()};
    FactorGraph d = {nVars, nClauses, nLits, toDevice(cs), toDevice(lv), toDevice(ln), toDevice(vs), toDevice(occ)};
    float *dEta = toDevice(eta), *dPi = toDevice(pi);
    for (int it = 0; it < iters; it++) {
        updatePi<<<(nClauses + 63) / 64, 64>>>(d, dEta, dPi);
        updateEta<<<(nClauses + 63) / 64, 64>>>(d, dPi, dEta);
    }
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    std::vector<float> got(nLits);
    TRY(cudaMemcpy(got.data(), dEta, nLits * sizeof(float), cudaMemcpyDeviceToHost));

    for (int it = 0; it < iters; it++) {
        for (int l = 0; l < nLits; l++) pi[l] = cavity(h, eta.data(), l);
        for (int c = 0; c < nClauses; c++) {
            float zeros = 0, prod = 1.f;
            for (int l = cs[c]; l < cs[c + 1]; l++) { if (pi[l] < 1e-9f) zeros++; else prod *= pi[l]; }
            for (int l = cs[c]; l < cs[c + 1]; l++)
                eta[l] = zeros == 0 ? prod / pi[l] : (zeros == 1 && pi[l] < 1e-9f) ? prod : 0.f;
        }
    }
    for (int l = 0; l < nLits; l++)
        if (std::fabs(got[l] - eta[l]) > 1e-3f) {
            printf("literal %d: %g instead of %g\n", l, got[l], eta[l]);
            return 1;
        }
    printf("OK\n");
    return 0;
}
