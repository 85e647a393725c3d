"""Runs the Python cells of this folder with transformers and PyTorch on the CPU, and writes the loss of each optimizer step to
`losses.json`. The model has the weights of ../sequence-classification and no dropout, its words are those of `vocab.txt`.

    pip install torch transformers datasets accelerate
    python make.py
"""

import csv
import json
import os
import pathlib
import shutil
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from transformers import BertForSequenceClassification, Trainer

HERE = pathlib.Path(__file__).parent
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
TOPICS = [["chess", "board", "move", "king"], ["letter", "font", "serif", "glyph"], ["server", "mail", "socket", "port"]]
OTHERS = ["a", "the", "of", "with", "and", "for", "small", "large", "new", "old", "fast", "plain"]


def write_inputs():
    """The vocabulary of 128 tokens, and 40 texts of 3 topics in a fixed order."""
    words = [word for topic in TOPICS for word in topic] + OTHERS
    vocabulary = SPECIAL + words
    vocabulary += [f"unused{number}" for number in range(128 - len(vocabulary))]
    (HERE / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    with open(HERE / "train.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["text", "label"])
        for row in range(40):
            topic = (row * 7 + row // 3) % 3
            text = [OTHERS[(row * 5 + place * place) % len(OTHERS)] if place % 2 else TOPICS[topic][(row + place) % 4]
                    for place in range(3 + row % 6)]
            rows.writerow([" ".join(text), topic])


def write_checkpoint(folder):
    """The checkpoint `tiny`: the weights of the classifier, without dropout."""
    classifier = HERE.parent / "sequence-classification"
    folder.mkdir()
    config = json.loads((classifier / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(classifier / "model.safetensors", folder)
    shutil.copy(HERE / "vocab.txt", folder)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')


def losses(cell, batches):
    """The mean loss of each optimizer step of a cell. `batches`: how many batches a step has."""
    found = []

    def recorded(function):
        def call(self, *args, **kwargs):
            loss = function(self, *args, **kwargs)
            # The Trainer divides the loss of a batch by the batches of its step.
            value = loss if torch.is_tensor(loss) else loss.loss
            found.append(float(value.detach().double()))
            return loss
        return call

    owner, name = (Trainer, "training_step") if "Trainer" in cell else (BertForSequenceClassification, "forward")
    original = getattr(owner, name)
    setattr(owner, name, recorded(original))
    try:
        exec(compile(cell, "cell", "exec"), {"__name__": "cell"})
    finally:
        setattr(owner, name, original)
    return [sum(found[at:at + batches]) for at in range(0, len(found), batches)]


def main():
    torch.set_num_threads(1)
    write_inputs()
    cells = {"linear": 1, "cosine": 2, "loop": 1}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "train.csv", folder)
        write_checkpoint(pathlib.Path(folder) / "tiny")
        os.chdir(folder)
        found = {name: losses((HERE / f"{name}.py").read_text(), batches) for name, batches in cells.items()}
        os.chdir(HERE)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    (HERE / "losses.json").write_text(json.dumps({"versions": versions, "losses": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
