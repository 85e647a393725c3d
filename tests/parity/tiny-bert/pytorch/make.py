"""Writes the weights of ../sequence-classification in PyTorch's own format, as `torch.save(state_dict)` lays them out, and
two files that must be refused. PyTorch is not needed: the format is a ZIP archive, uncompressed, with a pickle and one entry
for the numbers of each tensor (pytorch/pytorch, torch/serialization.py, `_save`).

    python make.py
"""

import collections
import io
import json
import os
import pathlib
import pickle
import struct
import sys
import types
import unittest.mock
import zipfile

HERE = pathlib.Path(__file__).parent
# The names that PyTorch's pickles refer to.
UTILS, TORCH = types.ModuleType("torch._utils"), types.ModuleType("torch")
exec("def _rebuild_tensor_v2(*arguments): pass\n_rebuild_tensor_v2.__module__ = 'torch._utils'", UTILS.__dict__)
TORCH.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
TORCH._utils = UTILS
# A file always has the same bytes.
WHEN = (2024, 1, 1, 0, 0, 0)


class Storage:
    """The numbers of a tensor, which are an entry of the archive."""

    def __init__(self, key, content):
        self.key, self.content = key, content


class Tensor:
    """A tensor of float32 over a storage."""

    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape

    def __reduce__(self):
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * size)
        strides = tuple(strides if self.shape else [])
        arguments = (self.storage, 0, tuple(self.shape), strides, False, collections.OrderedDict())
        return UTILS._rebuild_tensor_v2, arguments


class Code:
    """What Python would call while it reads the file."""

    def __reduce__(self):
        return os.system, ("touch this-was-run",)


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            return ("storage", TORCH.FloatStorage, value.key, "cpu", len(value.content) // 4)
        return None


def save(path, state, storages):
    """Writes a file as `torch.save` does."""
    pickled = io.BytesIO()
    with unittest.mock.patch.dict(sys.modules, {"torch": TORCH, "torch._utils": UTILS}):
        Pickler(pickled, protocol=2).dump(state)
    with zipfile.ZipFile(path, "w") as archive:
        def put(entry, content):
            archive.writestr(zipfile.ZipInfo(f"archive/{entry}", WHEN), content)

        put("data.pkl", pickled.getvalue())
        put("byteorder", b"little")
        for storage in storages:
            put(f"data/{storage.key}", storage.content)
        put("version", b"3\n")


def tensors(path):
    """The tensors of a safetensors file of float32, and their storages."""
    whole = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:8 + length])
    state, storages = collections.OrderedDict(), []
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        start, end = tensor["data_offsets"]
        storages.append(Storage(str(len(storages)), whole[8 + length + start:8 + length + end]))
        state[name] = Tensor(storages[-1], tensor["shape"])
    return state, storages


def main():
    state, storages = tensors(HERE.parent / "sequence-classification" / "model.safetensors")
    save(HERE / "pytorch_model.bin", state, storages)
    code = collections.OrderedDict([("weight", Tensor(storages[0], [1])), ("code", Code())])
    save(HERE / "code.bin", code, storages[:1])
    numbers = Storage("0", bytes(4096))
    many = collections.OrderedDict((f"weight.{index}", Tensor(numbers, [1024])) for index in range(1000))
    save(HERE / "shared.bin", many, [numbers])


if __name__ == "__main__":
    main()
