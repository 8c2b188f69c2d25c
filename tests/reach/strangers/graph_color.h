#ifndef __GRAPH_COLOR_H
#define __GRAPH_COLOR_H

#define WARP_SIZE 32
#define MAXDIMGRID 65535
#define THREASHOLD 48
#define NESTED_BLOCK_SIZE 64
#define MAX_STREAM_NUM 4
#define GM_BUFF_SIZE (1<<16)

typedef struct conf {
	int verbose;
	int solution;	/* 0 - multidp, 1 - consolidated block level */
} CONF;

struct graph_t {
	int nodes;
	int edges;
	int *vertexArray;
	int *edgeArray;
};

#endif
