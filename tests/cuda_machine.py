"""A machine with a GPU of CUDA, as far as it can be had without one: NVIDIA's compiler NVRTC, which is real, and a driver
that executes nothing (`tests/cuda/`). Every kernel that a program needs is generated, compiled and loaded, and every
launch is checked and counted."""

import os
import pathlib
import re
import subprocess
import sysconfig

FOLDER = pathlib.Path(__file__).resolve().parent / "cuda"


def toolkit():
    """The folder with NVRTC and its headers, as pip installs them; None if they are not there."""
    folder = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    needed = ["lib/libnvrtc.so.13", "include/cuda_fp16.h", "include/crt/mma.h", "include/cccl/cuda/barrier"]
    return folder if all((folder / name).exists() for name in needed) else None


class Program:
    """A kernel that NVRTC was given."""

    def __init__(self, folder, line):
        number, result, milliseconds, options = line.split(" ", 3)
        self.accepted = result == "0"
        self.seconds = int(milliseconds) / 1000
        self.architecture = re.search(r"--gpu-architecture=(\S+)", options)[1]
        self.source = (folder / f"{number}.cu").read_text()
        self.name = re.search(r'extern "C" __global__[^{]*?(\w+)\s*\([^()]*\)\s*\{', self.source)[1]
        log = folder / f"{number}.log"
        self.log = log.read_text() if log.exists() else ""

    @property
    def family(self):
        """The name without its hash: `matmul_entry_lhs_f32_…`."""
        return re.sub(r"_[0-9a-f]{8}$", "", self.name)


class Finished:
    """A program that ran on the machine."""

    def __init__(self, done, folder):
        self.done = done
        self.code, self.output = done.returncode, done.stdout
        compiled = folder / "programs"
        self.programs = [Program(folder, line) for line in compiled.read_text().splitlines()] if compiled.exists() else []
        record = folder / "record"
        lines = [line.split(" ", 1) for line in record.read_text().splitlines()] if record.exists() else []
        self.modules = [rest.split() for kind, rest in lines if kind == "module"]
        self.launches = [rest.split() for kind, rest in lines if kind == "launch"]
        self.refused = [rest for kind, rest in lines if kind == "refused"]


class Machine:
    """The driver and the recorder, built, before the toolkit's own NVRTC."""

    def __init__(self, folder, toolkit):
        self.folder, self.toolkit = folder, toolkit
        self.libraries = folder / "lib"
        self.libraries.mkdir()
        compiler = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
        for source, library in [("driver_that_executes_nothing", "libcuda.so.1"), ("nvrtc_recorder", "libnvrtc.so")]:
            subprocess.run([*compiler, "-o", self.libraries / library, FOLDER / f"{source}.c", "-ldl"], check=True)
        # The name that the runtime tries first.
        (self.libraries / "libcuda.so").symlink_to("libcuda.so.1")

    def environment(self, name, capability="8.0", **changed):
        """The variables of a program; `name` is that of the folder with what it was seen to do."""
        seen = self.folder / name
        seen.mkdir()
        return os.environ | {
            "LD_LIBRARY_PATH": str(self.libraries),
            "CUDA_PATH": str(self.toolkit),
            "RECORDER_LIBRARY": str(self.toolkit / "lib" / "libnvrtc.so.13"),
            "RECORDER_FOLDER": str(seen),
            "STANDIN_RECORD": str(seen / "record"),
            "STANDIN_CAPABILITY": capability,
            "STRATOSCOPE_DEVICE": "",
        } | changed

    def run(self, name, command, timeout=600, **changed):
        environment = self.environment(name, **changed)
        done = subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=timeout)
        return Finished(done, self.folder / name)
