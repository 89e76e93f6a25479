#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Make clean English text of the dictionaries that Debian packages.

usage: corpus.py UNPACKED_DIR TRAIN.txt HOLDOUT.txt [--holdout 0.02]

UNPACKED_DIR holds the unpacked packages dict-gcide, dict-foldoc, dict-jargon and wordnet-base
(dpkg-deb -x). A document is an entry: its paragraphs a line each, a blank line after it. A
paragraph that occurred before, however spelled or wrapped, is dropped, so that nothing in the
held-out documents was seen in training. Only Python's own library is needed.
"""

import argparse
import gzip
import hashlib
import os
import re
import sys
import unicodedata

SHORTEST = 20  # characters of a paragraph worth keeping

# GCIDE spells letters outside ASCII as [codes]; the rest are phonetic signs, dropped with the
# pronunciations they stand in.
MARKS = dict(zip("'`\"^~,=-.", "\u0301\u0300\u0308\u0302\u0303\u0327\u0304\u0304\u0307"))
LETTERS = dict(
    pair.split(":")
    for pair in "ae:æ AE:Æ oe:œ OE:Œ eth:ð thorn:þ yogh:ȝ deg:° sect:§ pounds:£ root:√ "
    "alpha:α beta:β "
    "gamma:γ delta:δ Delta:Δ pi:π phi:φ frac12:½ frac14:¼ frac34:¾".split()
)
SUFFIXES = {"mac": "\u0304", "um": "\u0308", "sl": "", "dd": ""}
CODE = re.compile(r"""\[(?:([-='`"^~,.])(\w)|(\w)\^|([A-Za-z]+(?:\d\d)?))\]""")
SOURCE = re.compile(r"\[[^][]*(?:Webster|WordNet|PJC|Century Dict|RHUD|MW10|RDH|Suppl)[^][]*\]")
PRONUNCIATION = re.compile(r"\\[^\\\n]{1,120}\\(?:\s*\([^()]{1,120}\))?")
LABEL = re.compile(
    r"\[(?:[^][]*\.[^][]*|(?:Archaic|Slang|Poetic|Cant|Obs|Colloq|Rare|Jocose|Humorous"
    r"|Scot|British|India|Ireland|informal|slang|archaic|vulgar|acronym)[^][]*)\]",
    re.I,
)


def letter(match):
    mark, marked, breve, name = match.groups()
    if mark:
        return marked + MARKS[mark]
    if breve:
        return breve + "\u0306"
    if name[1:] in SUFFIXES:
        return name[0] + SUFFIXES[name[1:]]
    return LETTERS.get(name, name)


def dictd(folder, name):
    """The entries of a dictd dictionary, in file order, as text."""
    digits = {
        c: i
        for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    }

    def number(word):
        value = 0
        for c in word:
            value = value * 64 + digits[c]
        return value

    base = os.path.join(folder, "usr/share/dictd", name)
    places = {}
    with open(base + ".index", encoding="utf-8") as index:
        for line in index:
            head, offset, length = line.rstrip("\n").split("\t")[:3]
            if not head.startswith("00-database"):
                places[number(offset)] = number(length)
    with gzip.open(base + ".dict.dz") as file:
        data = file.read()
    for offset in sorted(places):
        yield data[offset : offset + places[offset]].decode("utf-8", "replace").strip("\n")


def join(paragraph):
    return " ".join(paragraph.split())


def gcide(folder):
    text = "\0".join(dictd(folder, "gcide"))
    if "\\" not in text:
        sys.exit("corpus.py: gcide.dict.dz has another form than expected: no pronunciation in it")
    text = LABEL.sub("", SOURCE.sub("", PRONUNCIATION.sub("", text)))
    text = CODE.sub(letter, text)
    for _ in range(2):  # etymologies, which hold labels and letters of their own
        text = LABEL.sub("", text)
    text = re.sub(r"[][{}]", "", text)
    text = re.sub(r"""(?<=\w)["*`](?=\w)""", "", text)  # syllables and stress of derived words
    text = re.sub(r"(\w)--(\w)|\s+--\s*", r"\1 -- \2", text)
    text = re.sub(r"[ \t]+([,;.:)])", r"\1", text)
    for entry in text.split("\0"):
        paragraphs = [join(paragraph) for paragraph in re.split(r"\n\s*\n", entry)]
        if len(paragraphs) > 1 and len(paragraphs[0]) < SHORTEST:
            paragraphs[:2] = [" ".join(paragraphs[:2])]
        yield "", [unicodedata.normalize("NFC", paragraph) for paragraph in paragraphs]


def indented(folder, name):
    """FOLDOC and the Jargon File: head words at the margin, prose indented, listings deeper."""
    for entry in dictd(folder, name):
        heads, _, rest = entry.partition("\n\n")
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", rest):
            lines = paragraph.split("\n")
            if min(len(line) - len(line.lstrip()) for line in lines) > 4 or re.search(
                "[─-╿]", paragraph
            ):
                continue
            paragraph = re.sub(r"[{}]", "", join(paragraph))
            paragraphs.append(re.sub(r"^<[^<>]{1,40}> ", "", paragraph))
        yield join(heads.split("\n")[0]), paragraphs


def wordnet(folder):
    for part in ("noun", "verb", "adj", "adv"):
        with open(os.path.join(folder, "usr/share/wordnet/data." + part), encoding="utf-8") as file:
            for line in file:
                if line.startswith("  "):
                    continue  # the licence
                data, _, gloss = line.partition(" | ")
                fields = data.split(" ")
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                words = [re.sub(r"\((?:a|p|ip)\)$", "", word).replace("_", " ") for word in words]
                yield ", ".join(words) + ":", [join(gloss)]


def documents(folder):
    seen = set()
    sources = [
        ("gcide", gcide(folder)),
        ("foldoc", indented(folder, "foldoc")),
        ("jargon", indented(folder, "jargon")),
        ("wordnet", wordnet(folder)),
    ]
    for name, entries in sources:
        for head, paragraphs in entries:
            kept = []
            for paragraph in paragraphs:
                key = hash(re.sub(r"[^a-z0-9]+", "", paragraph.lower()))
                if len(paragraph) >= SHORTEST and key not in seen:
                    seen.add(key)
                    kept.append(paragraph)
            if kept and head.endswith(":"):
                kept[0] = head + " " + kept[0]
            elif kept and head:
                kept.insert(0, head)
            if kept:
                yield name, "\n".join(kept)


def held_out(text, fraction):
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < fraction * 2**64


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("train")
    parser.add_argument("holdout_file")
    parser.add_argument("--holdout", type=float, default=0.02, help="fraction held out")
    arguments = parser.parse_args()

    sizes = {}
    temporary = [arguments.train + ".part", arguments.holdout_file + ".part"]
    with open(temporary[0], "w", encoding="utf-8") as train, open(
        temporary[1], "w", encoding="utf-8"
    ) as holdout:
        for name, text in documents(arguments.folder):
            out = holdout if held_out(text, arguments.holdout) else train
            out.write(text + "\n\n")
            count = sizes.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += len(text.encode())
    os.replace(temporary[1], arguments.holdout_file)
    os.replace(temporary[0], arguments.train)
    print(
        "text: "
        + ", ".join(
            f"{name} {size / 1e6:.1f} MB in {count:,} documents"
            for name, (count, size) in sizes.items()
        )
    )


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"corpus.py: {error.filename}: {error.strerror}")
