# SPDX-License-Identifier: ISC
"""Random pipelines: another normalizer, pre-tokenizer, decoder, post-processor, model settings and added
tokens around the vocabulary of a given tokenizer."""

import copy
import itertools

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
EXPRESSIONS = [
    r"\p{N}{1,3}",
    r"\d",
    r"\w+|[^\w\s]+",
    r"\D",
    r"\W+",
    r"\S+",
    r"[^\S]",
    ".",
    "",
    "^a|e$",
    "x*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+",
    r"[\w]+",
    "(a|e)(?=[a-z])",
    "(?<=[a-z])e",
    "(?i)THE|and",
    "(?i:[a-k]|s|'t)(?:e|ss)?",
    r"\h+",
    "[0-9]{2,}?|o{,1}n",
]
EMPTY = [r"\s*", "a*", "x?", "", "(?=b)", "(?<=a)|x+", "[a-e]*?", "^|$"]  # match the empty string
SINGLES = ["Day", "day", "the", "[INST]", " x", "ab", "é", "...", "\n", "<s", "e", "▁a"]


def maybe(rng):
    return rng.random() < 0.5


def sequence(rng, name, make):
    return {"type": "Sequence", name: [make(rng, False) for _ in range(rng.randrange(1, 4))]}


def byte_level(rng):
    return {
        "type": "ByteLevel",
        "add_prefix_space": maybe(rng),
        "trim_offsets": True,
        "use_regex": maybe(rng),
    }


def metaspace(rng):
    return {
        "type": "Metaspace",
        "replacement": rng.choice("▁▁_"),
        "split": maybe(rng),
        "prepend_scheme": rng.choice(["always", "first", "never"]),
    }


def normalizer(rng, outer=True):
    if outer and rng.random() < 0.3:
        return sequence(rng, "normalizers", normalizer)
    pattern = rng.choice(
        [
            {"String": " "},
            {"String": "th"},
            {"Regex": r"\s+"},
            {"Regex": "[a-c]{2,}"},
            {"Regex": "(?i:e)"},
            {"Regex": "x*"},
        ]
    )
    return rng.choice(
        [
            {"type": "NFC"},
            {"type": "NFD"},
            {"type": "NFKC"},
            {"type": "NFKD"},
            {"type": "Lowercase"},
            {"type": "StripAccents"},
            {"type": "ByteLevel"},
            {"type": "Strip", "strip_left": maybe(rng), "strip_right": maybe(rng)},
            {"type": "Replace", "pattern": pattern, "content": rng.choice(["▁", "", "ab", "_"])},
            {"type": "Prepend", "prepend": rng.choice(["▁", "xy"])},
        ]
    )


def pre_tokenizer(rng, outer=True):
    if outer and rng.random() < 0.25:
        return sequence(rng, "pretokenizers", pre_tokenizer)
    pattern = {"Regex": rng.choice(EXPRESSIONS)}
    if rng.random() < 0.3:
        pattern = {"String": rng.choice([" ", "e", "th", ".", "", "'s"])}
    split = {
        "type": "Split",
        "pattern": pattern,
        "behavior": rng.choice(BEHAVIORS),
        "invert": rng.random() < 0.3,
    }
    return rng.choice(
        [
            split,
            split,
            split,
            byte_level(rng),
            byte_level(rng),
            metaspace(rng),
            {"type": "Digits", "individual_digits": maybe(rng)},
            {"type": "Punctuation", "behavior": rng.choice(BEHAVIORS)},
            {"type": "Whitespace"},
            {"type": "WhitespaceSplit"},
            {"type": "CharDelimiterSplit", "delimiter": rng.choice("e ")},
        ]
    )


def decoder(rng, outer=True):
    if outer and rng.random() < 0.3:
        return sequence(rng, "decoders", decoder)
    pattern = rng.choice([{"String": "▁"}, {"Regex": "[aeiou]"}, {"String": "Ġ"}])
    return rng.choice(
        [
            {"type": "Fuse"},
            {"type": "ByteFallback"},
            byte_level(rng),
            metaspace(rng),
            {"type": "Replace", "pattern": pattern, "content": rng.choice([" ", ""])},
            {
                "type": "Strip",
                "content": rng.choice([" ", "e"]),
                "start": rng.randrange(3),
                "stop": 0,
            },
        ]
    )


