"""Save, restart, load, predict: the files have Hugging Face's format, predictions and names are the same."""

import json

import checkpoint
from kernel_client import Kernel

TEXTS = '["sans serif font", "platform game", "dns server"]'


def test_a_saved_model_predicts_the_same_in_a_fresh_kernel(tmp_path, tiny):
    folder = tmp_path / "saved"
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run(
            f"""let (train, _dev) = debian_sections()?;
let model = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }})?;
let history = fit!(model, train.take(160), epochs = 1, batch_size = 16, seed = 0)?;
model.save_pretrained("{folder}")?;"""
        )
        before = kernel.run(f"model.predict({TEXTS})?").shown()
    check_files(folder, tiny)
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run(f'let again = BertForSequenceClassification::from_pretrained("{folder}", 8)?;')
        after = kernel.run(f"again.predict({TEXTS})?").shown()
    assert before == after
    names = "admin fonts games graphics math net science sound".split()
    assert any(name in after for name in names), after


def check_files(folder, tiny):
    """What transformers reads: names, shapes and types of all tensors, and the classes' names."""
    config = json.loads((folder / "config.json").read_text())
    original = json.loads((tiny / "config.json").read_text())
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "model_type", "hidden_act"):
        assert config[key] == original[key], key
    assert config["architectures"] == ["BertForSequenceClassification"]
    names = "admin fonts games graphics math net science sound".split()
    assert config["id2label"] == {str(index): name for index, name in enumerate(names)}
    assert config["label2id"] == {name: index for index, name in enumerate(names)}
    found = checkpoint.read_safetensors_header(folder / "model.safetensors")
    expected = {f"bert.{name}": shape for name, shape in checkpoint.shapes().items()}
    expected |= {"classifier.weight": [8, checkpoint.HIDDEN], "classifier.bias": [8]}
    assert {name: tensor["shape"] for name, tensor in found.items()} == expected
    assert {tensor["dtype"] for tensor in found.values()} == {"F32"}
    assert (folder / "tokenizer.json").exists() and (folder / "vocab.txt").exists()
    assert json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"] == checkpoint.tokenizer()["model"]["vocab"]
