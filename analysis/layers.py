#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Draw how well each layer's similarities agree with human scores.

A panel a set of word pairs, a line a model, a band its 95 % bootstrap interval.

  layers.py Standard=a/study.h5 MHF=b/study.h5 -o layers.png
  layers.py --panel "SimLex-999" Standard=a/study.h5 MHF=b/study.h5 --panel "WordSim-353" ...
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from files import Study, split_name

COLOURS = ["#3b4a5a", "#d1495b", "#00798c", "#8d6cab", "#edae49", "#5f8f3e"]
MARKERS = ["o", "s", "D", "^", "v", "P"]
NORM_AT = 1.24  # where the final norm stands when depths differ, the last layer being at 1


def norm_position(study, relative):
    return NORM_AT if relative else study.depth + max(1, 0.07 * study.depth)


def positions(study, relative):
    """x of each layer: its number, or its share of the depth where models differ in depth."""
    xs = [i / study.depth if relative else i for i in range(study.depth + 1)]
    return xs + ([norm_position(study, relative)] if study.has_norm else [])


def label_axis(axis, studies, relative):
    has_norm = any(study.has_norm for study in studies)
    if relative:
        ticks, names = [0, 0.5, 1], ["embedding", "half-way", "last layer"]
        if has_norm:
            ticks, names = ticks + [NORM_AT], names + ["norm"]
        axis.set_xlabel("depth")
    else:
        depth = studies[0].depth
        step = max(1, (depth + 7) // 12)
        ticks = [
            i
            for i in range(0, depth + 1)
            if i == 0 or i == depth or (i % step == 0 and depth - i >= step)
        ]
        names = ["emb." if i == 0 else str(i) for i in ticks]
        if has_norm:
            ticks, names = ticks + [norm_position(studies[0], relative)], names + ["norm"]
        axis.set_xlabel("layer")
    axis.set_xticks(ticks, names)


def draw_panel(axis, title, models, statistic, colours):
    studies = [study for _, study in models]
    relative = len({study.depth for study in studies}) > 1
    axis.axhline(0, color="0.35", linewidth=0.9, zorder=1)
    for name, study in models:
        x = positions(study, relative)
        y, (low, high) = study.correlation[statistic], study.interval[statistic].T
        layers = slice(0, study.depth + 1)
        colour, marker = colours[name]
        axis.fill_between(
            x[layers], low[layers], high[layers], color=colour, alpha=0.11, linewidth=0
        )
        for bound in (low, high):
            axis.plot(x[layers], bound[layers], color=colour, alpha=0.45, linewidth=0.7)
        axis.plot(
            x[layers],
            y[layers],
            color=colour,
            marker=marker,
            markersize=5.5,
            linewidth=2,
            markeredgecolor="white",
            markeredgewidth=0.8,
            label=name,
            zorder=3,
        )
        if study.has_norm:
            shift = (list(colours).index(name) - (len(colours) - 1) / 2) * (
                0.022 if relative else 0.12
            )
            axis.errorbar(
                [x[-1] + shift],
                [y[-1]],
                [[y[-1] - low[-1]], [high[-1] - y[-1]]],
                color=colour,
                marker=marker,
                markersize=5.5,
                markeredgecolor="white",
                markeredgewidth=0.8,
                elinewidth=1.2,
                capsize=2.5,
                linestyle="none",
                zorder=3,
            )
    covered = sorted({(study.covered, study.pairs) for study in studies})
    count = ", ".join(f"{some} of {all_} pairs" for some, all_ in covered)
    axis.set_title(f"{title}\n" if title else "", loc="left", fontweight="bold", fontsize=11.5)
    axis.text(0, 1.025, count, transform=axis.transAxes, fontsize=9, color="0.35")
    label_axis(axis, studies, relative)
    axis.grid(axis="y", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(length=3, color="0.5")


def reading(panels, statistic):
    """The sentence beside the figure: what the intervals allow one to say."""
    studies = [study for _, models in panels for _, study in models]
    total = sum(len(study.layers) for study in studies)
    clear = sum(study.clear_of_zero(statistic) for study in studies)
    text = (
        "Bands and bars: 95 % bootstrap intervals over pairs; "
        f"{clear} of {total} lie clear of zero."
    )
    if clear < total:
        text += (
            " Where a band holds zero, no correlation is shown;\n"
            "overlapping bands show no clear difference between models."
        )
    return text


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="*", help="[NAME=]study.h5, one a model")
    parser.add_argument(
        "--panel",
        nargs="+",
        action="append",
        default=[],
        metavar="TITLE FILE",
        help="a title and its [NAME=]study.h5 files",
    )
    parser.add_argument("--statistic", choices=["spearman", "pearson"], default="spearman")
    parser.add_argument("--title", default="", help="over the whole figure")
    parser.add_argument("--note", default="", help="a further sentence below it")
    parser.add_argument("-o", "--output", default="layers.png", help="PNG, PDF or SVG")
    arguments = parser.parse_args()

    given = ([["", *arguments.study]] if arguments.study else []) + arguments.panel
    if not given or any(len(panel) < 2 for panel in given):
        parser.error("no study.h5 given")
    panels = [
        (panel[0], [(name, Study(path)) for name, path in map(split_name, panel[1:])])
        for panel in given
    ]
    names = list(dict.fromkeys(name for _, models in panels for name, _ in models))
    colours = {
        name: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)
    }

    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "axes.edgecolor": "0.5"})
    width, height = max(7.2, 4.9 * len(panels)), 5.4
    figure, axes = plt.subplots(1, len(panels), sharey=True, squeeze=False, figsize=(width, height))
    figure.subplots_adjust(
        left=0.85 / width,
        right=1 - 0.2 / width,
        wspace=0.1,
        top=1 - 1.35 / height,
        bottom=1.3 / height,
    )
    for axis, (title, models) in zip(axes[0], panels):
        draw_panel(axis, title, models, arguments.statistic, colours)
    label = "Spearman's ρ" if arguments.statistic == "spearman" else "Pearson's r"
    axes[0][0].set_ylabel(f"{label} with human scores")
    handles = {}
    for axis in axes[0]:
        for handle, text in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(text, handle)
    labels = [name for name in names if name in handles]
    left = 0.16 / width
    figure.text(left, 1 - 0.36 / height, arguments.title, fontsize=13.5, fontweight="bold")
    figure.legend(
        [handles[name] for name in labels],
        labels,
        loc="upper left",
        ncol=len(labels),
        bbox_to_anchor=(left - 0.005, 1 - 0.42 / height),
        frameon=False,
        borderaxespad=0.2,
    )
    note = reading(panels, arguments.statistic) + ("\n" + arguments.note if arguments.note else "")
    figure.text(left, 0.12 / height, note, fontsize=8.5, color="0.3", linespacing=1.35)
    figure.savefig(arguments.output, dpi=160)
    print(f"{arguments.output}: panels {len(panels)}, models {len(names)}")


if __name__ == "__main__":
    main()
