#!/bin/bash
# SPDX-License-Identifier: ISC
# What is wrong with a configuration, a file or the numbers is told in one sentence with its exit code, on
# one rank and on two, without a hang and without leaving a run behind.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_config product tiny.yaml
write_config standard standard.yaml
sed 's/^train: {/train: {stepz: 3, /' tiny.yaml >unknown.yaml
sed 's/steps: 20/steps: many/' tiny.yaml >type.yaml
sed 's/steps: 20/steps: 20, steps: 21/' tiny.yaml >twice.yaml
printf 'train: {steps: 3\nrun: [' >torn.yaml
printf '\001\377\376{\n\t[\000\375' >noise.yaml
write_text 3000 5 >other.txt
run 1 tokenizer train --kind byte-level --vocab-size 300 -o other.json --quiet other.txt
run 1 corpus other.json -o other.h5 --quiet other.txt
head -c 4000 tokens.h5 >torn.h5
head -c 3000 tokenizer.json >torn.json
printf 'a b c d\n' >short.txt
run 1 corpus tokenizer.json -o short.h5 --quiet short.txt
run 1 signatures other.json --hashes 3 --buckets 61 -o other-table.h5 --quiet >said 2>&1

# refuse RANKS CODE REGEX CONFIG ARGUMENTS...: no run folder is left.
refuse() {
    local ranks=$1 code=$2 regex=$3 config=$4
    shift 4
    expect_refused "$code" "$regex" train "$ranks" 1 bad "$config" "$@"
    grep -q 'error: rank 0' said && fail "rank 0 names itself: $(cat said)"
    [ ! -e bad ] || fail "a refused run left its folder: $regex"
    rm -rf bad
}

for ranks in 1 2; do
    refuse $ranks 4 "absent.yaml" absent.yaml
    refuse $ranks 4 "absent.h5" tiny.yaml --set data.train=absent.h5
    refuse $ranks 4 "/proc/no" tiny.yaml --run /proc/no
    refuse $ranks 2 "unknown.yaml line [0-9]+: .*train.stepz" unknown.yaml
    refuse $ranks 2 "key=value" tiny.yaml --set train.steps
    refuse $ranks 2 "other.h5.*another tokenizer" tiny.yaml --set data.holdout=other.h5
    refuse $ranks 2 "[0-9]+ tokens" tiny.yaml --set model.num_hashes=1
    refuse $ranks 2 "max_position_embeddings" tiny.yaml --set data.block=65
    refuse $ranks 2 "bfloat16" tiny.yaml --set train.precision=bfloat16
    refuse $ranks 2 "reduction_shards is 3" tiny.yaml --set parallel.reduction_shards=3
    refuse $ranks 2 "parallel.stages is 3" tiny.yaml --set parallel.stages=3
    refuse $ranks 3 "torn.h5" tiny.yaml --set data.train=torn.h5
    refuse $ranks 3 "torn.json" tiny.yaml --set tokenizer=torn.json
    refuse $ranks 2 "engine" tiny.yaml --engine no-such-engine
done
refuse 1 4 "absent.json" tiny.yaml --set tokenizer=absent.json
refuse 1 4 "absent.h5" tiny.yaml --set data.holdout=absent.h5
refuse 1 4 "absent-model" tiny.yaml --set init=absent-model
refuse 1 4 "absent-table" tiny.yaml --set signatures.file=absent-table.h5
refuse 1 2 "type.yaml line [0-9]+: .*train.steps.*many" type.yaml
refuse 1 2 "twice.yaml line [0-9]+: .*steps.* twice" twice.yaml
refuse 1 2 "torn.yaml line [0-9]+" torn.yaml
refuse 1 2 "noise.yaml" noise.yaml
refuse 1 2 "train.stepz" tiny.yaml --set train.stepz=3
refuse 1 2 "other.h5.*another tokenizer" tiny.yaml --set data.train=other.h5
refuse 1 2 "other-table" tiny.yaml --set signatures.file=other-table.h5
refuse 1 2 "prefix|signature|token" tiny.yaml --set model.num_hashes=2 --set model.num_buckets=3
refuse 1 2 "vocab_size" tiny.yaml --set model.vocab_size=256
refuse 1 2 "hidden_size" tiny.yaml --set model.hidden_size=0
refuse 1 2 "num_key_value_heads" tiny.yaml --set model.num_key_value_heads=3
refuse 1 2 "no_such" tiny.yaml --set 'train.trainable=[no_such.*]'
refuse 1 2 "data.train" tiny.yaml --set data.train=
refuse 1 2 "data.train" tiny.yaml --set 'data.train=[{file: tokens.h5, weight: 0}]'
refuse 1 2 "tokenizer" tiny.yaml --set tokenizer=
refuse 1 2 "warmup" tiny.yaml --set train.warmup=21
refuse 1 3 "text.txt" tiny.yaml --set data.train=text.txt
refuse 1 3 "short.h5" tiny.yaml --set data.train=short.h5
refuse 1 3 "short.h5" tiny.yaml --set data.holdout=short.h5
expect_refused 2 "parallel.stages is 2 and there are 3 ranks" train 3 2 bad tiny.yaml
expect_refused 2 "parallel.stages is 4.*at most 3" train 4 4 bad tiny.yaml --set model.num_hidden_layers=1
expect_refused 2 "parallel.layers adds up to 5" train 2 2 bad tiny.yaml --set 'parallel.layers=[2, 3]'
expect_exit 2 "CONFIG.yaml" run 2 train
expect_exit 2 "stop-after" run 2 train tiny.yaml --stop-after -1
expect_exit 2 "resume" run 2 train tiny.yaml --resume maybe
[ ! -e bad ] || fail "a refused run left its folder"

