#!/bin/bash
# SPDX-License-Identifier: ISC
# Every published row is a file under configs/: `mhf plan` counts its parameters exactly, without the
# memory of a model, and every configuration is valid.
configs=$(cd "$(dirname "$0")/../../configs" && pwd)
counts=$(cd "$(dirname "$0")/../golden/configs" && pwd)/param_counts.tsv
. "$(dirname "$0")/../support/e2e.sh"

# file|row of the table
rows='100m/standard|100M Standard
100m/standard-plus4l|100M Standard+4L
100m/h3b10624|100M H3B10624
100m/h4b16384|100M H4B16384
500m/standard|500M Standard
500m/h3b10624|500M H3B10624
500m/h4b16384|500M H4B16384
1b/standard|1B Standard
1b/standard-plus2l|1B Standard+2L
1b/h3b10624|1B H3B10624
1b/h4b16384|1B H4B16384
3b/standard|3B Standard
3b/h4b16384|3B H4B16384
1b/ablation/h3b4096|1B abl H3B4096
1b/ablation/h4b4096|1B abl H4B4096
1b/ablation/h3b8192|1B abl H3B8192
1b/ablation/h4b8192|1B abl H4B8192
1b/ablation/h3b16384|1B abl H3B16384
1b/ablation/h4b16384|1B abl H4B16384
1b/ablation/h4b32768|1B abl H4B32768
1b/ablation/h1b4096|1B abl H1B4096
1b/ablation/h1b8192|1B abl H1B8192
1b/ablation/h1b16384|1B abl H1B16384
1b/ablation/h4b16384-lsh1|1B abl H4B16384 LSH:MMH3 1:3
1b/ablation/h4b16384-lsh2|1B abl H4B16384 LSH:MMH3 2:2
1b/ablation/h4b16384-lsh3|1B abl H4B16384 LSH:MMH3 3:1
1b/ablation/h4b16384-lsh4|1B abl H4B16384 LSH:MMH3 4:0
1b/expansion/standard|1B VE Standard 48128
1b/expansion/standard-plus2l|1B VE Standard+2L 48128
1b/expansion/h3b10624|1B VE H3B10624 48128
1b/expansion/h4b16384|1B VE H4B16384 48128'

while IFS='|' read -r file row; do
    run 1 plan "$configs/$file.yaml" --grid 2x4 --json >plan.json 2>said ||
        fail "$file: exit code $?: $(cat said)"
    python3 - plan.json "$counts" "$row" <<'PYTHON' || fail "$file"
import csv, json, sys
plan = json.load(open(sys.argv[1]))
row = next(r for r in csv.DictReader(open(sys.argv[2]), delimiter="\t") if r["row"] == sys.argv[3])
for key in ("total", "embedding", "non_embedding"):
    if plan["parameters"][key] != int(row[key]):
        sys.exit(f"{sys.argv[3]}: {key} is {plan['parameters'][key]}, expected {row[key]}")
if len(plan["memory_bytes"]) != 8 or not all(m > 0 for m in plan["memory_bytes"]):
    sys.exit(f"memory_bytes is {plan['memory_bytes']}")
PYTHON
done <<<"$rows"

# No row of the table is left out, and the other files are valid too.
[ "$(wc -l <<<"$rows")" = $(($(wc -l <"$counts") - 1)) ] || fail "rows of the table without a file"
while read -r file; do
    grep -q "^${file%.yaml}|" <<<"$rows" && continue
    grep -q "^model:" "$configs/$file" || continue # the model that --set init names brings its sizes
    run 1 plan "$configs/$file" --ranks 4 --json >plan.json 2>said || fail "$file: $(cat said)"
done <<<"$(cd "$configs" && find . -name '*.yaml' | sed 's,^\./,,')"

# The largest on a laptop: the plan allocates nothing of the model.
(ulimit -v 4000000 && run 1 plan "$configs/3b/h4b16384.yaml" --grid 1x1 --json >plan.json 2>said) ||
    fail "a plan needs a model's memory: $(cat said)"
expect_refused 2 "does not divide 3 ranks" run 1 plan "$configs/100m/h4b16384.yaml" --ranks 3 --set parallel.stages=2
expect_refused 2 "at most 14" run 1 plan "$configs/100m/h4b16384.yaml" --grid 15x1
expect_exit 2 "PxD" run 1 plan "$configs/100m/h4b16384.yaml" --grid 2y2
expect_exit 2 "grid|ranks" run 1 plan "$configs/100m/h4b16384.yaml"
expect_refused 4 "absent.yaml" run 1 plan absent.yaml --grid 1x1
finish
