# SPDX-License-Identifier: ISC
"""Exported models in the released model code (Standard ones in transformers too), with weights as the
libraries load them: the checks of transformers_models.py that need torch.

MHF_RELEASED_CODE names a checkout, whose folder hashformer/qwen3 has the classes.
"""

import json
import os
import random
import shutil
import sys

import h5py
import numpy as np
import torch
import transformers

sys.path.insert(0, os.path.join(os.environ["MHF_RELEASED_CODE"], "hashformer", "qwen3"))
import qwen3_hashformer
import qwen3_ori

# float32 sums in another order: largest difference of a hidden state, relative to the largest state,
# of a token's log-probability in nats, of a mean loss relative to itself, and of a golden logit.
STATES, NATS, LOSS, LOGITS = 5e-5, 2e-4, 1e-5, 5e-4
BLOCK = 64


def classes(folder):
    """The classes that open a folder; the first is the one to compute with."""
    with open(f"{folder}/config.json") as file:
        if "num_hashes" in json.load(file):
            return [qwen3_hashformer.Qwen3ForCausalLM]
    return [transformers.Qwen3ForCausalLM, qwen3_ori.Qwen3ForCausalLM]


class Network:
    """A folder's model, loaded strictly, in float32 unless said."""

    def __init__(self, folder, check, dtype=torch.float32, kind=None):
        kind = kind or classes(folder)[0]
        self.model, loading = kind.from_pretrained(
            folder, dtype=dtype, attn_implementation="eager", output_loading_info=True
        )
        self.model.eval()
        self.config = self.model.config
        self.hashed = hasattr(self.model, "hash_head")
        missing = set(loading["missing_keys"])
        if self.config.tie_word_embeddings:
            missing.discard("lm_head.weight")
        check(
            not missing and not loading["unexpected_keys"] and not loading["mismatched_keys"],
            f"{folder}: missing {missing}, unexpected {loading['unexpected_keys']}",
        )
        if self.hashed:  # logits of the coordinates, not of tokens
            self.model.use_conditional_prob = False

    @torch.no_grad()
    def run(self, ids):
        return self.model(torch.as_tensor(ids), output_hidden_states=True, use_cache=False)

    def scores(self, logits):
        """[..., V] unnormalised log-probabilities of all rows, and what each coordinate has of them."""
        logits = logits.double()
        if not self.hashed:
            return logits, []
        table = self.model.model.hash_map
        parts = torch.log_softmax(logits, dim=-1)
        parts = [parts[..., k, :][..., table[:, k]] for k in range(table.shape[1])]
        return sum(parts), parts


def same_state(a, b):
    a, b = a.model.state_dict(), b.model.state_dict()
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and torch.equal(a[k], b[k]) for k in a
    )


def check_loading(model, folders, check):
    """The f32, bf16 and sharded exports of a model are one another, in every class."""
    for kind in classes(folders["f32"]):
        full = Network(folders["f32"], check, kind=kind)
        check(same_state(full, Network(folders["shards"], check, kind=kind)), f"{model}: shards")
        half = Network(folders["bf16"], check, dtype="auto", kind=kind)
        check(half.model.dtype == torch.bfloat16, f"{model}: bf16 opens as {half.model.dtype}")
        rounded = Network(folders["f32"], check, dtype=torch.bfloat16, kind=kind)
        check(same_state(half, rounded), f"{model}: bf16 is not what torch rounds to")


def check_scores(model, folder, network, mhf, check):
    """Hidden states beside dump, log-probabilities beside score."""
    rng = random.Random(5)
    ids = [rng.randrange(3, min(400, network.config.vocab_size)) for _ in range(40)]
    out = network.run([ids])
    logp = torch.log_softmax(network.scores(out.logits[0])[0], dim=-1).numpy()
    request = json.dumps({"context_ids": ids[:1], "continuation_ids": ids[1:]}) + "\n"
    answer = json.loads(
        mhf("score", folder, "--per-token", "--normalize", "reference", stdin=request)
    )
    theirs = np.array([logp[i, ids[i + 1]] for i in range(len(ids) - 1)])
    nats = np.abs(theirs - np.array(answer["token_logprobs"])).max()
    check(nats <= NATS, f"{model}: a log-probability differs by {nats:.2e} nats")

    mhf("dump", folder, "-i", "-", "-o", "states.h5", stdin=json.dumps({"ids": ids}) + "\n")
    states = 0
    with h5py.File("states.h5") as file:
        last = len(out.hidden_states) - 1
        for i, theirs in enumerate(out.hidden_states):
            name = "norm" if i == last else f"{i:02d}"
            mine, theirs = file[f"layers/{name}/states"][()], theirs[0].numpy()
            states = max(states, np.abs(mine - theirs).max() / np.abs(theirs).max())
    check(states <= STATES, f"{model}: a hidden state differs by {states:.2e} of the largest")
    return f"nats {nats:.1e}, states {states:.1e}"


