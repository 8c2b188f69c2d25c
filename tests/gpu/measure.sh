#!/bin/sh
# Shows on a GPU what `gridfuse measure` and `gridfuse tune` have to do there, in one go, and checks each:
#
#   table             a table of all rewrites of breadth-first search
#   recursion-*       what is best for a kernel that launches itself: a worklist, or launches that are collected
#   newcomer-*        the six programs of docs/newcomers.md, with what `optimize` makes of them
#   broken-rewrite    a rewrite that is broken on purpose is caught, and the difference located
#   many-launches     200,000 tiny launches of one grid, and their rewrites
#   few-threads-*     8,192 launches by one thread, or by 256: more than an arena has room for
#   serial-launches   200,704 launches that do not finish in time, while their rewrites do
#   kernel            a kernel that is measured by itself, as its run specification says
#   tune              a search ends within 5 % of the best of all combinations, in a quarter of the time that measuring all takes, on
#                     three programs
#   search            what a search among all combinations finds for inputs for which `optimize` is not the best choice
#
# Writes the reports to tests/gpu/results/measured/ and tests/gpu/results/tune_*.json (or below another directory), from which gpu-tables
# makes sections of docs/measurements.md. What was interrupted goes on where STATE (a directory) still holds what was known.
#
#   tests/gpu/measure.sh [--only NAME[,NAME…]] [GRIDFUSE [DIRECTORY [STATE]]]
#
# In the root of the repository; needs nvcc, python3 and an NVIDIA GPU. The exit code is 1 when something was not as it has to be.
set -eu
only=table,recursion-quadtree-flat,recursion-quadtree-skewed,recursion-quicksort,recursion-mandelbrot
only=$only,newcomer-bfs,newcomer-quadtree,newcomer-mandelbrot,newcomer-quicksort,newcomer-matrix,newcomer-refine
only=$only,broken-rewrite,many-launches,few-threads-1,few-threads-256,serial-launches,kernel,tune-bfs,tune-gc,tune-sssp
only=$only,search-bfs,search-bt,search-cc,search-mstf,search-sssp
if [ "${1:-}" = --only ]; then
    only=$2
    shift 2
fi
gridfuse=${1:-gridfuse}
results=${2:-tests/gpu/results}
out=$results/measured
[ -n "${3:-}" ] && export XDG_STATE_HOME="$3"
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
bad=0

wanted() {
    case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac
}

# NAME EXPRESSION: whether an expression of Python holds for the report `r`; `v` are its variants' outcomes by name.
holds() {
    if python3 - "$1" "$2" <<'PYTHON'
import json, sys
r = json.load(open(sys.argv[1]))
v = {one["rewrites"]: one["outcome"] for one in r.get("variants", [])}
ran = lambda name: v[name]["outcome"] == "ran"
agrees = lambda name: ran(name) and v[name]["agreement"]["agreement"] == "agrees"
try:
    sys.exit(0 if eval(sys.argv[2]) else 1)
except (KeyError, TypeError):
    sys.exit(1)
PYTHON
    then
        echo "  as it has to be: $2"
    else
        echo "  NOT as it has to be: $2" >&2
        bad=1
    fi
}

timed() {
    name=$1
    begin=$(date +%s)
    shift
    status=0
    "$@" || status=$?
    echo "$name: exit code $status after $(($(date +%s) - begin)) s"
}

measure() {
    name=$1
    shift
    timed "$name" "$gridfuse" measure "$@" --no-history --json > "$scratch/$name.log" 2> "$scratch/$name.errors" ||
        true
    # The report, and what was said behind it.
    sed '/^}$/q' "$scratch/$name.log" > "$out/$name.json"
    sed '1,/^}$/d' "$scratch/$name.log"
    grep -v '^ *[0-9.]* s  *[0-9]* %' "$scratch/$name.errors" >&2 || true
}

if wanted table; then
    measure table tests/corpus/bfs.cu --args '--variant naive --input rmat --vertices 16384 --repeat 1' --repeat 3 --rewrites all
    holds "$out/table.json" 'r["original"]["outcome"] == "ran" and all(agrees(name) for name in v if ran(name))'
    holds "$out/table.json" 'sum(map(ran, v)) >= 10'
fi

