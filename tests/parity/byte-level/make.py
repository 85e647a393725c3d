"""Writes a byte-level tokenizer as RoBERTa is published with it, and what transformers makes of odd texts with it and with its
other settings: `python make.py`, with transformers and tokenizers. Offsets are written in bytes."""

import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WORDS = [
    ["Ada", "Lovelace", "lived", "in", "London", "."],
    ["a", "micro-editor", "for", "naïve", "users", ",", "version", "3.5"],
    ["Zürich", "漢字", "🙂", "👩‍👩‍👧", "don't", "(", "a/b", ")"],
]
TEXTS = [
    *[" ".join(words) for words in WORDS],
    "", " ", "   ", "a", " a", "  leading blanks", "trailing blanks  ", "double  blanks   inside", "a\ttab and\n\na line",
    "no-break\u00a0space, wide\u3000space", "🙂🙂 emoji 👩‍👩‍👧 family", "e\u0301 combined, ﬁ ligature, ﷺ", "don't we'll I'm",
    "a <mask> server", "a  <mask>server", "wide\u3000<mask>", "<s>special</s>", "ends with a sign!", "漢字仮名交じり文",
    "it's 3.14159, or 22/7 – roughly",
]
PAIRS = [
    ["which port?", "a proxy on port 8080"], ["which port?", ""], ["", "a proxy"], ["", ""], [" two ", "  blanks  "],
    ["🙂 who?", "Zürich  and 漢字 <mask>"],
]
# Question, context, the answer, the most tokens of a window, the tokens that two windows share.
QUESTIONS = [
    ["who lived in London?", "the engine was described by Ada Lovelace, who lived in London", "Ada Lovelace", 64, 16],
    ["who lived in London?", "the engine was described by  Ada  Lovelace , who  lived in London", "Ada  Lovelace", 40, 12],
    ["what is shown?", "🙂 a naïve sign: 漢字, and  👩‍👩‍👧 a family of signs", "漢字", 32, 8],
    ["first?", "Ada Lovelace", "Ada", 24, 4],
]
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 8, 11]


def corpus():
    rows = (HERE.parents[2] / "src/data/data/debian-sections/train.tsv").read_text().splitlines()[1:600]
    return [row.split("\t")[0] for row in rows]


def trained():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus(), trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False))
    # As in the published files, the mask takes the blanks before it.
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return tokenizer


def form(name, trim, prefix):
    """The same tokenizer with other settings. `template`: what newer files write instead of RobertaProcessing."""
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    if name == "roberta":
        processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=trim, add_prefix_space=prefix)
    else:
        special = [("<s>", 0), ("</s>", 2)]
        template = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B:1 </s>:1", special_tokens=special)
        processor = processors.Sequence([processors.ByteLevel(trim_offsets=trim, add_prefix_space=prefix), template])
    tokenizer.post_processor = processor
    return tokenizer


def of_transformers(tokenizer, **settings):
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", cls_token="<s>",
                                   sep_token="</s>", mask_token="<mask>", **settings)


def pieces(encoded, row, texts):
    """For each token the bytes of its text, its word and its text; none for what stands in no text."""
    places = zip(encoded["offset_mapping"][row], encoded.word_ids(row), encoded.sequence_ids(row))
    byte = lambda text, at: len(text[:at].encode())
    return [None if word is None or of is None else [byte(texts[of], start), byte(texts[of], end), word, of]
            for (start, end), word, of in places]


def case(tokenizer, first, second=None, **how):
    encoded = tokenizer([first], None if second is None else [second], return_offsets_mapping=True, **how)
    found = {"text": first, "pair": second, "ids": encoded["input_ids"][0], "pieces": pieces(encoded, 0, [first, second])}
    return found


def windows(tokenizer, question, context, answer, max_length, stride):
    encoded = tokenizer([question], [context], truncation="only_second", max_length=max_length, stride=stride,
                        return_overflowing_tokens=True, return_offsets_mapping=True)
    rows = range(len(encoded["input_ids"]))
    each = [{"ids": encoded["input_ids"][row], "pieces": pieces(encoded, row, [question, context])} for row in rows]
    return {"question": question, "context": context, "answer": answer, "max_length": max_length, "stride": stride, "windows": each}


def settings_of(tokenizer):
    written = json.loads(tokenizer.to_str())
    return {"pre_tokenizer": written["pre_tokenizer"], "post_processor": written["post_processor"]}


def cut(side):
    tokenizer = of_transformers(trained(), truncation_side=side)
    texts = [(TEXTS[1], None), (TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0]), ("a", TEXTS[2]), (TEXTS[2], "")]
    # Fewer tokens than those that are added cannot be asked of transformers.
    lengths = [length for length in LENGTHS if length > 4]
    return [case(tokenizer, *pair, truncation="longest_first", max_length=length) | {"max_length": length}
            for pair in texts for length in lengths]


trained().save(str(HERE / "tokenizer.json"))
forms = []
for name, trim, prefix in [(name, trim, prefix) for name in ["roberta", "template"] for trim in [True, False] for prefix in [False, True]]:
    plain = form(name, trim, prefix)
    tokenizer = of_transformers(plain)
    cases = [case(tokenizer, text) for text in TEXTS] + [case(tokenizer, *pair) for pair in PAIRS]
    forms.append({"settings": settings_of(plain), "cases": cases, "questions": [windows(tokenizer, *each) for each in QUESTIONS]})
written = {"words": WORDS, "forms": forms, "cut": {side: cut(side) for side in ["right", "left"]}}
(HERE / "cases.json").write_text(json.dumps(written, ensure_ascii=False, separators=(",", ":")) + "\n")
