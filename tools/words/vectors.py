"""Creates english.txt and english.vec from a sentence-embedding model (see shared/negotiation/words/english.md).

    python vectors.py list.json model.onnx tokenizer.json folder-to-write-to

1. The initial vector of a stem is the mean of the model's vectors of its word forms, weighted by frequency.
2. Ridge regression adjusts the stems so that the weighted mean of a gloss's stems approximates the model's vector of the gloss.
3. The largest principal components of the glosses are kept, as 8 bits; pairs of similar stems become relations.
"""
import json
import sys

import numpy as np
import onnxruntime
from scipy.sparse import csr_matrix, diags
from tokenizers import Tokenizer

STEMS, DIMENSIONS, RELATIONS, RIDGE, STEPS, BLOCK = 18_000, 128, 8, 2.0, 40, 500


def embed(texts, model, tokenizer, batch=96):
    session = onnxruntime.InferenceSession(model)
    names = [given.name for given in session.get_inputs()]
    tokens = Tokenizer.from_file(tokenizer)
    tokens.no_padding()
    tokens.enable_truncation(128)
    encoded = [one.ids for one in tokens.encode_batch(texts)]
    order = np.argsort([len(ids) for ids in encoded], kind="stable")
    out = np.zeros((len(texts), 384), np.float32)
    for start in range(0, len(texts), batch):
        rows = order[start : start + batch]
        ids = np.zeros((len(rows), max(len(encoded[at]) for at in rows)), np.int64)
        mask = np.zeros_like(ids)
        for row, at in enumerate(rows):
            ids[row, : len(encoded[at])] = encoded[at]
            mask[row, : len(encoded[at])] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, {name: given[name] for name in names})[0]
        out[rows] = unit((states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True))
    return out


def unit(rows):
    return rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True))


def stems_of(forms, vectors):
    """Returns the stems by rank, each with the mean of its forms."""
    places = {}
    for at, (_, stem, _) in enumerate(forms):
        places.setdefault(stem, []).append(at)
    means = np.zeros((len(places), vectors.shape[1]), np.float32)
    for row, ats in enumerate(places.values()):
        share = 1 / (np.array(ats) + 10.0)
        means[row] = (vectors[ats] * share[:, None]).sum(0) / share.sum()
    return list(places), np.array([min(ats) for ats in places.values()]), means - means.mean(0)


def fitted(texts, targets, start):
    """Solves a ridge regression around `start` with conjugate gradients."""
    change, left = np.zeros_like(start), texts.T @ (targets - texts @ start)
    way, rest = left.copy(), (left * left).sum(0)
    for _ in range(STEPS):
        image = texts.T @ (texts @ way) + RIDGE * way
        step = rest / np.maximum(1e-12, (way * image).sum(0))
        change, left = change + step * way, left - step * image
        now = (left * left).sum(0)
        way, rest = left + now / np.maximum(1e-12, rest) * way, now
    return start + change


def main(list_file, model, tokenizer, folder):
    given = json.load(open(list_file))
    forms, glosses = given["forms"], given["glosses"]
    stems, ranks, start = stems_of(forms, embed([form for form, _, _ in forms], model, tokenizer))
    place = {stem: at for at, stem in enumerate(stems)}
    weights = np.log(ranks + 2)
    weights /= weights.mean()
    cells = [(row, place[stem]) for row, gloss in enumerate(glosses) for stem in gloss["stems"] if stem in place]
    rows, columns = np.array(cells).T
    texts = csr_matrix((weights[columns], (rows, columns)), shape=(len(glosses), len(stems)))
    lengths = np.sqrt(np.asarray(texts.multiply(texts).sum(1)).ravel())
    texts = diags(1 / np.maximum(1e-6, lengths)) @ texts
    targets = embed([gloss["text"] for gloss in glosses], model, tokenizer)
    targets -= targets.mean(0)
    near = texts @ start
    vectors = fitted(texts, targets, start * ((near * targets).sum() / (near * near).sum()))
    write(folder, stems, ranks, forms, vectors, weights, targets)


def write(folder, stems, ranks, forms, vectors, weights, targets):
    said = {stem for _, stem, stops in forms if not stops}
    kept = [at for at in np.argsort(ranks, kind="stable") if stems[at] in said][:STEMS]
    axes = np.linalg.svd(targets[:20_000], full_matrices=False)[2][:DIMENSIONS]
    values = (vectors[kept] @ axes.T) * weights[kept][:, None]
    scale = 127 / np.quantile(np.abs(values).max(1), 0.995)
    np.clip(np.round(values * scale), -127, 127).astype(np.int8).tofile(f"{folder}/english.vec")
    whole = unit(vectors[kept])
    lines = []
    for row, at in enumerate(kept):
        if row % BLOCK == 0:
            block = whole[row : row + BLOCK] @ whole.T
        cosines = block[row % BLOCK]
        cosines[row] = -1
        best = np.argpartition(-cosines, RELATIONS)[:RELATIONS]
        best = best[np.lexsort((best, -cosines[best]))]
        shares = np.round(100 * np.clip((cosines[best] - 0.2) / 0.8, 0, 1) ** 1.5).astype(int)
        pairs = " ".join(f"{np.base_repr(other, 36).lower()} {share}" for other, share in zip(best, shares) if share >= 5)
        lines.append(f"{stems[at]} {ranks[at] + 1} {pairs}".rstrip())
    open(f"{folder}/english.txt", "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:5])
