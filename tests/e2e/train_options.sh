#!/bin/bash
# SPDX-License-Identifier: ISC
# What a configuration may ask of a run beside its grid: sizes that don't divide, parts that don't train,
# documents kept apart, several stores, the released denominator, steps that are skipped.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_config product tiny.yaml
exact="step loss losses bits_per_byte lr grad_norm tokens holdout"

# same RUN OTHER: to the bit.
same() {
    expect_metrics "$1" "$2" 0 $exact
    expect_equal_groups "$(checkpoint "$1" 20)" "$(checkpoint "$2" 20)" /parameters /optimizer
}

# close_to RUN OTHER: the losses.
close_to() {
    expect_metrics "$1" "$2" 1e-5 step loss losses bits_per_byte lr tokens holdout
}

# go RUN RANKS STAGES ARGUMENTS...
go() {
    local folder=$1 ranks=$2 stages=$3
    shift 3
    expect_exit 0 '' train "$ranks" "$stages" "$folder" tiny.yaml "$@"
}

# A short last micro-batch; replicas without work; the size of micro-batches is not seen in the loss.
odd=(--set train.batch=5)
go odd-1x1 1 1 "${odd[@]}"
go odd-3x1 3 3 "${odd[@]}"
go odd-1x4 4 1 "${odd[@]}"
go odd-small 1 1 "${odd[@]}" --set train.micro_batch=1
go odd-whole 1 1 "${odd[@]}" --set train.micro_batch=8
same odd-1x1 odd-3x1
for other in odd-1x4 odd-small odd-whole; do close_to odd-1x1 $other; done

# Parts that don't train stay as they were, have no moments, and the rest goes on from a checkpoint.
part=(--set 'train.trainable=[model.norm.*, model.layers.1.*, hash_head.*]' --set checkpoint.every=10)
go part-1x1 1 1 "${part[@]}"
go part-4x1 4 4 "${part[@]}"
same part-1x1 part-4x1
expect_exit 75 '' train 2 2 part-cut tiny.yaml "${part[@]}" --stop-after 7
go part-cut 1 1 "${part[@]}"
same part-1x1 part-cut
for name in model.embed_tokens.weight model.layers.0.mlp.up_proj.weight model.combiner.scorer.0.bias; do
    h5diff -q "$(checkpoint part-1x1 10)" "$(checkpoint part-1x1 20)" "/parameters/$name" ||
        fail "$name was not to be trained"
    h5dump -H -d "/optimizer/exp_avg/$name" "$(checkpoint part-1x1 20)" >/dev/null 2>&1 &&
        fail "$name has moments"
done
h5diff -q "$(checkpoint part-1x1 10)" "$(checkpoint part-1x1 20)" /parameters/model.norm.weight \
    >/dev/null && fail "model.norm.weight did not train"

# Documents kept apart; several stores; untied matrices.
write_text 3000 3 >second.txt
run 1 corpus tokenizer.json -o second.h5 --quiet second.txt
many=(--set 'data.train=[{file: tokens.h5, weight: 3}, {file: second.h5}]' --set model.mask_documents=true
    --set model.tie_word_embeddings=false --set data.evaluate_every=7)
go many-1x1 1 1 "${many[@]}"
go many-3x1 3 3 "${many[@]}"
same many-1x1 many-3x1
go many-1x2 2 1 "${many[@]}"
close_to many-1x1 many-1x2
expect_exit 75 '' train 1 1 many-cut tiny.yaml "${many[@]}" --stop-after 13
go many-cut 1 1 "${many[@]}"
same many-1x1 many-cut
go apart 1 1 "${many[@]}" --set model.mask_documents=false
expect_metrics many-1x1 apart 0 lr tokens

# What --dry-run prints, and what a run folder keeps, is a configuration.
expect_exit 0 '' train 1 1 dry tiny.yaml --set train.lr=2e-3 --dry-run
cp said printed.yaml
[ ! -e dry ] || fail "a dry run makes a folder"
grep -qE 'lr: 2e-3 +# --set' printed.yaml || fail "no origin: $(grep 'lr:' printed.yaml)"
grep -qE 'batch: 12 +# tiny.yaml line [0-9]+' printed.yaml || fail "no origin: $(grep 'batch:' printed.yaml)"
go direct 1 1 --set train.lr=2e-3
expect_exit 0 '' train 1 1 printed printed.yaml
expect_exit 0 '' train 1 1 kept direct/config.yaml
same direct printed
same direct kept

# The released denominator counts labels before the shift.
go exact 1 1 --set train.steps=5
go reference 1 1 --set train.steps=5 --set train.loss_denominator=reference
python3 - exact/metrics.jsonl reference/metrics.jsonl many-1x1/metrics.jsonl apart/metrics.jsonl <<'PYTHON' ||
import json, sys
exact, reference, masked, apart = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
ratio = reference[0]["loss"] / exact[0]["loss"]
if abs(ratio - 31 / 32) > 1e-12:
    sys.exit(f"the losses' ratio is {ratio}")
if masked[-1]["loss"] == apart[-1]["loss"]:
    sys.exit("mask_documents changes nothing")
if [line["step"] for line in masked if "holdout" in line] != [7, 14, 20]:
    sys.exit("evaluated at other steps than 7, 14 and the last")
PYTHON
    fail "metrics"

# Steps whose numbers leave the reals are skipped on request, and said; nothing of them is kept.
wild=(--set train.lr=1000 --set train.weight_decay=1000 --set train.warmup=0 --set train.on_nonfinite=skip
    --set data.evaluate_every=0)
for grid in 1x1 2x1 1x2; do
    stages=${grid%x*} replicas=${grid#*x}
    expect_exit 0 "warning: step [0-9]+ is skipped: .*(model|hash_head)\.[a-z]" \
        train $((stages * replicas)) "$stages" wild-$grid tiny.yaml "${wild[@]}"
    [ "$(grep -c 'step 20 is skipped' said)" -le 1 ] || fail "every rank tells of a skipped step"
    python3 - wild-$grid/metrics.jsonl <<'PYTHON' || fail "$grid: metrics of skipped steps"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
skipped = [line for line in lines if line.get("skipped")]
sys.exit(not (len(lines) == 20 and skipped and all("loss" in line and "grad_norm" in line for line in lines)))
PYTHON
    h5dump -g /parameters -g /optimizer "$(checkpoint wild-$grid 20)" | grep -qiE '(^|[ ,])-?(nan|inf)' &&
        fail "wild-$grid: a checkpoint holds a NaN or infinity"
done
finish
