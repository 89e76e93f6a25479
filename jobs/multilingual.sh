#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
# Vocabulary expansion on real text: two base models learn English; their tokenizer grows by 1,280
# tokens each of Chinese, Arabic and Hindi; both models are expanded and trained on, on all four
# languages; a table tells held-out bits per byte before and after. Run it again after an
# interruption and it goes on where it was.
# usage: bash jobs/multilingual.sh [--product] [--steps 300] [--ranks 2] [--out DIR]
#   --product    train MHF with the paper's objective, not on the likelihood of the token itself
#   --steps N    of 4,096 tokens, for each of the four trainings
#   --ranks N    MPI ranks, all of them replicas; 1, 2 or 4
#   --out DIR    where everything goes (out/multilingual, or out/multilingual-product)
set -euo pipefail
cd "$(dirname "$0")/.."
. jobs/steps.sh

usage() {
    echo "multilingual: $1" >&2
    sed -n '7,11s/^# //p' jobs/multilingual.sh >&2
    exit 2
}
objective=vocabulary
steps=300
ranks=2
out=
while [ $# -gt 0 ]; do
    case $1 in
        --product) objective=product ;;
        --steps) steps=${2:-}; [ "$steps" ] || usage "--steps needs a number"; shift ;;
        --ranks) ranks=${2:-}; [ "$ranks" ] || usage "--ranks needs a number"; shift ;;
        --out) out=${2:-}; [ "$out" ] || usage "--out needs a folder"; shift ;;
        *) usage "unknown option $1" ;;
    esac
    shift
done
[[ $steps =~ ^[1-9][0-9]*$ ]] || usage "--steps $steps: expected a number of 1 or more"
[[ $ranks =~ ^[124]$ ]] || usage "--ranks $ranks: expected 1, 2 or 4"
[ "$out" ] || { out=out/multilingual; [ $objective = vocabulary ] || out+=-product; }

packages=out/packages
languages=(en zh ar hi)
models=(standard mhf)
titles=(Standard MHF)
per_language=1280 # 8,192 + 3 x 1,280 tokens: the paper's growth, 32,768 + 3 x 5,120, at a quarter
keep_settings "objective $objective, $steps steps"
mkdir -p "$out/log" "$out/text" "$out/base" "$out/extended" $packages
times=$out/times.tsv

# extend: one text a language, each gives as many new tokens.
extend() {
    run_mhf tokenizer extend "$out/base/tokenizer.json" --per-text $per_language \
        -o "$out/extended/tokenizer.json" \
        "$out/text/zh.train.txt" "$out/text/ar.train.txt" "$out/text/hi.train.txt"
}

# train MODEL CONFIG RUN [OPTION...]
train() {
    run_mhf train "configs/multilingual/$1.yaml" --run "$out/$2" --set "train.steps=$steps" \
        --set "train.warmup=$((steps / 10))" "${@:3}"
}

# evaluate STAGE MODEL CHECKPOINT TOKENIZER: every language's held-out text, as STAGE's numbers.
evaluate() {
    local folder=$out/$2/$1 language
    mkdir -p "$folder"
    for language in "${languages[@]}"; do
        step "evaluate" "$folder/$language.json" into "$folder/$language.json" \
            run_mhf evaluate "$3" -i "$out/$4/$language.holdout.h5" --calibrate --json
    done
    step "evaluate" "$folder/info.json" into "$folder/info.json" "$mhf" info "$3" --json
}

bash jobs/setup.sh
step download $packages/multilingual fetch_packages $packages/multilingual \
    dict-foldoc dict-jargon debian-handbook manpages-zh fortunes-zh libreoffice-help-zh-cn \
    mediawiki libreoffice-l10n-ar libreoffice-l10n-hi libreoffice-help-hi dict-freedict-eng-hin \
    gnucash-common evolution-common vlc-l10n
step build /nonexistent build
step text "$out/text/hi.train.txt" $python jobs/multilingual_text.py \
    $packages/multilingual/unpacked "$out/text"

step tokenizer "$out/base/tokenizer.json" run_mhf tokenizer train --kind byte-level \
    --vocab-size 8192 -o "$out/base/tokenizer.json" "$out/text/en.train.txt"
step "extend tokenizer" "$out/extended/tokenizer.json" extend
step corpus "$out/base/en.train.h5" run_mhf corpus "$out/base/tokenizer.json" \
    -o "$out/base/en.train.h5" "$out/text/en.train.txt"
mixture=
for language in "${languages[@]}"; do
    for part in base/$language.holdout extended/$language.holdout extended/$language.train; do
        step corpus "$out/$part.h5" run_mhf corpus "$out/${part%/*}/tokenizer.json" \
            -o "$out/$part.h5" "$out/text/${part#*/}.txt"
    done
    mixture+="${mixture:+, }{file: $out/extended/$language.train.h5, weight: 1}"
done

last=checkpoints/step-$(printf %08d "$steps").h5
rows=()
for i in "${!models[@]}"; do
    model=${models[i]}
    as=()
    [ "$model" = standard ] || as=(--set "train.objective=$objective")
    base=$out/$model/base-run/$last
    expanded=$out/$model/expanded.h5
    continued=$out/$model/continued-run/$last
    step "train $model base" "$base" train "base-$model" "$model/base-run" "${as[@]}" \
        --set "tokenizer=$out/base/tokenizer.json" --set "data.train=$out/base/en.train.h5"
    step "expand" "$expanded" run_mhf expand "$base" \
        --tokenizer "$out/extended/tokenizer.json" -o "$expanded"
    step "train $model on" "$continued" train continued "$model/continued-run" "${as[@]}" \
        --set "init=$expanded" --set "data.train=[$mixture]"
    evaluate base "$model" "$base" base
    evaluate expanded "$model" "$expanded" extended
    evaluate continued "$model" "$continued" extended
    rows+=("${titles[i]}=$out/$model")
done

say "two models before and after vocabulary expansion"
$python analysis/languages.py "${rows[@]}" --tsv "$out/languages.tsv"
say "time"
$python analysis/table.py times "$times"
echo
echo "All of it is in $out: languages.tsv, and a folder a model."
