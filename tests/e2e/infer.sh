#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf score, generate, dump, evaluate and study as a user runs them: the same bytes on any number of
# ranks and threads, and one sentence with its exit code for bad input.
. "$(dirname "$0")/../support/e2e.sh"
set -e
model=$(find_golden models/mhf-h3) || exit 77
standard=$(find_golden models/std) || exit 77
engine=(--engine blis:default --quiet)

# on_ranks FILE ARGUMENTS...: FILE as mhf writes it is the same on 1 to 4 ranks, 1 and 2 threads.
on_ranks() {
    local file=$1 ranks
    shift
    run 1 "$@" --threads 1
    mv "$file" one
    run 1 "$@" --threads 2
    cmp "$file" one || fail "threads change $file: $*"
    for ranks in 2 3 4; do
        rm -f "$file"
        run $ranks "$@"
        cmp "$file" one || fail "$ranks ranks change $file: $*"
    done
}

# ---- score ------------------------------------------------------------------------------------------
cat >requests.jsonl <<'END'
{"id":"a","context":"In the beginning","continuation":" God created"}
{"context":"In the beginning","continuation":" God made the heaven"}

{"id":[1,2.5,null],"context":"In the beginning  ","continuation":"the earth","extra":{}}
{"id":4,"context":"","continuation":" And the earth was without form"}
{"context_ids":[1,300,301],"continuation_ids":[302,303]}
{"context_ids":[],"continuation_ids":[302,303]}
{"id":null,"text":"And God said, Let there be light"}
{"id":"empty","string":""}
{"context":"In the beginning","continuation":" God"}
END
run 1 score "$model" "${engine[@]}" <requests.jsonl >scores.jsonl
[ "$(wc -l <scores.jsonl)" = 9 ] || fail "nine answers, not $(wc -l <scores.jsonl)"
grep -q '^{"id":2,' scores.jsonl || fail "the default id is the line's number"
grep -q '^{"id":\[1,2.5,null\],' scores.jsonl || fail "an id of any kind"
grep -q '^{"id":6,.*"tokens":2,"bytes":null}' scores.jsonl || fail "ids have no bytes"
grep -q '^{"id":null,.*"bytes":32}' scores.jsonl || fail "bytes of a text"
grep -q '^{"id":"empty","logprob":0,"greedy":true,"tokens":0,"bytes":0}' scores.jsonl || fail "an empty text"
run 1 score "$model" "${engine[@]}" -i requests.jsonl -o - | cmp - scores.jsonl || fail "-o -"
grep -v '^$' requests.jsonl | tac >reversed.jsonl
run 1 score "$model" "${engine[@]}" -i reversed.jsonl -o reversed.out
values() { sed 's/.*"logprob":\([^,]*\),.*/\1/' "$1"; }
values reversed.out | tac >a
values scores.jsonl | cmp - a || fail "an answer depends on the other requests"

seed=7
random() { seed=$(((seed * 1103515245 + 12345) % 2147483648)); echo $((seed / 65536 % $1)); }
words=(the earth was without form and void darkness upon face of deep God said let there be light)
for ((i = 0; i < 60; i++)); do
    text="" more=""
    for ((w = $(random 40); w >= 0; w--)); do text+=" ${words[$(random 18)]}"; done
    for ((c = $(random 4); c >= 0; c--)); do
        more=" ${words[$(random 18)]} ${words[$(random 18)]}"
        echo "{\"id\":\"$i-$c\",\"context\":\"${text# }\",\"continuation\":\"$more\"}"
    done
    [ $((i % 7)) = 0 ] && echo "{\"text\":\"$text$text$text$text\"}"
done >many.jsonl
on_ranks scores.out score "$model" "${engine[@]}" -i many.jsonl -o scores.out --per-token --max-length 40
on_ranks scores.out score "$standard" "${engine[@]}" -i many.jsonl -o scores.out --batch 1 \
    --normalize reference --temperature 2.5
cp one before
run 1 score "$standard" "${engine[@]}" -i many.jsonl -o scores.out --batch 1000 --normalize reference \
    --temperature 2.5
