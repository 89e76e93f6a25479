#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Exported models in the transformers library: configuration, tensors and tokenizer, and, where
MHF_RELEASED_CODE names a checkout of the released model code, the models themselves: hidden states and
log-probabilities beside `mhf dump` and `mhf score`, and the way back through save_pretrained.

Models: three trained here on made-up words, and the golden ones where they are at hand.
"""

import filecmp
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
import numpy as np
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoTokenizer

MHF = os.environ["MHF"]
CODE = os.environ.get("MHF_RELEASED_CODE")
# float32 sums in another order: largest difference of a hidden state, relative to the largest state,
# and of a token's log-probability in nats.
STATES, NATS = 5e-5, 2e-4
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


def write_text(path, words):
    rng = random.Random(1)
    syllables = "ba ke li mo nu ra si to ve wy cha dre flo gri sta the".split()
    lexicon = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(300)]
    with open(path, "w") as file:
        for i in range(words):
            word = lexicon[int(300 * rng.random() * rng.random())]
            file.write(word + (".\n\n" if i % 80 == 79 else " "))


def train(name, model, *more):
    with open(f"{name}.yaml", "w") as file:
        file.write(
            f"model: {{{model}, hidden_size: 64, num_hidden_layers: 3, num_attention_heads: 4,\n"
            "  num_key_value_heads: 2, head_dim: 16, intermediate_size: 160, bottle_neck_dim: 16,\n"
            "  max_position_embeddings: 128}\ntokenizer: tokenizer.json\n"
            "data: {train: tokens.h5, block: 64}\n"
            "train: {steps: 40, batch: 8, micro_batch: 4, lr: 3.0e-3, warmup: 4}\n"
        )
    mhf("train", f"{name}.yaml", "--run", name, *more)


def own_models():
    write_text("text.txt", 8000)
    mhf(
        "tokenizer",
        "train",
        "--kind",
        "byte-level",
        "--vocab-size",
        "500",
        "-o",
        "tokenizer.json",
        "text.txt",
    )
    mhf("corpus", "tokenizer.json", "-o", "tokens.h5", "text.txt")
    train("standard", "head: standard, tie_word_embeddings: false")
    train("product", "head: mhf, num_hashes: 3, num_buckets: 61")
    train(
        "vocabulary",
        "head: mhf, num_hashes: 4, num_buckets: 61, num_lsh: 2",
        "--set",
        "train.objective=vocabulary",
    )
    return ["standard", "product", "vocabulary"]


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
    check(config.rope_parameters["rope_theta"] > 0, f"{model}: no rope_theta")
    info = json.loads(mhf("info", folder, "--json"))
    tensors = read_tensors(folder)
    floats = sum(t.size for k, t in tensors.items() if k != "model.hash_map")
    check(floats == info["parameters"]["total"], f"{model}: {floats} parameters in the file")
    text = "ba ke limo, 12 näive 你好"
    theirs = AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"]
    mine = [int(i) for i in mhf("tokenizer", "encode", folder, stdin=text + "\n").split()]
    check(theirs == mine, f"{model}: the tokenizer gives {theirs}, not {mine}")
    return config, tensors


def released_class(standard):
    sys.path.insert(0, CODE)
    if standard:
        from transformers import Qwen3ForCausalLM
        from transformers import Qwen3Config
    else:
        from hashformer.qwen3.qwen3_hashformer.configuration_qwen3 import Qwen3Config
        from hashformer.qwen3.qwen3_hashformer.modeling_qwen3 import Qwen3ForCausalLM
    return Qwen3Config, Qwen3ForCausalLM


def check_model(model, folder, config, tensors):
    """The released class loads all of it, computes the same, and gives back the same tensors."""
    import h5py
    import torch

    standard = not hasattr(config, "num_hashes")
    config_class, model_class = released_class(standard)
    config = config_class.from_pretrained(folder)
    if not standard:
        config.use_conditional_prob = True  # logits: log-probabilities over all rows, unnormalised
    config._attn_implementation = "eager"
    network, loading = model_class.from_pretrained(
        folder, config=config, dtype=torch.float32, output_loading_info=True
    )
    missing = {
        k
        for k in loading["missing_keys"]
        if not (k == "lm_head.weight" and config.tie_word_embeddings)
    }
    check(
        not missing and not loading["unexpected_keys"] and not loading["mismatched_keys"],
        f"{model}: missing {missing}, unexpected {loading['unexpected_keys']}",
    )
    network.eval()

    info = json.loads(mhf("info", folder, "--json"))
    rng = random.Random(5)
    ids = [rng.randrange(3, min(400, config.vocab_size)) for _ in range(40)]
    with torch.no_grad():
        out = network(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    logp = torch.log_softmax(out.logits[0].double(), dim=-1).numpy()

    request = json.dumps({"context_ids": ids[:1], "continuation_ids": ids[1:]}) + "\n"
    answer = json.loads(
        mhf("score", folder, "--per-token", "--normalize", "reference", stdin=request)
    )
    theirs = np.array([logp[i, ids[i + 1]] for i in range(len(ids) - 1)])
    nats = np.abs(theirs - np.array(answer["token_logprobs"])).max()
    check(nats <= NATS, f"{model}: a log-probability differs by {nats:.2e} nats")

    mhf("dump", folder, "-i", "-", "-o", "states.h5", stdin=json.dumps({"ids": ids}) + "\n")
    worst = 0
    with h5py.File("states.h5") as file:
        last = len(out.hidden_states) - 1
        for i, theirs in enumerate(out.hidden_states):
            name = "norm" if i == last else f"{i:02d}"
            mine, theirs = file[f"layers/{name}/states"][()], theirs[0].numpy()
            worst = max(worst, np.abs(mine - theirs).max() / np.abs(theirs).max())
    check(worst <= STATES, f"{model}: a hidden state differs by {worst:.2e} of the largest")

    shutil.rmtree("saved", ignore_errors=True)
    network.save_pretrained("saved")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{folder}/{name}", "saved")
    mhf("import", "saved", "-o", "back.h5")
    mhf("export", "back.h5", "-o", "back")
    check(
        same_tensors(read_tensors("back"), tensors), f"{model}: other tensors after save_pretrained"
    )
    print(f"  {os.path.basename(model)}: nats {nats:.1e}, states {worst:.1e}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models = own_models() + golden_models()
        for model in models:
            for dtype in "f32", "bf16":
                mhf("export", model, "-o", dtype, "--dtype", dtype)
                config, tensors = check_files(model, dtype)
                kinds = {str(t.dtype) for k, t in tensors.items() if k != "model.hash_map"}
                check(len(kinds) == 1, f"{model}: {dtype} gives {kinds}")
                if CODE and dtype == "f32":
                    check_model(model, dtype, config, tensors)
                shutil.rmtree(dtype)
        print(f"{len(models)} models, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
