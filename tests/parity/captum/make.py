"""Writes what Captum says about the predictions of the tiny models: `python make.py`, with captum 0.9.0, transformers 5.24.0 and torch
2.15.0. Computed in float64, on the weights of `tiny-bert/sequence-classification` and of `families`.

The reference of integrated gradients, and what occlusion puts in the place of a word, is the mask token. Numbers are of the logit
of the predicted class."""

import json
import pathlib

import torch
from captum.attr import FeatureAblation, LayerGradientXActivation, LayerIntegratedGradients
from transformers import AutoModelForSequenceClassification, AutoTokenizer

HERE = pathlib.Path(__file__).parent
PARITY = HERE.parent
STEPS = 50
WORDS = ["w10 w23 w99 w7 w42 w64", "w5", "w88 w12 w12 w120 w31 w77 w9 w101 w54"]
TEXTS = ["a mail server", "A chess game for two players and puzzles", "library of fonts, version 2"]


def of_words(text):
    """The tiny BERT has no tokenizer: `w10` has the id 10."""
    words = text.split()
    return [2, *(int(word[1:]) for word in words), 3], [None, *range(len(words)), None], 4


def of_tokenizer(tokenizer):
    def encode(text):
        encoded = tokenizer(text)
        ends = [(0, 0) if each is None else each for each in tokenizer(text, return_offsets_mapping=True)["offset_mapping"]]
        words, bounds, at = [], [], 0
        for word in text.split():
            at = text.index(word, at)
            bounds.append((at, at + len(word)))
            at += len(word)
        special = tokenizer.get_special_tokens_mask(encoded["input_ids"], already_has_special_tokens=True)
        for (begin, end), is_special in zip(ends, special):
            inside = [number for number, (first, last) in enumerate(bounds) if begin < last and end > first]
            words.append(None if is_special or not inside else inside[0])
        return encoded["input_ids"], words, tokenizer.mask_token_id
    return encode


def rollout(attentions):
    """Abnar and Zuidema 2020: the mean over heads, half of it replaced by the residual connection, layer after layer."""
    whole = None
    for layer in attentions:
        own = layer[0].mean(0)
        own = 0.5 * own + 0.5 * torch.eye(own.shape[0], dtype=own.dtype)
        whole = own if whole is None else own @ whole
    return whole[0]


def explained(model, embeddings, text, encode):
    ids, words, mask = encode(text)
    ids = torch.tensor([ids])
    attended = torch.ones_like(ids)

    def forward(ids):
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    outputs = model(input_ids=ids, attention_mask=attended, output_attentions=True)
    target = int(outputs.logits.argmax())
    masked = torch.tensor([[mask if word is not None else int(own) for own, word in zip(ids[0], words)]])
    integrated, delta = LayerIntegratedGradients(forward, embeddings).attribute(
        ids, baselines=masked, target=target, n_steps=STEPS, method="gausslegendre", return_convergence_delta=True)
    product = LayerGradientXActivation(forward, embeddings).attribute(ids, target=target)
    # A number for each word; special tokens are one more word, which is not compared.
    groups = torch.tensor([[word if word is not None else max(w for w in words if w is not None) + 1 for word in words]])
    ablated = FeatureAblation(forward).attribute(ids, baselines=mask, target=target, feature_mask=groups)

    def by_word(values, once=False):
        count = max(word for word in words if word is not None) + 1
        own = [[float(value) for value, its in zip(values, words) if its == word] for word in range(count)]
        return [each[0] if once else sum(each) for each in own]

    return {
        "text": text,
        "ids": ids[0].tolist(),
        "target": target,
        "logits": outputs.logits[0].tolist(),
        "reference": forward(masked)[0, target].item(),
        "delta": delta.item(),
        "integrated_gradients": by_word(integrated.sum(-1)[0]),
        "gradient_input": by_word(product.sum(-1)[0]),
        "occlusion": by_word(ablated[0], once=True),
        "rollout": by_word(rollout(outputs.attentions)),
    }


def cases(folder, body, texts, encode=None):
    model = AutoModelForSequenceClassification.from_pretrained(PARITY / folder, attn_implementation="eager").double().eval()
    encode = encode or of_tokenizer(AutoTokenizer.from_pretrained(PARITY / folder))
    embeddings = getattr(model, body).embeddings
    return {"model": folder, "texts": [explained(model, embeddings, text, encode) for text in texts]}


models = [
    cases("tiny-bert/sequence-classification", "bert", WORDS, of_words),
    cases("families/distilbert", "distilbert", TEXTS),
    cases("families/roberta", "roberta", TEXTS),
]
text = json.dumps({"captum": "0.9.0", "steps": STEPS, "models": models})
(HERE / "cases.json").write_text(text.replace('}, {"text"', '},\n{"text"').replace('}, {"model"', '},\n{"model"') + "\n")
for each in models:
    for row in each["texts"]:
        print(each["model"], row["text"], row["target"], row["delta"], [round(x, 4) for x in row["integrated_gradients"]],
              [round(x, 4) for x in row["occlusion"]])
