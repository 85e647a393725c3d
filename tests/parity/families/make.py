"""Writes the tiny models of other families and what transformers computes with them: `python make.py`, with transformers and
torch. Weights are random and fixed by the seed; tokenizers are trained on the descriptions of debian-sections."""

import json
import pathlib
import shutil

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    CamembertConfig, CamembertForTokenClassification, DistilBertConfig, DistilBertForSequenceClassification, ElectraConfig,
    ElectraForMaskedLM, ElectraForMultipleChoice, ElectraForPreTraining, ElectraForSequenceClassification,
    PreTrainedTokenizerFast, RobertaConfig, RobertaForSequenceClassification, XLMRobertaConfig, XLMRobertaForQuestionAnswering,
)

HERE = pathlib.Path(__file__).parent
TEXTS = ["a mail server", "A chess game for two players – and naïve signs: 漢", "library of fonts, version 2"]
PAIRS = [["which port?", "a proxy"], ["a", "tool for drawing vector graphics"], ["sound", "sound synthesis engine"]]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {"vocab_size": 300, "layer_norm_eps": 1e-5, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 24, "max_position_embeddings": 66, "type_vocab_size": 1}


def corpus():
    rows = (HERE.parents[2] / "src/data/data/debian-sections/train.tsv").read_text().splitlines()[1:600]
    return [row.split("\t")[0] for row in rows]


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=300, special_tokens=BERT))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                   sep_token="[SEP]", mask_token="[MASK]")


def of_roberta(tokenizer):
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", cls_token="<s>",
                                   sep_token="</s>", mask_token="<mask>")


def byte_level():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=300, special_tokens=ROBERTA, initial_alphabet=alphabet))
    return of_roberta(tokenizer)


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=300, special_tokens=ROBERTA, unk_token="<unk>"))
    return of_roberta(tokenizer)


def write(name, model, tokenizer, segments=False, body=False, columns=None):
    """`segments`: the model has types of segments. `body`: the last hidden states are written, not what the head makes of them.
    `columns`: only the first so many numbers of each output are written."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    # New weights are small and biases zero: larger ones show what is mixed up.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        for table, pad in [(each, each.padding_idx) for each in model.modules() if isinstance(each, torch.nn.Embedding)]:
            if pad is not None:
                table.weight[pad] = 0
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    cases = []
    for first, second in [(TEXTS, None), tuple(map(list, zip(*PAIRS)))]:
        encoded = tokenizer(first, second, padding=True, truncation=True, max_length=24, return_tensors="pt",
                            return_token_type_ids=segments)
        if isinstance(model, ElectraForMultipleChoice):
            # The texts are the choices of one prompt.
            encoded = {name: value.unsqueeze(0) for name, value in encoded.items()}
        with torch.no_grad():
            outputs = model.base_model(**encoded) if body else model(**encoded)
        if body:
            values = outputs.last_hidden_state
        elif hasattr(outputs, "logits"):
            values = outputs.logits
        else:
            values = torch.stack([outputs.start_logits, outputs.end_logits], -1)
        values = values[..., :columns]
        rows = {name: value.flatten(0, -2).tolist() for name, value in encoded.items()}
        case = {"first": first, "second": second, "ids": rows["input_ids"], "mask": rows["attention_mask"],
                "outputs": values.tolist()}
        cases.append(case | ({"types": rows["token_type_ids"]} if segments else {}))
    (folder / "cases.json").write_text(json.dumps(cases))


torch.manual_seed(7)
small = {"vocab_size": 300, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 64}
write("distilbert", DistilBertForSequenceClassification(DistilBertConfig(**small, num_labels=3)), word_piece())
write("roberta", RobertaForSequenceClassification(RobertaConfig(**SIZES, num_labels=2)), byte_level())
write("xlm-roberta", XLMRobertaForQuestionAnswering(XLMRobertaConfig(**SIZES)), unigram())
write("camembert", CamembertForTokenClassification(CamembertConfig(**SIZES, num_labels=4)), unigram())
electra = SIZES | {"embedding_size": 8, "type_vocab_size": 2, "max_position_embeddings": 64}
write("electra", ElectraForSequenceClassification(ElectraConfig(**electra, num_labels=3)), word_piece(), segments=True)
write("electra-discriminator", ElectraForPreTraining(ElectraConfig(**electra | {"embedding_size": 16})), word_piece(),
      segments=True, body=True)
write("electra-generator", ElectraForMaskedLM(ElectraConfig(**electra)), word_piece(), segments=True, columns=12)
write("electra-choice", ElectraForMultipleChoice(ElectraConfig(**electra)), word_piece(), segments=True)
