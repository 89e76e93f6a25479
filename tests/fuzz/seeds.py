#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Write the seeds and the dictionary of a fuzz target from the files of tests/golden.

usage: seeds.py TARGET OUT_FOLDER   (OUT_FOLDER/seeds/*, OUT_FOLDER/dictionary)

A seed is small, so that many variations a second are tried: the golden tokenizer keeps 40 tokens, the
golden tensors 4 numbers each.
"""

import copy
import json
import pathlib
import struct
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "models"
MODELS = ["mhf-h1", "mhf-h3", "mhf-h4", "std"]


def text_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# ---- tokenizer.json --------------------------------------------------------------------------------

STEPS = {
    "normalizer": [
        {"type": "NFC"},
        {"type": "NFKD"},
        {"type": "Lowercase"},
        {"type": "StripAccents"},
        {"type": "Strip", "strip_left": True, "strip_right": False},
        {"type": "Prepend", "prepend": "▁"},
        {"type": "ByteLevel"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "  "},
    ],
    "pre_tokenizer": [
        {
            "type": "Split",
            "pattern": {"Regex": r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)"},
            "behavior": "Isolated",
            "invert": False,
        },
        {"type": "Split", "pattern": {"String": "a"}, "behavior": "MergedWithNext", "invert": True},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {"type": "Digits", "individual_digits": True},
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
        {"type": "CharDelimiterSplit", "delimiter": "e"},
    ],
    "decoder": [
        {"type": "ByteLevel"},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
    ],
}
LISTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}


def small_tokenizer():
    """The golden one with its specials, the letters of some texts and merges among them."""
    whole = json.loads((GOLDEN / "mhf-h3" / "tokenizer.json").read_text())
    kept, merges = ["<unk>", "<s>", "</s>", "<0x0A>", "<0xFF>"], []
    kept += [c for c in "▁aehty12'D.,s" if c in whole["model"]["vocab"]]
    for left, right in whole["model"]["merges"]:
        if left in kept and right in kept and len(kept) < 40:
            merges.append([left, right])
            kept.append(left + right)
    whole["model"].update(vocab={piece: i for i, piece in enumerate(kept)}, merges=merges)
    return whole


def tokenizers():
    base = small_tokenizer()
    yield base
    for key, steps in STEPS.items():
        for step in steps + [{"type": "Sequence", LISTS[key]: steps}]:
            changed = copy.deepcopy(base)
            changed[key] = step
            yield changed
    changed = copy.deepcopy(base)
    changed["model"].update(
        ignore_merges=True,
        byte_fallback=False,
        fuse_unk=False,
        merges=[" ".join(pair) for pair in base["model"]["merges"]],
    )
    changed["added_tokens"] += [
        {
            "id": len(base["model"]["vocab"]),
            "content": "Day",
            "single_word": True,
            "lstrip": True,
            "rstrip": True,
            "normalized": True,
            "special": False,
        }
    ]
    changed["post_processor"] = {
        "type": "RobertaProcessing",
        "sep": ["</s>", 2],
        "cls": ["<s>", 1],
        "trim_offsets": True,
        "add_prefix_space": True,
    }
    yield changed


# ---- safetensors and config.json -------------------------------------------------------------------


def safetensors(header, data):
    text = header if isinstance(header, bytes) else text_of(header)
    return struct.pack("<Q", len(text)) + text + data


def tensor_files():
    for model in MODELS:
        with open(GOLDEN / model / "model.safetensors", "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        small, data = {"__metadata__": {"format": "pt"}}, b""
        for name in sorted(set(header) - {"__metadata__"})[-6:]:
            size = {"F32": 4, "I64": 8}[header[name]["dtype"]]
            small[name] = {
                "dtype": header[name]["dtype"],
                "shape": [2, 2],
                "data_offsets": [len(data), len(data) + 4 * size],
            }
            data += bytes(4 * size)
        yield safetensors(small, data)
    for dtype, size in {"F16": 2, "BF16": 2, "F64": 8, "U8": 1, "BOOL": 1}.items():
        yield safetensors(
            {"a": {"dtype": dtype, "shape": [3], "data_offsets": [0, 3 * size]}}, bytes(3 * size)
        )
    yield safetensors(
        {
            "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
            "b": {"dtype": "F32", "shape": [0, 5], "data_offsets": [4, 4]},
        },
        bytes(4),
    )
    yield safetensors({}, b"")
    yield safetensors(b"[" * 50 + b"]" * 50, b"")
    yield struct.pack("<Q", 2**63) + b"{}"
    yield text_of({"metadata": {"total_size": 8}, "weight_map": {"a": "s.safetensors"}})
    yield text_of({"weight_map": {"a": "s.safetensors", "b": "absent.safetensors"}})


def configs():
    for model in MODELS:
        text = (GOLDEN / model / "config.json").read_text()
        yield json.loads(text)
    older = json.loads(text)
    older["rope_theta"] = older.pop("rope_parameters")["rope_theta"]
    older["eos_token_id"] = [2, 1]
    older["rope_scaling"] = None
    yield older


def words_of(value, words):
    """Names and texts in the seeds: what a random byte would hardly spell."""
    if isinstance(value, dict):
        for key, member in value.items():
            words.add(key)
            words_of(member, words)
    elif isinstance(value, list):
        for member in value:
            words_of(member, words)
    elif isinstance(value, str):
        words.add(value)


def write(folder, seeds, values):
    (folder / "seeds").mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (folder / "seeds" / f"{i:03}").write_bytes(seed)
    words = {"null", "true", "false", "-1", "1e99", "9223372036854775807", "18446744073709551616"}
    words_of(values, words)
    with open(folder / "dictionary", "w") as file:
        for word in sorted(words):
            quoted = "".join(f"\\x{byte:02x}" for byte in word.encode())
            if quoted:
                file.write(f'"{quoted}"\n')


def main():
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if target == "tokenizer_json":
        values = list(tokenizers())
        write(folder, map(text_of, values), values)
    elif target == "safetensors":
        names = [
            "dtype",
            "shape",
            "data_offsets",
            "__metadata__",
            "weight_map",
            "s.safetensors",
            "F32",
            "F16",
            "BF16",
            "I64",
            "F64",
            "U8",
        ]
        write(folder, tensor_files(), names)
    elif target == "config_json":
        values = list(configs())
        write(folder, map(text_of, values), values)
    else:
        sys.exit(f"no seeds for {target}")


if __name__ == "__main__":
    main()
