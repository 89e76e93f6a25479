#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
# The whole job on real text: set up, build, corpus, tokenizer, signatures, three models of one
# size on four MPI ranks, held-out likelihoods, generation, hidden states, layer-wise study, tables,
# figure. Run it again after an interruption and it goes on where it was.
# usage: bash jobs/quickstart.sh [--long] [--pairs TSV]... [--ranks 4] [--out DIR]
#   --long       train on the whole corpus, not on 2 million tokens
#   --pairs TSV  another set of word pairs: word, word, score, tab-separated
#   --ranks N    MPI ranks; two pipeline stages where N is even
#   --out DIR    where everything goes (out/quickstart, or out/quickstart-long)
set -euo pipefail
cd "$(dirname "$0")/.."
. jobs/steps.sh

usage() {
    echo "quickstart: $1" >&2
    sed -n '6,10s/^# //p' jobs/quickstart.sh >&2
    exit 2
}
long=
ranks=4
out=
pairs=()
while [ $# -gt 0 ]; do
    case $1 in
        --long) long=-long ;;
        --pairs) [ "${2:-}" ] || usage "--pairs needs a file"; pairs+=("$2"); shift ;;
        --ranks) ranks=${2:-}; [ "$ranks" ] || usage "--ranks needs a number"; shift ;;
        --out) out=${2:-}; [ "$out" ] || usage "--out needs a folder"; shift ;;
        *) usage "unknown option $1" ;;
    esac
    shift
done
[[ $ranks =~ ^[1-9][0-9]*$ ]] || usage "--ranks $ranks: expected a number of 1 or more"
for file in "${pairs[@]}"; do
    [ -r "$file" ] || { echo "quickstart: --pairs $file: no such file" >&2; exit 4; }
done

out=${out:-out/quickstart$long}
packages=out/packages
models=(standard product vocabulary)
titles=(Standard "MHF product" "MHF vocabulary")
block_tokens=512
batch=8
steps=490
hint=" (--long trains on more)"
amount="$steps steps"
[ -z "$long" ] || amount="the whole corpus"
keep_settings "$amount"
mkdir -p "$out/log" "$out/text" $packages
times=$out/times.tsv

# Packages are unpacked into a folder of ours, not installed.
fetch() (
    part=$PWD/$packages/part
    sandbox=()
    [ "$(id -u)" = 0 ] && sandbox=(-o APT::Sandbox::User=root)
    rm -rf "$part" && mkdir "$part" && cd "$part" &&
        apt-get -qq "${sandbox[@]}" download dict-gcide dict-foldoc dict-jargon wordnet-base &&
        for package in *.deb; do dpkg-deb -x "$package" unpacked || return; done &&
        $python -m pip -q download --disable-pip-version-check --no-deps --only-binary :all: \
            gensim==4.4.0 &&
        $python "$OLDPWD/jobs/pairs.py" gensim-*.whl pairs &&
        mv "$part" ../whole
)

# train MODEL [OPTION...]
train() {
    run_mhf train "configs/quickstart/$1.yaml" --run "$out/$1" "${@:2}" \
        --set "tokenizer=$out/tokenizer.json" --set "data.train=$out/tokens.h5" \
        --set "train.steps=$steps" --set "parallel.stages=$((ranks % 2 ? 1 : 2))"
}

bash jobs/setup.sh
step download $packages/whole fetch
step build /nonexistent build
step text "$out/text/train.txt" $python jobs/corpus.py $packages/whole/unpacked \
    "$out/text/train.txt" "$out/text/holdout.txt" --holdout 0.005
step tokenizer "$out/tokenizer.json" run_mhf tokenizer train --kind byte-level --vocab-size 8192 \
    -o "$out/tokenizer.json" "$out/text/train.txt"
step corpus "$out/tokens.h5" \
    run_mhf corpus "$out/tokenizer.json" -o "$out/tokens.h5" "$out/text/train.txt"
step corpus "$out/holdout.h5" \
    run_mhf corpus "$out/tokenizer.json" -o "$out/holdout.h5" "$out/text/holdout.txt"
