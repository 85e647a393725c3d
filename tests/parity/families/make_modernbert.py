"""Writes tiny models of ModernBERT and what transformers computes with them: `python make_modernbert.py`, with transformers and
torch. Texts are longer than the window of local attention, which reaches 4 tokens to either side, and padded."""

import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    ModernBertConfig, ModernBertForMaskedLM, ModernBertForMultipleChoice, ModernBertForQuestionAnswering,
    ModernBertForSequenceClassification, ModernBertForTokenClassification, PreTrainedTokenizerFast,
)

HERE = pathlib.Path(__file__).parent
TEXTS = ["a mail server", "A chess game for two players – and naïve signs: 漢", "library of fonts, version 2"]
PAIRS = [["which port?", "a proxy"], ["a", "tool for drawing vector graphics"], ["sound", "sound synthesis engine"]]
SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
SIZES = {"vocab_size": 300, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 4, "num_attention_heads": 2,
         "max_position_embeddings": 64, "local_attention": 8, "global_attn_every_n_layers": 3, "pad_token_id": 3,
         "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
POSITIONS = 24


def byte_level():
    """A tokenizer like the published one: byte-level BPE between BERT's special tokens."""
    rows = (HERE.parents[2] / "src/data/data/debian-sections/train.tsv").read_text().splitlines()[1:600]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([row.split("\t")[0] for row in rows], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                                   pad_token="[PAD]", mask_token="[MASK]", model_input_names=["input_ids", "attention_mask"])


def model_of(kind, **options):
    """Weights are larger than new ones, so that what is mixed up can be seen."""
    torch.manual_seed(7)
    model = kind(ModernBertConfig(**SIZES, **options, attn_implementation="eager"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        model.model.embeddings.tok_embeddings.weight[3] = 0
    return model.eval()


def values_of(outputs):
    if hasattr(outputs, "logits"):
        return outputs.logits
    return torch.stack([outputs.start_logits, outputs.end_logits], -1)


def write(name, model, columns=None):
    """`columns`: only the first so many numbers of each output are written."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    tokenizer = byte_level()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    cases = []
    for first, second in [(TEXTS, None), tuple(map(list, zip(*PAIRS)))]:
        encoded = dict(tokenizer(first, second, padding=True, truncation=True, max_length=POSITIONS, return_tensors="pt"))
        if isinstance(model, ModernBertForMultipleChoice):
            # The texts are the choices of one prompt.
            encoded = {key: value.unsqueeze(0) for key, value in encoded.items()}
        with torch.no_grad():
            values = values_of(model(**encoded))[..., :columns]
        rows = {key: value.flatten(0, -2).tolist() for key, value in encoded.items()}
        cases.append({"first": first, "second": second, "ids": rows["input_ids"], "mask": rows["attention_mask"],
                      "outputs": values.tolist()})
    (folder / "cases.json").write_text(json.dumps(cases))
    return folder


def batch(labels):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.tensor([24, 17, 9, 3])
    mask = (torch.arange(POSITIONS)[None] < lengths[:, None]).long()
    ids = torch.randint(5, 300, mask.shape, generator=generator)
    ids[:, 0] = 1
    ids[torch.arange(4), lengths - 1] = 2
    ids[mask == 0] = 3
    if labels is None:
        labels = torch.where((torch.rand(mask.shape, generator=generator) < 0.3) & (mask == 1) & (ids > 4), ids, -100)
        ids = torch.where(labels >= 0, 4, ids)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def computed(model, given):
    """What layers, head and loss are, and all gradients. The output of the last layer is normalized."""
    seen = {}
    body = model.model
    keep = lambda name: lambda module, inputs, output: seen.__setitem__(name, output if torch.is_tensor(output) else output[0])
    hooks = [body.embeddings.register_forward_hook(keep("embeddings")), body.final_norm.register_forward_hook(keep("hidden.4"))]
    hooks += [layer.register_forward_hook(keep(f"hidden.{at + 1}")) for at, layer in enumerate(body.layers[:-1])]
    model.zero_grad()
    output = model(**given)
    output.loss.backward()
    for hook in hooks:
        hook.remove()
    seen |= {"logits": output.logits, "loss": output.loss.reshape(1)}
    seen |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    return {name: value.detach().clone().contiguous() for name, value in seen.items()}


def write_case(folder, model, given):
    values = computed(model, given)
    inputs = {f"input.{name}": value for name, value in given.items()}
    if "labels" in given and given["labels"].ndim == 2:
        # Of the places that are predicted.
        values["logits"] = values["logits"][given["labels"] >= 0].contiguous()
    save_file(inputs | values, folder / "case.safetensors")


def write_steps(folder, model):
    """Losses of five steps of AdamW on the texts, each of a class of its own: before each step."""
    given = byte_level()(TEXTS, padding=True, truncation=True, max_length=POSITIONS, return_tensors="pt")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(**given, labels=torch.arange(3)).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (folder / "steps.json").write_text(json.dumps({"learning_rate": 1e-3, "losses": losses}) + "\n")


torch.set_num_threads(1)
classifier = model_of(ModernBertForSequenceClassification, num_labels=3)
folder = write("modernbert", classifier)
given = batch(torch.tensor([2, 0, 1, 1]))
write_case(folder, classifier, given)
write_steps(folder, classifier)
write("modernbert-mean", model_of(ModernBertForSequenceClassification, num_labels=3, classifier_pooling="mean"))
masked = model_of(ModernBertForMaskedLM)
write_case(write("modernbert-masked", masked, columns=12), masked, batch(None))
write("modernbert-tokens", model_of(ModernBertForTokenClassification, num_labels=4))
write("modernbert-questions", model_of(ModernBertForQuestionAnswering))
write("modernbert-choice", model_of(ModernBertForMultipleChoice))
