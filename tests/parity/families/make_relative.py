"""Writes tiny models of MPNet and DeBERTa-v3 and what transformers computes with them: `python make_relative.py`, with transformers
and torch. Texts are longer than what distances have buckets of their own for, and padded."""

import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    DebertaV2Config, DebertaV2ForMaskedLM, DebertaV2ForMultipleChoice, DebertaV2ForQuestionAnswering,
    DebertaV2ForSequenceClassification, DebertaV2ForTokenClassification, MPNetConfig, MPNetForMaskedLM, MPNetForMultipleChoice,
    MPNetForQuestionAnswering, MPNetForSequenceClassification, MPNetForTokenClassification, PreTrainedTokenizerFast,
)

HERE = pathlib.Path(__file__).parent
TEXTS = ["a mail server", "A chess game for two players – and naïve signs: 漢", "library of fonts, version 2"]
PAIRS = [["which port?", "a proxy"], ["a", "tool for drawing vector graphics"], ["sound", "sound synthesis engine"]]
POSITIONS = 24
SIZES = {"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
OF_MPNET = SIZES | {"max_position_embeddings": 66, "layer_norm_eps": 1e-5}
OF_DEBERTA = SIZES | {
    "max_position_embeddings": 64, "relative_attention": True, "position_buckets": 6, "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False,
    "type_vocab_size": 0}


def corpus():
    rows = (HERE.parents[2] / "src/data/data/debian-sections/train.tsv").read_text().splitlines()[1:600]
    return [row.split("\t")[0] for row in rows]


def of_mpnet():
    """BERT's word pieces between RoBERTa's special tokens."""
    special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="[UNK]", cls_token="<s>",
                                   sep_token="</s>", mask_token="<mask>", model_input_names=["input_ids", "attention_mask"])


def of_deberta():
    """SentencePiece's unigrams between BERT's special tokens."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" {2,}", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=299, special_tokens=special, unk_token="[UNK]"))
    tokenizer.add_special_tokens([AddedToken("[MASK]")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                   sep_token="[SEP]", mask_token="[MASK]")


def model_of(kind, config):
    """Weights are larger than new ones, so that what is mixed up can be seen."""
    torch.manual_seed(7)
    config._attn_implementation = "eager"
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        for table in [each for each in model.modules() if isinstance(each, torch.nn.Embedding)]:
            if table.padding_idx is not None:
                table.weight[table.padding_idx] = 0
    return model.eval()


def values_of(outputs):
    if hasattr(outputs, "logits"):
        return outputs.logits
    return torch.stack([outputs.start_logits, outputs.end_logits], -1)


def write(name, model, tokenizer, columns=None):
    """`columns`: only the first so many numbers of each output are written."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    cases = []
    for first, second in [(TEXTS, None), tuple(map(list, zip(*PAIRS)))]:
        encoded = dict(tokenizer(first, second, padding=True, truncation=True, max_length=POSITIONS, return_tensors="pt"))
        if "MultipleChoice" in type(model).__name__:
            # The texts are the choices of one prompt.
            encoded = {key: value.unsqueeze(0) for key, value in encoded.items()}
        with torch.no_grad():
            values = values_of(model(**encoded))[..., :columns]
        rows = {key: value.flatten(0, -2).tolist() for key, value in encoded.items()}
        case = {"first": first, "second": second, "ids": rows["input_ids"], "mask": rows["attention_mask"],
                "outputs": values.tolist()}
        cases.append(case | ({"types": rows["token_type_ids"]} if "token_type_ids" in rows else {}))
    (folder / "cases.json").write_text(json.dumps(cases))
    return folder


def batch(tokenizer, labels):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.tensor([24, 17, 9, 3])
    mask = (torch.arange(POSITIONS)[None] < lengths[:, None]).long()
    ids = torch.randint(5, 299, mask.shape, generator=generator)
    ids[:, 0] = tokenizer.cls_token_id
    ids[torch.arange(4), lengths - 1] = tokenizer.sep_token_id
    ids[mask == 0] = tokenizer.pad_token_id
    if labels is None:
        labels = torch.where((torch.rand(mask.shape, generator=generator) < 0.3) & (mask == 1) & (ids > 4), ids, -100)
        ids = torch.where(labels >= 0, tokenizer.mask_token_id, ids)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def watched_layers(body):
    """The modules whose outputs are written, with the names of these. A module that is called several times has a name for each."""
    layers = [(layer, iter([f"hidden.{at + 1}"])) for at, layer in enumerate(body.encoder.layer)]
    return [(body.embeddings, iter(["embeddings"])), *layers]


def write_case(folder, model, given, watched=watched_layers):
    """What layers, head and loss are, and all gradients."""
    seen = {}
    keep = lambda names: lambda module, inputs, output: seen.__setitem__(
        next(names), output if torch.is_tensor(output) else output[0])
    hooks = [module.register_forward_hook(keep(names)) for module, names in watched(model.base_model)]
    model.zero_grad()
    output = model(**given)
    output.loss.backward()
    for hook in hooks:
        hook.remove()
    seen |= {"logits": output.logits, "loss": output.loss.reshape(1)}
    seen |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    if given["labels"].ndim == 2:
        # Of the places that are predicted.
        seen["logits"] = seen["logits"][given["labels"] >= 0]
    inputs = {f"input.{name}": value for name, value in given.items()}
    values = {name: value.detach().clone().contiguous() for name, value in seen.items()}
    save_file(inputs | values, folder / "case.safetensors")


def write_steps(folder, model, tokenizer):
    """Losses of five steps of AdamW on the texts, each of a class of its own: before each step."""
    given = tokenizer(TEXTS, padding=True, truncation=True, max_length=POSITIONS, return_tensors="pt")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(**given, labels=torch.arange(3)).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (folder / "steps.json").write_text(json.dumps({"learning_rate": 1e-3, "losses": losses}) + "\n")


def family(name, tokenizer, config, classifier, masked, tokens, questions, choice, watched=watched_layers):
    model = model_of(classifier, config(num_labels=3))
    folder = write(name, model, tokenizer)
    write_case(folder, model, batch(tokenizer, torch.tensor([2, 0, 1, 1])), watched)
    write_steps(folder, model, tokenizer)
    model = model_of(masked, config())
    write_case(write(f"{name}-masked", model, tokenizer, columns=12), model, batch(tokenizer, None), watched)
    write(f"{name}-tokens", model_of(tokens, config(num_labels=4)), tokenizer)
    write(f"{name}-questions", model_of(questions, config()), tokenizer)
    write(f"{name}-choice", model_of(choice, config()), tokenizer)


torch.set_num_threads(1)
if __name__ == "__main__":
    family("mpnet", of_mpnet(), lambda **options: MPNetConfig(**OF_MPNET, **options), MPNetForSequenceClassification,
           MPNetForMaskedLM, MPNetForTokenClassification, MPNetForQuestionAnswering, MPNetForMultipleChoice)
    family("deberta", of_deberta(), lambda **options: DebertaV2Config(**OF_DEBERTA, **options),
           DebertaV2ForSequenceClassification, DebertaV2ForMaskedLM, DebertaV2ForTokenClassification,
           DebertaV2ForQuestionAnswering, DebertaV2ForMultipleChoice)
