#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf export and mhf expand as a user runs them: exit codes, ranks, files in place, and Python's own
# safetensors where it is installed.
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
    [ -z "$word" ] || grep -q -e "$word" said || fail "no '$word' in: $(cat said)"
}

golden() {
    local folder
    IFS=: read -ra folders <<<"$MHF_GOLDEN"
    for folder in "${folders[@]}"; do
        [ ! -e "$folder/$1" ] || { echo "$folder/$1"; return; }
    done
}

hashed=$(golden models/mhf-h4/model.safetensors)
grown=$(golden bpe_train/expanded-spm/tokenizer.json)
other=$(golden bpe_train/expanded-bytelevel/tokenizer.json)
[ -n "$hashed" ] && [ -n "$grown" ] && [ -n "$other" ] || { echo "skipped: no golden files"; exit 77; }
hashed=$(dirname "$hashed")
grown=$(dirname "$grown")
other=$(dirname "$other")

# There and back, by one rank and by several, of which one works.
expect_code 0 "duplicates" "$MHF" import "$hashed" -o model.h5
expect_code 0 "" "$MHF" export model.h5 -o out --quiet
for file in config.json model.safetensors tokenizer.json tokenizer_config.json; do
    cmp "out/$file" "$hashed/$file" || fail "$file is not what was imported"
done
expect_code 0 "" mpirun -n 3 "$MHF" export model.h5 -o out3 --quiet
diff -r out out3 || fail "the export depends on ranks"
expect_code 0 "" "$MHF" export out -o out --dtype bf16 --max-shard-bytes 200000 --quiet
[ ! -e out/model.safetensors ] || fail "old weights stand beside the new shards"
expect_code 0 "" "$MHF" export out -o again --dtype bf16 --quiet
expect_code 0 "duplicates" "$MHF" import again -o again.h5
expect_code 0 "" "$MHF" info again.h5

if python3 -c 'import safetensors.numpy' 2>/dev/null; then
    python3 - "$hashed" out3 <<'EOF' || fail "Python reads other tensors"
import sys
from safetensors.numpy import load_file
a, b = (load_file(d + "/model.safetensors") for d in sys.argv[1:])
assert a.keys() == b.keys()
assert all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)
EOF
else
    echo "skipped: Python has no safetensors"
fi

expect_code 2 "dtype" "$MHF" export model.h5 -o out --dtype f16
expect_code 2 "HF_DIR" "$MHF" export model.h5
expect_code 2 "max-shard-bytes" "$MHF" export model.h5 -o out --max-shard-bytes 0
expect_code 4 "absent.h5" "$MHF" export absent.h5 -o out
expect_code 4 "model.h5" "$MHF" export model.h5 -o model.h5/out

# Expansion: no parameter more, the same file from any number of ranks, in place too.
expect_code 0 "(+0)" "$MHF" expand model.h5 --tokenizer "$grown" -o grown.h5
expect_code 0 "rule reference" "$MHF" expand model.h5 --tokenizer "$grown" --rule reference -o r.h5
expect_code 0 "(+0)" mpirun -n 2 "$MHF" expand model.h5 --tokenizer "$grown" -o grown2.h5
cmp grown.h5 grown2.h5 || fail "the expansion depends on ranks"
expect_code 0 "vocab_size: 1280" "$MHF" info grown.h5 --verify
expect_code 0 "" "$MHF" export grown.h5 -o grown --quiet
expect_code 0 "nothing to expand" "$MHF" expand grown.h5 --tokenizer grown -o grown2.h5
cp model.h5 place.h5
expect_code 0 "(+0)" "$MHF" expand place.h5 --tokenizer "$grown" -o place.h5
cmp grown.h5 place.h5 || fail "the expansion in place is another"
expect_code 2 "1000 tokens" "$MHF" expand grown.h5 --tokenizer "$hashed" -o no.h5
expect_code 2 "token 0" "$MHF" expand model.h5 --tokenizer "$other" -o no.h5
expect_code 2 "rule" "$MHF" expand model.h5 --tokenizer "$grown" --rule imported -o no.h5
expect_code 2 "tokenizer" "$MHF" expand model.h5 -o no.h5
expect_code 4 "absent" "$MHF" expand model.h5 --tokenizer absent.json -o no.h5
expect_code 4 "absent" "$MHF" expand absent.h5 --tokenizer "$grown" -o no.h5
expect_code 4 "no/folder" "$MHF" expand model.h5 --tokenizer "$grown" -o no/folder/x.h5
[ ! -e no.h5 ] || fail "a refused expansion left a file"
find . -name '*.tmp' | grep . && fail "temporary files are left behind"
exit $failed
