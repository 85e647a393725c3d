"""Bad input: each gives a diagnostic with code, place, reason and fix; the kernel and its variables
live on."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import checkpoint
from conftest import ROOT
from kernel_client import DIAGNOSTIC, Kernel, check_card, check_error

# The script that writes the fixtures of the Rust tests writes those of this file, too.
SCRIPT = importlib.util.spec_from_file_location("pytorch_format", ROOT / "tests/parity/tiny-bert/pytorch/make.py")
pytorch_format = importlib.util.module_from_spec(SCRIPT)
SCRIPT.loader.exec_module(pytorch_format)

BERT = 'BertForSequenceClassification::from_pretrained("{}", 8)?'


def folder_with(tmp_path, tiny, change):
    """A copy of the tiny checkpoint, changed."""
    folder = tmp_path / "changed"
    shutil.copytree(tiny, folder)
    change(folder)
    return folder


def edit_config(**values):
    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def truncate(name, size):
    def change(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

    return change


def remove(name):
    return lambda folder: (folder / name).unlink()


def remove_tensor(folder):
    path = folder / "model.safetensors"
    tensors = {name: (shape, [0.0] * (shape[0] * (shape[1] if len(shape) == 2 else 1)))
               for name, shape in checkpoint.shapes().items() if "layer.1.output.dense.weight" not in name}
    checkpoint.write_safetensors(path, tensors)


@pytest.fixture(scope="module", autouse=True)
def variables(kernel, tiny):
    kernel.run(f'let kept = 99;\nlet sound = {BERT.format(tiny)};\nlet (train, dev) = debian_sections()?;')


def check_refused(kernel, code, *in_evalue, code_is=None, line=1):
    """The cell is refused with a diagnostic of ours, and nothing else is lost."""
    cell = kernel.execute(code)
    assert cell.reply["status"] == "error", cell.shown()
    name = cell.errors[0]["ename"]
    assert name.startswith("SC"), (name, cell.errors[0]["evalue"])
    check_error(cell, name, *in_evalue, line=line)
    if code_is:
        assert name in code_is, name
    card = check_card(cell, name)
    data = card[DIAGNOSTIC]
    assert data["fixes"], f"no way out is offered: {data['message']}"
    assert data["why"] or data["evidence"] or data["labels"], data
    assert kernel.run("kept").shown() == "99"
    assert kernel.run('sound.predict(["a game"])?').shown()
    return data


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (remove("model.safetensors"), ["safetensors"]),
        (truncate("model.safetensors", 20_000), []),
        (truncate("model.safetensors", 5), []),
        (truncate("model.safetensors", 0), []),
        (remove("config.json"), ["config.json"]),
        (truncate("config.json", 40), ["config.json"]),
        (truncate("tokenizer.json", 100), []),
        (remove_tensor, ["encoder.layer.1.output.dense.weight"]),
        (edit_config(model_type="gpt2", architectures=["GPT2LMHeadModel"]), ["gpt2"]),
        (edit_config(vocab_size=7), ["7"]),
        (edit_config(hidden_size=48), []),
        (edit_config(hidden_size=0), []),
        (edit_config(num_attention_heads=5), []),
        (edit_config(num_hidden_layers=-1), []),
        (edit_config(hidden_act="swish9000"), ["swish9000"]),
    ],
    ids=["no weights", "weights cut", "header cut", "weights empty", "no config", "config cut", "tokenizer cut",
         "a tensor missing", "another architecture", "wrong vocabulary size", "wrong hidden size", "hidden size 0",
         "heads do not divide", "negative layers", "unknown activation"],
)
def test_a_broken_checkpoint(kernel, tmp_path, tiny, change, parts):
    folder = folder_with(tmp_path, tiny, change)
    check_refused(kernel, f"let broken = {BERT.format(folder)};", *parts)


def pytorch(write):
    """Replaces the weights of a checkpoint by a file in PyTorch's own format."""
    def change(folder):
        weights = folder / "model.safetensors"
        write(*pytorch_format.tensors(weights), folder / "pytorch_model.bin")
        weights.unlink()
    return change


