"""The tasks that torch_finetune.py trains: how their files are read, what the tokenizer makes of them, and how they are scored.
Words, windows and answers follow Hugging Face's examples for token classification and question answering."""

import collections
import json
import re
import string

import torch
from transformers import BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LONGEST_ANSWER = 30


def padded(rows, name, fill=0):
    width = max(len(row["input_ids"]) for row in rows)
    return torch.tensor([row[name] + [fill] * (width - len(row[name])) for row in rows])


def inputs(rows):
    return {name: padded(rows, name) for name in INPUTS}


class Classes:
    """Texts, or pairs of texts, and their class. The columns are read from the header: text and label, or Quality, #1 String and
    #2 String."""

    architecture = BertForSequenceClassification

    def __init__(self, train):
        self.labels = sorted({label for _, label in self.read(train)})

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        header = lines[0]
        columns, label = (("#1 String", "#2 String"), "Quality") if "Quality" in header else (("text",), "label")
        at = [header.index(column) for column in columns]
        return [(tuple(row[i] for i in at), row[header.index(label)]) for row in lines[1:] if len(row) > 1]

    def encode(self, tokenizer, examples, max_length):
        texts = [list(column) for column in zip(*(text for text, _ in examples))]
        encoded = tokenizer(*texts, truncation=True, max_length=max_length)
        return [{name: encoded[name][i] for name in INPUTS} | {"labels": self.labels.index(label)}
                for i, (_, label) in enumerate(examples)]

    def batch(self, rows):
        return inputs(rows) | {"labels": torch.tensor([row["labels"] for row in rows])}

    def read_off(self, output, rows):
        return output.logits.argmax(-1).tolist()

    def score(self, found, rows, examples):
        """Accuracy, macro-F1, and for two classes the F1 of class 1."""
        wanted = [row["labels"] for row in rows]
        f1 = []
        for label in range(len(self.labels)):
            right = sum(p == label and w == label for p, w in zip(found, wanted))
            wrong = sum((p == label) != (w == label) for p, w in zip(found, wanted))
            f1.append(2 * right / (2 * right + wrong) if right + wrong else 0.0)
        scores = {"dev_accuracy": sum(p == w for p, w in zip(found, wanted)) / len(wanted), "dev_macro_f1": sum(f1) / len(f1)}
        return scores | ({"dev_f1": f1[1]} if len(f1) == 2 else {})


def entities(tags):
    """The spans of a sentence's tags, as seqeval's default mode reads them."""
    spans, begin, kind = set(), 0, None
    for at, tag in enumerate([*tags, "O"]):
        mark, _, name = tag.partition("-")
        if kind is not None and (mark != "I" or name != kind):
            spans.add((begin, at, kind))
            kind = None
        if mark == "B" or (mark == "I" and kind is None):
            begin, kind = at, name
    return spans


class Entities:
    """Words with their tags, one a line, an empty line between sentences."""

    architecture = BertForTokenClassification

    def __init__(self, train):
        self.labels = sorted({tag for _, tags in self.read(train) for tag in tags})

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            sentences = [[line.split(" ") for line in block.splitlines()] for block in file.read().strip().split("\n\n")]
        return [([word for word, _ in lines], [tag for _, tag in lines]) for lines in sentences]

    def encode(self, tokenizer, examples, max_length):
        encoded = tokenizer([words for words, _ in examples], is_split_into_words=True, truncation=True, max_length=max_length)
        rows = []
        for i, (_, tags) in enumerate(examples):
            labels, last = [], None
            for word in encoded.word_ids(i):
                labels.append(-100 if word is None or word == last else self.labels.index(tags[word]))
                last = word
            rows.append({name: encoded[name][i] for name in INPUTS} | {"labels": labels})
        return rows

    def batch(self, rows):
        return inputs(rows) | {"labels": padded(rows, "labels", -100)}

    def read_off(self, output, rows):
        best = output.logits.argmax(-1).tolist()
        return [[self.labels[p] for p, w in zip(each, row["labels"]) if w != -100] for each, row in zip(best, rows)]

    def score(self, found, rows, examples):
        """F1 of whole entities, and the share of words with the right tag."""
        wanted = [tags[:len(each)] for (_, tags), each in zip(examples, found)]
        spans = [(entities(p), entities(w)) for p, w in zip(found, wanted)]
        both = sum(len(p & w) for p, w in spans)
        all_spans = sum(len(p) + len(w) for p, w in spans)
        words = [p == w for each, right in zip(found, wanted) for p, w in zip(each, right)]
        return {"dev_entity_f1": 2 * both / max(all_spans, 1), "dev_accuracy": sum(words) / len(words)}


