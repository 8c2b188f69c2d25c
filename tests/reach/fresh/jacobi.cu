/* 2D Poisson, Jacobi sweeps. The whole iteration lives on the GPU: a one thread
   driver launches a sweep and then launches itself again behind it.          */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define NX 130
#define NY 98
#define IDX(i,j) ((j)*NX+(i))
#define TOL 1.0e-5f
#define MAXIT 20000

#define CUERR(x) do { cudaError_t err=(x); if (err!=cudaSuccess) { \
  printf("%s at %s:%d\n", cudaGetErrorString(err), __FILE__, __LINE__); exit(1);} } while(0)

struct Control {
  float *u[2];
  const float *f;
  int cur;
  int iter;
  int diffbits;     /* max |change| of the last sweep, as the bits of a float */
  int status;       /* 1 converged, 2 gave up, 3 launch failed */
};

__global__ void sweep(const float *uold, float *unew, const float *f, int *diffbits)
{
  int i = blockIdx.x*blockDim.x + threadIdx.x;
  int j = blockIdx.y*blockDim.y + threadIdx.y;
  if (i < 1 || j < 1 || i >= NX-1 || j >= NY-1) return;
  float v = 0.25f*(uold[IDX(i-1,j)] + uold[IDX(i+1,j)] + uold[IDX(i,j-1)] + uold[IDX(i,j+1)] + f[IDX(i,j)]);
  float d = fabsf(v - uold[IDX(i,j)]);
  unew[IDX(i,j)] = v;
  /* nonnegative floats order like their bits */
  atomicMax(diffbits, __float_as_int(d));
}

__global__ void driver(Control *c)
{
  if (c->iter > 0 && __int_as_float(c->diffbits) < TOL) { c->status = 1; return; }
  if (c->iter >= MAXIT) { c->status = 2; return; }

  c->diffbits = 0;
  c->iter = c->iter + 1;
  int cur = c->cur;
  c->cur = 1 - cur;

  dim3 block(32, 4);
  dim3 grid((NX+31)/32, (NY+3)/4);
  sweep<<<grid, block>>>(c->u[cur], c->u[1-cur], c->f, &c->diffbits);
  if (cudaGetLastError() != cudaSuccess) { c->status = 3; return; }
  driver<<<1, 1, 0, cudaStreamTailLaunch>>>(c);
}

int main(void)
{
  static float f[NX*NY], u[NX*NY];
  static double a[NX*NY], b[NX*NY];
  int i, j, it;
  for (j = 0; j < NY; j++)
    for (i = 0; i < NX; i++) {
      f[IDX(i,j)] = (i > 30 && i < 50 && j > 20 && j < 40) ? 0.02f : 0.0f;
      u[IDX(i,j)] = (j == 0) ? 1.0f : 0.0f;
    }

  Control h, *c;
  float *df;
  CUERR(cudaMalloc(&h.u[0], sizeof u));
  CUERR(cudaMalloc(&h.u[1], sizeof u));
  CUERR(cudaMalloc(&df, sizeof f));
  CUERR(cudaMalloc(&c, sizeof(Control)));
  CUERR(cudaMemcpy(h.u[0], u, sizeof u, cudaMemcpyHostToDevice));
  CUERR(cudaMemcpy(h.u[1], u, sizeof u, cudaMemcpyHostToDevice));
  CUERR(cudaMemcpy(df, f, sizeof f, cudaMemcpyHostToDevice));
  h.f = df; h.cur = 0; h.iter = 0; h.diffbits = 0; h.status = 0;
  CUERR(cudaMemcpy(c, &h, sizeof h, cudaMemcpyHostToDevice));

  driver<<<1,1>>>(c);
  CUERR(cudaGetLastError());
  CUERR(cudaDeviceSynchronize());
  CUERR(cudaMemcpy(&h, c, sizeof h, cudaMemcpyDeviceToHost));
  if (h.status != 1) { printf("no convergence, status %d after %d sweeps\n", h.status, h.iter); return 1; }

  /* the same number of sweeps in double */
  for (i = 0; i < NX*NY; i++) a[i] = b[i] = u[i];
  double *p = a, *q = b;
  for (it = 0; it < h.iter; it++) {
    for (j = 1; j < NY-1; j++)
      for (i = 1; i < NX-1; i++)
        q[IDX(i,j)] = 0.25*(p[IDX(i-1,j)] + p[IDX(i+1,j)] + p[IDX(i,j-1)] + p[IDX(i,j+1)] + f[IDX(i,j)]);
    double *t = p; p = q; q = t;
  }
  CUERR(cudaMemcpy(u, h.u[h.cur], sizeof u, cudaMemcpyDeviceToHost));
  double worst = 0;
  for (i = 0; i < NX*NY; i++) if (fabs(u[i]-p[i]) > worst) worst = fabs(u[i]-p[i]);
  if (worst < 2e-3) printf("OK, %d sweeps\n", h.iter);
  else printf("largest difference %g after %d sweeps\n", worst, h.iter);
  return worst < 2e-3 ? 0 : 1;
}
