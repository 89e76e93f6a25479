#!/bin/bash
# SPDX-License-Identifier: ISC
# Vocabulary expansion from end to end: a tokenizer grows by two languages, both kinds of model are
# expanded and trained on, on several grids, with all but the paper's layers frozen.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_text 5000 3 | LC_ALL=C.UTF-8 sed y/abcdefghiklmnorstuvwy/абцдефгхиклмнорстувыя/ >cyrillic.txt
write_text 5000 4 | LC_ALL=C.UTF-8 sed y/abcdefghiklmnorstuvwy/αβξδεφγχικλμνορστυωζψ/ >greek.txt

expect_exit 0 '' run 1 tokenizer extend tokenizer.json --per-text 60 -o grown.json --quiet cyrillic.txt greek.txt
expect_exit 0 '' run 2 tokenizer extend tokenizer.json --per-text 60 -o again.json --quiet cyrillic.txt greek.txt
expect_same grown.json again.json
expect_refused 3 "cyrillic.txt: gives [0-9]+ new tokens" \
    run 1 tokenizer extend tokenizer.json --per-text 60000 -o many.json cyrillic.txt
[ ! -e many.json ] || fail "a tokenizer of too few tokens is written"
for language in cyrillic greek; do
    run 1 corpus grown.json -o $language.h5 --quiet $language.txt
done

parameters() {
    "$MHF" info "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["parameters"]["total"])'
}

# expect_frozen BEFORE AFTER: layers 2 and 3 of 6 to the bit, every other parameter moved, and no moments
# kept of what is frozen.
expect_frozen() {
    /usr/bin/python3 - "$@" <<'PYTHON' || fail "$2: what moved is not what should move"
import sys
import h5py
import numpy as np

before, after = (h5py.File(path, "r") for path in sys.argv[1:3])
names = sorted(before["parameters"])
assert names == sorted(after["parameters"]) and len(names) > 40
for name in names:
    frozen = ".layers.2." in name or ".layers.3." in name
    x, y = before["parameters"][name][()], after["parameters"][name][()]
    same = x.tobytes() == y.tobytes()
    if same != frozen:
        sys.exit(f"{name}: {'moved' if frozen else 'stays'}")
    for moment in "exp_avg", "exp_avg_sq":
        values = after["optimizer"][moment].get(name)
        if frozen and values is not None and np.any(values[()]):
            sys.exit(f"{name}: has moments")
PYTHON
}

cat >continued.yaml <<'CONFIG'
data: {train: [{file: cyrillic.h5, weight: 1}, {file: greek.h5, weight: 2}], block: 32}
train: {steps: 50, batch: 12, micro_batch: 2, lr: 3.0e-3, warmup: 4, trainable: expansion}
checkpoint: {every: 0, keep: 1}
CONFIG

for kind in product standard; do
    write_config $kind $kind.yaml
    expect_exit 0 '' train 1 1 $kind $kind.yaml --set model.num_hidden_layers=6 --set model.max_position_embeddings=64
    expanded=$kind-expanded.h5
    expect_exit 0 '' run 1 expand $kind --tokenizer grown.json -o $expanded
    grep -q warning said && fail "an extension of ours is warned of: $(grep warning said)"
    added=$(($(parameters $expanded) - $(parameters $kind)))
    if [ $kind = product ]; then
        [ $added = 0 ] || fail "an expanded MHF model has $added new parameters"
    else
        [ $added = $(((512 - 384) * 32)) ] || fail "an expanded Standard model has $added new parameters"
    fi
    expect_refused 3 "continued.yaml: not valid JSON" run 1 expand $kind --tokenizer continued.yaml -o no.h5
    for grid in 1x1 2x1 3x1 1x2 2x2; do
        stages=${grid%x*} replicas=${grid#*x}
        expect_exit 0 '' train $((stages * replicas)) "$stages" $kind-$grid continued.yaml --set init=$expanded
        trained=$(checkpoint $kind-$grid 50)
        expect_frozen $expanded "$trained"
        if [ "$replicas" = 1 ]; then
            expect_metrics $kind-1x1 $kind-$grid 0 step loss losses bits_per_byte lr grad_norm tokens
            expect_equal_groups "$(checkpoint $kind-1x1 50)" "$trained" /parameters /optimizer
        else
            expect_metrics $kind-1x1 $kind-$grid 1e-5 step loss losses bits_per_byte
        fi
    done
    expect_exit 75 '' train 2 1 $kind-cut continued.yaml --set init=$expanded --stop-after 20
    expect_exit 0 '' train 2 1 $kind-cut continued.yaml --set init=$expanded
    expect_equal_groups "$(checkpoint $kind-1x2 50)" "$(checkpoint $kind-cut 50)" /parameters /optimizer
done

# A tokenizer that is no continuation of the model's is refused, and nothing is written.
run 1 tokenizer train --kind byte-level --vocab-size 400 -o other.json --quiet greek.txt
expect_refused 2 "token" run 1 expand product --tokenizer other.json -o no.h5
expect_refused 2 "cyrillic.h5: made with another tokenizer" run 1 train continued.yaml --engine reference --set init=product --run wrong
[ ! -e no.h5 ] || fail "a refused expansion is written"

# One that splits old texts otherwise is warned of.
python3 - <<'PYTHON'
import json
tokenizer = json.load(open("grown.json"))
tokenizer["normalizer"] = {"type": "Lowercase"}
tokenizer["model"]["merges"].reverse()
json.dump(tokenizer, open("changed.json", "w"))
PYTHON
expect_exit 0 "warning: the tokenizer is not as the model's: normalizer, merges \(" \
    run 1 expand product --tokenizer changed.json -o changed.h5
finish
