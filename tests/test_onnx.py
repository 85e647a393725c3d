"""Exports to ONNX, run by onnxruntime: every head of every family gives the outputs that the network gives here and those of
transformers, for other sizes of a batch than any that the file was made with; ONNX's own checker accepts each file. The
page `docs/beyond_notebook.md`: its cells in the real kernel with the real checkpoint, then its Python programs."""

import json
import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT, example
from kernel_client import Kernel

try:
    import numpy as np
    import onnx
    import onnxruntime
    import tokenizers  # noqa: F401  (the programs of the page)
except ImportError:
    pytestmark = pytest.mark.skip(reason="onnxruntime is not installed (pip install -r tests/onnx/requirements.lock)")

PARITY = ROOT / "tests" / "parity"
FAMILIES = ["distilbert", "roberta", "xlm-roberta", "camembert", "electra", "albert"]
# The checkpoint with a head that transformers has computed the outputs of, and the head here.
REFERENCES = {"distilbert": "sequence", "roberta": "sequence", "xlm-roberta": "question", "camembert": "token",
              "electra": "sequence", "electra-generator": "masked", "electra-choice": "choice",
              "albert": "sequence", "albert-tokens": "token", "albert-questions": "question", "albert-masked": "masked",
              "albert-choice": "choice"}
OUTPUTS = {"sequence": ["logits"], "regression": ["logits"], "labels": ["logits"], "adapters": ["logits"], "token": ["logits"],
           "question": ["start_logits", "end_logits"], "choice": ["logits"], "masked": ["logits"],
           "sentence": ["token_embeddings", "sentence_embedding"]}
LAYERS = ["dense", "mean", "flat", "linear", "relu", "sigmoid", "softmax", "tanh", "gelu", "silu", "elu", "leaky_relu", "softplus"]
# As in tests/parity/README.md: activations, logits.
ROUNDING = 1e-5


@pytest.fixture(scope="module")
def exported(tiny, tmp_path_factory):
    """The lines of the example `export_onnx` for all checkpoints, by name."""
    out = tmp_path_factory.mktemp("onnx")
    folders = [tiny, *(PARITY / "families" / name for name in dict.fromkeys([*FAMILIES, *REFERENCES]))]
    done = subprocess.run([example("export_onnx"), out, *folders], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"STRATOSCOPE_DEVICE": "cpu"})
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


def array(value, dtype):
    return np.array(value["values"], dtype=dtype).reshape(value["dims"])


