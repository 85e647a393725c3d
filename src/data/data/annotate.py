#!/usr/bin/env python3
"""Makes debian-entities/ and debian-questions/ from the rows of debian-sections/, in place:

    python3 src/data/data/annotate.py

Names, sections and descriptions are those of Debian's index; the sentences around them are written here. The rows of
train.tsv are used for train files only, those of dev.tsv for dev files only, so no package occurs in both. The same
rows always give the same files.
"""

import itertools
import json
import pathlib
import random
import re

FOLDER = pathlib.Path(__file__).resolve().parent
SENTENCES = {"train": 800, "dev": 200}
PARAGRAPHS = {"train": 320, "dev": 100}
# A description with more words makes a sentence that no one would write.
MOST_WORDS = 9

# {p} and {q} are packages, {s} is a section, {d} a description.
REQUESTS = [
    "please install {p} from {s}",
    "I want {p} , {d} , on this machine",
    "is there a newer version of {p} in {s} ?",
    "{p} and {q} are both in {s}",
    "remove {p} before you install {q}",
    "after the update {p} does not start any more",
    "find me {d}",
    "which package in {s} is {d} ?",
    "{p} is {d}",
    "look into the section {s} for {d}",
]

# Sentences without an entity, whose words name sections elsewhere.
SUBJECTS = ["my sound", "the fonts on this screen", "all games", "the net", "her graphics card", "the math in this report",
            "the admin password", "science news"]
EVENTS = ["stopped working", "changed", "came up", "was not shown", "looked better", "disappeared"]
TIMES = ["yesterday", "at noon", "again", "after lunch", "for a minute", "when I logged in", "this week"]

# What a paragraph says of a package.
STATEMENTS = [
    "{p} is in the section {s} and provides {d}.",
    "In {s} there is {p}, which provides {d}.",
    "{p}, a package of the section {s}, provides {d}.",
]


def rows(split):
    lines = (FOLDER / "debian-sections" / f"{split}.tsv").read_text(encoding="utf-8").split("\n")
    table = [line.split("\t") for line in lines[1:] if line]
    return [(package, section, text) for text, section, package in table if len(text.split()) <= MOST_WORDS]


def words_of(text):
    """Words and signs of punctuation, each alone."""
    return re.findall(r"[\w.+/'-]*\w|[^\w\s]", text)


def sentence(rng, known):
    """One request as a list of (word, tag)."""
    (package, section, text), (other, _, _) = rng.sample(known, 2)
    entities = {"{p}": ("PACKAGE", [package]), "{q}": ("PACKAGE", [other]), "{s}": ("SECTION", [section]),
                "{d}": ("PURPOSE", words_of(text))}
    tagged = []
    for word in rng.choice(REQUESTS).split():
        kind, inside = entities.get(word, (None, [word]))
        for place, part in enumerate(inside):
            tagged.append((part, "O" if kind is None else f"{'I' if place else 'B'}-{kind}"))
    return tagged


def entities(split, rng):
    known = rows(split)
    plain = [" ".join(parts).split() for parts in itertools.product(SUBJECTS, EVENTS, TIMES)]
    random.Random("plain").shuffle(plain)
    # Three for training, one for validation, and so on: no sentence is in both.
    plain = [words for place, words in enumerate(plain) if (place % 4 == 3) == (split == "dev")]
    sentences = [[(word, "O") for word in words] for words in plain[:SENTENCES[split] // 4]]
    while len(sentences) < SENTENCES[split]:
        another = sentence(rng, known)
        if another not in sentences:
            sentences.append(another)
    rng.shuffle(sentences)
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in tagged) for tagged in sentences)


def statement(template, fields, begin):
    """The sentence, and where each field begins in the paragraph, in characters; `begin` is where the sentence begins."""
    text, places = "", {}
    for part in re.split(r"(\{\w\})", template):
        if part in fields:
            places[part] = begin + len(text)
        text += fields.get(part, part)
    return text, places


# Each question with the field that answers it.
QUESTIONS = [("Which section is {p} in?", "{s}"), ("What does {p} provide?", "{d}"), ("Which package provides {d}?", "{p}")]


def paragraph(rng, known, number):
    """Three packages, a question about each, and one about a package that is not there."""
    *inside, outside = rng.sample(known, 4)
    context, asked = "", [(f"What does {outside[0]} provide?", [])]
    for (question, answer), values in zip(rng.sample(QUESTIONS, 3), inside):
        fields = dict(zip(("{p}", "{s}", "{d}"), values))
        context += " " if context else ""
        text, places = statement(rng.choice(STATEMENTS), fields, len(context))
        context += text
        asked.append((statement(question, fields, 0)[0], [{"text": fields[answer], "answer_start": places[answer]}]))
    rng.shuffle(asked)
    return {"context": context, "qas": [
        {"id": f"{number}-{place}", "question": question, "answers": answers, "is_impossible": not answers}
        for place, (question, answers) in enumerate(asked)]}


def questions(split, rng):
    known = rows(split)
    paragraphs = [json.dumps(paragraph(rng, known, number), ensure_ascii=False) for number in range(PARAGRAPHS[split])]
    return '{"version": "2.0", "data": [{"title": "packages", "paragraphs": [\n' + ",\n".join(paragraphs) + "\n]}]}\n"


def main():
    for split in ("train", "dev"):
        for name, ending, content in (("debian-entities", "conll", entities), ("debian-questions", "json", questions)):
            path = FOLDER / name / f"{split}.{ending}"
            path.parent.mkdir(exist_ok=True)
            text = content(split, random.Random(f"{name}, {split}"))
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"{path.relative_to(FOLDER)}: {len(text)} bytes")


if __name__ == "__main__":
    main()