# NAME PROGRAM ARGUMENTS
recursion() {
    wanted "$1" || return 0
    measure "$1" "tests/corpus/$2.cu" --args "$3" --repeat 3 --rewrites optimize,flatten-recursion,aggregate-block,aggregate-grid
    holds "$out/$1.json" 'len(v) == 4 and all(map(agrees, v))'
    # `optimize` takes the best of them, or one that is as fast but for what runs differ by.
    holds "$out/$1.json" 'v["optimize"]["median_ms"] <= 1.5 * min(one["median_ms"] for one in v.values())'
}
recursion recursion-quadtree-flat qt '--variant recursive --input flat --repeat 1'
recursion recursion-quadtree-skewed qt '--variant recursive --input skewed --repeat 1'
recursion recursion-quicksort qs '--variant naive --input skewed --repeat 1'

# Its leaves are grids of other kernels, and each block launches one grid: there is little to gain, and much to lose.
if wanted recursion-mandelbrot; then
    measure recursion-mandelbrot tests/fixtures/audited/mandel.cu --repeat 5 \
        --rewrites optimize,flatten-recursion,aggregate-grid-host,aggregate-grid,fire-and-forget
    holds "$out/recursion-mandelbrot.json" 'len(v) == 5 and all(map(agrees, v))'
    holds "$out/recursion-mandelbrot.json" 'v["optimize"]["median_ms"] <= 1.1 * r["original"]["median_ms"]'
fi

# PROGRAM REWRITES: a newcomer's program with a `main` that runs it. What waits for child grids doesn't compile any more; so that is
# replaced first, and measured as the original.
newcomer() {
    wanted "newcomer-$1" || return 0
    cat "tests/fixtures/newcomers/$1.cu" "tests/gpu/newcomers/$1.cu" > "$scratch/$1.cu"
    line=$(grep -n '^    cudaDeviceSynchronize' "$scratch/$1.cu" | head -n 1 | cut -d : -f 1)
    if [ -n "$line" ]; then
        "$gridfuse" rewrite "$scratch/$1.cu" --at "$line" --apply replace-device-sync --in-place > /dev/null
    fi
    measure "newcomer-$1" "$scratch/$1.cu" --repeat 5 --rewrites "$2"
    # Where it was put together is nobody's business.
    sed "s|$scratch/||g" "$out/newcomer-$1.json" > "$scratch/report" && cp "$scratch/report" "$out/newcomer-$1.json"
    holds "$out/newcomer-$1.json" 'all(map(agrees, v))'
    holds "$out/newcomer-$1.json" 'v["optimize"]["median_ms"] <= r["original"]["median_ms"]'
    holds "$out/newcomer-$1.json" 'v["optimize"]["median_ms"] <= 1.5 * min(one["median_ms"] for one in v.values())'
}
newcomer bfs optimize,reuse-threads,aggregate-grid-stream,aggregate-grid
newcomer quadtree optimize,flatten-recursion,aggregate-grid,fire-and-forget
newcomer mandelbrot optimize,flatten-recursion,aggregate-grid,aggregate-grid-host
newcomer quicksort optimize,flatten-recursion,aggregate-grid,fire-and-forget
newcomer matrix optimize,aggregate-block,aggregate-grid,aggregate-grid-stream
newcomer refine optimize,reuse-threads,aggregate-grid-stream,threshold

if wanted broken-rewrite; then
    # The rewrite itself is right; then the child forgets the last neighbour of each vertex.
    cp tests/corpus/bfs.cu "$scratch/aggregated.cu"
    line=$(grep -n 'expand<<<' "$scratch/aggregated.cu" | head -n 1 | cut -d : -f 1)
    "$gridfuse" rewrite "$scratch/aggregated.cu" --at "$line" --apply aggregate-block --in-place > /dev/null
    sed 's/if (i < count) {/if (i < count - 1) {/' "$scratch/aggregated.cu" > "$scratch/broken.cu"
    if cmp -s "$scratch/aggregated.cu" "$scratch/broken.cu"; then
        echo 'measure.sh: nothing was broken' >&2
        exit 2
    fi
    measure broken-rewrite tests/corpus/bfs.cu --args '--input rmat --repeat 1' --repeat 3 --rewrites aggregate-block \
        --also "drops the last neighbour=$scratch/broken.cu"
    holds "$out/broken-rewrite.json" 'agrees("aggregate-block")'
    holds "$out/broken-rewrite.json" 'v["drops the last neighbour"]["agreement"]["element"] is not None'