def with_code(state, storages, path):
    state["code"] = pytorch_format.Code()
    pytorch_format.save(path, state, storages)


def test_a_pickle_that_would_run_code(kernel, tmp_path, tiny):
    folder = folder_with(tmp_path, tiny, pytorch(with_code))
    check_refused(kernel, f"let broken = {BERT.format(folder)};", "pytorch_model.bin", "`posix.system`")
    assert not list(pathlib.Path(kernel.run("std::env::current_dir().unwrap().display().to_string()").shown().strip('"')).glob("this-was-run"))


def test_weights_in_the_format_of_pytorch(kernel, tmp_path, tiny):
    folder = folder_with(tmp_path, tiny, pytorch(lambda state, storages, path: pytorch_format.save(path, state, storages)))
    kernel.run(f"let pickled = {BERT.format(folder)}; let plain = {BERT.format(tiny)};")
    text = '["a chess game"]'
    assert kernel.run(f"pickled.predict({text})?.rows[0].probabilities == plain.predict({text})?.rows[0].probabilities").shown() == "true"


def test_a_checkpoint_that_is_not_there(kernel, tmp_path):
    data = check_refused(kernel, f"let none = {BERT.format(tmp_path / 'nowhere')};", "nowhere")
    assert data["why"], "the searched places are listed"
    check_refused(kernel, 'let none = BertForSequenceClassification::from_pretrained("no-such-model-anywhere", 8)?;',
                  "no-such-model-anywhere")


@pytest.mark.parametrize("labels", ["0", "1usize.wrapping_sub(1)"])
def test_a_head_without_classes(kernel, tiny, labels):
    check_refused(kernel, f'let none = BertForSequenceClassification::from_pretrained("{tiny}", {labels})?;')


@pytest.mark.parametrize(
    ("content", "code", "parts"),
    [
        ("text\tlabel\na game\tgames\na font\n", "SC0912", ["line 3"]),
        ("text\tlabel\na game\tgames\tmore\n", "SC0912", ["line 2"]),
        ("text\tlabel\n", "SC0914", []),
        ("", "SC0914", []),
        ("text\ttarget\na game\tgames\n", "SC0313", ["label", "target"]),
        (b"text\tlabel\n\xff\xfe\tgames\n", "SC0911", ["UTF-8"]),
        ("text\tlabel\na game\tgames\na font\t\n", "SC0416", ["line 3", "`label`"]),
        ("text\tlabel\tlabel\na game\tgames\t1\n", "SC0417", ["2 columns named `label`"]),
    ],
    ids=["a field missing", "a field too many", "only a header", "empty", "no label column", "not UTF-8",
         "no label", "two label columns"],
)
def test_a_broken_data_file(kernel, tmp_path, content, code, parts):
    path = tmp_path / "broken.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    data = check_refused(kernel, f'let broken = Dataset::tsv("{path}")?;', *parts, code_is=[code])
    assert "broken.tsv" in json.dumps(data)


def test_control_characters_are_shown_escaped(kernel):
    cell = kernel.run(r"""let odd = Dataset::from_labelled([("a \u{1b}[31mred\u{7} text", "x\u{1b}[2J"), ("b", "y")]);
odd""")
    assert "\ufffd" in cell.shown() and "\x1b" not in cell.shown()
    error = kernel.execute(r'Dataset::tsv("no\u{1b}[31mfile.tsv")?').errors[0]
    assert "\x1b" not in error["evalue"], error


