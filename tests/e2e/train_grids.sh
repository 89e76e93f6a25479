#!/bin/bash
# SPDX-License-Identifier: ISC
# 20 steps on grids of 1 to 4 ranks: with equal replicas any number of stages gives the same bits,
# with other replicas the losses agree closely.
. "$(dirname "$0")/../support/e2e.sh"
make_inputs || fail "no inputs"

exact="step loss losses bits_per_byte lr grad_norm tokens holdout"
for kind in product vocabulary standard; do
    write_config $kind $kind.yaml
    for grid in 1x1 2x1 3x1 4x1 1x2 2x2 1x3 1x4; do
        stages=${grid%x*} replicas=${grid#*x}
        train $((stages * replicas)) "$stages" $kind-$grid $kind.yaml >said 2>&1 ||
            fail "$kind on $grid: exit code $?: $(tail -n 3 said)"
        case $grid in
            1x1) continue ;;
            *x1) base=1x1 ;;
            2x2) base=1x2 ;;
            *) base= ;;
        esac
        if [ -n "$base" ]; then
            expect_metrics $kind-$base $kind-$grid 0 $exact
            expect_equal_groups "$(checkpoint $kind-$base 20)" "$(checkpoint $kind-$grid 20)" \
                /parameters /optimizer
        fi
        expect_metrics $kind-1x1 $kind-$grid 1e-5 step loss losses bits_per_byte lr tokens holdout
    done
    python3 - $kind-1x1/metrics.jsonl <<'PYTHON' || fail "$kind: the loss did not fall"
import json, sys
loss = [json.loads(line)["loss"] for line in open(sys.argv[1])]
sys.exit(not loss[-1] < 0.95 * loss[0])
PYTHON
done

# Layers cut by hand; activations made again in the backward.
expect_exit 2 "leaves stage 1 empty" train 3 3 empty product.yaml --set 'parallel.layers=[1, 0, 3]'
train 3 3 hand product.yaml --set 'parallel.layers=[3, 1, 0]' >said 2>&1 || fail "by hand: $(tail -n 3 said)"
train 1 1 again product.yaml --set train.recompute=layer >said 2>&1 || fail "recompute: $(tail -n 3 said)"
for other in hand again; do
    expect_metrics product-1x1 $other 0 $exact
    expect_equal_groups "$(checkpoint product-1x1 20)" "$(checkpoint $other 20)" /parameters /optimizer
done
finish
