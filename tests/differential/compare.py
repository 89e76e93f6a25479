#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Compare mhf's tokenizer with the tokenizers library, string by string.

Every tokenizer at hand encodes many real and made-up strings without and with its template; the ids and
tokens must be equal, and so must the texts that both decode from them, special tokens kept and skipped.
Random sequences of ids are decoded as well. At hand: tokenizer.json files and folders given, the golden
ones, those that packages carry, those that mhf trains and extends here, splits at empty matches, and random
pipelines around small vocabularies. The first differences are shown; the last line counts the tokenizers.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

import packages
import pipelines
import strings

SHOWN = 2  # differences shown of a tokenizer
PIPELINE_STRINGS = 300
SPLIT_STRINGS = 100
BATCH = 5000


class Refused(Exception):
    """mhf said no."""


class Program:
    """The mhf program, a line for a line."""

    def __init__(self, path):
        self.path = path
        self.environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run(self, *arguments, lines=()):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run(
            [self.path, "tokenizer", *map(str, arguments)],
            input=text.encode(),
            capture_output=True,
            env=self.environment,
            check=False,
        )
        if done.returncode:
            raise Refused(
                f"exit {done.returncode}: {done.stderr.decode(errors='replace').strip()[:400]}"
            )
        return [json.loads(line) for line in done.stdout.decode().split("\n") if line]

    def encode(self, path, texts, template):
        options = ["--special"] if template else []
        return self.run(
            "encode", path, "--jsonl", *options, lines=({"text": text} for text in texts)
        )

    def decode(self, path, ids, skip):
        options = ["--skip-special"] if skip else []
        answers = self.run("decode", path, *options, lines=({"ids": one} for one in ids))
        return [answer["text"] for answer in answers]


class Report:
    """Counts, and the first differences of each tokenizer."""

    def __init__(self):
        self.passed = self.failed = 0

    def end(self, name, n, differences, note=""):
        self.passed += not differences
        self.failed += bool(differences)
        print(f"{name}: {n} strings, {differences} differences{note}", flush=True)


def show(what, name, given, ours, theirs):
    print(
        f"{what} differs: {name}\n  given  {given!r:.300}\n  ours   {ours!r:.300}\n  theirs {theirs!r:.300}",
        flush=True,
    )


def differing(name, what, given, ours, theirs, shown):
    """How many differ; `shown` says how many were shown before."""
    n = abs(len(ours) - len(theirs))
    for one, our, their in zip(given, ours, theirs):
        if our != their:
            if shown + n < SHOWN:
                show(what, name, one, our, their)
            n += 1
    return n


def compare_decoding(program, path, library, ids, name, shown):
    n = 0
    for skip in (False, True):
        ours = program.decode(path, ids, skip)
        theirs = library.decode_batch(ids, skip_special_tokens=skip)
        n += differing(name, "decoding", ids, ours, theirs, shown + n)
    return n


def compare_texts(program, path, library, texts, name, shown):
    n = 0
    for template in (False, True):
        ours = [(one["ids"], one["tokens"]) for one in program.encode(path, texts, template)]
        encoded = library.encode_batch(texts, add_special_tokens=template)
        theirs = [(one.ids, [library.id_to_token(i) for i in one.ids]) for one in encoded]
        n += differing(name, "encoding", texts, ours, theirs, shown + n)
        n += compare_decoding(program, path, library, [one.ids for one in encoded], name, shown + n)
    return n


def random_ids(library, n, rng):
    ids = sorted(library.get_vocab(with_added_tokens=True).values())
    return [rng.choices(ids, k=rng.randrange(1, 12)) for _ in range(n)]