step signatures "$out/signatures.h5" run_mhf signatures "$out/tokenizer.json" \
    --hashes 4 --buckets 1008 -o "$out/signatures.h5"

if [ "$long" ]; then
    tokens=$($python -c 'import h5py, sys; print(len(h5py.File(sys.argv[1])["tokens"]))' \
        "$out/tokens.h5")
    steps=$((tokens / (batch * block_tokens)))
    hint=
fi
for model in "${models[@]}"; do
    table=()
    [ "$model" = standard ] || table=(--set "signatures.file=$out/signatures.h5")
    last=$out/$model/checkpoints/step-$(printf %08d "$steps").h5
    step "train $model" "$last" train "$model" "${table[@]}"
done

for model in "${models[@]}"; do
    run=$out/$model
    step evaluate "$run/evaluate.json" into "$run/evaluate.json" \
        run_mhf evaluate "$run" -i "$out/holdout.h5" --calibrate --json
    step evaluate "$run/info.json" into "$run/info.json" "$mhf" info "$run" --json
    temperature=$($python -c 'import json, sys; print(json.load(sys.stdin)["temperature"])' \
        <"$run/evaluate.json")
    step generate "$run/generated.jsonl" into "$run/generated.jsonl" run_mhf generate "$run" \
        -i jobs/prompts.jsonl --max-tokens 40 --temperature "$temperature" --top-p 0.9 --seed 1
done

sets=("$packages/whole/pairs/"{simlex999,wordsim353}.tsv "${pairs[@]}")
declare -A labels=([simlex999]=SimLex-999 [wordsim353]=WordSim-353)
runs=()
texts=()
studies=()
panels=()
for i in "${!models[@]}"; do
    runs+=("${titles[i]}=$out/${models[i]}")
    texts+=("${titles[i]}=$out/${models[i]}/generated.jsonl")
done
for file in "${sets[@]}"; do
    set=$(basename "${file%.*}")
    label=${labels[$set]:-$set}
    words=$out/text/$set.jsonl
    panels+=(--panel "$label")
    into "$words" $python jobs/pairs.py --words "$file"
    for i in "${!models[@]}"; do
        folder=$out/study/$set/${models[i]}
        mkdir -p "$folder"
        step "hidden states" "$folder/states.h5" run_mhf dump "$out/${models[i]}" \
            -i "$words" -o "$folder/states.h5" --pooling mean
        step study "$folder/study.tsv" "$mhf" study rare-words "$folder/states.h5" \
            --pairs "$file" -o "$folder" --template " {}"
        studies+=("$label/${titles[i]}=$folder/study.h5")
        panels+=("${titles[i]}=$folder/study.h5")
    done
done
seen=$(awk -v n=$((steps * batch * block_tokens)) 'BEGIN { printf "%.1f", n / 1e6 }')
step figure /nonexistent $python analysis/layers.py "${panels[@]}" -o "$out/layers.png" \
    --title "Agreement with human word similarity, layer by layer" \
    --note "Each model saw $seen million tokens of dictionaries."
step figure /nonexistent $python analysis/loss.py "${runs[@]}" --key bits_per_byte \
    -o "$out/loss.png"

step rates "$out/rates.txt" into "$out/rates.txt" "$mhf" bench configs/quickstart/product.yaml \
    --set model.vocab_size=8192 --threads 1 --tokens 2048

say "text generated at each model's fitted temperature"
$python analysis/table.py texts jobs/prompts.jsonl "${texts[@]}"
say "three models of one size, the same tokens and schedule"
$python analysis/table.py models "${runs[@]}" --tsv "$out/models.tsv"
say "agreement with human word similarity"
$python analysis/table.py study "${studies[@]}" --tsv "$out/study.tsv"
echo "So few tokens ($seen million) can leave the intervals around zero$hint."
say "rates of MHF product's shapes on one core"
cat "$out/rates.txt"
say "time"
$python analysis/table.py times "$times"
echo
echo "All of it is in $out: models.tsv, study.tsv, rates.txt, layers.png, loss.png, and a folder a model."
