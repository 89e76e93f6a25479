#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf tokenizer train and mhf corpus: the same bytes for any number of ranks and threads, every form of
# text, held-out documents, bad input.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# expect_code CODE WORD COMMAND...: the exit code, and WORD in what the command says.
expect_code() {
    local code=$1 word=$2 found=0
    shift 2
    timeout 120 "$@" >said 2>&1 || found=$?
    [ "$found" = "$code" ] || fail "exit code $found, expected $code: $*: $(cat said)"
    grep -q -e "$word" said || fail "no '$word' in: $(cat said)"
}

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

"$MHF" tokenizer train --kind byte-level --vocab-size 340 -o tokenizer.json a.txt b.jsonl --quiet
"$MHF" corpus tokenizer.json -o one.h5 --holdout 0.1 a.txt b.jsonl >said 2>&1
grep -q "30 empty ones dropped" said || fail "empty documents: $(cat said)"
cp tokenizer.json first.json
OMP_NUM_THREADS=4 "$MHF" tokenizer train --kind byte-level --vocab-size 340 -o tokenizer.json --quiet \
    a.txt.zst b.jsonl.gz
cmp first.json tokenizer.json || fail "training depends on threads or on compression"

for ranks in 1 2 3; do
    for threads in 1 3; do
        mpirun -n $ranks "$MHF" corpus tokenizer.json -o many.h5 --holdout 0.1 --quiet \
            --threads $threads a.txt.zst b.jsonl.gz
        cmp one.h5 many.h5 || fail "tokens differ on $ranks ranks, $threads threads"
        cmp one.holdout.h5 many.holdout.h5 || fail "held-out tokens differ on $ranks ranks"
    done
done
"$MHF" corpus tokenizer.json -o plain.h5 --quiet - <a.txt
"$MHF" corpus tokenizer.json -o named.h5 --quiet a.txt
cmp plain.h5 named.h5 || fail "standard input differs from a file"
[ ! -e named.holdout.h5 ] || fail "a held-out store that nobody asked for"

cp one.h5 kept.h5
printf '{"text":"fine"}\n{"text":7}\n' >bad.jsonl
printf '{"text":"fine"}\n{"text":"fi' >torn.jsonl
head -c 1000 b.jsonl.gz >torn.jsonl.gz
head -c 1000 a.txt.zst >torn.txt.zst
for ranks in 1 3; do
    run=("$MHF" corpus)
    [ $ranks = 1 ] || run=(mpirun -n $ranks "$MHF" corpus)
    expect_code 3 "bad.jsonl line 2" "${run[@]}" tokenizer.json -o kept.h5 a.txt bad.jsonl
    expect_code 3 "torn.jsonl line 2" "${run[@]}" tokenizer.json -o kept.h5 torn.jsonl
    expect_code 3 "torn.jsonl.gz line" "${run[@]}" tokenizer.json -o kept.h5 torn.jsonl.gz
    expect_code 3 "torn.txt.zst line" "${run[@]}" tokenizer.json -o kept.h5 a.txt torn.txt.zst
    expect_code 4 "absent.txt" "${run[@]}" tokenizer.json -o kept.h5 a.txt absent.txt
    expect_code 4 "absent.json" "${run[@]}" absent.json -o kept.h5 a.txt
    expect_code 3 "b.jsonl" "${run[@]}" b.jsonl -o kept.h5 a.txt
    expect_code 4 "no/folder" "${run[@]}" tokenizer.json -o no/folder/kept.h5 a.txt
    expect_code 2 "holdout" "${run[@]}" tokenizer.json -o kept.h5 --holdout 1 a.txt
    expect_code 2 "TEXT" "${run[@]}" tokenizer.json -o kept.h5
    expect_code 2 "missing" "${run[@]}" tokenizer.json a.txt
done
cmp one.h5 kept.h5 || fail "a failed run touched the old store"
expect_code 2 "30 tokens" "$MHF" tokenizer train --kind byte-level --vocab-size 30 -o small.json a.txt
expect_code 3 "bad.jsonl line 2" "$MHF" tokenizer train --kind byte-level --vocab-size 300 \
    -o small.json bad.jsonl
[ ! -e small.json ] || fail "a failed training left a tokenizer"
for file in *; do
    case $file in
    *.tmp | *.h5.*) fail "left behind: $file" ;;
    esac
done
exit $failed
