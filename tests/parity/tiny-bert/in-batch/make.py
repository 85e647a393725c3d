"""Writes what sentence-transformers computes with losses over a batch, by the body of ../sequence-classification without dropout, the mean
over tokens and vectors of length 1: of the first 6 examples the loss and the norm of the gradient of each variable, and the losses of
5 steps of AdamW over batches of 4 examples in their order.

    pip install torch transformers sentence-transformers
    python make.py
"""

import json
import os
import pathlib
import shutil
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["HF_HUB_OFFLINE"] = "1"

import sentence_transformers
import torch
from sentence_transformers import losses
from transformers import AutoTokenizer, BertModel

HERE = pathlib.Path(__file__).parent
BATCH, STEPS, RATE = 4, 5, 2e-3


def words(kind, salt):
    """A text of words of one of three kinds."""
    return " ".join(f"w{10 + kind * 30 + (salt * 11 + at * 5) % 25}" for at in range(3 + salt % 4))


def examples():
    """A text, one of the same kind, and one of another."""
    return [[words(row % 3, row), words(row % 3, row * 7 + 3), words((row + 1 + row % 2) % 3, row * 5 + 1)]
            for row in range(BATCH * STEPS)]


def checkpoint(folder):
    classifier = HERE.parent / "sequence-classification"
    config = json.loads((classifier / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(classifier / "model.safetensors", folder)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{index}" for index in range(5, 128)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')


class Vectors(torch.nn.Module):
    """The modules `Transformer`, `Pooling` (mean) and `Normalize` of sentence-transformers as one: a vector for each text."""

    def __init__(self, folder):
        super().__init__()
        self.bert = BertModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)

    def forward(self, features):
        hidden = self.bert(**features).last_hidden_state
        mask = features["attention_mask"].unsqueeze(2).float()
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return {"sentence_embedding": torch.nn.functional.normalize(mean, dim=1)}


def features(tokenizer, batch):
    return [dict(tokenizer(list(texts), padding=True, return_tensors="pt")) for texts in zip(*batch)]


def case(folder, tokenizer, make, texts):
    rows = [example[:texts] for example in examples()]
    model = Vectors(folder)
    loss = make(model)
    value = loss(features(tokenizer, rows[:6]), None)
    value.backward()
    norms = {name: parameter.grad.double().norm().item() for name, parameter in model.named_parameters()
             if parameter.grad is not None}
    model = Vectors(folder)
    loss = make(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    trace = []
    for start in range(0, BATCH * STEPS, BATCH):
        optimizer.zero_grad()
        step = loss(features(tokenizer, rows[start:start + BATCH]), None)
        step.backward()
        optimizer.step()
        trace.append(step.item())
    return {"texts": texts, "loss": value.item(), "gradient_norms": norms, "trace": trace}


def main():
    torch.set_num_threads(1)
    cases = [("MultipleNegativesRanking", lambda model: losses.MultipleNegativesRankingLoss(model, scale=20.0), (2, 3)),
             ("MultipleNegativesSymmetricRanking",
              lambda model: losses.MultipleNegativesSymmetricRankingLoss(model, scale=20.0), (2, 3)),
             ("TripletMargin", lambda model: losses.TripletLoss(model, triplet_margin=0.5), (3,))]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        checkpoint(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        found = {name: [case(folder, tokenizer, make, texts) for texts in counts] for name, make, counts in cases}
    facts = {"sentence_transformers": sentence_transformers.__version__, "torch": torch.__version__.split("+")[0],
             "scale": 20.0, "margin": 0.5, "rate": RATE, "examples": examples(), "cases": found}
    (HERE / "case.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
