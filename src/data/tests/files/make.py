"""Writes the Parquet files of the tests as Hugging Face's `datasets` lays them out: `python make.py`, with pyarrow."""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent


def write(name, table, features=None, **options):
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, HERE / name, **options)


text = {"dtype": "string", "_type": "Value"}
sentiment = {"names": ["neg", "pos"], "_type": "ClassLabel"}
write(
    "reviews.parquet",
    pa.table({
        "idx": pa.array(range(5), pa.int32()),
        "text": ["good, and cheap", "fell apart", "als beschrieben – schön", "never\ncame", "as described"],
        "label": pa.array([1, 0, 1, 0, 1], pa.int64()),
        "stars": pa.array([5.0, 1.5, 4.0, 1.0, 4.5], pa.float32()),
        "picture": [b"\xff\x00" * 8] * 5,
    }),
    {"text": text, "label": sentiment},
    compression="snappy",
    row_group_size=2,
)
write(
    "pairs.parquet",
    pa.table({
        "sentence1": ["a mail server", "a chess game", "a font"],
        "sentence2": ["a server for mail", "a mail client", None],
        "label": pa.array([1, 0, -1], pa.int64()),
    }),
    {"sentence1": text, "sentence2": text, "label": {"names": ["other", "same"], "_type": "ClassLabel"}},
    compression="zstd",
)
tags = {"names": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], "_type": "ClassLabel"}
write(
    "words.parquet",
    pa.table({
        "id": ["0", "1"],
        "tokens": [["Ada", "Lovelace", "lived", "in", "London"], ["it", "rains"]],
        "ner_tags": pa.array([[1, 2, 0, 0, 3], [0, 0]], pa.list_(pa.int64())),
    }),
    {"tokens": {"feature": text, "_type": "Sequence"}, "ner_tags": {"feature": tags, "_type": "Sequence"}},
    compression="gzip",
)
context = "Zoë wrote the manual in London."
answer = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])
write(
    "questions.parquet",
    pa.table({
        "id": ["a", "b", "c"],
        "title": ["manuals"] * 3,
        "context": [context] * 3,
        "question": ["Who wrote the manual?", "Where was it written?", "When was it written?"],
        "answers": pa.array([
            {"text": ["Zoë", "Zoë"], "answer_start": [0, 0]},
            {"text": ["London"], "answer_start": [24]},
            {"text": [], "answer_start": []},
        ], answer),
    }),
)
write(
    "choices.parquet",
    pa.table({
        "start": ["the server", "a chess", "the font", "it"],
        "endings": [["serves mail", "plays"], ["game", "mail client"], ["is\nbold", "sings"], ["rains", ""]],
        "right": pa.array([0, 0, 0, 1], pa.int64()),
    }),
    {"start": text, "endings": {"feature": text, "_type": "List"}, "right": {"dtype": "int64", "_type": "Value"}},
    row_group_size=3,
)
write("empty.parquet", pa.table({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}))
