#!/bin/bash
# SPDX-License-Identifier: ISC
# A rank that is killed ends the job within 10 s and loses no more than the work since the last
# checkpoint; one that stands still is told of within --stall-seconds.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_config product tiny.yaml
long=(--set train.steps=1000000 --set data.evaluate_every=0 --set checkpoint.every=1)

# check_folder RUN: every checkpoint with a final name is whole.
check_folder() {
    local file
    for file in "$1"/checkpoints/*.h5; do
        run 1 info "$file" >/dev/null 2>said || fail "$1: $file is not whole: $(cat said)"
        h5dump -H "$file" >/dev/null 2>&1 || fail "$1: $file can't be read by others"
    done
}

# kill_and_resume RUN RANKS STAGES KILLED-STAGE
kill_and_resume() {
    local folder=$1 ranks=$2 stages=$3 victim=$4 begun found=0 at
    start "$ranks" "$stages" "$folder" tiny.yaml "${long[@]}"
    wait_for_step "$folder" 4
    kill -KILL "$(ranks_of "$job" | sort -n | sed -n "$((victim + 1))p")"
    begun=$(date +%s%N)
    wait "$job" 2>/dev/null || found=$?
    [ $(($(date +%s%N) - begun)) -lt 10000000000 ] || fail "$folder: took more than 10 s to end"
    [ $found != 0 ] && [ $found != 124 ] || fail "$folder: exit code $found after a kill"
    check_folder "$folder"
    at=$(ls "$folder/checkpoints" | sed -n 's/^step-0*\([0-9]*\)\.h5$/\1/p' | sort -n | tail -n 1)
    [ "$at" -ge 3 ] || fail "$folder: newest checkpoint $at, expected the one before the kill"
    expect_exit 75 "goes on from .*step-0*$at.h5" train "$ranks" "$stages" "$folder" tiny.yaml "${long[@]}" \
        --stop-after $((at + 2)) --log-level info
    [ "$(wc -l <"$folder/metrics.jsonl")" = $((at + 2)) ] || fail "$folder: steps are missing or twice there"
    ls "$folder"/checkpoints/*.tmp >/dev/null 2>&1 && fail "$folder: a temporary file stays"
}
kill_and_resume first 4 2 0
kill_and_resume last 4 2 3
kill_and_resume alone 1 1 0

# What was killed and went on is what never was killed.
expect_exit 75 '' train 4 2 never tiny.yaml "${long[@]}" --stop-after "$(wc -l <first/metrics.jsonl)"
expect_metrics first never 0 step loss losses bits_per_byte lr grad_norm tokens

# stall RUN RANKS STAGES STOPPED-RANK: the others, and the launcher, end the job.
stall() {
    local folder=$1 ranks=$2 stages=$3 begun found=0
    start "$ranks" "$stages" "$folder" tiny.yaml "${long[@]}" --set checkpoint.every=0 --stall-seconds 2
    wait_for_step "$folder" 2
    kill -STOP "$(ranks_of "$job" | sort -n | sed -n "$(($4 + 1))p")"
    begun=$(date +%s%N)
    wait "$job" 2>/dev/null || found=$?
    [ $(($(date +%s%N) - begun)) -lt 20000000000 ] || fail "$folder: took more than 20 s to end"
    [ $found != 0 ] && [ $found != 124 ] || fail "$folder: exit code $found after a stall"
    grep -qE "error: rank [0-9]+: no progress for [0-9]+ s at step [0-9]+, [a-z]" "$folder.said" ||
        fail "$folder: not said where: $(tail -n 5 "$folder.said")"
}
stall stalled 2 2 1
stall stalled-replica 2 1 0
finish