fi

if wanted many-launches; then
    measure many-launches tests/gpu/many_launches.cu --timeout 20 --repeat 3 --rewrites threshold,aggregate-block,aggregate-grid
    holds "$out/many-launches.json" 'all(map(agrees, v))'
fi

# THREADS LAUNCHES: what doesn't fit into the arena takes no longer than it did.
few_threads() {
    wanted "few-threads-$1" || return 0
    measure "few-threads-$1" tests/gpu/launches_of_a_thread.cu --args "$1 $2" --timeout 20 --repeat 3 \
        --rewrites optimize,aggregate-block,aggregate-warp,aggregate-grid,fire-and-forget
    holds "$out/few-threads-$1.json" 'len(v) == 5 and all(map(agrees, v))'
    holds "$out/few-threads-$1.json" 'all(one["median_ms"] <= r["original"]["median_ms"] for one in v.values())'
}
few_threads 1 8192
few_threads 256 32

if wanted serial-launches; then
    measure serial-launches tests/gpu/serial_launches.cu --timeout 20 --repeat 2 \
        --rewrites aggregate-block,aggregate-multiblock,aggregate-grid
    holds "$out/serial-launches.json" 'r["original"] == {"outcome": "timed-out", "seconds": 20.0}'
    holds "$out/serial-launches.json" 'all(map(ran, v)) and all(one["agreement"]["code"] == 0 for one in v.values())'
    holds "$out/serial-launches.json" 'all(one["agreement"]["difference"] is None for one in v.values())'
fi

if wanted kernel; then
    measure kernel tests/gpu/kernel.cu --repeat 5 --rewrites threshold,aggregate-block,aggregate-grid,optimize
    holds "$out/kernel.json" 'len(v) == 4 and all(map(agrees, v))'
    holds "$out/kernel.json" 'r["original"]["device_launches"] > 2000'
fi

# PROGRAM RECORD ARGUMENTS: writes the record, if there is one.
search() {
    program=$1
    record=$2
    shift 2
    timed "$record" "$gridfuse" tune "tests/corpus/$program.cu" "$@" --no-history --json > "$scratch/$record.log"
    if ! grep -q '^}$' "$scratch/$record.log"; then
        cat "$scratch/$record.log"
        bad=1
        return 1
    fi
    sed '/^}$/q' "$scratch/$record.log" > "$results/$record.json"
    sed '1,/^}$/d' "$scratch/$record.log"
}

tune() {
    program=$1
    shift
    wanted "tune-$program" || return 0
    echo "tune-$program"
    search "$program" "tune_$program" --exhaustive "$@" || return 0
    holds "$results/tune_$program.json" 'r["exhaustive"]["excess"] <= 0.05'
    holds "$results/tune_$program.json" 'r["exhaustive"]["share"]["seconds"] <= 0.25'
    holds "$results/tune_$program.json" 'r["exhaustive"]["share"]["run_seconds"] <= 0.25'
}

# shellcheck disable=SC2086
{
    space='--thresholds none,16,64,256 --factors none,2,8 --granularities warp,block,multiblock,grid --repeat 5 --timeout 10'
    tune bfs --args '--variant naive --input rmat --vertices 8192 --repeat 5' $space
    tune gc --args '--variant naive --input rmat --repeat 3' $space
    tune sssp --args '--variant naive --input rmat --vertices 4096 --repeat 3' $space
}

# PROGRAM INPUT SIZE: among all combinations that there are.
search_all() {
    wanted "search-$1" || return 0
    echo "search-$1"
    search "$1" "tune_$1-$2" --args "--variant naive --input $2 $3 --repeat 3" --timeout 10 || return 0
    holds "$results/tune_$1-$2.json" 'r["search"]["speedup"] > 1 and r["search"]["tried"] * 4 <= r["search"]["possible"]'
}
search_all bfs road ''
search_all bt flat '--lines 8192'
search_all cc uniform '--vertices 8192'
search_all mstf uniform '--vertices 8192'
search_all sssp road '--vertices 16384'
exit "$bad"
