"""Writes a tiny BertForMultipleChoice with random weights, a batch of 2 prompts with 3 choices, and what transformers computes
with them in evaluation mode: outputs, the loss and every gradient. `python make.py`, with transformers and torch."""

import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMultipleChoice

HERE = pathlib.Path(__file__).parent
PADDING, BEGIN, SEPARATOR, FIRST = 0, 1, 2, 5
PROMPTS, CHOICES, POSITIONS = 2, 3, 12


def inputs():
    shape = (PROMPTS, CHOICES, POSITIONS)
    ids, mask, types = (torch.zeros(shape, dtype=torch.int64) for _ in range(3))
    for prompt in range(PROMPTS):
        before = torch.randint(FIRST, 128, (3 + prompt,))
        for choice in range(CHOICES):
            after = torch.randint(FIRST, 128, (2 + 2 * choice - prompt,))
            row = [BEGIN, *before.tolist(), SEPARATOR, *after.tolist(), SEPARATOR]
            ids[prompt, choice, :len(row)] = torch.tensor(row)
            mask[prompt, choice, :len(row)] = 1
            types[prompt, choice, len(before) + 2:len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, "labels": torch.tensor([2, 0])}


def computed(model, given):
    model.zero_grad()
    output = model(**given)
    output.loss.backward()
    values = {"logits": output.logits, "loss": output.loss.reshape(1)}
    values |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    return {name: value.detach().clone().contiguous() for name, value in values.items()}


torch.manual_seed(11)
torch.set_num_threads(1)
config = BertConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                    max_position_embeddings=64, attn_implementation="eager")
model = BertForMultipleChoice(config).eval()
# Larger weights than those of the other heads: with small ones all choices are alike, and gradients of the body cancel to
# rounding errors.
with torch.no_grad():
    for name, parameter in model.named_parameters():
        parameter.copy_(0.2 * torch.randn(parameter.shape) + (1.0 if name.endswith("LayerNorm.weight") else 0.0))
model.save_pretrained(HERE)
given = inputs()
values = computed(model, given)
save_file({f"input.{name}": value for name, value in given.items()} | values, HERE / "case.safetensors")
# A softmax ignores what is added to all of its inputs: the gradients of the key biases and of the last bias are rounding errors.
exact = computed(model.double(), given)
zero = [name for name, value in exact.items() if name.startswith("grad.") and value.abs().max() < 1e-12]
facts = {"model": "BertForMultipleChoice", "mode": "eval", "loss_f32": values["loss"].item(), "loss_f64": exact["loss"].item(),
         "zero_gradients": {name: values[name].abs().max().item() for name in zero}}
(HERE / "case.json").write_text(json.dumps(facts, indent=1) + "\n")