@pytest.mark.parametrize("damage", ["special_tokens = {}", "ids = [999999]", "no special_tokens"])
def test_a_damaged_tokenizer(kernel, tiny, tmp_path, damage):
    kernel.run(f'let whole = {BERT.format(tiny)};\nwhole.save_pretrained("{tmp_path / "saved"}")?;')
    file = tmp_path / "saved" / "tokenizer.json"
    content = json.loads(file.read_text())
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    }
    if damage == "special_tokens = {}":
        content["post_processor"]["special_tokens"] = {}
    elif damage == "ids = [999999]":
        special = {"id": "[CLS]", "ids": [999999], "tokens": ["[CLS]"]}
        content["post_processor"]["special_tokens"] = {"[CLS]": special}
    file.write_text(json.dumps(content))
    check_refused(kernel, f'let none = {BERT.format(tmp_path / "saved")};', "tokenizer.json", code_is=["SC0910"])


@pytest.mark.parametrize("layers", ["Dense(1000000000000usize)", "Embedding(1u64 << 40, 64), Flatten(), Dense(1)",
                                    "Dense(1u64 << 20).input_shape(1u64 << 40), Dense(1)"])
def test_sizes_larger_than_memory(kernel, layers):
    check_refused(kernel, f"let none = Sequential([{layers}])?;", "must be at most", code_is=["SC0915"])


def test_an_unknown_label(kernel, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("text\tlabel\na game\tgames\na font\tfonst\n")
    data = check_refused(kernel, f'let odd = Dataset::tsv("{path}")?.with_labels_of(&train)?;', "fonst", code_is=["SC0913"])
    assert "games" in json.dumps(data), "the known labels are named"


def test_a_file_that_is_not_there(kernel, tmp_path):
    check_refused(kernel, f'let none = Dataset::tsv("{tmp_path / "none.tsv"}")?;', "none.tsv", code_is=["SC0911"])


COMPILED = """compile!(sound, optimizer = AdamW::new(1e-3),
    loss = SparseCategoricalCrossentropy { from_logits: true })?;"""


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("fit!(sound, train.take(0), epochs = 1)?;", []),
        ("fit!(sound, train, epochs = 1, validation_data = dev.take(0))?;", []),
        ("fit!(sound, train, epochs = 0)?;", ["epochs"]),
        ("fit!(sound, train, epochs = -1)?;", ["epochs"]),
        ("fit!(sound, train, epochs = 1, batch_size = 0)?;", ["batch_size"]),
        ("fit!(sound, train, epochs = 1, batch_size = -4)?;", ["batch_size"]),
        ("let size = 0;\nfit!(sound, train, epochs = 1, batch_size = size)?;", ["batch"]),
        ("fit!(sound, train, epochs = 1, max_length = 0)?;", ["max_length"]),
        ("fit!(sound, train, epochs = 1, max_length = 100_000)?;", []),
        ("evaluate!(sound, dev, batch_size = 0)?;", ["batch_size"]),
    ],
    ids=["no rows", "no validation rows", "no epochs", "negative epochs", "batch of 0", "negative batch",
         "batch of 0 known at run time", "no tokens", "longer than the model", "evaluated by 0"],
)
def test_bad_sizes_for_fit(kernel, code, parts):
    kernel.run(COMPILED)
    check_refused(kernel, code, *parts, line=2 if code.startswith("let") else 1)


def test_labels_the_head_does_not_have(kernel, tiny):
    kernel.run(f"""let narrow = BertForSequenceClassification::from_pretrained("{tiny}", 2)?;
compile!(narrow, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }})?;""")
    data = check_refused(kernel, "fit!(narrow, train, epochs = 1)?;", "2")
    assert data["code"].startswith("SC03")


def test_a_text_longer_than_the_model_is_truncated_with_a_note(kernel):
    cell = kernel.run('let answer = sound.predict([&"word ".repeat(500)])?;\nanswer')
    assert cell.shown()


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("let none = OneDeviceStrategy::new(cuda(7))?;", ["cuda"]),
        ("let none = OneDeviceStrategy::new(wgpu(99))?;", ["wgpu"]),
        ("let none = OneDeviceStrategy::new(cpu(5))?;", ["cpu"]),
        ("let none = MirroredStrategy::on([cpu(0), cuda(7)])?;", ["cuda"]),
        ("let none = MirroredStrategy::logical(0)?;", []),
        ("let none = MirroredStrategy::logical(100_000)?;", []),
    ],
    ids=["no such cuda", "no such wgpu", "no such cpu", "one of two", "no replicas", "too many replicas"],
)
def test_devices_that_are_not_there(kernel, code, parts):
    check_refused(kernel, code, *parts)