def session(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def run(found, inputs):
    """The outputs by name, for as many of the inputs as the file has."""
    types = {"tensor(int64)": np.int64, "tensor(float)": np.float32}
    given = {each.name: array(inputs[each.name], types[each.type]) for each in found.get_inputs()}
    names = [each.name for each in found.get_outputs()]
    return dict(zip(names, found.run(names, given)))


def differences(line, file):
    """How far the outputs of a file are from those here, as a share of the largest of a batch, for each batch and output."""
    found = session(file)
    result = []
    for batch in line["batches"]:
        outputs = run(found, batch["inputs"])
        assert list(outputs) == line["outputs"] == list(batch["outputs"]), line["name"]
        for name, output in outputs.items():
            expected = array(batch["outputs"][name], np.float32)
            assert output.shape == expected.shape, (line["name"], name)
            result.append((float(np.abs(output - expected).max()), float(np.abs(expected).max())))
    return result


def check_file(line):
    """What is true of every file: its own checker accepts it, no number of bytes is off, and its outputs are those here."""
    for file, size in (("file", "bytes"), ("int8", "int8_bytes")):
        onnx.checker.check_model(line[file], full_check=True)
        assert os.path.getsize(line[file]) == line[size], line["name"]
    for off, _ in differences(line, line["file"]):
        assert off < ROUNDING, (line["name"], off)
    # Weights and inputs have 127 steps in either direction; these models are so small that their errors do not cancel.
    for off, largest in differences(line, line["int8"]):
        assert off < 0.1 * largest + 0.02, (line["name"], off, largest)


@pytest.mark.parametrize("family", ["tiny-bert", *FAMILIES])
def test_every_head_of_a_family(exported, family):
    for head, outputs in OUTPUTS.items():
        line = exported[f"{family}-{head}"]
        check_file(line)
        types = ["token_type_ids"] if family in ("tiny-bert", "electra", "albert") else []
        assert line["inputs"] == ["input_ids", "attention_mask", *types]
        assert line["outputs"] == outputs
        dims = ["batch_size", *(["num_choices"] if head == "choice" else []), "sequence_length"]
        assert all(each.shape == dims for each in session(line["file"]).get_inputs()), line["name"]


@pytest.mark.parametrize("layers", LAYERS)
def test_layers(exported, layers):
    line = exported[f"sequential-{layers}"]
    check_file(line)
    assert (line["inputs"], line["outputs"]) == (["features"], ["outputs"])


@pytest.mark.parametrize("checkpoint", REFERENCES)
def test_outputs_are_those_of_transformers(exported, checkpoint):
    """Without the network here in between."""
    found = session(exported[f"{checkpoint}-{REFERENCES[checkpoint]}"]["file"])
    cases = json.loads((PARITY / "families" / checkpoint / "cases.json").read_text())
    for case in cases:
        inputs = {"input_ids": case["ids"], "attention_mask": case["mask"], "token_type_ids": case.get("types")}
        given = {each.name: np.array(inputs[each.name], dtype=np.int64) for each in found.get_inputs()}
        if REFERENCES[checkpoint] == "choice":
            given = {name: value[None] for name, value in given.items()}
        expected = np.array(case["outputs"], dtype=np.float32)
        outputs = found.run(None, given)
        logits = np.stack(outputs, axis=-1) if len(outputs) == 2 else outputs[0]
        # Of a generator the first tokens of the vocabulary. Padding has one position in RoBERTa and here those behind the text:
        # what is computed for it is no answer.
        off = np.abs(logits[..., :expected.shape[-1]] - expected)
        if off.shape[:2] == np.shape(case["mask"]):
            off = off[np.array(case["mask"]) == 1]
        assert off.max() < ROUNDING, checkpoint


def test_a_text_has_the_same_outputs_beside_a_longer_one(exported):
    """Padding changes nothing in 32 bits."""
    line = exported["tiny-bert-sequence"]
    found = session(line["file"])
    ids = np.array([[2, 9, 8, 3, 0, 0, 0], [2, 7, 6, 5, 4, 9, 3]])
    mask = (np.arange(7) < [[4], [7]]).astype(np.int64)
    zeros = np.zeros_like(ids)
    both = found.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": zeros})[0]
    alone = {"input_ids": ids[:1, :4], "attention_mask": mask[:1, :4], "token_type_ids": zeros[:1, :4]}
    assert np.abs(found.run(None, alone)[0] - both[:1]).max() < ROUNDING


def test_what_belongs_to_a_model_is_in_its_file(exported):
    def about(name, file="file"):
        return session(exported[name][file]).get_modelmeta().custom_metadata_map

    assert about("roberta-sequence") == {
        "model": "BertForSequenceClassification", "weights": "float32", "labels": '["LABEL_0","LABEL_1"]',
        "activation": "linear", "task": "text-classification", "model_type": "roberta",
        "problem_type": "single_label_classification", "pad_token_id": "1", "max_length": "64", "max_position_embeddings": "64",
    }
    assert about("electra-labels", "int8")["problem_type"] == "multi_label_classification"
    assert about("electra-labels", "int8")["weights"] == "int8"
    regression = about("tiny-bert-regression")
    assert regression["problem_type"] == "regression" and "labels" not in regression
    assert about("tiny-bert-token")["task"] == "token-classification"
    assert "labels" not in about("tiny-bert-question")
    assert about("sequential-mean")["activation"] == "softmax"
    assert onnx.load(exported["tiny-bert-token"]["file"]).opset_import[0].version == 17


def test_the_real_checkpoint_has_the_vectors_of_the_reference(fresh_kernel, tmp_path):
    """all-MiniLM-L6-v2 through the real kernel: the vectors of the exported file, of the kernel and of sentence-transformers."""
    kernel = fresh_kernel
    kernel.run('let encoder = BertForSentenceEmbedding::from_pretrained("all-MiniLM-L6-v2")?;')
    shown = kernel.run('encoder.export_onnx("encoder.onnx")?').shown()
    assert "encoder.onnx: 86.1 MiB, " in shown and "→ token_embeddings, sentence_embedding" in shown, shown
    small = kernel.run('encoder.export_onnx_int8("small.onnx")?').shown()
    assert "small.onnx: 22.4 MiB, " in small, small
    reference = safetensors(PARITY / "minilm" / "embeddings.safetensors")
    given = {name: reference[f"input.{name}"] for name in ("input_ids", "attention_mask", "token_type_ids")}
    _, vectors = session(tmp_path / "encoder.onnx").run(None, given)
    assert np.abs(vectors - reference["embedding"]).max() < ROUNDING
    _, rounded = session(tmp_path / "small.onnx").run(None, given)
    cosines = (rounded * reference["embedding"]).sum(axis=1)
    assert cosines.min() > 0.97, cosines
    onnx.checker.check_model(str(tmp_path / "encoder.onnx"), full_check=True)


def safetensors(path):
    """The tensors of a file, by name."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    types = {"I64": np.int64, "F32": np.float32, "F64": np.float64}
    return {name: np.frombuffer(data[slice(*tensor["data_offsets"])], types[tensor["dtype"]]).reshape(tensor["shape"])
            for name, tensor in header.items() if name != "__metadata__"}


def blocks(language):
    """The blocks of the page in a language."""
    page = (ROOT / "docs" / "beyond_notebook.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_page_serves_what_it_has_trained(tmp_path):
    """The cells of the page on a part of the data, then its programs by the commands that it names."""
    with Kernel(cwd=tmp_path) as kernel:
        for cell in blocks("rust"):
            short = "let (train, dev) = (train.shuffled(1).take(320), dev.shuffled(1).take(200));"
            kernel.run(cell.replace("debian_sections()?;", f"debian_sections()?;\n{short}"), timeout=300)
        accuracy = float(kernel.run('evaluate!(model, dev, verbose = false)?.metrics[0].value.unwrap()').shown())
    for program in blocks("python"):
        name = re.match(r"# (\w+\.py)\n", program)[1]
        (tmp_path / name).write_text(program)
    printed = "".join(
        subprocess.run([sys.executable, *command.split()[1:]], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        for block in blocks("sh") for command in block.splitlines() if command.startswith("python "))
    assert "admin" in printed or "net" in printed, printed
    found = dict(re.findall(r"(\S+\.onnx): accuracy (0\.\d+)", printed))
    assert abs(float(found["served/model.onnx"]) - accuracy) < 1e-4, (printed, accuracy)
    assert abs(float(found["served/model_int8.onnx"]) - accuracy) < 0.03, printed
