#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Exported models in the transformers library: configuration, tensors and tokenizer, and, where
MHF_RELEASED_CODE names a checkout of the released model code, the models themselves: hidden states,
log-probabilities, losses and greedy continuations beside `mhf dump`, `score`, `evaluate` and
`generate`, the signature table, and the way back through save_pretrained.

Models: three trained here on made-up words, two of them expanded, and the golden ones where they are
at hand.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["TQDM_DISABLE"] = "1"

import ml_dtypes  # noqa: F401  numpy has no bfloat16 of its own
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoTokenizer

MHF = os.environ["MHF"]
if os.environ.get("MHF_RELEASED_CODE"):
    import released_code
else:
    released_code = None
SHARD = 100000
failures = 0


def check(good, text):
    global failures
    if not good:
        failures += 1
        print(f"FAILED: {text}")


def mhf(*arguments, stdin=None):
    done = subprocess.run(
        [MHF, *arguments, "--quiet"], input=stdin, capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"mhf {' '.join(arguments)}: {done.stderr}")
    return done.stdout


# ---- models trained here ----------------------------------------------------------------------------


def write_text(path, words, seed, syllables):
    rng = random.Random(seed)
    syllables = syllables.split()
    lexicon = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(300)]
    with open(path, "w") as file:
        for i in range(words):
            word = lexicon[int(300 * rng.random() * rng.random())]
            file.write(word + (".\n\n" if i % 80 == 79 else " "))


def train_tokenizer(kind):
    """KIND/tokenizer.json of `kind`, and KIND/tokens.h5."""
    os.mkdir(kind)
    tokenizer = f"{kind}/tokenizer.json"
    mhf("tokenizer", "train", "--kind", kind, "--vocab-size", "500", "-o", tokenizer, "text.txt")
    mhf("corpus", tokenizer, "-o", f"{kind}/tokens.h5", "text.txt")


def train(name, kind, model, *more):
    with open(f"{name}.yaml", "w") as file:
        file.write(
            f"model: {{{model}, hidden_size: 64, num_hidden_layers: 3, num_attention_heads: 4,\n"
            "  num_key_value_heads: 2, head_dim: 16, intermediate_size: 160, bottle_neck_dim: 16,\n"
            f"  max_position_embeddings: 128}}\ntokenizer: {kind}/tokenizer.json\n"
            f"data: {{train: {kind}/tokens.h5, block: 64}}\n"
            "train: {steps: 40, batch: 8, micro_batch: 4, lr: 3.0e-3, warmup: 4}\n"
        )
    sets = [word for setting in more for word in ("--set", setting)]
    mhf("train", f"{name}.yaml", "--run", name, *sets)


def expand(model, kind):
    """MODEL-grown.h5 of a model whose tokenizer is KIND's."""
    if not os.path.exists(f"{kind}-grown"):
        os.mkdir(f"{kind}-grown")
        grown = f"{kind}-grown/tokenizer.json"
        mhf("tokenizer", "extend", kind, "--per-text", "150", "-o", grown, "more.txt")
    mhf("expand", model, "--tokenizer", f"{kind}-grown", "-o", f"{model}-grown.h5")
    return f"{model}-grown.h5"


def own_models():
    """{model: what it is expanded from, or None}"""
    write_text("text.txt", 8000, 1, "ba ke li mo nu ra si to ve wy cha dre flo gri sta the")
    write_text("more.txt", 3000, 2, "大 小 人 山 水 火 木 ба ке ли мо ну")
    write_text("loss.txt", 1500, 3, "ba ke li mo nu ra si to ve wy 你 é")
    train_tokenizer("byte-level")
    train_tokenizer("sentencepiece")
    # The file that its user writes: it names no class, and the model type's own splits another way.
    with open("sentencepiece/tokenizer_config.json", "w") as file:
        json.dump({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, file)
    train("standard", "byte-level", "head: standard, tie_word_embeddings: false")
    train(
        "product",
        "byte-level",
        "head: mhf, num_hashes: 3, num_buckets: 61",
        "signatures.rule=reference",
    )
    train(
        "vocabulary",
        "sentencepiece",
        "head: mhf, num_hashes: 4, num_buckets: 61, num_lsh: 2",
        "train.objective=vocabulary",
    )
    models = dict.fromkeys(["standard", "product", "vocabulary"])
    for model in "standard", "product":
        models[expand(model, "byte-level")] = model
    return models


# ---- checks -----------------------------------------------------------------------------------------


def golden_models():
    for folder in os.environ.get("MHF_GOLDEN", "").split(":"):
        models = os.path.join(folder, "models")
        if os.path.isdir(models):
            names = sorted(
                n for n in os.listdir(models) if os.path.isfile(f"{models}/{n}/config.json")
            )
            if len(names) >= 6:
                return [os.path.abspath(f"{models}/{n}") for n in names]
    print("skipped: the golden models are not at hand")
    return []


def read_tensors(folder):
    tensors = {}
    for name in os.listdir(folder):
        if name.endswith(".safetensors"):
            tensors.update(load_file(os.path.join(folder, name)))
    return tensors


def same_tensors(a, b):
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes()
        for k in a
    )


