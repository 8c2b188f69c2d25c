#pragma once
#include <cuda_runtime.h>

// Uniform grid of particles sorted by cell. Integer positions and charges so
// that the accumulated force doesn't depend on the order of the pairs.
class CellGrid
{
public:
    CellGrid(int nx, int ny, const int *cellStart, const int4 *particle, int *fx, int *fy)
        : m_nx(nx), m_ny(ny), m_cellStart(cellStart), m_particle(particle), m_fx(fx), m_fy(fy)
    {
    }

    __host__ __device__ int cells() const { return m_nx * m_ny; }
    __device__ int first(int c) const { return m_cellStart[c]; }
    __device__ int size(int c) const { return m_cellStart[c + 1] - m_cellStart[c]; }
    __device__ int right(int c) const { return (c % m_nx) + 1 < m_nx ? c + 1 : -1; }
    __device__ int below(int c) const { return c + m_nx < cells() ? c + m_nx : -1; }

    // i feels j
    __device__ void feel(int i, int j) const
    {
        int4 a = m_particle[i], b = m_particle[j];
        int q = a.z * b.z;
        atomicAdd(&m_fx[i], q * sign(a.x - b.x));
        atomicAdd(&m_fy[i], q * sign(a.y - b.y));
    }

    __device__ void interact(int c) const;
    __device__ void interact(int c, int d) const;

    __host__ __device__ static int sign(int v) { return (v > 0) - (v < 0); }

private:
    int m_nx, m_ny;
    const int *m_cellStart;
    const int4 *m_particle;     // x, y, charge, unused
    int *m_fx, *m_fy;
};
