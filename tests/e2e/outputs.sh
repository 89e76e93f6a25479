#!/bin/bash
# SPDX-License-Identifier: ISC
# An output that can't be written is told before the work; no output takes the place of an input, a
# device or a folder; nothing half-written keeps a name.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"
write_config product tiny.yaml
expect_exit 0 '' train 1 1 model tiny.yaml --set train.steps=2 --set train.warmup=1
echo '{"text":"the sta"}' >requests.jsonl
printf 'the\tsta\t3\nba\tke\t1\n' >pairs.tsv
mkdir folder
run 1 export model -o hf --quiet

# commands OUTPUT: a line for each command that writes OUTPUT, those that can write to a pipe first.
commands() {
    echo "score model -i requests.jsonl -o $1"
    echo "tokenizer train --kind byte-level --vocab-size 300 text.txt -o $1"
    echo "tokenizer extend tokenizer.json --per-text 2 text.txt -o $1"
    echo "corpus tokenizer.json text.txt -o $1"
    echo "signatures tokenizer.json --hashes 3 --buckets 61 -o $1"
    echo "expand model --tokenizer tokenizer.json -o $1"
    echo "dump model -i requests.jsonl -o $1"
    echo "import hf -o $1"
}

for ranks in 1 2; do
    while read -r command; do
        expect_refused 4 "^error: absent/out: .*No such file" run $ranks $command
    done < <(commands absent/out)
    while read -r command; do
        expect_refused 4 "^error: folder: is a folder" run $ranks $command
    done < <(commands folder)
done
while read -r command; do
    expect_refused 4 "^error: /dev/full: (is a device|0 of|can't)" run 1 $command
    [ -c /dev/full ] || fail "'$command' takes /dev/full's place"
done < <(commands /dev/full)
[ -z "$(ls folder)" ] || fail "something is written to a folder"

while read -r command; do
    expect_refused 2 "^error: -o is ''" run 1 $command ''
done < <(commands '')

expect_refused 2 "^error: text.txt: is read from" run 1 corpus tokenizer.json text.txt -o text.txt
expect_refused 2 "^error: ./tokenizer.json: is read from" run 2 corpus tokenizer.json text.txt -o ./tokenizer.json
expect_refused 2 "^error: requests.jsonl: is read from" run 2 score model -i requests.jsonl -o requests.jsonl
expect_refused 2 "^error: requests.jsonl: is read from" run 1 dump model -i requests.jsonl -o requests.jsonl
expect_refused 2 "^error: tokenizer.json: is read from" run 1 signatures tokenizer.json --hashes 3 --buckets 61 -o tokenizer.json
expect_refused 2 "^error: text.txt: is read from" run 2 tokenizer train --kind byte-level --vocab-size 300 text.txt -o text.txt
expect_refused 4 "^error: pairs.tsv: exists and is not a folder" run 1 study rare-words model --pairs pairs.tsv -o pairs.tsv
expect_refused 4 "^error: pairs.tsv: exists and is not a folder" run 1 export model -o pairs.tsv
expect_refused 4 "^error: pairs.tsv/checkpoints: can.t (make|open) the folder" run 1 train tiny.yaml --run pairs.tsv
[ "$(wc -c <text.txt)" -gt 10000 ] || fail "an input is lost"

# Standard output by its name, and a link, are what they were afterwards.
run 1 score model -i requests.jsonl -o /dev/stdout --quiet >named.jsonl
run 1 score model -i requests.jsonl --quiet >plain.jsonl
expect_same plain.jsonl named.jsonl
[ -L /dev/stdout ] || fail "a file takes /dev/stdout's place"
expect_refused 4 "/dev/stdout: is a device" run 1 dump model -i items.jsonl -o /dev/stdout
touch target
ln -s target link
expect_exit 0 '' run 1 score model -i requests.jsonl -o link
[ -L link ] || fail "a file takes a link's place"
expect_same plain.jsonl target

# A pipe gets the answers as they are; a model may be replaced by what comes of it.
expect_exit 0 '' run 1 score model -i requests.jsonl -o scores.jsonl
mkfifo pipe
cat pipe >piped.jsonl &
expect_exit 0 '' run 2 score model -i requests.jsonl -o pipe
wait $!
expect_same scores.jsonl piped.jsonl
[ -p pipe ] || fail "a file takes the pipe's place"
cp "$(checkpoint model 2)" own.h5
expect_exit 0 '' run 1 expand own.h5 --tokenizer tokenizer.json -o own.h5
expect_exit 0 '' run 1 info own.h5
if compgen -G '*.tmp' >/dev/null || compgen -G '*/*.tmp' >/dev/null; then
    fail "temporary files stay: $(ls ./*.tmp ./*/*.tmp)"
fi
finish
