#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Draw training curves from metrics.jsonl.

  loss.py Standard=runs/standard MHF=runs/mhf -o loss.png [--key bits_per_byte]

The faint line is each step, the strong one its running mean. Losses of different objectives are not
comparable: a product loss sums over the coordinates of the hash.
"""

import argparse
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from files import read_lines, split_name, stop
from layers import COLOURS


def running_mean(values, width):
    sums = np.cumsum(np.insert(values, 0, 0.0))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - width)
    return (sums[ends] - sums[starts]) / (ends - starts)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="+", help="[NAME=]RUN_DIR, or its metrics.jsonl")
    parser.add_argument(
        "--key", default="loss", help="what to draw: loss (default), bits_per_byte, lr, …"
    )
    parser.add_argument("-o", "--output", default="loss.png", help="PNG, PDF or SVG")
    arguments = parser.parse_args()

    plt.rcParams.update({"font.size": 10, "axes.edgecolor": "0.5"})
    figure, axis = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for colour, (name, path) in zip(COLOURS * len(arguments.run), map(split_name, arguments.run)):
        if os.path.isdir(path):
            path = os.path.join(path, "metrics.jsonl")
        steps = [line for line in read_lines(path) if arguments.key in line]
        if not steps:
            stop(f"{path}: no {arguments.key} in it")
        tokens = np.array([step["tokens"] for step in steps]) / 1e6
        values = np.array([step[arguments.key] for step in steps], dtype=float)
        axis.plot(tokens, values, color=colour, alpha=0.25, linewidth=0.8)
        axis.plot(
            tokens,
            running_mean(values, max(1, len(values) // 40)),
            color=colour,
            linewidth=2,
            label=f"{name} ({values[-max(1, len(values) // 40):].mean():.3f})",
        )
    axis.set_xlabel("million tokens seen")
    axis.set_ylabel(arguments.key.replace("_", " "))
    axis.grid(axis="y", color="0.9", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, title="mean of the last steps")
    figure.savefig(arguments.output, dpi=160)
    print(f"{arguments.output}: runs {len(arguments.run)}")


if __name__ == "__main__":
    main()
