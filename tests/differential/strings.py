# SPDX-License-Identifier: ISC
"""Strings to encode: real ones (files of this repository, documentation and locales of the machine, texts
given), and made-up ones: mixtures of scripts, special tokens, white space and pieces of real ones.
"""

import gzip
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONGEST = 400  # characters of a string
FILE_PART = 1 << 16  # characters read of a file

# Ranges of code points: alphabets, marks, spaces, symbols, and places where tables end.
SCRIPTS = [
    (0x20, 0x7F),
    (0x20, 0x7F),
    (0xA0, 0x250),
    (0x300, 0x370),
    (0x370, 0x500),
    (0x5D0, 0x5EB),
    (0x620, 0x660),
    (0x900, 0x980),
    (0xE01, 0xE3B),
    (0x1100, 0x1200),
    (0x2000, 0x2070),
    (0x2100, 0x2190),
    (0x3040, 0x3100),
    (0x4E00, 0x4E80),
    (0xAC00, 0xAC80),
    (0xFF01, 0xFFBF),
    (0x1F600, 0x1F640),
    (0x1F1E6, 0x1F200),
    (0x1D400, 0x1D480),
    (0x0, 0x20),
]
ODD = [
    0,
    0x1C,
    0x85,
    0xA0,
    0xAD,
    0x130,
    0x17F,
    0x345,
    0x3C2,
    0x180E,
    0x1E9E,
    0x200B,
    0x200D,
    0x2028,
    0x212A,
    0x212B,
    0x3000,
    0xD7FF,
    0xE000,
    0xFEFF,
    0xFFFD,
    0xFFFF,
    0x1D15E,
    0x2F800,
    0x10FFFF,
]
SNIPPETS = [
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<|endoftext|>",
    "<|im_start|>",
    "[INST]",
    "[/INST]",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "▁",
    "▁▁",
    "Ġ",
    "<0x0A>",
    "Day",
    "day",
    "'s",
    "'S",
    "'ll",
    "'\u017f",
    "\u212a",
    "ß",
    "ss",
    "we'RE",
    " '",
    "1234",
    "12.5",
    "...",
    "don't",
    "://",
    "e\u0301",
    "ﬁ",
    "한",
    "x" * 30,
]


def read(path):
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", errors="replace") as file:
            return file.read(FILE_PART)
    except (OSError, EOFError):
        return ""


def real_files(rng, texts):
    """Files whose lines make up real strings, the same ones in the same order for the same machine."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=False)
    own = [
        ROOT / name
        for name in listed.stdout.decode().split("\0")
        if name.endswith((".c", ".h", ".py", ".sh", ".md", ".txt", ".yaml"))
    ]
    documents = [
        path
        for pattern in ("changelog*", "README*", "NEWS*", "copyright")
        for path in sorted(pathlib.Path("/usr/share/doc").glob("*/" + pattern))
    ]
    locales = sorted(pathlib.Path("/usr/share/i18n/locales").glob("*"))
    picked = [rng.sample(group, min(len(group), 120)) for group in (own, documents, locales)]
    return [path for group in picked for path in group if path.is_file()] + list(texts)


def pieces_of(text, rng):
    """Single lines as they are, and stretches of several."""
    lines = text.split("\n")
    chosen = rng.sample(lines, min(len(lines), 60))
    for _ in range(15):
        start = rng.randrange(len(text))
        chosen.append(text[start : start + rng.randrange(1, LONGEST)])
    return [line[:LONGEST] for line in chosen]


def real_strings(seed, texts=()):
    rng = random.Random(f"real {seed}")
    found = []
    for path in real_files(rng, map(pathlib.Path, texts)):
        text = read(path)
        if text:
            found += pieces_of(text, rng)
    return found or ["the only real string of a machine without documentation"]


def character(rng):
    if rng.random() < 0.03:
        return chr(rng.choice(ODD))
    return chr(rng.randrange(*rng.choice(SCRIPTS)))


def mixture(rng):
    parts = []
    for _ in range(rng.randrange(1, 12)):
        if rng.random() < 0.25:
            parts.append(rng.choice(SNIPPETS))
        elif rng.random() < 0.5:
            low, high = rng.choice(SCRIPTS)
            parts.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 8))))
        else:
            parts.append("".join(character(rng) for _ in range(rng.randrange(1, 6))))
    return "".join(parts)


def spliced(rng, real):
    a, b = rng.choice(real), rng.choice(real)
    return a[: rng.randrange(len(a) + 1)] + rng.choice(SNIPPETS) + b[rng.randrange(len(b) + 1) :]


def crumbs(rng, real):
    return "".join(
        rng.choice(SNIPPETS) if rng.random() < 0.3 else rng.choice(real)[: rng.randrange(1, 12)]
        for _ in range(rng.randrange(1, 10))
    )


def strings(n, seed, real):
    """n strings, two fifths of them real."""
    rng = random.Random(f"strings {seed}")
    made = []
    for i in range(n):
        kind = i % 10
        if kind < 4:
            text = rng.choice(real)
        elif kind < 6:
            text = spliced(rng, real)
        elif kind < 8:
            text = mixture(rng)
        else:
            text = crumbs(rng, real)
        made.append(text)
    return made
