#!/bin/bash
# SPDX-License-Identifier: ISC
# Training that starts from a model: what the model brings, how the configuration tells it, what may not
# be given beside it, and that the objective goes on from model to model.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_config vocabulary vocabulary.yaml
write_config product product.yaml
cat >on.yaml <<'CONFIG'
data: {train: tokens.h5, block: 32}
train: {steps: 6, batch: 4, micro_batch: 2, warmup: 0}
checkpoint: {every: 0}
CONFIG
exact="step loss losses lr grad_norm tokens"

# objective MODEL_OR_FOLDER true|false: what an export's config.json tells of it.
objective() {
    expect_exit 0 '' run 1 export "$1" -o told --quiet
    grep -q "\"use_conditional_prob\": $2" told/config.json || fail "$1: $(grep conditional told/config.json)"
}

for kind in product vocabulary; do
    expect_exit 0 '' train 1 1 $kind $kind.yaml --set model.rope_theta=5e4 --set model.tie_word_embeddings=false \
        --set train.steps=4 --set train.warmup=0
    expect_exit 0 '' run 1 export $kind -o hf-$kind --quiet
done
objective product false
objective vocabulary true
grep -q '"normalize_padding_rows": false' hf-vocabulary/config.json || fail "the padding rows are not told of"
grep -q normalize_padding_rows hf-product/config.json && fail "a product model tells of the normaliser"

# The configuration that a dry run prints, and the one that a run keeps, tell what the model brought, and
# each is a configuration of the same run.
expect_exit 0 '' train 1 1 dry on.yaml --set init=hf-vocabulary --dry-run
cp said printed.yaml
expect_exit 0 '' train 1 1 from-vocabulary on.yaml --set init=hf-vocabulary
for file in printed.yaml from-vocabulary/config.yaml; do
    for line in 'num_hashes: 3' 'num_buckets: 61' 'num_hidden_layers: 4' 'rope_theta: 50000' \
        'tie_word_embeddings: false' 'head: mhf' 'objective: vocabulary' 'rule: imported'; do
        grep -qE "^  # $line +# the model in hf-vocabulary " $file || fail "$file tells no '$line': $(grep "${line%:*}" $file)"
    done
    grep -qE '^# tokenizer: its own +# the model in hf-vocabulary ' $file || fail "$file: $(grep tokenizer: $file)"
    grep -qE '(num_hashes|objective): .*# default' $file && fail "$file tells a default that the model overrides"
done
expect_exit 0 '' train 1 1 from-printed printed.yaml
expect_exit 0 '' train 1 1 from-kept from-vocabulary/config.yaml
expect_exit 75 '' train 2 2 from-cut on.yaml --set init=hf-vocabulary --stop-after 3
expect_exit 0 'num_hashes' cat from-cut/config.yaml
expect_exit 0 '' train 1 1 from-cut from-cut/config.yaml
for other in from-printed from-kept; do expect_metrics from-vocabulary $other 0 $exact; done
expect_metrics from-vocabulary from-cut 1e-5 step loss losses lr tokens
objective from-vocabulary true
objective from-cut true

# Written again by another program, the tokenizer is the same, and the token store serves.
cp -r hf-vocabulary rewritten
python3 - <<'PYTHON'
import json
tokenizer = json.load(open("hf-vocabulary/tokenizer.json"))
json.dump(tokenizer, open("rewritten/tokenizer.json", "w"), indent=2)
PYTHON
cmp -s hf-vocabulary/tokenizer.json rewritten/tokenizer.json && fail "the same bytes"
expect_exit 0 '' train 1 1 from-rewritten on.yaml --set init=rewritten
expect_metrics from-vocabulary from-rewritten 0 $exact
expect_exit 0 '' run 1 evaluate rewritten -i tokens.holdout.h5 --quiet

# The objective is the model's unless it is given, and what it was is told to who comes after.
expect_exit 0 '' train 1 1 from-product on.yaml --set init=hf-product
objective from-product false
expect_exit 0 '' train 1 1 turned on.yaml --set init=hf-vocabulary --set train.objective=product
objective turned false
expect_exit 0 '' train 1 1 turned-on on.yaml --set init=told --dry-run
grep -qE '# objective: product +# the model in told ' said || fail "another objective: $(grep objective said)"
expect_exit 0 '' train 1 1 back on.yaml --set init=turned --set train.objective=vocabulary
objective back true
write_text 4000 7 | tr a-m n-z >more.txt
expect_exit 0 '' run 1 tokenizer extend tokenizer.json --per-text 20 -o grown.json --quiet more.txt
expect_exit 0 '' run 1 expand vocabulary --tokenizer grown.json -o grown.h5
objective grown.h5 true
expect_exit 0 '' run 1 expand turned --tokenizer grown.json -o grown.h5
objective grown.h5 false

# The released objective of an imported model counts padding rows; a turn to the other forgets it.
cp -r hf-vocabulary released
sed -i '/normalize_padding_rows/d' released/config.json
expect_exit 0 '' train 1 1 padded on.yaml --set init=released
expect_metrics from-vocabulary padded 0 lr tokens
python3 - from-vocabulary/metrics.jsonl padded/metrics.jsonl <<'PYTHON' || fail "the normaliser's rows"
import json, sys
ours, released = ([json.loads(line)["loss"] for line in open(name)] for name in sys.argv[1:])
sys.exit(released[0] <= ours[0])  # more rows in the sum, less of it for the token
PYTHON
expect_exit 0 '' run 1 export padded -o told --quiet
grep -q normalize_padding_rows told/config.json && fail "a released model tells what is not released"

# What is given beside a model must be what it has.
refuse() { expect_refused 2 "$1" train 1 1 refused on.yaml --set init=hf-vocabulary "${@:2}"; }
refuse "model.num_hashes is 4, but the model in hf-vocabulary has 3" --set model.num_hashes=4
refuse "model.rope_theta is 1e6, which is not that of the model in hf-vocabulary" --set model.rope_theta=1e6
refuse "model.rms_norm_eps is 1e-5" --set model.rms_norm_eps=1e-5
refuse "model.tie_word_embeddings is true" --set model.tie_word_embeddings=true
refuse "model.lsh_only_embed is true" --set model.lsh_only_embed=true
refuse "model.head is standard" --set model.head=standard
refuse "model.hidden_size is [0-9]+, but" --set model.preset=100m
refuse "model.add_layers is given" --set model.add_layers=1
expect_exit 0 '' run 1 signatures tokenizer.json --hashes 3 --buckets 61 -o table.h5 --quiet
refuse "signatures.file is given beside init" --set signatures.file=table.h5
[ ! -e refused ] || fail "a refused run makes a folder"
expect_exit 0 '' train 1 1 accepted on.yaml --set init=hf-vocabulary --set model.rope_theta=50000 \
    --set model.num_hashes=3 --set model.head=mhf --set model.mask_documents=true --stop-after 99
finish
