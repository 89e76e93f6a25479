#!/bin/bash
# SPDX-License-Identifier: ISC
# Errors of usage: exit code 2 and one sentence, the same for every command; said once on several ranks,
# and before any file is looked for. --help is said once too.
. "$(dirname "$0")/../support/e2e.sh"

# refuse SENTENCE ARGUMENTS...: the whole of it, then argp's hint (on two lines where names are long).
refuse() {
    local sentence=$1
    shift
    expect_exit 2 '' run 1 "$@"
    [ "$(sed -n '1s/^mhf [^:]*: //p' said)" = "$sentence" ] || fail "not '$sentence' from '$*': $(cat said)"
    sed -n 2p said | grep -q '^Try `mhf' || fail "no hint from '$*': $(cat said)"
}

refuse "CONFIG.yaml is missing" plan
refuse "expected CONFIG.yaml, found 'b' too" plan a b --ranks 2
refuse "expected either --grid PxD or --ranks N" plan a
refuse "expected either --grid PxD or --ranks N" plan a --grid 2x4 --ranks 2
for grid in 2 2x x4 0x4 2x0 ' 2x4' '2x 4' 2x4x -2x4 4294967297x1; do
    refuse "--grid is '$grid', expected PxD, as 2x4" plan a --grid "$grid"
done
for ranks in '' ' 2' 2x x 2.0 0 -1 10000001 99999999999999999999 -99999999999999999999 0x10; do
    refuse "--ranks is '$ranks', expected 1 to 10000000" plan a --ranks "$ranks"
done
for holdout in '' ' 0.1' 0.1x 1 -0.1 nan inf 1e999 1e-999; do
    refuse "--holdout is '$holdout', expected 0 or more, below 1" corpus a b -o c --holdout "$holdout"
done
refuse "TOKENIZER is missing" corpus -o c
refuse "TEXT... is missing" corpus a -o c
refuse "-o TOKENS.h5 is missing" corpus a b
refuse "expected [CONFIG.yaml], found 'b' too" bench a b
refuse "--tokens is '1', expected 2 to 16777216" bench --tokens 1
refuse "--hashes H is missing" signatures a -o b --buckets 5
refuse "--rule is 'imported', expected unique or reference" signatures a -o b --rule imported
refuse "--tokenizer NEW is missing" expand a -o b
refuse "--dtype is 'f16', expected f32 or bf16" export a -o b --dtype f16
refuse "--resume is '', expected auto, exact or none" train a --resume ''
refuse "--max-hours is '0', expected a number above 0" train a --max-hours 0
refuse "--prompt and -i exclude each other" generate a --prompt b -i c
refuse "--top-p is '1.1', expected above 0 and at most 1" generate a --top-p 1.1
refuse "-i TOKENS.h5 is missing" evaluate a
refuse "(MODEL|STATES.h5)... is missing" study rare-words --pairs a -o b
refuse "the study is 'rare', expected rare-words" study rare a --pairs b -o c
refuse "FILE is missing" info
refuse "expected HF_DIR, found 'b' too" import a b -o c
refuse "expected either --kind or --like" tokenizer train -o a --vocab-size 300 b
refuse "--special is '', expected a token" tokenizer train --special ''
refuse "--per-text N is missing" tokenizer extend -o a b c
refuse "expected TOKENIZER, found 'b' too" tokenizer encode a b
refuse "--threads is '0', expected 1 to 4096" info a --threads 0
refuse "--log-level is 'loud', expected error, warn, info or debug" info a --log-level loud
refuse "--precision is 'float16', expected float32 or auto" score a --precision float16
refuse "unrecognized option '--precision'" plan a --precision auto
refuse "unrecognized option '--bos'" info a --bos b

# Words after -- are operands, though they look like options.
expect_refused 4 "^error: --quiet: can't open" run 1 plan --ranks 2 -- --quiet

# Several ranks leave alike, and one speaks.
for arguments in "dump a" "info" "train a --stop-after x"; do
    expect_exit 2 '' run 3 $arguments
    [ "$(grep -c '^mhf ' said)" = 1 ] || fail "not one sentence from '$arguments': $(cat said)"
done
for command in corpus "tokenizer train" score; do
    expect_exit 0 "$command \[OPTION" run 2 $command --help
    [ "$(grep -c '^Usage: ' said)" = 1 ] || fail "not one --help of $command: $(cat said)"
    expect_exit 0 "$command \[" run 2 $command --usage
done
finish
