#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
# Set up, build and run the tests.
# usage: bash tests/run.sh [--full] [--sanitize] [-R PATTERN]
#   --full      the long sets too: labels full, slurm, fuzz, lmeval; an hour on two cores
#   --sanitize  the build with AddressSanitizer and UndefinedBehaviorSanitizer
#   -R PATTERN  only the tests whose names match
# With CI in the environment the quick unit tests run under the sanitizers as well.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
exclude='full|slurm|fuzz|lmeval'
setup=()
pattern=.
while [ $# -gt 0 ]; do
    case $1 in
        --full) exclude='^$' setup=(--full) ;;
        --sanitize) preset=sanitize ;;
        -R) [ "${2:-}" ] || { echo "-R needs a pattern" >&2; exit 2; }; pattern=$2; shift ;;
        *) sed -n '4,8s/^# //p' "$0" >&2; exit 2 ;;
    esac
    shift
done

bash jobs/setup.sh "${setup[@]}"
started=$SECONDS
failed=0

# build PRESET
build() {
    local log=build/$1.log begun=$SECONDS
    mkdir -p build
    if ! { cmake --preset "$1" && cmake --build --preset "$1"; } >"$log" 2>&1; then
        grep -E 'rror|warning:|FAILED' "$log" | head -40 >&2
        echo "the $1 build failed; all of its output is in $log" >&2
        exit 1
    fi
    echo "build: $1, $((SECONDS - begun)) s, $(grep -c 'warning:' "$log" || true) warnings"
}

# run_tests PRESET CTEST-OPTIONS...: run, then say what the programs skipped and how much they checked.
run_tests() {
    local folder=build/$1 log=build/$1/Testing/Temporary/LastTest.log
    shift
    ctest --test-dir "$folder" --output-on-failure --no-tests=error -j 2 "$@" || failed=1
    [ -f "$log" ] || return 0
    grep -aoE 'skipped: .*' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) /  \1 x /' || true
    awk '/^ *tests +[0-9]/ { tests += $3 } /^ *asserts +[0-9]/ { checks += $3 }
        END { if (tests) printf "CUnit: %d tests, %d checks\n", tests, checks }' "$log"
}

build $preset
run_tests $preset -R "$pattern" -LE "$exclude"
if [ "${CI:-}" ] && [ $preset = release ]; then
    build sanitize
    run_tests sanitize -L unit -LE "slow|mpi|$exclude"
fi
echo "tests/run.sh: $((SECONDS - started)) s after set-up"
exit $failed
