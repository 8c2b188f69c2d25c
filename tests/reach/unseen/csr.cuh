#ifndef CSR_CUH
#define CSR_CUH
#include <climits>
#define UNREACHED UINT_MAX
struct CSRGraph {
    unsigned numVertices;
    unsigned* rowPtrs;
    unsigned* dst;
};
#endif
