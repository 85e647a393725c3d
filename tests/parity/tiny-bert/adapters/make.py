"""Writes adapters of Hugging Face's PEFT for the tiny BertForSequenceClassification beside this folder, and what PEFT computes
with them in evaluation mode: outputs, the loss and the gradient of everything that is trained. `python make.py`, with peft,
transformers and torch.

    python make.py FOLDER BASE

loads adapters that were saved elsewhere on the checkpoint BASE, and prints its outputs for the same inputs."""

import json
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification

HERE = pathlib.Path(__file__).resolve().parent
BASE = HERE.parent / "sequence-classification"


def base(folder):
    return BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()


def inputs():
    tensors = load_file(BASE / "case.safetensors")
    return {name.removeprefix("input."): value for name, value in tensors.items() if name.startswith("input.")}


def name_here(name):
    """The name of a parameter without what PEFT puts into it."""
    name = name.removeprefix("base_model.model.").replace(".modules_to_save.default", "")
    return name.replace(".lora_A.default.weight", ".lora_A").replace(".lora_B.default.weight", ".lora_B")


def make():
    torch.manual_seed(12)
    model = get_peft_model(base(BASE), LoraConfig(task_type="SEQ_CLS", r=3, lora_alpha=6, lora_dropout=0.0,
                                                  target_modules=["query", "value", "output.dense"])).eval()
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    with torch.no_grad():
        for parameter in trained.values():
            parameter.copy_(0.2 * torch.randn(parameter.shape))
    given = inputs()
    output = model(**given)
    output.loss.backward()
    values = {"logits": output.logits, "loss": output.loss.reshape(1)}
    values |= {f"grad.{name_here(name)}": parameter.grad for name, parameter in trained.items()}
    values = {name: value.detach().clone().contiguous() for name, value in values.items()}
    save_file({f"input.{name}": value for name, value in given.items()} | values, HERE / "case.safetensors")
    model.save_pretrained(HERE)
    (HERE / "README.md").unlink()
    config = HERE / "adapter_config.json"
    facts = json.loads(config.read_text()) | {"base_model_name_or_path": "tiny-bert"}
    facts["target_modules"].sort()
    config.write_text(json.dumps(facts, indent=1) + "\n")


torch.set_num_threads(1)
if len(sys.argv) == 3:
    with torch.no_grad():
        print(json.dumps(PeftModel.from_pretrained(base(sys.argv[2]), sys.argv[1]).eval()(**inputs()).logits.tolist()))
else:
    make()
