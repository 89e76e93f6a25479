#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Print tables of finished work, as text and, with --tsv FILE, as tab-separated values.

table.py models NAME=RUN_DIR...      size, speed and held-out quality; RUN_DIR holds
                                     metrics.jsonl, evaluate.json and info.json (from
                                     mhf evaluate --calibrate --json and mhf info --json)
table.py study SET/NAME=study.h5...  correlations at the embedding, the best and the last layer
table.py texts prompts.jsonl NAME=generated.jsonl...
                                     what mhf generate wrote, beside its prompt
table.py times times.tsv             where time went: lines of step, seconds
"""

import argparse
import csv
import math
import os
import statistics

from files import Study, read_json, read_lines, split_name, stop


def show(header, rows):
    """Columns as wide as they need; the first to the left, numbers to the right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [
            str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        print("  ".join(cells).rstrip())


def write_tsv(path, header, rows):
    with open(path + ".part", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(path + ".part", path)


def get(source, path, *keys):
    for key in keys:
        if not isinstance(source, dict) or key not in source:
            stop(f"{path}: no {'.'.join(keys)} in it")
        source = source[key]
    return source


def models(arguments):
    header = [
        "model",
        "parameters",
        "tokens",
        "tokens/s",
        "accuracy",
        "bits/byte",
        "calibrated",
        "temperature",
    ]
    shown, exact = [], []
    for name, folder in map(split_name, arguments.inputs):
        info_path, evaluate_path = os.path.join(folder, "info.json"), os.path.join(
            folder, "evaluate.json"
        )
        info, quality = read_json(info_path), read_json(evaluate_path)
        metrics_path = os.path.join(folder, "metrics.jsonl")
        steps = read_lines(metrics_path)
        total = get(info, info_path, "parameters", "total")
        tokens = get(steps[-1], metrics_path, "tokens")
        rate = statistics.median(get(step, metrics_path, "tokens_per_s") for step in steps)
        accuracy = get(quality, evaluate_path, "accuracy")
        raw = get(quality, evaluate_path, "bits_per_byte")
        calibrated = get(quality, evaluate_path, "calibrated", "bits_per_byte")
        temperature = get(quality, evaluate_path, "temperature")
        exact.append([name, total, tokens, rate, accuracy, raw, calibrated, temperature])
        shown.append(
            [
                name,
                f"{total:,}",
                f"{tokens:,}",
                f"{rate:,.0f}",
                f"{100 * accuracy:.1f} %",
                f"{raw:.3f}",
                f"{calibrated:.3f}",
                f"{temperature:.2f}",
            ]
        )
    show(header, shown)
    sizes = [row[1] for row in exact]
    if len(sizes) > 1:
        print(
            f"Sizes agree within {100 * (max(sizes) / min(sizes) - 1):.1f} %. Accuracy and bits/byte "
            "are those of held-out documents;\n"
            "calibrated: at the temperature fitted there, which changes no accuracy."
        )
    return header, exact


def interval(study, statistic, layer):
    low, high = study.interval[statistic][layer]
    return f"{study.correlation[statistic][layer]:+.2f} [{low:+.2f}, {high:+.2f}]"


def study(arguments):
    header = [
        "pairs, model",
        "covered",
        "Spearman: embedding",
        "last layer",
        "best layer",
        "",
        "Pearson, same layer",
    ]
    shown, exact, clear, total = [], [], 0, 0
    for name, path in map(split_name, arguments.inputs):
        one = Study(path)
        rho = one.correlation["spearman"]
        best = max(range(len(rho)), key=lambda i: -math.inf if math.isnan(rho[i]) else rho[i])
        shown.append(
            [
                name.replace("/", ", "),
                f"{one.covered}/{one.pairs}",
                interval(one, "spearman", 0),
                interval(one, "spearman", one.depth),
                interval(one, "spearman", best),
                one.layers[best],
                interval(one, "pearson", best),
            ]
        )
        clear += one.clear_of_zero("spearman")
        total += len(one.layers)
        for i, layer in enumerate(one.layers):
            exact.append(
                [name, layer, one.covered, one.pairs]
                + [
                    x
                    for s in ("pearson", "spearman")
                    for x in (one.correlation[s][i], *one.interval[s][i])
                ]
            )
    show(header, shown)
    print(
        "95 % bootstrap intervals over pairs; Spearman's lie clear of zero at "
        f"{clear} of {total} layers.\n"
        "The best layer is chosen after the fact, so its interval flatters it."
    )
    if clear < total:
        print(
            "Elsewhere no correlation is shown that could be told from chance; where intervals\n"
            "overlap, no clear difference between models."
        )
    return [
        "model",
        "layer",
        "covered",
        "pairs",
        "pearson",
        "pearson_low",
        "pearson_high",
        "spearman",
        "spearman_low",
        "spearman_high",
    ], exact


def texts(arguments):
    prompts = {one["id"]: one["prompt"] for one in read_lines(arguments.inputs[0])}
    rows = []
    for name, path in map(split_name, arguments.inputs[1:]):
        for answer in read_lines(path):
            prompt, text = prompts.get(answer["id"], ""), answer["text"]
            print(f"{name}: {prompt}|{' / '.join(text.split(chr(10)))}")
            rows.append([name, answer["id"], prompt, text])
    return ["model", "id", "prompt", "text"], rows


def times(arguments):
    """Lines of one step are added up: an interrupted step was paid more than once."""
    seconds = {}
    path = arguments.inputs[0]
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                step, _, value = line.rstrip("\n").partition("\t")
                try:
                    seconds[step] = seconds.get(step, 0) + float(value)
                except ValueError:
                    stop(
                        f"{path}, line {number}: expected step and seconds, found {line.strip()!r}"
                    )
    except OSError as error:
        stop(f"{path}: {error.strerror}")
    downloads = seconds.pop("download", None)
    total = sum(seconds.values())
    rows = [
        [step, f"{value:.0f} s", f"{100 * value / max(total, 1e-9):.0f} %"]
        for step, value in seconds.items()
        if value >= 0.5
    ]
    show(["where time went", "seconds", "share"], rows + [["all", f"{total:.0f} s", ""]])
    if downloads is not None:
        print(f"Download of packages, apart: {downloads:.0f} s.")
    return ["step", "seconds"], list(seconds.items())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=["models", "study", "texts", "times"])
    parser.add_argument("inputs", nargs="+", metavar="[NAME=]FILE")
    parser.add_argument("--tsv", metavar="FILE", help="the same numbers at full precision")
    arguments = parser.parse_args()
    tables = {"models": models, "study": study, "texts": texts, "times": times}
    header, rows = tables[arguments.table](arguments)
    if arguments.tsv:
        write_tsv(arguments.tsv, header, rows)


if __name__ == "__main__":
    main()
