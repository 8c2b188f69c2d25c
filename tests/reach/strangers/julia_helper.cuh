#pragma once

#define BSX 16
#define BSY 8
#define NEUT_DWELL (MAX_DWELL + 1)
#define DIFF_DWELL (-1)
#ifndef MAX_DWELL
#define MAX_DWELL 256
#endif

struct complexf {
    float re, im;
};

__host__ __device__ inline int divup(int x, int y) { return x / y + (x % y ? 1 : 0); }

/** computes the dwell of the Julia set of c */
__device__ inline int pixel_dwell(int w, int h, complexf c, int x, int y) {
    float zr = -1.6f + 3.2f * x / w, zi = -1.6f + 3.2f * y / h;
    int dwell = 0;
    while (dwell < MAX_DWELL && zr * zr + zi * zi < 4.0f) {
        float t = zr * zr - zi * zi + c.re;
        zi = 2.0f * zr * zi + c.im;
        zr = t;
        dwell++;
    }
    return dwell;
}

__device__ inline int same_dwell(int d1, int d2) {
    if (d1 == d2)
        return d1;
    else if (d1 == NEUT_DWELL || d2 == NEUT_DWELL)
        return min(d1, d2);
    else
        return DIFF_DWELL;
}