def normalized(text):
    """The words that the evaluation of SQuAD compares."""
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def answer_f1(found, right):
    found, right = normalized(found), normalized(right)
    if not found or not right:
        return float(found == right)
    same = sum((collections.Counter(found) & collections.Counter(right)).values())
    return 2 * same / (len(found) + len(right))


class Questions:
    """SQuAD's JSON, 1.1 or 2.0."""

    architecture = BertForQuestionAnswering
    labels = ["start", "end"]

    def __init__(self, train):
        pass

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)["data"]
        return [(question["question"], paragraph["context"], question["answers"])
                for article in data for paragraph in article["paragraphs"] for question in paragraph["qas"]]

    def encode(self, tokenizer, examples, max_length):
        encoded = tokenizer([question for question, _, _ in examples], [context for _, context, _ in examples],
                            truncation="only_second", max_length=max_length, stride=min(128, max_length // 3),
                            return_overflowing_tokens=True, return_offsets_mapping=True)
        rows = []
        for i, example in enumerate(encoded["overflow_to_sample_mapping"]):
            offsets = [offset if part == 1 else None for offset, part in zip(encoded["offset_mapping"][i], encoded.sequence_ids(i))]
            rows.append({name: encoded[name][i] for name in INPUTS}
                        | {"example": example, "offsets": offsets, "span": self.span(offsets, examples[example][2])})
        return rows

    @staticmethod
    def span(offsets, answers):
        """The tokens of the first answer, or the first token where the window does not have it as a whole."""
        if not answers:
            return 0, 0
        begin = answers[0]["answer_start"]
        end = begin + len(answers[0]["text"])
        inside = [at for at, offset in enumerate(offsets) if offset and offset[0] < end and offset[1] > begin]
        if not inside or offsets[inside[0]][0] > begin or offsets[inside[-1]][1] < end:
            return 0, 0
        return inside[0], inside[-1]

    def batch(self, rows):
        starts, ends = zip(*(row["span"] for row in rows))
        return inputs(rows) | {"start_positions": torch.tensor(starts), "end_positions": torch.tensor(ends)}

    def read_off(self, output, rows):
        return [self.best(start, end, row)
                for start, end, row in zip(output.start_logits.tolist(), output.end_logits.tolist(), rows)]

    @staticmethod
    def best(starts, ends, row):
        """The score of no answer, and the best answer of a window: its score and the characters of the context."""
        offsets = row["offsets"]
        places = [at for at, offset in enumerate(offsets) if offset]
        spans = ((starts[begin] + ends[end], (offsets[begin][0], offsets[end][1]))
                 for begin in places for end in range(begin, min(begin + LONGEST_ANSWER, places[-1] + 1)))
        return starts[0] + ends[0], max(spans, key=lambda it: it[0])

    def score(self, found, rows, examples):
        """Exact match and F1 of SQuAD's evaluation."""
        windows = collections.defaultdict(list)
        for each, row in zip(found, rows):
            windows[row["example"]].append(each)
        exact, f1 = [], []
        for at, (_, context, answers) in enumerate(examples):
            none = min(none for none, _ in windows[at])
            score, (begin, end) = max((best for _, best in windows[at]), key=lambda it: it[0])
            said = "" if none > score else context[begin:end]
            right = [answer["text"] for answer in answers] or [""]
            exact.append(max(float(normalized(said) == normalized(each)) for each in right))
            f1.append(max(answer_f1(said, each) for each in right))
        return {"dev_exact_match": sum(exact) / len(exact), "dev_answer_f1": sum(f1) / len(f1)}


TASKS = {"classes": Classes, "entities": Entities, "questions": Questions}
