#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf import and mhf info as a user runs them: what is told of each kind of file, what is refused and
# with which code, and the checkpoint as h5py reads it.
. "$(dirname "$0")/../support/e2e.sh"
set -e
hashed=$(find_golden models/mhf-h4) || exit 77
standard=$(find_golden models/std) || exit 77

expect_exit 0 'duplicates: 0' run 1 import "$hashed" -o model.h5
grep -q 'padding rows: 24, all zero' said || fail "padding rows: $(cat said)"
grep -q 'rule unique: gives the same table' said || fail "rules: $(cat said)"
expect_exit 0 'parameters: 238272' run 1 import "$standard" -o std.h5 --quiet
expect_exit 0 'parameters: 218641' run 2 import "$hashed" -o two.h5 --quiet
cmp model.h5 two.h5 || fail "the checkpoint depends on ranks"

for model in model.h5 "$hashed"; do
    expect_exit 0 '"parameters":\{"total":218641,"embedding":31232,"non_embedding":187409\}' \
        run 1 info "$model" --json --verify
done
expect_exit 0 'rule: imported' run 1 info model.h5
expect_exit 0 '"total":238272' run 1 info std.h5 --json
expect_exit 0 'tokens: 1000' run 1 info "$hashed/tokenizer.json"
printf 'a text\n\nand another\n' >text.txt
run 1 corpus model.h5 -o tokens.h5 --quiet text.txt
expect_exit 0 'documents: 2' run 1 info tokens.h5 --verify
run 1 signatures model.h5 --hashes 3 --buckets 61 -o table.h5 --quiet >said
expect_exit 0 'rule: unique' run 1 info table.h5
mkdir -p run/checkpoints
cp model.h5 run/checkpoints/step-00000000.h5
head -c 100000 model.h5 >run/checkpoints/step-00000002.h5
expect_exit 0 'step-00000000.h5' run 1 info run
grep -q 'refused: .*step-00000002.h5: cut short' said || fail "no warning: $(cat said)"

expect_refused 4 'absent: .*No such file' run 1 info absent
expect_refused 3 'text.txt: is not an HDF5 file' run 1 info text.txt
expect_refused 3 'cut short' run 1 info run/checkpoints/step-00000002.h5
rm run/checkpoints/step-00000000.h5
expect_refused 3 'run: none of its 1 checkpoints is whole' run 1 info run --quiet
expect_refused 2 'no Hugging Face directory' run 1 import model.h5 -o copy.h5
expect_refused 4 'no/model.h5' run 1 import "$hashed" -o no/model.h5
expect_refused 4 'config.json' run 1 import run/checkpoints -o copy.h5
cp -r "$hashed" torn
chmod -R u+w torn
head -c 2000 "$hashed/tokenizer.json" >torn/tokenizer.json
expect_refused 3 'tokenizer.json' run 1 import torn -o copy.h5
cp "$hashed/tokenizer.json" torn/
sed -i 's/"qwen3"/"llama"/' torn/config.json
expect_refused 3 "config.json: key 'model_type'" run 1 import torn -o copy.h5
cp "$hashed/config.json" torn/
head -c -1 "$hashed/model.safetensors" >torn/model.safetensors
expect_refused 3 'model.safetensors: tensor' run 1 import torn -o copy.h5
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
finish
