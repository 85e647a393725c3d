"""Writes a tiny BERT checkpoint as Hugging Face files, so that tests train in seconds.

Two layers of 32, a vocabulary of letters and frequent words, weights N(0, 0.02) from a fixed seed.
"""

import json
import random
import struct

HIDDEN, LAYERS, HEADS, INTERMEDIATE, POSITIONS = 32, 2, 4, 64, 96
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """library libraries development files data for the of and game games font fonts with tool tools
 support server client program plugin common documentation utility simple family audio music image images
 analysis network interface based system simulation python module sequence typeface editor player graphics
 synthesizer daemon command line algebra functions math computer monitor viewer free open source manager
 puzzle platform adventure theme collection bitmap genome protein alignment numerical polynomial""".split()


def vocabulary():
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789")
    signs = list("-.,()/+'\"&:;!?#*")
    pieces = letters + ["##" + letter for letter in letters] + signs + WORDS
    return SPECIAL + list(dict.fromkeys(pieces))


def config(labels=None):
    values = {
        "architectures": ["BertForSequenceClassification" if labels else "BertModel"],
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INTERMEDIATE,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "model_type": "bert",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary()),
    }
    if labels:
        values["id2label"] = {str(index): name for index, name in enumerate(labels)}
        values["label2id"] = {name: index for index, name in enumerate(labels)}
    return values


def shapes():
    """Names and shapes as in a checkpoint of the bare encoder, which is how MiniLM is published."""
    vocabulary_size = len(vocabulary())
    found = {
        "embeddings.word_embeddings.weight": [vocabulary_size, HIDDEN],
        "embeddings.position_embeddings.weight": [POSITIONS, HIDDEN],
        "embeddings.token_type_embeddings.weight": [2, HIDDEN],
        "embeddings.LayerNorm.weight": [HIDDEN],
        "embeddings.LayerNorm.bias": [HIDDEN],
        "pooler.dense.weight": [HIDDEN, HIDDEN],
        "pooler.dense.bias": [HIDDEN],
    }
    for layer in range(LAYERS):
        path = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            found[path + f"attention.self.{part}.weight"] = [HIDDEN, HIDDEN]
            found[path + f"attention.self.{part}.bias"] = [HIDDEN]
        for part, rows, columns in (
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INTERMEDIATE, HIDDEN),
            ("output.dense", HIDDEN, INTERMEDIATE),
        ):
            found[path + part + ".weight"] = [rows, columns]
            found[path + part + ".bias"] = [rows]
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[path + part + ".weight"] = [HIDDEN]
            found[path + part + ".bias"] = [HIDDEN]
    return found


def tokenizer():
    """A `tokenizer.json`: lower-casing WordPiece with BERT's special tokens."""
    pieces = {piece: index for index, piece in enumerate(vocabulary())}
    special = [
        {"id": pieces[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for token in SPECIAL
    ]
    token = lambda name, segment: {"SpecialToken": {"id": name, "type_id": segment}}
    text = lambda name, segment: {"Sequence": {"id": name, "type_id": segment}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)],
            "pair": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)],
            "special_tokens": {
                name: {"id": name, "ids": [pieces[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": pieces},
    }


def write_safetensors(path, tensors):
    """`tensors` is a map from a name to a shape and its float32 values."""
    header, data = {}, []
    offset = 0
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
        data.append(raw)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(data))


def read_safetensors_header(path):
    """Names with dtype and shape."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    return header


def write(folder, seed=0):
    """Writes the checkpoint's files into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(seed)
    tensors = {}
    for name, shape in shapes().items():
        size = shape[0] * (shape[1] if len(shape) == 2 else 1)
        if name.endswith("LayerNorm.weight"):
            values = [1.0] * size
        elif name.endswith("bias"):
            values = [0.0] * size
        else:
            values = [numbers.gauss(0, 0.02) for _ in range(size)]
        tensors[name] = (shape, values)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config(), indent=2))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "vocab.txt").write_text("\n".join(vocabulary()) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return folder
