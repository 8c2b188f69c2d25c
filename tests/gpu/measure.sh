#!/bin/sh
# Measures on a GPU what `gridfuse measure` has to notice: a rewrite that is broken on purpose, and how long 200,000 tiny launches
# take, rewritten or not. Writes the reports to tests/gpu/results/measured/ (or another directory), from which gpu-tables makes a section of
# docs/measurements.md.
#
#   tests/gpu/measure.sh [GRIDFUSE [DIRECTORY]]
#
# In the root of the repository; needs nvcc and an NVIDIA GPU.
set -eu
gridfuse=${1:-gridfuse}
out=${2:-tests/gpu/results/measured}
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The rewrite itself is right; then the child forgets the last neighbour of each vertex.
cp tests/corpus/bfs.cu "$scratch/aggregated.cu"
line=$(grep -n 'expand<<<' "$scratch/aggregated.cu" | head -n 1 | cut -d : -f 1)
"$gridfuse" rewrite "$scratch/aggregated.cu" --at "$line" --apply aggregate-block --in-place > /dev/null
sed 's/if (i < count) {/if (i < count - 1) {/' "$scratch/aggregated.cu" > "$scratch/broken.cu"
if cmp -s "$scratch/aggregated.cu" "$scratch/broken.cu"; then
    echo 'measure.sh: nothing was broken' >&2
    exit 2
fi
measure() {
    name=$1
    shift
    status=0
    "$gridfuse" measure "$@" --no-history --json > "$out/$name.json" || status=$?
    echo "$name: exit code $status"
}
measure broken-rewrite tests/corpus/bfs.cu --args '--input rmat --repeat 1' --repeat 3 --rewrites aggregate-block \
    --also "drops the last neighbour=$scratch/broken.cu"
measure many-launches tests/gpu/many_launches.cu --timeout 20 --repeat 3 \
    --rewrites threshold,aggregate-block,aggregate-grid
