#!/usr/bin/env bash
# Writes a bill of materials beside each wheel in a folder:
#
#     kernel-spec/release/bills.sh DIST tools/bin/python
set -euo pipefail
folder=${1:?the folder of the wheels}
python=${2:?the Python of the environment that tools.sh makes}
here=$(dirname "${BASH_SOURCE[0]}")
shopt -s nullglob
for wheel in "$folder"/*.whl; do
    machine=$(sed -E 's/.*manylinux_[0-9]+_[0-9]+_(.*)\.whl/\1/' <<<"$wheel")
    "$python" "$here/sbom.py" "${wheel%.whl}.cdx.json" --target "$machine-unknown-linux-gnu"
done
