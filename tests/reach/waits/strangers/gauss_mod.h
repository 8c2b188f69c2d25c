#ifndef _GAUSS_MOD_H_
#define _GAUSS_MOD_H_

#define MATRIX_SIZE 96
#define TILE 16
#define PRIME 1000003u

typedef struct {
	int n;
	unsigned *elements;
} matrix_t;

#endif
