# SPDX-License-Identifier: ISC
# Sourced by the scripts of tests/e2e: a temporary folder that is removed again, expectations that are
# counted and not the end of the script, and small inputs made here.
set -u
: "${MHF:?names the program to test}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
export OMP_WAIT_POLICY=passive

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# The last line of a script: how it ended.
finish() {
    [ $failures = 0 ] || echo "$failures expectations failed"
    exit $((failures > 0))
}

# find_golden PATH: the file or folder of that name, of the expected values; none: 1.
find_golden() {
    local folder
    for folder in ${MHF_GOLDEN//:/ }; do
        [ ! -e "$folder/$1" ] || { echo "$folder/$1"; return; }
    done
    echo "skipped: no golden file $1" >&2
    return 1
}

# run RANKS ARGUMENTS...: mhf alone or under mpirun; a hang ends after five minutes with 124.
run() {
    local ranks=$1
    shift
    if [ "$ranks" = 1 ]; then
        timeout -k 5 300 "$MHF" "$@"
    else
        timeout -k 5 300 mpirun -n "$ranks" "$MHF" "$@"
    fi
}

# expect_exit CODE REGEX COMMAND...: the exit code, and REGEX in what the command says (kept in `said`).
expect_exit() {
    local code=$1 regex=$2 found=0
    shift 2
    "$@" >said 2>&1 || found=$?
    [ "$found" = "$code" ] || fail "exit code $found, expected $code: $*: $(tail -n 40 said)"
    [ -z "$regex" ] || grep -qE -e "$regex" said || fail "no '$regex' in what '$*' says: $(tail -n 5 said)"
}

# expect_refused CODE REGEX COMMAND...: the same, and `error: …` is said once, in one line.
expect_refused() {
    expect_exit "$@"
    [ "$(grep -c '^error: ' said)" = 1 ] || fail "expected one error line from '${*:3}': $(cat said)"
    grep '^error: ' said | grep -qE -e "$2" || fail "no '$2' in the error of '${*:3}': $(cat said)"
}

# expect_same A B: no byte differs.
expect_same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# write_text WORDS SEED: prose of made-up words with a skewed distribution, documents parted by blank lines.
write_text() {
    awk -v words="$1" -v x="$2" '
        function draw(n) { x = (x * 16807) % 2147483647; return x % n }
        BEGIN {
            split("ba ke li mo nu ra si to ve wy cha dre flo gri sta the", part, " ")
            for (i = 0; i < 400; i++) {
                word[i] = ""
                for (k = 0; k <= draw(3); k++) word[i] = word[i] part[1 + draw(16)]
            }
            for (i = 1; i <= words; i++) {
                r = draw(400) * draw(400) / 400
                printf "%s%s", word[int(r)], (i % 90 == 0 ? ".\n\n" : i % 14 == 0 ? ".\n" : " ")
            }
            print ""
        }'
}

# make_inputs: tokenizer.json (380 tokens), tokens.h5 and tokens.holdout.h5 of about 24,000 tokens.
make_inputs() {
    write_text 12000 1 >text.txt
    run 1 tokenizer train --kind byte-level --vocab-size 380 -o tokenizer.json --quiet text.txt &&
        run 1 corpus tokenizer.json -o tokens.h5 --holdout 0.1 --quiet text.txt
}

# write_config KIND FILE: product, vocabulary or standard; tiny, to be trained on make_inputs' files.
write_config() {
    local model="hidden_size: 32, num_hidden_layers: 4, num_attention_heads: 4, num_key_value_heads: 2,
        head_dim: 8, intermediate_size: 64, bottle_neck_dim: 8, max_position_embeddings: 64"
    local objective=product
    [ "$1" != vocabulary ] || objective=vocabulary
    if [ "$1" = standard ]; then
        model="head: standard, $model"
    else
        model="head: mhf, num_hashes: 3, num_buckets: 61, $model"
    fi
    cat >"$2" <<CONFIG
model: {$model}
tokenizer: tokenizer.json
data: {train: tokens.h5, holdout: tokens.holdout.h5, evaluate_every: 10, block: 32}
train: {steps: 20, batch: 12, micro_batch: 2, lr: 3.0e-3, warmup: 4, objective: $objective}
checkpoint: {every: 0, keep: 2}
CONFIG
}

# train RANKS STAGES RUN CONFIG ARGUMENTS...: quietly, on one thread and the reference engine.
train() {
    local ranks=$1 stages=$2 folder=$3 config=$4
    shift 4
    OMP_NUM_THREADS=1 run "$ranks" train "$config" --engine reference --quiet --run "$folder" \
        --set "parallel.stages=$stages" "$@"
}

# checkpoint RUN STEP: its path.
checkpoint() {
    printf '%s/checkpoints/step-%08d.h5' "$1" "$2"
}

# expect_equal_groups A B GROUP...: every dataset under the groups, to the bit: the values, and the
# checksums of their bytes.
expect_equal_groups() {
    local a=$1 b=$2 group found
    shift 2
    for group in "$@"; do
        for found in "$group" "/checksums$group"; do
            h5diff -q "$a" "$b" "$found" "$found" >/dev/null 2>&1 || fail "$found differs: $a, $b"
        done
    done
}

# expect_metrics RUN RUN TOLERANCE KEY...: equal lines of metrics.jsonl in these keys; 0: to the bit.
expect_metrics() {
    python3 - "$@" <<'PYTHON' || fail "metrics of $1 and $2 differ"
import json, sys

def flat(value):
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in flat(value[key])]
    return [x for item in value for x in flat(item)] if isinstance(value, list) else [value]

a, b = ([json.loads(line) for line in open(run + "/metrics.jsonl")] for run in sys.argv[1:3])
tolerance, keys = float(sys.argv[3]), sys.argv[4:]
if len(a) != len(b) or not a:
    sys.exit(f"{len(a)} and {len(b)} lines")
for x, y in zip(a, b):
    if ("holdout" in x) != ("holdout" in y):
        sys.exit(f"step {x['step']}: only one was evaluated")
    for key in keys:
        for u, v in zip(flat(x.get(key, [])), flat(y.get(key, [])), strict=True):
            if not abs(u - v) <= tolerance * abs(u):
                sys.exit(f"step {x['step']}, {key}: {u!r} and {v!r}")
PYTHON
}

