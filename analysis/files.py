# SPDX-License-Identifier: ISC
"""Read what mhf writes: study.h5, metrics.jsonl, JSON answers. Nothing here writes to them."""

import json
import os
import sys

import h5py
import numpy as np


def stop(message):
    """One sentence on stderr, exit code 3: a wrong file is the reader's to mend."""
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(3)


def split_name(argument):
    """NAME=PATH, or PATH named after the folder it lies in."""
    name, equals, path = argument.partition("=")
    if equals and not os.path.exists(argument):
        return name, path
    return os.path.basename(os.path.dirname(os.path.abspath(argument))), argument


def strings(file, name):
    """A list of strings: NAME/bytes uint8 [total] and NAME/offsets uint64 [n + 1]."""
    data = bytes(file[name + "/bytes"][...].astype(np.uint8))
    offsets = file[name + "/offsets"][...].astype(np.int64)
    if (
        len(offsets) == 0
        or offsets[0] != 0
        or offsets[-1] != len(data)
        or (np.diff(offsets) < 0).any()
    ):
        raise ValueError(f"/{name}/offsets do not fit /{name}/bytes")
    return [data[a:b].decode("utf-8") for a, b in zip(offsets[:-1], offsets[1:])]


class Study:
    """One study.h5: correlations of each layer's similarities with human scores."""

    def __init__(self, path):
        self.path = path
        try:
            with h5py.File(path, "r") as file:
                kind = file.attrs.get("format", b"")
                kind = kind.decode() if isinstance(kind, bytes) else str(kind)
                if kind != "mhf-study":
                    stop(f"{path}: expected a file of format 'mhf-study', found {kind!r}")
                self.layers = strings(file, "layer_names")
                self.correlation = {
                    "pearson": file["pearson"][...],
                    "spearman": file["spearman"][...],
                }
                interval = file["interval"][...]
                covered = file["pairs/covered"][...].astype(bool)
        except FileNotFoundError:
            stop(f"{path}: no such file")
        except (OSError, KeyError, ValueError, UnicodeDecodeError) as error:
            stop(f"{path}: not a whole study file: {error}")
        n = len(self.layers)
        if (
            n < 2
            or interval.shape != (n, 2, 2)
            or any(len(c) != n for c in self.correlation.values())
        ):
            stop(f"{path}: {n} layer names, intervals {interval.shape}: sizes do not fit together")
        self.interval = {"pearson": interval[:, 0], "spearman": interval[:, 1]}  # [layers, 2]
        self.pairs, self.covered = len(covered), int(covered.sum())
        self.has_norm = self.layers[-1] == "norm"
        self.depth = n - 1 - self.has_norm  # number of decoder layers

    def clear_of_zero(self, statistic):
        """How many layers' intervals lie on one side of zero."""
        low, high = self.interval[statistic].T
        return int(((low > 0) | (high < 0)).sum())


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        stop(f"{path}: {error.strerror}")
    except ValueError as error:
        stop(f"{path}: not JSON: {error}")


def read_lines(path):
    """The objects of a JSONL file; a torn last line, of a run that was killed, is left out."""
    lines = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    if line.endswith("\n"):
                        stop(f"{path}, line {number}: not JSON")
    except OSError as error:
        stop(f"{path}: {error.strerror}")
    if not lines:
        stop(f"{path}: nothing in it yet")
    return lines