cmp before scores.out || fail "the batch changes an answer"

bad_request() { # WORDS LINE [alone]: at line 3 of a file of four, on one and on three ranks
    { sed 2q requests.jsonl; echo "$2"; tail -n 1 requests.jsonl; } >bad.jsonl
    rm -f bad.out
    expect_refused 3 "bad.jsonl line 3: $1" run 1 score "$model" "${engine[@]}" -i bad.jsonl -o bad.out
    [ "${3:-}" = alone ] ||
        expect_refused 3 "bad.jsonl line 3: $1" run 3 score "$model" "${engine[@]}" -i bad.jsonl -o bad.out
    [ ! -e bad.out ] || fail "answers written in spite of: $2"
}
long=$(seq -s, 300 600)
bad_request "not valid JSON" '{"context":"a","continua'
bad_request "expected a JSON object" '["a"]' alone
bad_request "key 'context' is missing" '{"continuation":"a"}' alone
bad_request "key 'context' is an integer" '{"context":5,"continuation":"a"}' alone
bad_request "key 'continuation' is missing" '{"context":"a"}' alone
bad_request "no 'continuation', 'continuation_ids', 'text' or 'string'" '{"a":"b"}' alone
bad_request "both 'context' and 'text'" '{"context":"a","continuation":"b","text":"c"}' alone
bad_request "the continuation has no token" '{"context":"a","continuation":""}'
bad_request "the continuation has no token" '{"context_ids":[5],"continuation_ids":[]}'
bad_request "key 'context_ids' holds token 1000, expected 0 to 999" '{"context_ids":[1000],"continuation_ids":[5]}' alone
bad_request "key 'continuation_ids' holds token -1" '{"context_ids":[1],"continuation_ids":[-1]}' alone
bad_request "key 'context_ids' is missing" '{"continuation_ids":[5]}' alone
bad_request "key 'context_ids' is not a list" '{"context_ids":7,"continuation_ids":[5]}' alone
bad_request "the continuation has 301 tokens, expected at most 256" "{\"context_ids\":[1],\"continuation_ids\":[$long]}"
printf '{"text":"a"}\n{"text":"\xff"}\n' >bad.jsonl
expect_refused 3 "line 2: not valid JSON" run 1 score "$model" "${engine[@]}" -i bad.jsonl -o bad.out
expect_refused 4 "can't open" run 2 score "$model" "${engine[@]}" -i nowhere.jsonl -o bad.out
expect_refused 4 "nowhere" run 1 score nowhere "${engine[@]}" -i requests.jsonl -o bad.out
expect_refused 4 "no/such/folder" run 2 score "$model" "${engine[@]}" -i requests.jsonl -o no/such/folder/out
expect_refused 2 "max-length is 300" run 1 score "$model" "${engine[@]}" -i requests.jsonl -o bad.out --max-length 300

usage() { # an error of usage is argp's, with its hint
    expect_exit 2 "^Try" run 1 "$@" </dev/null
}
usage score
usage score "$model" --temperature 0
usage score "$model" --temperature nan
usage score "$model" --normalize both
usage score "$model" --batch 0
usage score "$model" --precision float16
usage generate "$model" --top-p 0
usage generate "$model" --temperature -1
usage generate "$model" --prompt a -i b
usage dump "$model"
usage dump "$model" -o x.h5 --pooling max
usage dump "$model" -o x.h5 --dtype f64
usage evaluate "$model"
usage study rare-words "$model" -o out
usage study "$model" --pairs x -o out
usage study rare-words "$model" --pairs x -o out --pooling none

# What an evaluation harness asks for: every request has its answer.
requests=$(find_golden ../data/requests) || true
for task in ${requests:+copa blimp winogrande xcopa_zh lambada_openai}; do
    run 1 score "$model" "${engine[@]}" -i "$requests/$task.jsonl" -o scores.out
    [ "$(wc -l <scores.out)" = "$(wc -l <"$requests/$task.jsonl")" ] || fail "answers of $task"
