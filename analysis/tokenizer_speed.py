#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""How fast one core encodes a text: `mhf tokenizer encode`, from file to file, beside the tokenizers
library, which encodes the same lines in memory.

tokenizer_speed.py TEXT TOKENIZER...   TEXT is read line by line (TOKENIZER: tokenizer.json or folder)
    --mhf FILE         the program (default: $MHF, or mhf)
    --megabytes N      how much of the text (default 8)
    --repeat N         the best of N (default 3)

Seconds are those of the processor, not of the clock, so that other work on the machine counts less.
Loading the tokenizer is taken off on both sides, what it takes is shown. The ids must be equal. Needs
the package tokenizers (the comparison under tests/differential installs it for itself).
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

HEADER = [
    "tokenizer",
    "mhf MB/s",
    "library MB/s",
    "ratio",
    "tokens",
    "mhf load s",
    "library load s",
]


def stop(message, code):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(code)


def read_text(path, limit):
    """Whole lines, at most `limit` bytes, valid UTF-8 without a carriage return."""
    try:
        with open(path, "rb") as file:
            text = file.read(limit)
    except OSError as error:
        stop(f"{path}: {error.strerror}", 4)
    text = text[: text.rfind(b"\n") + 1].decode("utf-8", errors="replace").replace("\r", " ")
    if not text:
        stop(f"{path}: no whole line in its first {limit} bytes", 3)
    return text.encode()


def run_mhf(program, tokenizer, source, out):
    """Processor seconds of the program from the file `source` to the file `out`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [program, "tokenizer", "encode", tokenizer, "--threads", "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with open(source, "rb") as text, open(out, "wb") as ids:
        try:
            done = subprocess.run(
                command,
                stdin=text,
                stdout=ids,
                stderr=subprocess.PIPE,
                env=environment,
                check=False,
            )
        except OSError as error:
            stop(f"{program}: {error.strerror}", 4)
    if done.returncode:
        stop(
            f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}", done.returncode
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_mhf(program, tokenizer, text, folder, repeat):
    """(seconds to encode, seconds to load, ids a line)"""
    source, empty, out = (os.path.join(folder, name) for name in ("text", "empty", "ids"))
    with open(source, "wb") as file:
        file.write(text)
    open(empty, "wb").close()
    load = min(run_mhf(program, tokenizer, empty, out) for _ in range(repeat))
    whole = min(run_mhf(program, tokenizer, source, out) for _ in range(repeat))
    with open(out, encoding="ascii") as file:
        ids = [[int(word) for word in line.split()] for line in file]
    return whole - load, load, ids


def measure_library(tokenizer, text, repeat):
    from tokenizers import Tokenizer

    if os.path.isdir(tokenizer):
        tokenizer = os.path.join(tokenizer, "tokenizer.json")
    lines = text.decode().split("\n")[:-1]
    loads, seconds, ids = [], [], []
    for _ in range(repeat):
        started = time.process_time()
        library = Tokenizer.from_file(tokenizer)
        loads.append(time.process_time() - started)
        started = time.process_time()
        encoded = library.encode_batch_fast(lines, add_special_tokens=False)
        seconds.append(time.process_time() - started)
        ids = [one.ids for one in encoded]
    return min(seconds), min(loads), ids


def label_of(path):
    """The folder of a tokenizer.json, or the folder itself."""
    path = os.path.abspath(path)
    return os.path.basename(os.path.dirname(path) if path.endswith("tokenizer.json") else path)


def row_of(arguments, tokenizer, text, folder):
    mine, my_load, my_ids = measure_mhf(arguments.mhf, tokenizer, text, folder, arguments.repeat)
    theirs, their_load, their_ids = measure_library(tokenizer, text, arguments.repeat)
    if my_ids != their_ids:
        line = next(i for i, pair in enumerate(zip(my_ids, their_ids)) if pair[0] != pair[1])
        stop(f"{tokenizer}: the ids of line {line + 1} differ", 1)
    megabytes = len(text) * 1e-6
    return [
        label_of(tokenizer),
        f"{megabytes / mine:.2f}",
        f"{megabytes / theirs:.2f}",
        f"{theirs / mine:.1f}",
        str(sum(map(len, my_ids))),
        f"{my_load:.2f}",
        f"{their_load:.2f}",
    ]


def show(rows):
    widths = [max(len(row[i]) for row in [HEADER, *rows]) for i in range(len(HEADER))]
    for row in [HEADER, ["-" * width for width in widths], *rows]:
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        print("  ".join(cells).rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+")
    parser.add_argument("--mhf", default=os.environ.get("MHF", "mhf"))
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    text = read_text(arguments.text, int(arguments.megabytes * 1e6))
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(arguments, tokenizer, text, folder) for tokenizer in arguments.tokenizers]
    print(f"{len(text) * 1e-6:.1f} MB of {arguments.text}, one core\n")
    show(rows)


if __name__ == "__main__":
    main()