def check_loss(model, folder, text, tokens, network, mhf, check):
    """The loss of a text and of each coordinate beside evaluate, over all rows and over tokens."""
    mhf("corpus", folder, "-o", "loss.h5", text)
    with h5py.File("loss.h5") as file:
        ids = file["tokens"][()].astype(np.int64)
    losses, correct, n = {}, {}, 0
    for first in range(0, len(ids), BLOCK):
        block = ids[first : first + BLOCK]
        target = torch.from_numpy(block[1:])[:, None]
        n += len(target)
        joint, parts = network.scores(network.run(block[None]).logits[0, :-1])
        named = {"reference": joint, "actual": joint[:, :tokens]}
        for name, logits in named.items():
            logp = torch.log_softmax(logits, dim=-1)
            losses[name] = losses.get(name, 0) - logp.gather(1, target).sum().item()
            hits = (logp.argmax(dim=-1) == target[:, 0]).sum().item()
            correct[name] = correct.get(name, 0) + hits
        for k, part in enumerate(parts):
            losses[k] = losses.get(k, 0) - part.gather(1, target).sum().item()
    worst = 0
    for name in "reference", "actual":
        options = ["-i", "loss.h5", "--block", str(BLOCK), "--normalize", name, "--json"]
        found = json.loads(mhf("evaluate", folder, *options))
        pairs = [(found["nats_per_token"], losses[name] / n)]
        if network.hashed:
            pairs += [(mine, losses[k] / n) for k, mine in enumerate(found["losses"])]
            check(len(pairs) == network.config.num_hashes + 1, f"{model}: {len(pairs) - 1} losses")
        worst = max(worst, *(abs(mine - theirs) / theirs for mine, theirs in pairs))
        # A tie may go either way.
        off = abs(found["accuracy"] - correct[name] / n) * n
        check(found["tokens"] == n and off <= 2, f"{model}: {found}, {n} tokens, {correct} right")
    check(worst <= LOSS, f"{model}: a loss differs by {worst:.2e} of it")
    return f"loss {worst:.1e}"


def check_generation(model, folder, prompt, tokenizer, network, mhf, check):
    """Each token that generate takes is the likeliest, and generate of the library, with its cache,
    takes tokens as likely."""
    ids = tokenizer(prompt)["input_ids"]
    if ids[-1] == tokenizer.eos_token_id:  # of the template: it ends a document, not a prompt
        ids.pop()
    request = json.dumps({"prompt": prompt, "max_tokens": 20}) + "\n"
    options = ["--temperature", "0", "--ignore-eos", "--normalize", "reference", "--token-ids"]
    mine = json.loads(mhf("generate", folder, "-i", "-", *options, stdin=request))["token_ids"]
    if network.hashed:
        network.model.use_conditional_prob = True
    theirs = network.model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        max_new_tokens=20,
        do_sample=False,
        eos_token_id=-1,
        pad_token_id=0,
    )[0, len(ids) :].tolist()
    if network.hashed:
        network.model.use_conditional_prob = False
    for name, tokens in ("mhf", mine), ("the library", theirs):
        check(len(tokens) == 20, f"{model}: {name} generates {len(tokens)} tokens")
        out = network.run([ids + tokens])
        scores = network.scores(out.logits[0, len(ids) - 1 : -1])[0]
        chosen = scores.gather(1, torch.tensor(tokens)[:, None])[:, 0]
        short = (scores.max(dim=-1).values - chosen).max().item()
        check(short <= NATS, f"{model}: {name} takes a token {short:.2e} nats below the best")


def check_table(model, tokenizer, network, check):
    """The table is what the released code makes with the exported tokenizer."""
    table = network.model.model.hash_map.clone()
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    network.model.model.initialize_hash_map(tokenizer)
    rows = (table != network.model.model.hash_map).any(dim=1).nonzero()[:, 0].tolist()
    check(not rows, f"{model}: the released code gives rows {rows[:8]} other signatures")
    network.model.model.hash_map.copy_(table)


def check_golden(model, folder, check):
    """The export computes to the bit what the golden folder does, and the expected logits."""
    with h5py.File(f"{model}/expect.h5") as file:
        ids, wanted = file["input_ids"][()].astype(np.int64), file["logits"][()]
    ours, theirs = (Network(f, check).run(ids).logits for f in (folder, model))
    check(torch.equal(ours, theirs), f"{model}: the export's logits are not the folder's")
    worst = np.abs(ours.numpy() - wanted).max()
    check(worst <= LOGITS, f"{model}: a logit differs by {worst:.2e}")
    return f"logits {worst:.1e}"


def check_grown(old, new, tokens, check):
    """Old text in a model and in the one that was expanded from it."""
    rng = random.Random(7)
    ids = [[rng.randrange(3, tokens) for _ in range(40)]]
    before, after = (Network(folder, check) for folder in (old, new))
    a, b = before.run(ids).logits, after.run(ids).logits
    if before.hashed:
        check(torch.equal(a, b), f"{new}: old text has other logits")
    else:
        worst = (a[..., :tokens] - b[..., :tokens]).abs().max().item()
        check(worst <= 1e-5, f"{new}: a logit of old text differs by {worst:.2e}")


def save(network, folder, name):
    """As the library saves it, with the tokenizer's files as they were."""
    shutil.rmtree(name, ignore_errors=True)
    network.model.save_pretrained(name)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{folder}/{file}", name)
