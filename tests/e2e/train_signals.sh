#!/bin/bash
# SPDX-License-Identifier: ISC
# Requests to stop that arrive in the middle of large products, whatever multiplies them: some libraries'
# kernels keep data on the stack where a signal's handler would run.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
cat >large.yaml <<'CONFIG'
model: {num_hashes: 3, num_buckets: 1008, hidden_size: 128, num_hidden_layers: 2, num_attention_heads: 4,
        num_key_value_heads: 2, head_dim: 32, intermediate_size: 512, bottle_neck_dim: 16,
        max_position_embeddings: 256}
tokenizer: tokenizer.json
data: {train: tokens.h5, block: 256}
train: {steps: 1000000, batch: 8, micro_batch: 2}
checkpoint: {every: 0, keep: 1}
CONFIG

# flood PROCESS: hundreds of requests within a step or two, until it has ended.
flood() {
    for ((i = 0; i < 1000; i++)); do
        kill -USR1 "$1" 2>/dev/null && kill -TERM "$1" 2>/dev/null || return
        sleep 0.001
    done
}

for engine in onednn blis reference; do
    for threads in 1 2; do
        run_folder=$engine-$threads
        timeout -k 5 300 "$MHF" train large.yaml --engine $engine --threads $threads --quiet \
            --run "$run_folder" >"$run_folder.said" 2>&1 &
        job=$!
        wait_for_step "$run_folder" 1 || break
        flood "$(ranks_of $job)"
        expect_end 75 $job "$run_folder"
        expect_exit 0 '' run 1 info "$run_folder" --verify
    done
done
finish