# ---- numbers that leave the reals: tensor and step are named, no checkpoint holds them
clean_checkpoints() {
    local file
    for file in "$1"/checkpoints/*.h5; do
        [ -e "$file" ] || continue
        h5dump -g /parameters -g /optimizer "$file" | grep -qiE '(^|[ ,])-?(nan|inf)' &&
            fail "$file holds a NaN or infinity"
    done
}
wild=(--set train.lr=1000 --set train.weight_decay=1000 --set train.warmup=0 --set checkpoint.every=1)
for grid in 1x1 2x1 1x2; do
    stages=${grid%x*} replicas=${grid#*x}
    expect_refused 5 "step [0-9]+: .*(model|hash_head)\.[a-z_0-9.]+" \
        train $((stages * replicas)) "$stages" wild-$grid tiny.yaml "${wild[@]}"
    clean_checkpoints wild-$grid
done

# make_folder FOLDER V VALUE: a Hugging Face directory of a Standard model of V rows, one weight VALUE.
make_folder() {
    mkdir -p "$1"
    cp tokenizer.json tokenizer_config.json "$1/"
    python3 - "$@" <<'PYTHON'
import json, struct, sys
folder, V, value = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
d, f, q, kv, h = 32, 64, 32, 16, 8
shapes = {"model.embed_tokens.weight": [V, d], "model.norm.weight": [d]}
for layer in range(2):
    for name, shape in {"self_attn.q_proj": [q, d], "self_attn.k_proj": [kv, d], "self_attn.v_proj": [kv, d],
                        "self_attn.o_proj": [d, q], "self_attn.q_norm": [h], "self_attn.k_norm": [h],
                        "mlp.gate_proj": [f, d], "mlp.up_proj": [f, d], "mlp.down_proj": [d, f],
                        "input_layernorm": [d], "post_attention_layernorm": [d]}.items():
        shapes[f"model.layers.{layer}.{name}.weight"] = shape
header, data = {}, b""
for name, shape in shapes.items():
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    values = [((i * 7919) % 13 - 6) / 100 if len(shape) > 1 else 1.0 for i in range(n)]
    if name == "model.layers.1.mlp.up_proj.weight":
        values[n // 2] = value
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * n]}
    data += struct.pack(f"<{n}f", *values)
text = json.dumps(header).encode()
open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
json.dump({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": V, "hidden_size": d,
           "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": h,
           "intermediate_size": f, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
           "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "tie_word_embeddings": True,
           "hidden_act": "silu"}, open(folder + "/config.json", "w"))
PYTHON
}

# One whose last layer holds a NaN is not trained from.
make_folder poisoned 384 nan
cat >poisoned.yaml <<'CONFIG'
model: {head: standard}
init: poisoned
data: {train: tokens.h5, block: 32}
train: {steps: 5, batch: 4, micro_batch: 2, warmup: 0}
CONFIG
expect_refused 3 "^error: (rank 1: )?poisoned: .*model.layers.1.mlp.up_proj.weight" train 1 1 poisoned-1x1 poisoned.yaml
expect_refused 3 "^error: (rank 1: )?poisoned: .*model.layers.1.mlp.up_proj.weight" \
    train 2 2 poisoned-2x1 poisoned.yaml
ls poisoned-*/checkpoints/*.h5 >/dev/null 2>&1 && fail "a checkpoint of a poisoned model"

# The rows of a model from elsewhere are what they are, as long as there is one for each token.
for rows in 382 379; do
    make_folder rows-$rows $rows 0.5
    sed "s/init: poisoned/init: rows-$rows/" poisoned.yaml >rows-$rows.yaml
done
expect_exit 0 '' train 2 2 odd-2x1 rows-382.yaml
expect_exit 0 '' run 1 export odd-2x1 -o odd
grep -q '"vocab_size": 382' odd/config.json || fail "other rows after training"
expect_refused 3 "rows-379: its tokenizer has 380 tokens, more than the model.s 379 rows" train 2 2 few-2x1 rows-379.yaml
finish
