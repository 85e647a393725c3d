"""Writes the Arrow files of the tests: `python make_arrow.py`, with Hugging Face's `datasets`, polars and pyarrow."""

import datetime
import pathlib
import shutil
import tempfile

import polars as pl
import pyarrow as pa
import pyarrow.feather
from datasets import ClassLabel, Dataset, Features, Sequence, Value

HERE = pathlib.Path(__file__).parent


def save(name, columns, features):
    """The stream format, as `save_to_disk` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        Dataset.from_dict(columns, features=Features(features)).save_to_disk(folder)
        [file] = pathlib.Path(folder).glob("*.arrow")
        shutil.copy(file, HERE / name)


save(
    "reviews.arrow",
    {
        "idx": range(5),
        "text": ["good, and cheap", "fell apart", "als beschrieben – schön", "never\ncame", "as described"],
        "label": [1, 0, 1, 0, 1],
        "stars": [5.0, 1.5, 4.0, 1.0, 4.5],
        "picture": [b"\xff\x00" * 8] * 5,
        "day": [None, *[datetime.date(2024, 5, day) for day in range(1, 5)]],
    },
    {
        "idx": Value("int32"),
        "text": Value("string"),
        "label": ClassLabel(names=["neg", "pos"]),
        "stars": Value("float32"),
        "picture": Value("binary"),
        "day": Value("date32"),
    },
)
save(
    "words.arrow",
    {"id": ["0", "1"], "tokens": [["Ada", "Lovelace", "lived", "in", "London"], ["it", "rains"]],
     "ner_tags": [[1, 2, 0, 0, 3], [0, 0]]},
    {"id": Value("string"), "tokens": Sequence(Value("string")),
     "ner_tags": Sequence(ClassLabel(names=["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))},
)
save(
    "choices.arrow",
    {
        "start": ["the server", "a chess", "the font", "it"],
        "endings": [["serves mail", "plays"], ["game", "mail client"], ["is\nbold", "sings"], ["rains", ""]],
        "right": [0, 0, 0, 1],
    },
    {"start": Value("string"), "endings": Sequence(Value("string")), "right": Value("int64")},
)
context = "Zoë wrote the manual in London."
save(
    "questions.arrow",
    {
        "id": ["a", "b", "c"],
        "title": ["manuals"] * 3,
        "context": [context] * 3,
        "question": ["Who wrote the manual?", "Where was it written?", "When was it written?"],
        "answers": [
            {"text": ["Zoë", "Zoë"], "answer_start": [0, 0]},
            {"text": ["London"], "answer_start": [24]},
            {"text": [], "answer_start": []},
        ],
    },
    {"id": Value("string"), "title": Value("string"), "context": Value("string"), "question": Value("string"),
     "answers": Sequence({"text": Value("string"), "answer_start": Value("int32")})},
)

# Texts that repeat, longer than a block of LZ4; labels as pandas keeps categories; several batches.
texts = pa.array([f"the same words again and again, number {row % 50}" for row in range(3000)])
table = pa.table({
    "number": pa.array(range(3000), pa.uint64()),
    "text": texts,
    "label": pa.array([["mail", "games", None][row % 3] for row in range(3000)]).dictionary_encode(),
    "is_long": pa.array([row % 2 == 0 for row in range(3000)]),
})
for compression in ("lz4", "zstd"):
    pyarrow.feather.write_feather(table, HERE / f"{compression}.feather", compression=compression, chunksize=2000)

# Other layouts of the same things, in the file format.
kinds = pa.table({
    "none": pa.nulls(3),
    "time": pa.array([1, 2, None], pa.timestamp("ms")),
    "price": pa.array([None, 1, 2], pa.decimal128(9, 2)),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int8())),
    "half": pa.array([1.0, 2.0, 3.0], pa.float16()),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
    "text": pa.array(["short", "a text that is longer than twelve bytes", None], pa.string_view()),
    "large": pa.array(["x", "", "Ärger"], pa.large_string()),
    "pair": pa.array(["a", "b", "c"]).dictionary_encode(),
    "fixed": pa.array([["a", "b"], None, ["c", "d"]], pa.list_(pa.string(), 2)),
    "tags": pa.array([["a"], [], ["b", "a"]], pa.large_list(pa.string())),
    "yes": pa.array([True, None, False]),
    "double": pa.array([0.5, -1.0, 2.25]),
    "small": pa.array([-1, 200, None], pa.int16()),
    "code": pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
})
with pa.OSFile(str(HERE / "kinds.arrow"), "wb") as file, pa.ipc.new_file(file, kinds.schema) as writer:
    writer.write_table(kinds)

empty = pa.schema([("text", pa.string()), ("label", pa.int64())])
with pa.OSFile(str(HERE / "empty.arrow"), "wb") as file, pa.ipc.new_stream(file, empty):
    pass

# What polars writes: views of texts and of bytes, categories, the file format.
frame = pl.DataFrame({
    "text": [f"row {row}" if row % 3 else f"row {row}: longer than twelve bytes, {'and again ' * (row % 7)}" for row in range(60)],
    "label": pl.Series([["good", None, "bad"][row % 3] for row in range(60)], dtype=pl.Categorical),
    "bytes": [f"bytes {row}".encode() for row in range(60)],
    "tags": [[f"tag {tag}" for tag in range(row % 3)] for row in range(60)],
    "day": [datetime.date(2024, 5, 1 + row % 30) for row in range(60)],
})
for compression in ("uncompressed", "lz4", "zstd"):
    frame.write_ipc(HERE / f"polars-{compression}.arrow", compression=compression)
frame.write_parquet(HERE / "polars.parquet", compression="brotli", statistics=False)

# A folder of `save_to_disk` with two shards; the names of the classes are not in sorted order.
order = Features({"text": Value("string"), "label": ClassLabel(names=["pos", "neu", "neg"])})
rows = {"text": [f"text {row}" for row in range(5)], "label": [0, 2, 1, 0, 2]}
shutil.rmtree(HERE / "saved", ignore_errors=True)
Dataset.from_dict(rows, features=order).save_to_disk(HERE / "saved", num_shards=2)
