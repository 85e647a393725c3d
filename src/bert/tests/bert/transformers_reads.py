"""Loads a folder with transformers and prints, as JSON, what it computes for the texts on stdin.

    python transformers_reads.py FOLDER < texts.json
"""

import json
import sys

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

folder = sys.argv[1]
texts = json.load(sys.stdin)
model, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
tokenizer = AutoTokenizer.from_pretrained(folder)
encoded = tokenizer(texts, padding=True, truncation=True, max_length=32, return_tensors="pt")
with torch.no_grad():
    logits = model.eval()(**encoded).logits
json.dump(
    {
        "class": type(model).__name__,
        "dtype": str(model.dtype),
        "labels": [model.config.id2label[index] for index in range(model.config.num_labels)],
        "problem_type": model.config.problem_type,
        "missing": sorted(info["missing_keys"]),
        "unexpected": sorted(info["unexpected_keys"]),
        "ids": encoded["input_ids"].tolist(),
        "mask": encoded["attention_mask"].tolist(),
        "logits": logits.tolist(),
    },
    sys.stdout,
)
