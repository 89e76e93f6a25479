#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""What vocabulary expansion did to each language, as one table and, with --tsv FILE, as
tab-separated values.

languages.py NAME=DIR...   DIR/STAGE/LANGUAGE.json (mhf evaluate --calibrate --json) and
                           DIR/STAGE/info.json (mhf info --json) of three stages: base (the model
                           and its own tokenizer), expanded (mhf expand, the grown tokenizer, not
                           trained yet), continued (trained on).

Bits per byte do not depend on the tokenizer, so stages and languages can be compared.
"""

import argparse
import glob
import os

from files import read_json, split_name, stop
from table import get, show, write_tsv

STAGES = ["base", "expanded", "continued"]
NAMES = {"en": "English", "zh": "Chinese", "ar": "Arabic", "hi": "Hindi"}


def languages_of(folder):
    """The languages measured, in our order, others after them."""
    found = {
        os.path.basename(path)[: -len(".json")]
        for path in glob.glob(os.path.join(glob.escape(folder), "base", "*.json"))
    } - {"info"}
    if not found:
        stop(f"{folder}/base: expected LANGUAGE.json there, found none")
    order = list(NAMES)
    return sorted(found, key=lambda one: (order.index(one) if one in NAMES else len(order), one))


def measure(folder, stage, language):
    path = os.path.join(folder, stage, language + ".json")
    quality = read_json(path)
    size = get(quality, path, "bytes")
    if not size:
        stop(f"{path}: no bytes were measured")
    return {
        "tokens_per_byte": get(quality, path, "tokens") / size,
        "bits_per_byte": get(quality, path, "bits_per_byte"),
        "calibrated": get(quality, path, "calibrated", "bits_per_byte"),
    }


def parameters(folder, stage):
    path = os.path.join(folder, stage, "info.json")
    return get(read_json(path), path, "parameters", "total")


def rows_of(name, folder):
    """One row a language: shown, and exact."""
    sizes = [parameters(folder, stage) for stage in STAGES]
    shown, exact = [], []
    for language in languages_of(folder):
        base, expanded, continued = (measure(folder, stage, language) for stage in STAGES)
        shown.append(
            [
                f"{name}, {NAMES.get(language, language)}",
                f"{sizes[0]:,} + {sizes[-1] - sizes[0]:,}",
                f"{base['tokens_per_byte']:.2f} → {continued['tokens_per_byte']:.2f}",
                f"{base['bits_per_byte']:.3f}",
                f"{expanded['bits_per_byte']:.3f}",
                f"{continued['bits_per_byte']:.3f}",
                f"{base['calibrated']:.3f}",
                f"{continued['calibrated']:.3f}",
            ]
        )
        values = [
            one[key]
            for key in ("tokens_per_byte", "bits_per_byte", "calibrated")
            for one in (base, expanded, continued)
        ]
        exact.append([name, language, *sizes, *values])
    return shown, exact


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("inputs", nargs="+", metavar="NAME=DIR")
    parser.add_argument("--tsv", metavar="FILE", help="the same numbers at full precision")
    arguments = parser.parse_args()

    shown, exact = [], []
    for name, folder in map(split_name, arguments.inputs):
        some_shown, some_exact = rows_of(name, folder)
        shown += some_shown
        exact += some_exact
    show(
        [
            "model, language",
            "parameters",
            "tokens/byte",
            "bits/byte: base",
            "expanded",
            "trained on",
            "calibrated: base",
            "trained on",
        ],
        shown,
    )
    print(
        "Held-out documents. base: the model and its own tokenizer; expanded: the grown\n"
        "tokenizer, not trained yet; trained on: after continued training. Calibrated: at the\n"
        "temperature fitted to each language."
    )
    if arguments.tsv:
        header = ["model", "language"] + [f"parameters_{stage}" for stage in STAGES]
        header += [
            f"{key}_{stage}"
            for key in ("tokens_per_byte", "bits_per_byte", "calibrated")
            for stage in STAGES
        ]
        write_tsv(arguments.tsv, header, exact)


if __name__ == "__main__":
    main()
