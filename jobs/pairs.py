#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Take word pairs with human scores out of the gensim wheel's test data.

usage: pairs.py WHEEL OUT_DIR        writes simlex999.tsv and wordsim353.tsv (word, word, score)
       pairs.py --words PAIRS.tsv... prints {"text"} lines, one a distinct word, for mhf dump
"""

import json
import os
import sys
import zipfile

SETS = {
    "simlex999.tsv": "gensim/test/test_data/simlex999.txt",
    "wordsim353.tsv": "gensim/test/test_data/wordsim353.tsv",
}


def rows(lines, name):
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        try:
            yield fields[0], fields[1], float(fields[2])
        except (IndexError, ValueError):
            sys.exit(f"pairs.py: {name}, line {number}: expected word, word, score, found {line!r}")


def extract(wheel, folder):
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for name, member in SETS.items():
            text = archive.read(member).decode("utf-8")
            path = os.path.join(folder, name)
            with open(path + ".part", "w", encoding="utf-8") as out:
                for first, second, score in rows(text.split("\n"), member):
                    out.write(f"{first}\t{second}\t{score:g}\n")
            os.replace(path + ".part", path)


def words(paths):
    distinct = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for first, second, _ in rows(file, path):
                distinct.setdefault(first.replace("_", " "))
                distinct.setdefault(second.replace("_", " "))
    for word in distinct:
        print(json.dumps({"text": " " + word, "span": [1, 1 + len(word)]}, ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        if sys.argv[1] == "--words":
            words(sys.argv[2:])
        else:
            extract(sys.argv[1], sys.argv[2])
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        sys.exit(f"pairs.py: {error}")
