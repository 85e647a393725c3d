#!/usr/bin/env bash
# Makes the environment of Python tools that the other steps of a release use, with the versions of requirements.lock:
#
#     kernel-spec/release/tools.sh FOLDER
set -euo pipefail
folder=${1:?a folder for the environment}
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$(dirname "${BASH_SOURCE[0]}")/requirements.lock"
