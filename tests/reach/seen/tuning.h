#pragma once
#ifndef CHILD_SIZE
#define CHILD_SIZE 64
#endif
#ifndef MIN_DEGREE
#define MIN_DEGREE 32
#endif
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
#define GLOBAL_ID (blockIdx.x * blockDim.x + threadIdx.x)