# start RANKS STAGES RUN CONFIG ARGUMENTS...: the same in the background, its words in RUN.said; the
# launcher's process is $job.
start() {
    local ranks=$1 stages=$2 folder=$3 config=$4 launcher=()
    shift 4
    [ "$ranks" = 1 ] || launcher=(mpirun -n "$ranks")
    OMP_NUM_THREADS=1 timeout -k 5 300 "${launcher[@]}" "$MHF" train "$config" --engine reference --quiet \
        --run "$folder" --set "parallel.stages=$stages" "$@" >"$folder.said" 2>&1 &
    job=$!
}

# ranks_of JOB: processes of the ranks, in no order.
ranks_of() {
    local child
    for child in $(pgrep -P "$1"); do
        if [ "$(readlink "/proc/$child/exe")" = "$(readlink -f "$MHF")" ]; then
            echo "$child"
        else
            ranks_of "$child"
        fi
    done
}

# wait_for_step RUN STEP: until metrics.jsonl tells of it.
wait_for_step() {
    local i
    for i in $(seq 600); do
        if [ -f "$1/metrics.jsonl" ] && [ "$(wc -l <"$1/metrics.jsonl")" -ge "$2" ]; then
            return 0
        fi
        sleep 0.1
    done
    fail "$1 does not reach step $2: $(tail -n 5 "$1.said")"
    return 1
}

# expect_end CODE JOB RUN: how a job started in the background ends.
expect_end() {
    local found=0
    wait "$2" || found=$?
    [ "$found" = "$1" ] || fail "$3 ends with $found, expected $1: $(tail -n 40 "$3.said")"
}