def compare(program, path, texts, name):
    """Number of differences."""
    library = Tokenizer.from_file(str(path))
    library.no_padding()
    library.no_truncation()
    n = 0
    for first in range(0, len(texts), BATCH):
        n += compare_texts(program, path, library, texts[first : first + BATCH], name, n)
    rng = random.Random(f"ids {name}")
    return n + compare_decoding(
        program, path, library, random_ids(library, len(texts) // 10, rng), name, n
    )


def check_file(program, path, name, options, report):
    texts = strings.strings(options.strings, f"{options.seed} {name}", options.real)
    try:
        report.end(name, len(texts), compare(program, path, texts, name))
    except Refused as refusal:
        report.end(name, len(texts), 1, f": mhf refuses: {refusal}")


def write_tokenizer(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes(text)
    return folder / "tokenizer.json"


def golden_files():
    """tokenizer.json files of the golden folders, each content once."""
    seen = set()
    for root in filter(None, os.environ.get("MHF_GOLDEN", "").split(":")):
        for path in sorted(pathlib.Path(root).rglob("*tokenizer.json")):
            content = path.read_bytes()
            if content not in seen:
                seen.add(content)
                yield str(path.relative_to(root)), path


def train(program, folder, real):
    """Tokenizers that mhf makes of the real strings."""
    half = len(real) // 2
    (folder / "a.txt").write_text("\n".join(real[:half]), encoding="utf-8", errors="replace")
    (folder / "b.txt").write_text("\n".join(real[half:]), encoding="utf-8", errors="replace")
    made = []
    for kind in ("byte-level", "sentencepiece"):
        path = folder / kind / "tokenizer.json"
        path.parent.mkdir()
        program.run(
            "train",
            "--kind",
            kind,
            "--vocab-size",
            6000,
            "--special",
            "[INST]",
            "--quiet",
            "-o",
            path,
            folder / "a.txt",
        )
        longer = folder / f"{kind}-extended" / "tokenizer.json"
        longer.parent.mkdir()
        program.run("extend", path, "--per-text", 700, "--quiet", "-o", longer, folder / "b.txt")
        made += [(f"trained {kind}", path), (f"extended {kind}", longer)]
    return made


def small_bases(program, folder, real):
    """Vocabularies for random pipelines: byte-level and with byte tokens."""
    (folder / "c.txt").write_text("\n".join(real[:3000]), encoding="utf-8", errors="replace")
    bases = []
    for kind, more in (("byte-level", 500), ("sentencepiece", 600)):
        path = folder / f"small-{kind}.json"
        characters = (
            len({c for text in real[:3000] for c in text}) if kind == "sentencepiece" else 0
        )
        program.run(
            "train",
            "--kind",
            kind,
            "--vocab-size",
            256 + characters + more,
            "--quiet",
            "-o",
            path,
            folder / "c.txt",
        )
        bases.append(json.loads(path.read_text()))
    return bases


def check_empty_splits(program, folder, base, options, report):
    n = n_tokenizers = 0
    texts = strings.strings(SPLIT_STRINGS, f"{options.seed} splits", options.real)
    for name, made in pipelines.empty_splits(base):
        path = write_tokenizer(folder / "split", json.dumps(made).encode())
        n += compare(program, path, texts, name)
        n_tokenizers += 1
    report.end(f"{n_tokenizers} splits at empty matches", n_tokenizers * len(texts), n)


def check_pipelines(program, folder, bases, options, report):
    rng = random.Random(f"pipelines {options.seed}")
    refused = empty = 0
    for i in range(options.pipelines):
        made = pipelines.pipeline(rng, bases)
        name = f"pipeline {i}"
        path = write_tokenizer(folder / "pipeline", json.dumps(made).encode())
        texts = strings.strings(PIPELINE_STRINGS, f"{options.seed} {name}", options.real)
        try:
            n = compare(program, path, texts, name)
        except Refused as refusal:
            # the library matches such a token between any two characters; nobody means that
            if "an added token of 0 bytes once normalized" in str(refusal):
                empty += 1
                continue
            n = 1
            report.end(name, len(texts), 1, f": mhf refuses: {refusal}")
        except (
            BaseException
        ) as error:  # the library panics on some: then there is nothing to compare with
            if isinstance(error, KeyboardInterrupt):
                raise
            refused += 1
            continue
        else:
            report.passed += not n
            if n:
                report.end(name, len(texts), n)
        if n:
            print("  " + json.dumps(pipelines.describe(made), ensure_ascii=False), flush=True)
    print(
        f"{options.pipelines} random pipelines, {PIPELINE_STRINGS} strings each; {refused} that the library "
        f"can't run, {empty} with an added token that is refused: nothing is left of it once normalized",
        flush=True,
    )


def check_refused(program, folder, wheels, report):
    for name, text, model in packages.refused(wheels):
        path = write_tokenizer(folder / "refused", text)
        try:
            program.encode(path, ["a"], False)
            said = "nothing"
        except Refused as refusal:
            said = str(refusal)
        expected = said.startswith("exit 3") and f"'{model}' is not built" in said
        report.passed += expected
        report.failed += not expected
        print(f"{name}: {'refused by name' if expected else said}", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mhf", default=os.environ.get("MHF", "mhf"), help="the program")
    parser.add_argument("--strings", type=int, default=20000, help="strings for each tokenizer")
    parser.add_argument("--pipelines", type=int, default=100, help="random pipelines")
    parser.add_argument("--seed", default="1")
    parser.add_argument(
        "--wheels", default=None, help="folder of downloaded packages that carry tokenizers"
    )
    parser.add_argument("--text", action="append", default=[], help="one more file of real text")
    parser.add_argument("files", nargs="*", help="more tokenizer.json files")
    return parser.parse_args()


def main():
    options = parse_options()
    options.real = strings.real_strings(options.seed, options.text)
    program, report = Program(options.mhf), Report()
    print(f"{len(options.real)} real strings", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = [(str(path), path) for path in options.files] + list(golden_files())
        if options.wheels:
            files += [
                (f"package {package}", write_tokenizer(folder / package, text))
                for package, text in packages.carried(options.wheels)
            ]
        for label, path in files + train(program, folder, options.real):
            check_file(program, path, label, options, report)
        bases = small_bases(program, folder, options.real)
        check_empty_splits(program, folder, bases[1], options, report)
        check_pipelines(program, folder, bases, options, report)
        if options.wheels:
            check_refused(program, folder, options.wheels, report)
    print(f"{report.passed} passed, {report.failed} failed")
    sys.exit(report.failed > 0)


if __name__ == "__main__":
    main()
