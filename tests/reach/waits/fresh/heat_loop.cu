/* 1D heat equation until steady: the time loop is in a kernel of one thread
   which waits for every step.                                            */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define N 150
#define EPS 1e-6
#define MAXSTEPS 200000

__global__ void heat_step(const double *a, double *b, unsigned long long *worst)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    if (i == 0 || i == N - 1) { b[i] = a[i]; return; }
    double v = a[i] + 0.4 * (a[i - 1] - 2.0 * a[i] + a[i + 1]);
    b[i] = v;
    atomicMax(worst, (unsigned long long)__double_as_longlong(fabs(v - a[i])));
}

__global__ void heat(double *a, double *b, unsigned long long *worst, int *steps)
{
    int k = 0;
    volatile unsigned long long *w = worst;
    do {
        *w = 0;
        heat_step<<<(N + 127) / 128, 128>>>(a, b, worst);
        cudaDeviceSynchronize();
        double *t = a;
        a = b;
        b = t;
        k++;
    } while (__longlong_as_double((long long)*w) > EPS && k < MAXSTEPS);
    *steps = k;
}

int main(void)
{
    static double u[N], v[N], got[N];
    for (int i = 0; i < N; i++) u[i] = (i == 0) ? 1.0 : 0.0;
    double *da, *db;
    unsigned long long *dw;
    int *dn, n;
    cudaMalloc((void **)&da, sizeof u);
    cudaMalloc((void **)&db, sizeof u);
    cudaMalloc((void **)&dw, sizeof *dw);
    cudaMalloc((void **)&dn, sizeof(int));
    cudaMemcpy(da, u, sizeof u, cudaMemcpyHostToDevice);
    heat<<<1, 1>>>(da, db, dw, dn);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); return 1; }
    cudaMemcpy(&n, dn, sizeof n, cudaMemcpyDeviceToHost);
    cudaMemcpy(got, n % 2 ? db : da, sizeof got, cudaMemcpyDeviceToHost);
    double *p = u, *q = v, worst = 0;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < N; i++)
            q[i] = (i == 0 || i == N - 1) ? p[i] : p[i] + 0.4 * (p[i - 1] - 2.0 * p[i] + p[i + 1]);
        double *t = p; p = q; q = t;
    }
    for (int i = 0; i < N; i++) worst = fmax(worst, fabs(p[i] - got[i]));
    if (worst < 1e-9 && n > 1 && n < MAXSTEPS) printf("OK, %d steps\n", n);
    else printf("difference %g after %d steps\n", worst, n);
    return !(worst < 1e-9);
}
