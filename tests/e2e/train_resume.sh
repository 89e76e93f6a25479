#!/bin/bash
# SPDX-License-Identifier: ISC
# Stop and go on: 20 steps = 11 + 9 to the bit; every way to ask for a stop; what may not change; damaged
# checkpoints and torn metrics.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_config product tiny.yaml
exact="step loss losses bits_per_byte lr grad_norm tokens holdout"

# same_end RUN WHOLE: RUN came to the end of 20 steps as WHOLE did.
same_end() {
    expect_metrics "$2" "$1" 0 $exact
    expect_equal_groups "$(checkpoint "$2" 20)" "$(checkpoint "$1" 20)" /parameters /optimizer
}

# ---- 20 = 11 + 9, on the same grid and on one of as many replicas
for grid in 1x1 2x2; do
    stages=${grid%x*} replicas=${grid#*x}
    ranks=$((stages * replicas))
    expect_exit 0 '' train $ranks "$stages" whole-$grid tiny.yaml
    expect_exit 75 "stopped after step 11 of 20" \
        train $ranks "$stages" cut-$grid tiny.yaml --stop-after 11 --log-level info
    [ "$(wc -l <cut-$grid/metrics.jsonl)" = 11 ] || fail "not 11 lines of metrics"
    cp -r cut-$grid moved-$grid
    expect_exit 0 "goes on from cut-$grid/checkpoints/step-00000011.h5" \
        train $ranks "$stages" cut-$grid tiny.yaml --log-level info
    same_end cut-$grid whole-$grid
done
expect_exit 0 '' train 2 2 moved-1x1 tiny.yaml --resume exact
same_end moved-1x1 whole-1x1
expect_exit 0 '' train 2 1 moved-2x2 tiny.yaml
same_end moved-2x2 whole-2x2
expect_exit 0 '' train 1 1 whole-1x1 tiny.yaml # nothing is left to do
expect_metrics moved-1x1 whole-1x1 0 $exact

# ---- ways to stop
mkdir stop
touch stop/STOP
expect_exit 75 "stopped after step 1 of 20" train 1 1 stop tiny.yaml --log-level info
[ ! -e stop/STOP ] || fail "the stop file stays"
expect_exit 75 "stopped after step 2 of 20" train 2 1 stop tiny.yaml --max-hours 1e-9 --log-level info
for way in "1 1 USR1 rank" "1 1 TERM rank" "4 2 USR1 launcher" "4 2 TERM rank"; do
    read -r ranks stages signal whom <<<"$way"
    folder=signal-$ranks-$signal
    start "$ranks" "$stages" "$folder" tiny.yaml --set train.steps=1000000 --set data.evaluate_every=0
    wait_for_step "$folder" 3
    if [ "$whom" = launcher ]; then
        kill -"$signal" "$(pgrep -P "$job")"
    else
        kill -"$signal" "$(ranks_of "$job" | tail -n 1)"
    fi
    expect_end 75 "$job" "$folder"
    step=$(wc -l <"$folder/metrics.jsonl")
    [ -f "$(checkpoint "$folder" "$step")" ] || fail "$folder: no checkpoint of its last step $step"
    expect_exit 75 "stopped after step $((step + 1)) of" train "$ranks" "$stages" "$folder" tiny.yaml \
        --set train.steps=1000000 --set data.evaluate_every=0 --stop-after $((step + 1)) --log-level info
done

# ---- what a run folder refuses
expect_refused 2 "none" train 1 1 whole-1x1 tiny.yaml --resume none
expect_refused 2 "threads" train 1 1 moved-1x1 tiny.yaml --resume exact --threads 2
expect_refused 2 "replicas" train 2 1 moved-1x1 tiny.yaml --resume exact
expect_refused 2 "engine" train 1 1 moved-1x1 tiny.yaml --resume exact --engine blis
for change in train.lr=4e-3 train.seed=43 train.batch=6 data.block=16 model.num_buckets=71 \
    train.objective=vocabulary data.train=tokens.holdout.h5 data.holdout= train.steps=19; do
    expect_refused 2 "${change%%=*}.*${change#*=}" train 1 1 whole-1x1 tiny.yaml --set "$change"
done
expect_refused 2 "train.seed: 42.*43" train 2 2 whole-1x1 tiny.yaml --set train.seed=43
write_text 12000 2 >other.txt
cp tokens.h5 kept.h5
run 1 corpus tokenizer.json -o tokens.h5 --quiet other.txt
expect_refused 2 "other tokens" train 1 1 cut-1x1 tiny.yaml --set train.steps=21
mv kept.h5 tokens.h5
expect_exit 0 "train.steps grows from 20 to 22" \
    train 1 1 cut-1x1 tiny.yaml --set train.steps=22 --log-level info
[ "$(tail -n 1 cut-1x1/metrics.jsonl | grep -c '"step":22')" = 1 ] || fail "no step 22"

start 1 1 held tiny.yaml --set train.steps=1000000
holder=$job
wait_for_step held 1
expect_refused 2 "another job is running here .*process" train 1 1 held tiny.yaml --set train.steps=1000000
expect_refused 2 "another job is running here" train 2 2 held tiny.yaml --set train.steps=1000000
touch held/STOP
expect_end 75 "$holder" held

# ---- damaged files
expect_exit 0 '' train 1 1 hurt tiny.yaml --set checkpoint.every=5
cp -r hurt flipped
truncate -s -1000 "$(checkpoint hurt 20)"
cp "$(checkpoint hurt 15)" "$(checkpoint hurt 25).tmp" # an interrupted save is no checkpoint
printf '{"step":21,"loss":1}\n{"step":22,"los' >>hurt/metrics.jsonl
expect_exit 0 "refused: .*step-00000020.h5" train 1 1 hurt tiny.yaml --set checkpoint.every=5
same_end hurt whole-1x1
ls hurt/checkpoints/*.tmp >/dev/null 2>&1 && fail "an interrupted save stays"
size=$(stat -c %s "$(checkpoint flipped 20)")
printf 'mhf' | dd of="$(checkpoint flipped 20)" bs=1 seek=$((size / 2)) conv=notrunc status=none
expect_exit 0 "refused: .*step-00000020.h5" train 2 2 flipped tiny.yaml --set checkpoint.every=5
same_end flipped whole-1x1
for step in 15 20; do truncate -s 100 "$(checkpoint flipped $step)"; done
expect_exit 0 "refused: .*step-00000015.h5" train 1 1 flipped tiny.yaml --set checkpoint.every=5
same_end flipped whole-1x1

# Damaged ones that are newer count for nothing when old ones go; a copy under another name is refused; and
# a stop that is reached already does no step more.
expect_exit 75 '' train 1 1 kept tiny.yaml --stop-after 8 --set checkpoint.every=4
cp "$(checkpoint kept 8)" "$(checkpoint kept 12)"
cp "$(checkpoint kept 8)" "$(checkpoint kept 16)"
truncate -s -1000 "$(checkpoint kept 16)"
mkdir "$(checkpoint kept 18)"
expect_exit 75 "refused: .*step-00000012.h5: is of step 8" train 1 1 kept tiny.yaml --stop-after 9
[ -f "$(checkpoint kept 9)" ] && [ -f "$(checkpoint kept 8)" ] && [ ! -f "$(checkpoint kept 4)" ] ||
    fail "kept: $(ls kept/checkpoints)"
for step in 5 9; do
    expect_exit 75 "stopped after step 9 of 20" train 1 1 kept tiny.yaml --stop-after $step --log-level info
done
[ "$(wc -l <kept/metrics.jsonl)" = 9 ] || fail "a stop that is reached does a step more"
expect_exit 0 '' train 2 2 kept tiny.yaml
same_end kept whole-1x1
expect_exit 0 "step 20 of 20 is done, there is nothing to do" train 1 1 kept tiny.yaml --log-level info
finish