def check_tokenizer(model, folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = ["ba ke limo, 12 näive 你好", " ba  ke\tсто ", "a</s>b<|endoftext|> c", "大山 ба"]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    for special in False, True:
        option = ["--special"] if special else []
        mine = mhf("tokenizer", "encode", folder, "--jsonl", *option, stdin=lines).splitlines()
        for text, line in zip(texts, mine, strict=True):
            theirs = tokenizer(text, add_special_tokens=special)["input_ids"]
            ids = json.loads(line)["ids"]
            check(theirs == ids, f"{model}: the tokenizer gives {theirs}, not {ids}")
    return tokenizer


def check_files(model, folder):
    """Configuration, tokenizer and tensors of an exported directory, by the libraries alone."""
    with open(f"{folder}/config.json") as file:
        written = json.load(file)
    config = AutoConfig.from_pretrained(folder)
    check(config.model_type == "qwen3", f"{model}: the library takes it for {config.model_type}")
    for key in (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "tie_word_embeddings",
        "num_hashes",
        "num_buckets",
        "num_lsh",
        "bottle_neck_dim",
        "use_conditional_prob",
        "lsh_only_embed",
    ):
        if key in written:
            check(
                getattr(config, key) == written[key],
                f"{model}: {key} is read as {getattr(config, key)}",
            )
    if "num_hashes" in written:
        asked = model == "vocabulary"
        check(config.use_conditional_prob == asked, f"{model}: use_conditional_prob")
    check(config.rope_parameters["rope_theta"] > 0, f"{model}: no rope_theta")
    info = json.loads(mhf("info", folder, "--json"))
    tensors = read_tensors(folder)
    floats = sum(t.size for k, t in tensors.items() if k != "model.hash_map")
    check(floats == info["parameters"]["total"], f"{model}: {floats} parameters in the file")
    return tensors


def check_grown(model, tensors, old, tokens):
    """MHF: nothing but rows of the table is new. Standard: rows of embedding and head."""
    before = read_tensors(old)
    check(before.keys() == tensors.keys(), f"{model}: other tensors than before")
    for key, value in before.items():
        new = tensors[key]
        if key == "model.hash_map" or value.shape != new.shape:
            check(len(new) > len(value), f"{model}: {key} has no new rows")
            value, new = value[:tokens], new[:tokens]
        check(value.tobytes() == new.tobytes(), f"{model}: {key} is not what it was")


def check_model(model, folders, tokenizer, tensors):
    """The released class loads all of it, computes the same, and gives back the same tensors."""
    folder = folders["f32"]
    released_code.check_loading(model, folders, check)
    network = released_code.Network(folder, check)
    said = [
        released_code.check_scores(model, folder, network, mhf, check),
        released_code.check_loss(model, folder, "loss.txt", len(tokenizer), network, mhf, check),
    ]
    released_code.check_generation(model, folder, "ba ke limo", tokenizer, network, mhf, check)
    # LSH scores too close to call depend on the order of sums.
    if network.hashed and network.config.num_lsh == 0:
        released_code.check_table(model, tokenizer, network, check)
    if os.path.isfile(f"{model}/expect.h5"):
        said.append(released_code.check_golden(model, folder, check))
    released_code.save(network, folder, "saved")
    mhf("import", "saved", "-o", "back.h5")
    mhf("export", "back.h5", "-o", "back")
    check(
        same_tensors(read_tensors("back"), tensors), f"{model}: other tensors after save_pretrained"
    )
    print(f"  {os.path.basename(model)}: {', '.join(said)}")


def check_all(model, origin):
    folders = {name: f"{os.path.basename(model)}.{name}" for name in ("f32", "bf16", "shards")}
    options = {"f32": [], "bf16": ["--dtype", "bf16"], "shards": ["--max-shard-bytes", str(SHARD)]}
    tensors = {}
    for name, folder in folders.items():
        mhf("export", model, "-o", folder, *options[name])
        tokenizer = check_tokenizer(model, folder)
        tensors[name] = check_files(model, folder)
        kinds = {str(t.dtype) for k, t in tensors[name].items() if k != "model.hash_map"}
        check(len(kinds) == 1, f"{model}: {name} gives {kinds}")
    check(same_tensors(tensors["f32"], tensors["shards"]), f"{model}: shards hold other tensors")
    if origin:
        old = f"{origin}.f32"
        tokens = len(AutoTokenizer.from_pretrained(old))
        check_grown(model, tensors["f32"], old, tokens)
        if released_code:
            released_code.check_grown(old, folders["f32"], tokens, check)
    if released_code:
        check_model(model, folders, tokenizer, tensors["f32"])
    for name in "bf16", "shards":
        shutil.rmtree(folders[name])


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models = own_models() | dict.fromkeys(golden_models())
        for model, origin in models.items():
            check_all(model, origin)
    print(f"{len(models)} models, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
