#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf tokenizer train and mhf corpus: the same bytes for any number of ranks and threads, every form of
# text, held-out documents, bad input.
. "$(dirname "$0")/../support/e2e.sh"
set -e

awk 'BEGIN {
    split("the of and in hash bucket signature token layer matrix rarely ünïcödé 你好 seldom", w, " ")
    srand(7)
    for (d = 0; d < 4000; d++) {
        if (d % 50 == 7) { print " \t\n"; continue }
        line = ""
        for (i = 0; i < 1 + d % 90; i++) line = line w[1 + int(rand() * 14)] (i % 11 == 10 ? "\n" : " ")
        print line "\n"
    }
}' >a.txt
awk 'BEGIN {
    for (d = 0; d < 3000; d++)
        if (d % 100 == 3) print "{\"id\":" d ",\"text\":\" \\n\\u2003\"}"
        else print "{\"text\":\"document " d % 1500 " of many\\n\\nwith two paragraphs \"}"
}' >b.jsonl
gzip -k b.jsonl
zstd -q a.txt

run 1 tokenizer train --kind byte-level --vocab-size 340 -o tokenizer.json a.txt b.jsonl --quiet
run 1 corpus tokenizer.json -o one.h5 --holdout 0.1 a.txt b.jsonl >said 2>&1
grep -q "30 empty ones dropped" said || fail "empty documents: $(cat said)"
cp tokenizer.json first.json
OMP_NUM_THREADS=4 run 1 tokenizer train --kind byte-level --vocab-size 340 -o tokenizer.json --quiet \
    a.txt.zst b.jsonl.gz
cmp first.json tokenizer.json || fail "training depends on threads or on compression"

for ranks in 1 2 3; do
    for threads in 1 3; do
        run $ranks corpus tokenizer.json -o many.h5 --holdout 0.1 --quiet \
            --threads $threads a.txt.zst b.jsonl.gz
        cmp one.h5 many.h5 || fail "tokens differ on $ranks ranks, $threads threads"
        cmp one.holdout.h5 many.holdout.h5 || fail "held-out tokens differ on $ranks ranks"
    done
done
run 1 corpus tokenizer.json -o plain.h5 --quiet - <a.txt
run 1 corpus tokenizer.json -o named.h5 --quiet a.txt
cmp plain.h5 named.h5 || fail "standard input differs from a file"
[ ! -e named.holdout.h5 ] || fail "a held-out store that nobody asked for"

# saved with truncation and padding on: said once, the texts stay whole
python3 - <<'PYTHON'
import json
tokenizer = json.load(open("tokenizer.json"))
tokenizer["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
tokenizer["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
                        "pad_id": 0, "pad_type_id": 0, "pad_token": "!"}
json.dump(tokenizer, open("fitted.json", "w"))
tokenizer["padding"] = 9
json.dump(tokenizer, open("bad.json", "w"))
PYTHON
expect_exit 0 "" run 3 corpus fitted.json -o fitted.h5 --holdout 0.1 a.txt b.jsonl
[ "$(grep -c "fitted.json: 'truncation' and 'padding' are not applied" said)" = 1 ] ||
    fail "truncation and padding are not told of once: $(cat said)"
h5diff one.h5 fitted.h5 /tokens /tokens || fail "truncation or padding changes the tokens"
expect_refused 3 "bad.json: key 'padding' is neither" run 3 corpus bad.json -o bad.h5 a.txt

cp one.h5 kept.h5
printf '{"text":"fine"}\n{"text":7}\n' >bad.jsonl
printf '{"text":"fine"}\n{"text":"fi' >torn.jsonl
head -c 1000 b.jsonl.gz >torn.jsonl.gz
head -c 1000 a.txt.zst >torn.txt.zst
for ranks in 1 3; do
    expect_refused 3 "bad.jsonl line 2" run $ranks corpus tokenizer.json -o kept.h5 a.txt bad.jsonl
    expect_refused 3 "torn.jsonl line 2" run $ranks corpus tokenizer.json -o kept.h5 torn.jsonl
    expect_refused 3 "torn.jsonl.gz line" run $ranks corpus tokenizer.json -o kept.h5 torn.jsonl.gz
    expect_refused 3 "torn.txt.zst line" run $ranks corpus tokenizer.json -o kept.h5 a.txt torn.txt.zst
    expect_refused 4 "absent.txt" run $ranks corpus tokenizer.json -o kept.h5 a.txt absent.txt
    expect_refused 4 "absent.json" run $ranks corpus absent.json -o kept.h5 a.txt
    expect_refused 3 "b.jsonl" run $ranks corpus b.jsonl -o kept.h5 a.txt
    expect_refused 4 "no/folder" run $ranks corpus tokenizer.json -o no/folder/kept.h5 a.txt
    expect_exit 2 "holdout" run $ranks corpus tokenizer.json -o kept.h5 --holdout 1 a.txt
    expect_exit 2 "TEXT" run $ranks corpus tokenizer.json -o kept.h5
    expect_exit 2 "missing" run $ranks corpus tokenizer.json a.txt
done
cmp one.h5 kept.h5 || fail "a failed run touched the old store"
expect_refused 2 "30 tokens" run 1 tokenizer train --kind byte-level --vocab-size 30 -o small.json a.txt
expect_refused 3 "bad.jsonl line 2" run 1 tokenizer train --kind byte-level --vocab-size 300 \
    -o small.json bad.jsonl
[ ! -e small.json ] || fail "a failed training left a tokenizer"
for file in *; do
    case $file in
    *.tmp | *.h5.*) fail "left behind: $file" ;;
    esac
done
finish
