#!/bin/bash
# SPDX-License-Identifier: ISC
# Build a fuzz target with clang in BUILD/fuzz and run it on one core.
# usage: run.sh TARGET SECONDS BUILD
# Exit code 77: there is no clang with libFuzzer. An input that breaks a promise is kept in
# BUILD/fuzz/TARGET; give its name to BUILD/fuzz/tests/fuzz_TARGET to see it again.
set -euo pipefail
target=${1:?TARGET} seconds=${2:?SECONDS} build=${3:?BUILD}/fuzz
here=$(cd "$(dirname "$0")" && pwd)

probe() {
    echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n); int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n > 9; }' |
        clang -fopenmp -fsanitize=fuzzer,address,undefined -x c - -o "$build/probe" 2>"$build/probe.log"
}

mkdir -p "$build"
if ! command -v clang >/dev/null || ! probe; then
    echo "skipped: fuzzing needs clang with libFuzzer and OpenMP: apt-get install clang libomp-dev"
    exit 77
fi
(
    flock 9 # the targets share one build
    cmake -S "$here/../.." -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DMHF_FUZZ=ON \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$build/build.log" 2>&1 &&
        cmake --build "$build" -j 2 --target "fuzz_$target" >>"$build/build.log" 2>&1 ||
        { tail -n 30 "$build/build.log"; exit 1; }
) 9>"$build/lock"

folder=$build/$target
mkdir -p "$folder/found"
python3 "$here/seeds.py" "$target" "$folder"
cd "$folder"
# No single allocation may be large: what a file merely claims is not allocated.
if ! env OMP_NUM_THREADS=1 ASAN_OPTIONS=quarantine_size_mb=32 "$build/tests/fuzz_$target" \
    -max_total_time="$seconds" -timeout=20 -malloc_limit_mb=200 -rss_limit_mb=1500 -max_len=16384 \
    -len_control=0 -dict=dictionary -print_final_stats=1 found seeds >log 2>&1; then
    tail -n 60 log
    exit 1
fi
grep -E '^(Done|stat::)' log
