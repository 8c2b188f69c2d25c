#ifndef GRAPH_H
#define GRAPH_H
#define INF 0x7fffffff
struct Graph {
    int nodes;
    int edges;
    int *row;
    int *col;
    int *weight;
};
#endif
