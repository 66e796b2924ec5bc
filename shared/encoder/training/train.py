"""Fine-tunes the sentence encoder on pairs of a request and the skill that serves it.

    python train.py --pairs pairs.jsonl --development development.json --base DIR --out DIR

Contrastive, with the other skills of a batch as negatives, and with --others also similar skills of the same agent or field. A batch has no two pairs of one group, because their skills
may serve each other's requests. Seeds, order and number of steps are fixed, so that a run on the same machine repeats.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer, get_linear_schedule_with_warmup

SEED = 20261124


class Encoder(torch.nn.Module):
    def __init__(self, base: Path):
        super().__init__()
        self.model = AutoModel.from_pretrained(base, dtype=torch.float32)
        self.tokenizer = AutoTokenizer.from_pretrained(base)

    def forward(self, texts: list[str], longest: int) -> torch.Tensor:
        batch = self.tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        hidden = self.model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).float()
        return functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    @torch.no_grad()
    def embed(self, texts: list[str], size: int = 64) -> np.ndarray:
        self.eval()
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = np.zeros((len(texts), 384), np.float32)
        for at in range(0, len(order), size):
            indexes = order[at : at + size]
            vectors[indexes] = self([texts[index] for index in indexes], 128).numpy()
        self.train()
        return vectors


def batches(pairs, size: int, chance: random.Random):
    """Shuffles the pairs into batches without two pairs of one group, one request or one skill."""
    waiting = pairs[:]
    chance.shuffle(waiting)
    while len(waiting) >= size:
        batch, used, left = [], set(), []
        for pair in waiting:
            keys = {pair["group"], pair["request"], pair["skill"]}
            if len(batch) < size and not keys & used:
                batch.append(pair)
                used |= keys
            else:
                left.append(pair)
        if len(batch) < size:
            return
        waiting = left
        yield batch


def without_name(skill: str, chance: random.Random) -> str:
    """Leaves out the name of a skill now and then: names of agents often say nothing."""
    _, colon, description = skill.partition(": ")
    return description if colon and chance.random() < 0.3 else skill


def measure(encoder: Encoder, development) -> str:
    """The share of the needed tools that are in the first five and ten, by the best skill of each tool."""
    skills = [(index, f"{agent['name']}, {skill['name']}: {skill['description']}")
              for index, agent in enumerate(development["agents"]) for skill in agent["skills"]]
    owners = np.array([index for index, _ in skills])
    vectors = encoder.embed([text for _, text in skills])
    queries = encoder.embed([one["query"] for one in development["queries"]])
    names = [agent["name"] for agent in development["agents"]]
    found = {5: [], 10: []}
    for query, case in zip(queries @ vectors.T, development["queries"]):
        best = np.full(len(names), -1.0)
        np.maximum.at(best, owners, query)
        ranked = [names[index] for index in np.argsort(-best)]
        for count, shares in found.items():
            shares.append(np.mean([tool in ranked[:count] for tool in case["tools"]]))
    return ", ".join(f"in {count}: {np.mean(shares):.3f}" for count, shares in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--development", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=4e-5)
    parser.add_argument("--others", action="store_true", help="also train with skills of the same agent or field as negatives")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    chance = random.Random(SEED)
    pairs = [json.loads(line) for line in options.pairs.read_text().splitlines()]
    development = json.loads(options.development.read_text())
    encoder = Encoder(options.base)
    print("before:", measure(encoder, development), flush=True)
    steps = [batch for _ in range(options.epochs) for batch in batches(pairs, options.batch, chance)]
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=options.rate, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, len(steps) // 10, len(steps))
    started, losses = time.time(), []
    for step, batch in enumerate(steps, 1):
        requests = encoder([pair["request"] for pair in batch], 64)
        texts = [pair["skill"] for pair in batch] + [chance.choice(pair["others"]) for pair in batch if options.others and pair["others"]]
        skills = encoder([without_name(text, chance) for text in texts], 48)
        same = torch.tensor([[text == pair["skill"] for text in texts[len(batch):]] for pair in batch], dtype=torch.bool)
        scores = requests @ skills.T * 20
        if same.numel() > 0:
            scores[:, len(batch):] = scores[:, len(batch):].masked_fill(same, -1e4)
        target = torch.arange(len(batch))
        back = functional.cross_entropy(scores[:, : len(batch)].T, target)
        loss = (functional.cross_entropy(scores, target) + back) / 2
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step}/{len(steps)} loss {np.mean(losses[-20:]):.3f} {time.time() - started:.0f} s", flush=True)
        if step % 100 == 0 or step == len(steps):
            save(encoder, options.out)
            print("development:", measure(encoder, development), flush=True)


def save(encoder: Encoder, out: Path) -> None:
    encoder.model.save_pretrained(out)
    encoder.tokenizer.save_pretrained(out)


main()
