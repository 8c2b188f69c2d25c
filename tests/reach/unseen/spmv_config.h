#pragma once
#ifndef SPMV_THREADS
#define SPMV_THREADS 64
#endif
#ifndef LONG_ROW
#define LONG_ROW 8
#endif
typedef int index_t;
