"""Exports the fine-tuned encoder to ONNX with weights of 8 bits, and compares its vectors with those of the model.

    python export.py --model DIR --pairs pairs.jsonl --out DIR

Writes encoder.onnx, vocabulary.txt and SHA256SUMS. The graph pools, normalises and rotates: its output
is one vector of length 1 for each text. The rotation does not change cosines, but bounds of a cosine by its first numbers are closer.
"""

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.optimizer import optimize_model
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

HEADS, SIZE = 12, 384
SAMPLES = ["Summarise this article", "What is 15 % of 80?", "Turn the notes into a PDF", "Book a flight to Rome in May",
           "Which columns of the table are correlated?", "Fasse den Text zusammen", "weather: The forecast of a place"]


class Pooled(torch.nn.Module):
    """Inputs are int64 [texts, tokens]; the segment of every token is 0."""

    def __init__(self, model, rotation):
        super().__init__()
        self.model = model
        self.register_buffer("rotation", rotation)

    def forward(self, input_ids, attention_mask):
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).float()
        return functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1) @ self.rotation


def rotation_of(tokenizer, model, texts: list[str]) -> torch.Tensor:
    """Orthogonal: the first numbers of a rotated vector hold as much of its length as possible."""
    pooled, vectors = Pooled(model, torch.eye(SIZE)).eval(), []
    texts = sorted(texts, key=len)
    for at in range(0, len(texts), 64):
        batch = tokenizer(texts[at : at + 64], padding=True, truncation=True, max_length=64, return_tensors="pt")
        vectors.append(pooled(batch["input_ids"], batch["attention_mask"]).double())
    values, directions = torch.linalg.eigh(torch.cat(vectors).T @ torch.cat(vectors))
    shares = values.flip(0).cumsum(0) / values.sum()
    print("share of the squared length in the first", {count: round(shares[count - 1].item(), 3) for count in (32, 64, 96, 128)})
    # The sign of an eigenvector is arbitrary.
    directions = directions.flip(1)
    return (directions * torch.sign(directions.gather(0, directions.abs().argmax(0, keepdim=True)))).float()


def export(model: Path, pairs: Path, out: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model)
    encoder = AutoModel.from_pretrained(model, dtype=torch.float32, attn_implementation="eager").eval()
    lines = [json.loads(line) for line in pairs.read_text().splitlines()]
    with torch.no_grad():
        rotation = rotation_of(tokenizer, encoder, sorted({pair["skill"] for pair in lines}))
    pooled = Pooled(encoder, rotation).eval()
    batch = tokenizer(SAMPLES, padding=True, return_tensors="pt")
    inputs = (batch["input_ids"], batch["attention_mask"])
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        expected = pooled(*inputs).numpy()
        plain, fused = Path(folder) / "plain.onnx", Path(folder) / "fused.onnx"
        texts, tokens = torch.export.Dim("texts", min=1, max=64), torch.export.Dim("tokens", min=2, max=256)
        torch.onnx.export(
            pooled, inputs, str(plain), input_names=["input_ids", "attention_mask"], output_names=["vectors"],
            dynamo=True, external_data=False,
            dynamic_shapes=({0: texts, 1: tokens}, {0: texts, 1: tokens}),
        )
        optimized = optimize_model(str(plain), model_type="bert", num_heads=HEADS, hidden_size=SIZE, opt_level=0)
        print("fused:", optimized.get_fused_operator_statistics())
        optimized.save_model_to_file(str(fused))
        quantize_dynamic(str(fused), str(out / "encoder.onnx"), per_channel=True, weight_type=QuantType.QInt8,
                         # Without VNNI, products of full 8-bit weights saturate, and vectors would depend on the processor.
                         reduce_range=True,
                         op_types_to_quantize=["MatMul", "Attention", "Gather", "EmbedLayerNormalization"],
                         nodes_to_exclude=[node.name for node in optimized.model.graph.node if "vectors" in node.output])
    vocabulary = tokenizer.get_vocab()
    (out / "vocabulary.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)) + "\n")
    session = onnxruntime.InferenceSession(str(out / "encoder.onnx"))
    found = session.run(None, {"input_ids": batch["input_ids"].numpy(), "attention_mask": batch["attention_mask"].numpy()})[0]
    print("least cosine with the model:", float(np.min(np.sum(found * expected, axis=1))))
    sums = [f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in ("encoder.onnx", "vocabulary.txt")]
    (out / "SHA256SUMS").write_text("".join(sums))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    export(options.model, options.pairs, options.out)


main()
