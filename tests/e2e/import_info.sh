#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf import and mhf info as a user runs them: what is told of each kind of file, what is refused and
# with which code, and the checkpoint as h5py reads it.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# expect CODE REGEX COMMAND...: the exit code, and REGEX in one line of what the command says.
expect() {
    local code=$1 regex=$2 found=0
    shift 2
    timeout 120 "$@" >said 2>&1 || found=$?
    [ "$found" = "$code" ] || fail "exit code $found, expected $code: $*: $(cat said)"
    grep -Eq -e "$regex" said || fail "no '$regex' in: $(cat said)"
    [ "$code" = 0 ] || [ "$(grep -vc '^warning' said)" = 1 ] || fail "more than one line: $(cat said)"
}

golden() {
    local folder
    IFS=: read -ra folders <<<"$MHF_GOLDEN"
    for folder in "${folders[@]}"; do
        [ ! -e "$folder/$1" ] || { dirname "$folder/$1"; return; }
    done
}

hashed=$(golden models/mhf-h4/model.safetensors)
standard=$(golden models/std/model.safetensors)
[ -n "$hashed" ] && [ -n "$standard" ] || { echo "skipped: no golden models"; exit 77; }

expect 0 'duplicates: 0' "$MHF" import "$hashed" -o model.h5
grep -q 'padding rows: 24, all zero' said || fail "padding rows: $(cat said)"
grep -q 'rule unique: gives the same table' said || fail "rules: $(cat said)"
expect 0 'parameters: 238272' "$MHF" import "$standard" -o std.h5 --quiet
expect 0 'parameters: 218641' mpirun -n 2 "$MHF" import "$hashed" -o two.h5 --quiet
cmp model.h5 two.h5 || fail "the checkpoint depends on ranks"

for model in model.h5 "$hashed"; do
    expect 0 '"parameters":\{"total":218641,"embedding":31232,"non_embedding":187409\}' \
        "$MHF" info "$model" --json --verify
done
expect 0 'rule: imported' "$MHF" info model.h5
expect 0 '"total":238272' "$MHF" info std.h5 --json
expect 0 'tokens: 1000' "$MHF" info "$hashed/tokenizer.json"
printf 'a text\n\nand another\n' >text.txt
"$MHF" corpus model.h5 -o tokens.h5 --quiet text.txt
expect 0 'documents: 2' "$MHF" info tokens.h5 --verify
"$MHF" signatures model.h5 --hashes 3 --buckets 61 -o table.h5 --quiet >said
expect 0 'rule: unique' "$MHF" info table.h5
mkdir -p run/checkpoints
cp model.h5 run/checkpoints/step-00000001.h5
head -c 100000 model.h5 >run/checkpoints/step-00000002.h5
expect 0 'step-00000001.h5' "$MHF" info run
grep -q 'refused a checkpoint: .*step-00000002.h5: cut short' said || fail "no warning: $(cat said)"

expect 4 'absent: .*No such file' "$MHF" info absent
expect 3 'text.txt: is not an HDF5 file' "$MHF" info text.txt
expect 3 'cut short' "$MHF" info run/checkpoints/step-00000002.h5
rm run/checkpoints/step-00000001.h5
expect 3 'run: none of its 1 checkpoints is whole' "$MHF" info run --quiet
expect 2 'no Hugging Face directory' "$MHF" import model.h5 -o copy.h5
expect 4 'no/model.h5' "$MHF" import "$hashed" -o no/model.h5
expect 4 'config.json' "$MHF" import run/checkpoints -o copy.h5
cp -r "$hashed" torn
chmod -R u+w torn
head -c 2000 "$hashed/tokenizer.json" >torn/tokenizer.json
expect 3 'tokenizer.json' "$MHF" import torn -o copy.h5
cp "$hashed/tokenizer.json" torn/
sed -i 's/"qwen3"/"llama"/' torn/config.json
expect 3 "config.json: key 'model_type'" "$MHF" import torn -o copy.h5
cp "$hashed/config.json" torn/
head -c -1 "$hashed/model.safetensors" >torn/model.safetensors
expect 3 'model.safetensors: tensor' "$MHF" import torn -o copy.h5
[ ! -e copy.h5 ] && [ ! -e copy.h5.tmp ] || fail "a refused import left a file"

if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    /usr/bin/python3 - "$hashed/model.safetensors" model.h5 <<'EOP' || fail "h5py reads other tensors"
import json, struct, sys
import h5py, numpy as np
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
file = h5py.File(sys.argv[2])
for name, entry in json.loads(data[8:8 + n]).items():
    if name == "__metadata__":
        continue
    begin, end = entry["data_offsets"]
    kind = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
    wanted = np.frombuffer(data[8 + n + begin:8 + n + end], kind).reshape(entry["shape"])
    found = file["signatures" if name == "model.hash_map" else "parameters/" + name]
    assert found.shape == wanted.shape and (found[:] == wanted).all(), name
assert json.loads(file["config"][:].tobytes())["num_buckets"] == 61
EOP
else
    echo "skipped: /usr/bin/python3 has no h5py"
fi
exit $failed
