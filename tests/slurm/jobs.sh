#!/bin/bash
# SPDX-License-Identifier: ISC
# The scripts of jobs/ on a real Slurm: train goes back into the queue when its time is over and goes on,
# to the bit as if it had never stopped; a stop file and an error end it; score, dump and study give what
# they give without Slurm.
. "$(dirname "$0")/../support/e2e.sh"
. "$(dirname "$0")/cluster.sh"
jobs=$(cd "$(dirname "$0")/../../jobs" && pwd)
for program in slurmctld slurmd munged; do
    if [ "$(id -u)" != 0 ] || ! command -v $program >/dev/null; then
        echo "skipped: root, and the packages slurmctld, slurmd and munge, are needed: bash jobs/setup.sh --full"
        exit 77
    fi
done
trap 'cluster_down; rm -rf "$work"' EXIT
cluster_up || { echo "Slurm does not come up"; exit 1; }
export MHF
make_inputs || fail "no inputs"
write_config product tiny.yaml
options=(--engine reference --quiet --set parallel.stages=2 --set data.evaluate_every=0 --set checkpoint.keep=1)

# ---- out of time: requeued, and on
submit "$jobs/train.sbatch" tiny.yaml tokenizer.json tokens.h5 "${options[@]}" --run run --set train.steps=400
wait_for_step run 3
scancel --batch --signal=USR1 "$job"
for i in $(seq 300); do
    [ -f run/checkpoints ] || [ "$(state_of "$job")" = "RUNNING 0" ] || break
    sleep 0.2
done
expect_state "$job" COMPLETED 1
grep -q "back into the queue" "mhf-train-$job.log" || fail "the script says nothing of the queue"
expect_exit 0 '' run 2 train tiny.yaml "${options[@]}" --run whole --set train.steps=400 --set data.train=tokens.h5
expect_metrics whole run 0 step loss losses lr grad_norm tokens
expect_equal_groups "$(checkpoint whole 400)" "$(checkpoint run 400)" /parameters /optimizer

# ---- somebody's stop file means stop; an error is an error
submit "$jobs/train.sbatch" tiny.yaml tokenizer.json tokens.h5 "${options[@]}" --run stopped --set train.steps=1000000
wait_for_step stopped 3
touch stopped/STOP
expect_state "$job" FAILED 0
ls stopped/checkpoints/step-*.h5 >/dev/null || fail "a stopped job leaves no checkpoint"
submit "$jobs/train.sbatch" tiny.yaml tokenizer.json absent.h5 --run bad
expect_state "$job" FAILED 0
grep -q "^error: absent.h5: can't open" "mhf-train-$job.log" || fail "no sentence in the log: $(cat "./mhf-"*"-$job.log")"

# ---- the other scripts
printf '{"context":"the","continuation":" sta"}\n{"text":"ba ke li mo"}\n' >requests.jsonl
printf 'the\tsta\t3\nba\tke\t1\nli\tmo\t2\n' >pairs.tsv
submit "$jobs/score.sbatch" run requests.jsonl scores.jsonl
expect_state "$job" COMPLETED 0
expect_exit 0 '' run 1 score run -i requests.jsonl -o direct.jsonl
expect_same scores.jsonl direct.jsonl
submit "$jobs/dump.sbatch" run requests.jsonl states.h5
expect_state "$job" FAILED 0 # the first line has no "text"
grep -q "^error: requests.jsonl line 1: " "mhf-dump-$job.log" || fail "no sentence in the log: $(cat "./mhf-"*"-$job.log")"
printf '{"text":"ba ke"}\n{"text":"li mo nu"}\n' >items.jsonl
submit "$jobs/dump.sbatch" run items.jsonl states.h5
expect_state "$job" COMPLETED 0
expect_exit 0 '' run 1 dump run -i items.jsonl -o direct.h5
expect_equal_groups direct.h5 states.h5 /layers /items
MHF_ANALYSIS=$jobs/../analysis submit "$jobs/study.sbatch" run pairs.tsv study --draws 100
expect_state "$job" COMPLETED 0
expect_exit 0 '' run 1 study rare-words run --pairs pairs.tsv -o direct --draws 100
expect_same direct/study.tsv study/study.tsv
finish