done
if [ "${requests:-}" ]; then
    head -1 "$requests/wikitext.jsonl" >pages.jsonl
    run 1 score "$model" "${engine[@]}" -i pages.jsonl -o scores.out
    run 2 score "$model" "${engine[@]}" -i pages.jsonl | cmp - scores.out || fail "a page on 2 ranks"
fi

# ---- generate -----------------------------------------------------------------------------------------
cat >prompts.jsonl <<'END'
{"id":"a","prompt":"In the beginning","max_tokens":5}
{"prompt":"And God said","until":["zzz","e"]}
{"prompt":""}
{"id":{"k":1},"prompt":"Let there be light","max_tokens":0}
END
run 1 generate "$model" "${engine[@]}" --threads 1 -i prompts.jsonl --max-tokens 12 >answers.jsonl
for ranks in 2 3; do
    run $ranks generate "$model" "${engine[@]}" --threads 1 -i prompts.jsonl --max-tokens 12 |
        cmp - answers.jsonl || fail "generation differs on $ranks ranks"
done
grep -q '^{"id":"a","text":".*","tokens":5,"stop":"length"}' answers.jsonl || fail "max_tokens"
grep -q '^{"id":{"k":1},"text":"","tokens":0,"stop":"length"}' answers.jsonl || fail "no tokens asked for"
text=$(run 1 generate "$model" "${engine[@]}" --prompt "In the beginning" --max-tokens 5 --temperature 0)
run 1 generate "$model" "${engine[@]}" -i - --temperature 0 <prompts.jsonl | head -1 >first
grep -qF "\"text\":\"$text\"" first || fail "--prompt and -i differ: '$text', $(cat first)"
printf '{"prompt":"a"}\n{"prompt":"%s"}\n' "$(printf 'z%.0s' {1..300})" >bad.jsonl
expect_refused 3 "bad.jsonl line 2: the prompt has 30" run 2 generate "$model" "${engine[@]}" -i bad.jsonl
expect_refused 3 "the prompt has 30" run 2 generate "$model" "${engine[@]}" --prompt "$(printf 'z%.0s' {1..300})"
printf '{"prompt":"a","until":"b"}\n' >bad.jsonl
expect_refused 3 "line 1: key 'until'" run 1 generate "$model" "${engine[@]}" -i bad.jsonl
printf '{"prompt":"a","max_tokens":-1}\n' >bad.jsonl
expect_refused 3 "line 1: key 'max_tokens' is -1" run 1 generate "$model" "${engine[@]}" -i bad.jsonl

# ---- dump ---------------------------------------------------------------------------------------------
cat >items.jsonl <<'END'
{"text":"In the beginning God created the heaven","span":[7,16]}
{"text":"And the earth was without form"}
{"ids":[1,300,301,302,2],"span":[0,2]}
{"text":"upon the face of the deep"}
{"text":"darkness"}
END
on_ranks states.h5 dump "$model" "${engine[@]}" -i items.jsonl -o states.h5
on_ranks states.h5 dump "$standard" "${engine[@]}" -i items.jsonl -o states.h5 --pooling mean \
    --layers 0,3,norm --dtype bf16 --no-special
printf '{"text":"a"}\n{"text":""}\n' >bad.jsonl
expect_refused 3 "bad.jsonl line 2: an empty item" run 3 dump "$model" "${engine[@]}" -i bad.jsonl -o bad.h5
printf '{"ids":[%s]}\n' "$long" >bad.jsonl
expect_refused 3 "bad.jsonl line 1: 301 tokens, expected at most 256" run 1 dump "$model" "${engine[@]}" -i bad.jsonl -o bad.h5
expect_refused 2 "layers holds '9'" run 2 dump "$model" "${engine[@]}" -i items.jsonl -o bad.h5 --layers 0,9
[ ! -e bad.h5 ] || fail "bad items left a file"

# ---- evaluate ------------------------------------------------------------------------------------------
for ((i = 0; i < 300; i++)); do
    text=""
    for ((w = 5 + $(random 30); w >= 0; w--)); do text+="${words[$(random 18)]} "; done
    printf '%s\n\n' "$text"
