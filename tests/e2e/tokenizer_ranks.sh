#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf tokenizer train: the same bytes on any number of ranks and threads, from plain and compressed
# texts; a failure on one rank ends all with one sentence, and leaves nothing behind.
. "$(dirname "$0")/../support/e2e.sh"

write_text 700000 3 >a.txt # several batches for each rank
awk 'BEGIN { for (d = 0; d < 20000; d++) print "{\"text\":\"line " d % 3000 " of many: näive 你好\\nand more\"}" }' >b.jsonl
gzip -k b.jsonl
zstd -q a.txt
rm -f said
mkdir byte-level sentencepiece slow

for kind in byte-level sentencepiece; do
    run 1 tokenizer train --kind $kind --vocab-size 750 -o $kind/tokenizer.json --quiet a.txt b.jsonl ||
        fail "training $kind on one rank"
    for ranks in 2 3 4; do
        threads=$((ranks % 2 + 1))
        run $ranks tokenizer train --kind $kind --vocab-size 750 -o many.json --quiet \
            --threads $threads a.txt.zst b.jsonl.gz || fail "training $kind on $ranks ranks"
        expect_same $kind/tokenizer.json many.json
        rm -f many.json
    done
done
run 3 tokenizer train --like byte-level --vocab-size 700 -o like.json --quiet - <a.txt ||
    fail "training on standard input"
run 1 tokenizer train --like byte-level --vocab-size 700 -o like-one.json --quiet a.txt
expect_same like.json like-one.json

# Fewer texts than ranks, and none at all.
printf 'one line\n' >short.txt
run 1 tokenizer train --kind byte-level --vocab-size 262 -o short-one.json --quiet short.txt
run 4 tokenizer train --kind byte-level --vocab-size 262 -o short.json --quiet short.txt
expect_same short.json short-one.json
: >empty.txt
run 3 tokenizer train --kind byte-level --vocab-size 257 -o empty.json --quiet empty.txt ||
    fail "an empty text"

# An expression that takes too long on what rank 1 gets.
awk 'BEGIN {
    print "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:(?:a+)+)+(?<=b)\"}," \
        "\"behavior\":\"Isolated\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}"
}' >slow/tokenizer.json
awk 'BEGIN { for (i = 0; i < 200; i++) printf "a"; print "" }' >slow.txt
printf '{"text":7}\n' >bad.jsonl
for ranks in 1 3; do
    expect_refused 3 "regular expression" run $ranks tokenizer train --like slow --vocab-size 300 \
        -o bad.json slow.txt
    expect_refused 3 "bad.jsonl line 1" run $ranks tokenizer train --kind byte-level --vocab-size 300 \
        -o bad.json a.txt bad.jsonl
    expect_refused 4 "absent.txt" run $ranks tokenizer train --kind byte-level --vocab-size 300 \
        -o bad.json a.txt absent.txt
    expect_refused 4 "absent.json" run $ranks tokenizer train --like absent.json --vocab-size 300 \
        -o bad.json a.txt
    expect_refused 2 "20 tokens" run $ranks tokenizer train --kind byte-level --vocab-size 20 \
        -o bad.json short.txt
    expect_refused 4 "no/folder" run $ranks tokenizer train --kind byte-level --vocab-size 262 \
        -o no/folder/bad.json short.txt
done
[ ! -e bad.json ] || fail "a failed training left a tokenizer"
finish