def test_without_a_graphics_driver_there_is_no_gpu(tmp_path):
    nowhere = "/nonexistent"
    env = os.environ | {"VK_ICD_FILENAMES": nowhere, "VK_DRIVER_FILES": nowhere,
                        "__EGL_VENDOR_LIBRARY_FILENAMES": nowhere, "__EGL_VENDOR_LIBRARY_DIRS": nowhere}
    with Kernel(cwd=tmp_path, env=env) as kernel:
        kernel.run("let kept = 1;")
        cell = kernel.execute("let none = OneDeviceStrategy::new(wgpu(0))?;")
        check_error(cell, "SC0906", "wgpu:0", line=1)
        check_card(cell, "SC0906")
        assert kernel.run("kept").shown() == "1"


# A CUDA driver that lists one device and can do nothing with it: `CUDA_ERROR_NOT_SUPPORTED` from there on.
BROKEN_DRIVER = """
use std::ffi::{c_char, c_int};

#[unsafe(no_mangle)]
extern "C" fn cuInit(_: u32) -> c_int { 0 }
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int { unsafe { *version = 12_040 }; 0 }
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int { unsafe { *count = 1 }; 0 }
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, _: c_int) -> c_int { unsafe { *device = 0 }; 0 }
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _: c_int, _: c_int) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(c"Broken GPU".as_ptr(), name, 11) };
    0
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> c_int { unsafe { *bytes = 1 << 30 }; 0 }
#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(_: *mut usize, _: c_int) -> c_int { 801 }
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the driver's file has another name")
def test_a_gpu_backend_that_cannot_start(tmp_path):
    """SC0907: the driver is there and lists a device, and the first operation on it fails. The default device is then the
    processor, and a note says so (SC0713)."""
    (tmp_path / "driver.rs").write_text(BROKEN_DRIVER)
    (tmp_path / "compiler.rs").write_text("")
    for library, source in (("libcuda.so.1", "driver.rs"), ("libnvrtc.so", "compiler.rs")):
        command = ["rustc", "--edition", "2024", "--crate-type", "cdylib", "-o", library, source]
        subprocess.run(command, cwd=tmp_path, check=True)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("LD_LIBRARY_PATH")]))
    environment = os.environ | {"LD_LIBRARY_PATH": path, "STRATOSCOPE_DEVICE": "auto"}
    with Kernel(cwd=tmp_path, env=environment) as kernel:
        kernel.run("let kept = 1;")
        fallen = kernel.run("let model = Sequential([Dense(4).input_shape(5)])?;")
        check_card(fallen, "SC0713", "the default device is cpu:0: cuda:0 did not start", "%device cpu:0")
        listed = kernel.run("devices()").shown()
        assert "Broken GPU" in listed and "no: it did not start" in listed and "yes: cuda:0 did not start" in listed
        refused = kernel.execute("%device cuda:0")
        check_error(refused, "SC0907", "the backend of cuda:0 failed")
        assert "cpu:0" in kernel.run("default_device()?.name").shown()
        for _ in range(2):  # the second time is not another start
            cell = kernel.execute("let none = OneDeviceStrategy::new(cuda(0))?;")
            check_error(cell, "SC0907", "the backend of cuda:0 failed", line=1)
            check_card(cell, "SC0907", "OneDeviceStrategy::new(cpu(0))")
        assert kernel.run("kept").shown() == "1"
        assert kernel.run("OneDeviceStrategy::new(cpu(0))?").shown()


def test_a_folder_that_cannot_be_written(kernel):
    check_refused(kernel, 'sound.save_pretrained("/proc/none/here")?;', "none/here")