done >text.txt
run 1 corpus "$model" -o tokens.h5 --quiet text.txt
evaluate() { run "$1" evaluate "$model" "${engine[@]}" -i tokens.h5 --calibrate --json --block 50 "${@:2}"; }
evaluate 1 --threads 1 >one
grep -qE '^\{"tokens":[0-9]+,"bytes":[0-9]+,"nats_per_token":[0-9.]+,"bits_per_byte":[0-9.]+,"accuracy":[0-9.e-]+,"losses":\[[0-9.]+,[0-9.]+,[0-9.]+\],"temperature":[0-9.]+,"calibrated":\{"nats_per_token":[0-9.]+,"bits_per_byte":[0-9.]+\}\}$' one ||
    fail "the form of evaluate --json: $(cat one)"
evaluate 1 --threads 2 | cmp - one || fail "threads change an evaluation"
for ranks in 2 3 4; do
    evaluate $ranks | cmp - one || fail "$ranks ranks change an evaluation"
done
run 1 evaluate "$model" "${engine[@]}" -i tokens.h5 | grep -q "^accuracy" || fail "evaluate in words"
expect_refused 4 "nowhere.h5" run 2 evaluate "$model" "${engine[@]}" -i nowhere.h5
expect_refused 3 "" run 1 evaluate "$model" "${engine[@]}" -i states.h5

# ---- study ---------------------------------------------------------------------------------------------
printf 'earth\theaven\t3.5\nlight\tdarkness\t1\nface_of\tdeep\t0.5\nearth\tlight\t2\nGod\tvoid\t2.25\n' >pairs.tsv
study() { run 1 study rare-words "$@" "${engine[@]}" --pairs pairs.tsv --draws 500; }
study "$model" -o out >table
grep -q "5 of 5 pairs covered, 1 with several words" table || fail "coverage: $(cat table)"
[ "$(wc -l <out/study.tsv)" = 7 ] || fail "a line a layer in study.tsv"
[ "$(wc -l <out/similarities.tsv)" = 6 ] || fail "a line a pair in similarities.tsv"
for ranks in 2 3; do
    run $ranks study rare-words "$model" "${engine[@]}" --pairs pairs.tsv --draws 500 -o out2 | cmp - table ||
        fail "the study differs on $ranks ranks"
    cmp out/study.tsv out2/study.tsv || fail "study.tsv differs on $ranks ranks"
    cmp out/states.h5 out2/states.h5 || fail "states.h5 differs on $ranks ranks"
done
study out/states.h5 -o out3 | cmp - table || fail "a study of states differs from that of their model"
printf '{"text":"%s","span":[0,%d]}\n' earth 5 heaven 6 light 5 darkness 8 "face of" 7 deep 4 God 3 void 4 >words.jsonl
run 1 dump "$model" "${engine[@]}" -i words.jsonl -o dumped.h5 --pooling mean
study dumped.h5 -o out4 | cmp - table || fail "a study of dumped states differs from that of their model"
study "$model" "$standard" -o both --template "the {} is" --pooling last --tokens tokens.h5 >table
grep -q "^std/norm" table || fail "layers of several models: $(cat table)"
head -1 both/similarities.tsv | grep -q "rarest1" || fail "counts of pieces"
expect_refused 3 "pooled by 'mean', expected 'last'" run 1 study rare-words out/states.h5 "${engine[@]}" --pairs pairs.tsv -o bad --pooling last
expect_refused 3 "expected 'an earth'" run 1 study rare-words out/states.h5 "${engine[@]}" --pairs pairs.tsv -o bad --template "an {}"
expect_refused 2 "holds \{\} once" run 2 study rare-words "$model" "${engine[@]}" --pairs pairs.tsv -o bad --template "{}{}"
printf 'earth\theaven\n' >bad.tsv
expect_refused 3 "bad.tsv line 1" run 2 study rare-words "$model" "${engine[@]}" --pairs bad.tsv -o bad
expect_refused 4 "nowhere.tsv" run 1 study rare-words "$model" "${engine[@]}" --pairs nowhere.tsv -o bad

finish
