// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Writes the graphs of tests/corpus/ (bfs, sssp: `g`; tc: `tc`) and what a CPU computes on them into files, as scale.h reads them.
//
//   make_graphs DIRECTORY NAME…      NAME: g-rmat-16384, g-road-4194304, tc-uniform-65536, …
//
// The graphs are those that the programs make themselves, edge by edge: their random numbers can be had in any order, so that threads make
// parts of a graph. What the CPU computes is computed here by other algorithms than on the GPU: a queue, Dijkstra, merging of lists.

#define SCALE_HOST_ONLY
#include "scale.h"

#include <atomic>
#include <functional>
#include <queue>
#include <thread>
#include <utility>

namespace {

using Edge = std::pair<int, int>;

unsigned threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// body(first, last, thread) for equal parts of [0, count).
template <class Body>
void in_parts(int64_t count, Body&& body) {
    const unsigned parts = threads();
    std::vector<std::thread> running;
    for (unsigned part = 0; part < parts; ++part)
        running.emplace_back([&, part] { body(count * part / parts, count * (part + 1) / parts, part); });
    for (auto& thread : running) thread.join();
}

// The programs' generator of random numbers: `number` is the number of the draw.
int draw(uint64_t number, int below) {
    uint64_t z = 42 + (number + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return int((z ^ (z >> 31)) % uint64_t(below));
}

struct Graph {
    std::vector<int> row, col, weight;
    int n() const { return int(row.size()) - 1; }
};

struct Drawn {
    std::vector<Edge> edges;
    uint64_t draws = 0;
};

Drawn tree(int n) {
    Drawn made;
    made.edges.resize(size_t(n - 1) * 2);
    in_parts(n - 1, [&](int64_t first, int64_t last, unsigned) {
        for (int64_t i = first; i < last; ++i) {
            const int v = int(i) + 1, parent = (v - 1) / 1000;
            made.edges[2 * i] = {parent, v};
            made.edges[2 * i + 1] = {v, parent};
        }
    });
    return made;
}

Drawn uniform(int n, int degree) {
    Drawn made;
    made.draws = uint64_t(n) * degree;
    made.edges.resize(made.draws);
    in_parts(int64_t(made.draws), [&](int64_t first, int64_t last, unsigned) {
        for (int64_t i = first; i < last; ++i) made.edges[i] = {int(i / degree), draw(i, n)};
    });
    return made;
}

Drawn rmat(int n, bool both_ways) {
    int levels = 0;
    while ((1ll << levels) < n) ++levels;
    Drawn made;
    const int64_t count = int64_t(n) * 8;
    made.draws = uint64_t(count) * levels;
    made.edges.resize(both_ways ? count * 2 : count);
    in_parts(count, [&](int64_t first, int64_t last, unsigned) {
        for (int64_t i = first; i < last; ++i) {
            int from = 0, to = 0;
            for (int level = 0; level < levels; ++level) {
                const int p = draw(uint64_t(i) * levels + level, 100);
                from = from * 2 + (p >= 76);
                to = to * 2 + ((p >= 57 && p < 76) || p >= 95);
            }
            from %= n;
            to %= n;
            if (both_ways) {
                made.edges[2 * i] = {from, to};
                made.edges[2 * i + 1] = {to, from};
            } else {
                made.edges[i] = {from, to};
            }
        }
    });
    return made;
}

Drawn road(int n) {
    int side = 1;
    while (int64_t(side + 1) * (side + 1) <= n) ++side;
    Drawn made;
    auto both_ways = [&](int a, int64_t b) {
        if (b >= n) return;
        made.edges.push_back({a, int(b)});
        made.edges.push_back({int(b), a});
    };
    for (int v = 0; v < n; ++v) {
        if ((v + 1) % side != 0 && draw(made.draws++, 20) != 0) both_ways(v, int64_t(v) + 1);
        if (draw(made.draws++, 20) != 0) both_ways(v, int64_t(v) + side);
        if (draw(made.draws++, 50) == 0) both_ways(v, int64_t(v) + 2 * side + 1);
    }
    return made;
}

// Rows in the order of the edges; weights are drawn in that order, too.
Graph rows_of(int n, const Drawn& made, bool weights) {
    Graph graph;
    const std::vector<Edge>& edges = made.edges;
    graph.row.assign(size_t(n) + 1, 0);
    graph.col.resize(edges.size());
    if (weights) graph.weight.resize(edges.size());
    // Each thread has some vertices, and looks at all edges for those of them.
    in_parts(n, [&](int64_t first, int64_t last, unsigned) {
        for (const Edge& edge : edges)
            if (edge.first >= first && edge.first < last) ++graph.row[edge.first + 1];
    });
    for (int v = 0; v < n; ++v) graph.row[v + 1] += graph.row[v];
    in_parts(n, [&](int64_t first, int64_t last, unsigned) {
        std::vector<int> next(graph.row.begin() + first, graph.row.begin() + last);
        for (size_t e = 0; e < edges.size(); ++e) {
            const Edge& edge = edges[e];
            if (edge.first < first || edge.first >= last) continue;
            const int at = next[edge.first - first]++;
            graph.col[at] = edge.second;
            if (weights) graph.weight[at] = 1 + draw(made.draws + e, 100);
        }
    });
    return graph;
}

// Each edge once, from the smaller vertex to the larger one, the ends of a vertex' edges ascending.
Graph once(int n, Drawn made) {
    for (Edge& edge : made.edges)
        if (edge.first > edge.second) std::swap(edge.first, edge.second);
    const Graph all = rows_of(n, made, false);
    std::vector<std::vector<int>> kept(n);
    in_parts(n, [&](int64_t first, int64_t last, unsigned) {
        for (int64_t v = first; v < last; ++v) {
            std::vector<int> ends(all.col.begin() + all.row[v], all.col.begin() + all.row[v + 1]);
            std::sort(ends.begin(), ends.end());
            ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
            ends.erase(std::remove(ends.begin(), ends.end(), int(v)), ends.end());
            kept[v] = std::move(ends);
        }
    });
    Graph graph;
    graph.row.assign(1, 0);
    for (const auto& ends : kept) {
        graph.col.insert(graph.col.end(), ends.begin(), ends.end());
        graph.row.push_back(int(graph.col.size()));
    }
    return graph;
}

std::vector<int> levels(const Graph& g) {
    std::vector<int> dist(g.n(), -1), queue{0};
    dist[0] = 0;
    for (size_t at = 0; at < queue.size(); ++at) {
        const int v = queue[at];
        for (int i = g.row[v]; i < g.row[v + 1]; ++i)
            if (dist[g.col[i]] == -1) {
                dist[g.col[i]] = dist[v] + 1;
                queue.push_back(g.col[i]);
            }
    }
    return dist;
}

// Dijkstra's algorithm. Distances differ by at most 100 along an edge, so that a ring of lists is the priority queue (Dial 1969).
std::vector<int> distances(const Graph& g) {
    constexpr int kRing = 128;
    std::vector<int> dist(g.n(), 1 << 30);
    std::vector<std::vector<int>> ring(kRing);
    dist[0] = 0;
    ring[0].push_back(0);
    int64_t waiting = 1;
    for (int now = 0; waiting != 0; ++now) {
        std::vector<int>& due = ring[now % kRing];
        for (size_t at = 0; at < due.size(); ++at) {   // nothing is added to it: weights are at least 1
            const int v = due[at];
            --waiting;
            if (dist[v] != now) continue;
            for (int i = g.row[v]; i < g.row[v + 1]; ++i) {
                const int next = now + g.weight[i];
                if (next < dist[g.col[i]]) {
                    dist[g.col[i]] = next;
                    ring[next % kRing].push_back(g.col[i]);
                    ++waiting;
                }
            }
        }
        due.clear();
    }
    return dist;
}

// For each vertex the triangles in which it is the smallest one.
std::vector<int> triangles(const Graph& g) {
    std::vector<int> count(g.n(), 0);
    std::atomic<int> next{0};
    in_parts(threads(), [&](int64_t, int64_t, unsigned) {
        std::vector<char> is_end(g.n(), 0);
        constexpr int kStep = 256;
        for (int begin; (begin = next.fetch_add(kStep)) < g.n();) {
            for (int v = begin; v < std::min(g.n(), begin + kStep); ++v) {
                for (int i = g.row[v]; i < g.row[v + 1]; ++i) is_end[g.col[i]] = 1;
                for (int i = g.row[v]; i < g.row[v + 1]; ++i)
                    for (int j = g.row[g.col[i]]; j < g.row[g.col[i] + 1]; ++j) count[v] += is_end[g.col[j]];
                for (int i = g.row[v]; i < g.row[v + 1]; ++i) is_end[g.col[i]] = 0;
            }
        }
    });
    return count;
}

void write_values(const std::string& name, const char* what, const std::vector<int>& values) {
    std::FILE* file = std::fopen(scale_path(name, what).c_str(), "wb");
    if (!file) { std::perror(name.c_str()); std::exit(3); }
    const int64_t count = int64_t(values.size());
    scale_put(file, &count, sizeof count);
    scale_put(file, values.data(), values.size() * sizeof(int));
    if (std::fclose(file) != 0) { std::perror(name.c_str()); std::exit(3); }
}

void write_graph(const std::string& name, const Graph& graph) {
    std::FILE* file = std::fopen(scale_path(name, "graph").c_str(), "wb");
    if (!file) { std::perror(name.c_str()); std::exit(3); }
    const int64_t head[2] = {graph.n(), int64_t(graph.col.size())};
    scale_put(file, head, sizeof head);
    scale_put(file, graph.row.data(), graph.row.size() * sizeof(int));
    scale_put(file, graph.col.data(), graph.col.size() * sizeof(int));
    scale_put(file, graph.weight.data(), graph.weight.size() * sizeof(int));
    if (std::fclose(file) != 0) { std::perror(name.c_str()); std::exit(3); }
}

bool make(const std::string& name) {
    const size_t one = name.find('-'), two = name.find('-', one + 1);
    if (one == std::string::npos || two == std::string::npos) return false;
    const std::string family = name.substr(0, one), input = name.substr(one + 1, two - one - 1);
    const int n = std::atoi(name.c_str() + two + 1);
    if (n < 2) return false;
    if (family == "tc") {
        if (input != "rmat" && input != "uniform") return false;
        const Graph graph = once(n, input == "rmat" ? rmat(n, false) : uniform(n, 8));
        write_graph(name, graph);
        write_values(name, "tc", triangles(graph));
        return true;
    }
    if (family != "g") return false;
    Drawn made;
    if (input == "rmat") made = rmat(n, true);
    else if (input == "uniform") made = uniform(n, 16);
    else if (input == "tree") made = tree(n);
    else if (input == "road") made = road(n);
    else return false;
    const Graph graph = rows_of(n, made, true);
    made = {};
    std::thread other([&] { write_values(name, "bfs", levels(graph)); });
    write_graph(name, graph);
    write_values(name, "sssp", distances(graph));
    other.join();
    return true;
}

}   // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: make_graphs DIRECTORY NAME…, as g-rmat-16384 or tc-uniform-65536\n");
        return 2;
    }
    setenv("SCALE_DIR", argv[1], 1);
    for (int i = 2; i < argc; ++i)
        if (!make(argv[i])) {
            std::fprintf(stderr, "make_graphs: no such graph: %s\n", argv[i]);
            return 2;
        }
    return 0;
}
