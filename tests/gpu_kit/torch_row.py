"""Runs torch_reference.py beside this file with the arguments of the command line, and prints its line and a row of the kit's table."""

import json
import subprocess
import sys
from pathlib import Path

program = Path(__file__).with_name("torch_reference.py")
done = subprocess.run([sys.executable, program, *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
if done.returncode:
    sys.exit(done.returncode)
line = done.stdout.splitlines()[-1]
it = json.loads(line)
what = f"PyTorch {it['torch']} {it['mode']} {it['batch']} × {it['seq']}, {it['dtype']}, {it['device']}"
result = (f"{it['seq_per_s']:.0f} sequences/s, {1e3 * it['median_s_per_step']:.3f} ms a step, first step {it['first_step_s']:.1f} s, "
          f"{it['peak_memory_bytes'] / 1e6:.0f} MB at most")
print(line)
print("row", what, result, sep="\t")