def template(rng):
    def special(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}

    text = {"Sequence": {"id": "A", "type_id": 0}}
    pair = {"Sequence": {"id": "B", "type_id": 1}}
    single = rng.choice([[special("x"), text], [special("y"), special("x"), text, special("y")]])
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [text, pair],
        "special_tokens": {
            "x": {"id": "x", "ids": [5, 6], "tokens": ["x", "x2"]},
            "y": {"id": "y", "ids": [7], "tokens": ["y"]},
        },
    }


def post_processor(rng):
    roberta = {
        "type": "RobertaProcessing",
        "sep": ["a", 9],
        "cls": ["b", 8],
        "trim_offsets": True,
        "add_prefix_space": True,
    }
    both = [template(rng), byte_level(rng)]
    return rng.choice(
        [
            None,
            both[0],
            both[1],
            roberta,
            {"type": "Sequence", "processors": both},
            {"type": "Sequence", "processors": both[::-1]},
        ]
    )


def add_tokens(rng, tokenizer):
    vocab = tokenizer["model"]["vocab"]
    next_id = 1 + max([*vocab.values(), *(token["id"] for token in tokenizer["added_tokens"])])
    present = {token["content"] for token in tokenizer["added_tokens"]}
    for content in rng.sample(SINGLES, rng.randrange(6)):
        if content in present:
            continue
        token = {
            "id": vocab.get(content, next_id),
            "content": content,
            "single_word": maybe(rng),
            "lstrip": rng.random() < 0.3,
            "rstrip": rng.random() < 0.3,
            "normalized": maybe(rng),
            "special": rng.random() < 0.3,
        }
        next_id += content not in vocab
        tokenizer["added_tokens"].append(token)


def fitted(rng):
    """Truncation and padding, which neither side applies."""
    truncation = {
        "direction": "Right",
        "max_length": rng.randrange(1, 9),
        "strategy": "LongestFirst",
        "stride": 0,
    }
    padding = {
        "strategy": rng.choice(["BatchLongest", {"Fixed": 9}]),
        "direction": "Left",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }
    return rng.choice([(truncation, padding), (truncation, None), (None, padding)])


def pipeline(rng, bases):
    """A tokenizer made of one of the bases."""
    made = copy.deepcopy(rng.choice(bases))
    model = made["model"]
    made["normalizer"] = normalizer(rng) if rng.random() < 0.6 else None
    made["pre_tokenizer"] = pre_tokenizer(rng) if rng.random() < 0.9 else None
    made["decoder"] = decoder(rng) if rng.random() < 0.9 else None
    made["post_processor"] = post_processor(rng)
    if maybe(rng):
        made["truncation"], made["padding"] = fitted(rng)
    model["ignore_merges"] = rng.random() < 0.3
    model["fuse_unk"] = maybe(rng)
    if rng.random() < 0.3:
        model["byte_fallback"] = maybe(rng)
    if rng.random() < 0.3 and not model["unk_token"]:
        model["unk_token"] = "!"
    if rng.random() < 0.3:
        model["merges"] = [" ".join(pair) for pair in model["merges"]]
    for token in made["added_tokens"]:
        for key in ("single_word", "lstrip", "rstrip", "normalized"):
            token[key] = rng.random() < 0.3
    add_tokens(rng, made)
    return made


def empty_splits(base):
    """A Split for every behaviour, inverted and not, whose expression matches the empty string; a mark
    before each part shows where the cuts are."""
    show = {"type": "Metaspace", "replacement": "_", "split": False, "prepend_scheme": "always"}
    for expression, behavior, invert in itertools.product(EMPTY, BEHAVIORS, (False, True)):
        made = copy.deepcopy(base)
        split = {
            "type": "Split",
            "pattern": {"Regex": expression},
            "behavior": behavior,
            "invert": invert,
        }
        made["normalizer"] = None
        made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, show]}
        yield f"Split {expression!r} {behavior}{' inverted' if invert else ''}", made


def describe(made):
    """What was drawn, on one line."""
    model = made["model"]
    settings = {
        key: model[key] for key in ("ignore_merges", "fuse_unk", "byte_fallback", "unk_token")
    }
    added = [
        (token["content"], [key for key in token if token[key] is True])
        for token in made["added_tokens"]
    ]
    return [
        made["normalizer"],
        made["pre_tokenizer"],
        made["post_processor"],
        made["decoder"],
        settings,
        added,
    ]
