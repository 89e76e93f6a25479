#!/bin/bash
# SPDX-License-Identifier: ISC
# mhf export and mhf expand as a user runs them: exit codes, ranks, files in place, and Python's own
# safetensors where it is installed.
. "$(dirname "$0")/../support/e2e.sh"
set -e
hashed=$(find_golden models/mhf-h4) || exit 77
grown=$(find_golden bpe_train/expanded-spm) || exit 77
other=$(find_golden bpe_train/expanded-bytelevel) || exit 77

# There and back, by one rank and by several, of which one works.
expect_exit 0 "duplicates" run 1 import "$hashed" -o model.h5
expect_exit 0 "" run 1 export model.h5 -o out --quiet
for file in config.json model.safetensors tokenizer.json tokenizer_config.json; do
    cmp "out/$file" "$hashed/$file" || fail "$file is not what was imported"
done
expect_exit 0 "" run 3 export model.h5 -o out3 --quiet
diff -r out out3 || fail "the export depends on ranks"
expect_exit 0 "" run 1 export out -o out --dtype bf16 --max-shard-bytes 200000 --quiet
[ ! -e out/model.safetensors ] || fail "old weights stand beside the new shards"
expect_exit 0 "" run 1 export out -o again --dtype bf16 --quiet
expect_exit 0 "duplicates" run 1 import again -o again.h5
expect_exit 0 "" run 1 info again.h5

# What belongs to a model beside its weights comes out as it went in; what doesn't is named; what is broken
# is refused before anything is written.
cp -r "$hashed" whole
printf '{"temperature": 0.6, "eos_token_id": [2, 1]}' >whole/generation_config.json
printf '{"bos_token": {"content": "<s>", "lstrip": false}}' >whole/special_tokens_map.json
printf '{%% for message in messages %%}{{ message }}{%% endfor %%}\n' >whole/chat_template.jinja
printf '{"chat_template": "{{ messages }}"}' >whole/chat_template.json
echo '{}' >whole/vocab.json
touch whole/merges.txt whole/README.md whole/.gitattributes
expect_exit 0 "not taken from whole: README.md, expect.h5, merges.txt, vocab.json " run 1 import whole -o whole.h5
expect_exit 0 "" run 1 export whole.h5 -o whole.out --quiet
for file in generation_config.json special_tokens_map.json chat_template.jinja chat_template.json; do
    cmp "whole/$file" "whole.out/$file" || fail "$file is not what was imported"
done
for file in generation_config.json special_tokens_map.json chat_template.json tokenizer_config.json config.json; do
    rm -rf broken
    cp -r whole broken
    printf '{"bos_token": "<s>", ' >broken/$file
    expect_refused 3 "broken/.*$file: not (a )?valid JSON" run 1 import broken -o broken.h5
    echo 7 >broken/$file
    expect_refused 3 "broken/.*$file: " run 1 import broken -o broken.h5
done
[ ! -e broken.h5 ] || fail "a broken folder is imported"

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

expect_exit 2 "dtype" run 1 export model.h5 -o out --dtype f16
expect_exit 2 "HF_DIR" run 1 export model.h5
expect_exit 2 "max-shard-bytes" run 1 export model.h5 -o out --max-shard-bytes 0
expect_refused 4 "absent.h5" run 1 export absent.h5 -o out
expect_refused 4 "model.h5" run 1 export model.h5 -o model.h5/out

# Expansion: no parameter more, the same file from any number of ranks, in place too.
expect_exit 0 "\(\+0\)" run 1 expand model.h5 --tokenizer "$grown" -o grown.h5
expect_exit 0 "rule reference" run 1 expand model.h5 --tokenizer "$grown" --rule reference -o r.h5
expect_exit 0 "\(\+0\)" run 2 expand model.h5 --tokenizer "$grown" -o grown2.h5
cmp grown.h5 grown2.h5 || fail "the expansion depends on ranks"
expect_exit 0 "vocab_size: 1280" run 1 info grown.h5 --verify
expect_exit 0 "" run 1 export grown.h5 -o grown --quiet
expect_exit 0 "nothing to expand" run 1 expand grown.h5 --tokenizer grown -o grown2.h5
cp model.h5 place.h5
expect_exit 0 "\(\+0\)" run 1 expand place.h5 --tokenizer "$grown" -o place.h5
cmp grown.h5 place.h5 || fail "the expansion in place is another"
expect_refused 2 "1000 tokens" run 1 expand grown.h5 --tokenizer "$hashed" -o no.h5
expect_refused 2 "token 0" run 1 expand model.h5 --tokenizer "$other" -o no.h5
expect_exit 2 "rule" run 1 expand model.h5 --tokenizer "$grown" --rule imported -o no.h5
expect_exit 2 "tokenizer" run 1 expand model.h5 -o no.h5
expect_refused 4 "absent" run 1 expand model.h5 --tokenizer absent.json -o no.h5
expect_refused 4 "absent" run 1 expand absent.h5 --tokenizer "$grown" -o no.h5
expect_refused 4 "no/folder" run 1 expand model.h5 --tokenizer "$grown" -o no/folder/x.h5
[ ! -e no.h5 ] || fail "a refused expansion left a file"
# What a run was trained with is said as the released code says it, and a tokenizer's class, without
# which transformers takes the model type's, is named where its file doesn't.
make_inputs || fail "no inputs"
echo '{"eos_token": "<|endoftext|>"}' >tokenizer_config.json
for kind in product vocabulary standard; do
    write_config $kind $kind.yaml
    expect_exit 75 "" train 1 1 $kind $kind.yaml --stop-after 1
    expect_exit 0 "" run 1 export $kind -o $kind.out --quiet
    cmp tokenizer.json $kind.out/tokenizer.json || fail "$kind: another tokenizer.json"
    grep -q '"tokenizer_class": "PreTrainedTokenizerFast"' $kind.out/tokenizer_config.json || fail "$kind: no class"
    grep -q '"eos_token": "<|endoftext|>"' $kind.out/tokenizer_config.json || fail "$kind: no EOS"
    expect_exit 0 "" run 1 export $kind.out -o $kind.again --quiet
    diff -r $kind.out $kind.again || fail "$kind: another export of the export"
done
grep -q '"use_conditional_prob": false' product.out/config.json || fail "product is not told"
grep -q '"use_conditional_prob": true' vocabulary.out/config.json || fail "vocabulary is not told"
! grep -q use_conditional_prob standard.out/config.json || fail "a Standard model has hash keys"

find . -name '*.tmp' | grep . && fail "temporary files are left behind"
finish
