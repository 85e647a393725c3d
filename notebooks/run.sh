#!/usr/bin/env bash
# Sets everything up and executes a notebook with the stratoscope kernel, in place:
#
#     notebooks/run.sh [NOTEBOOK]         # fine_tune_bert.ipynb unless another one is named
#
# Needs Rust (stable), Python 3.11 or later and a C linker. What it makes lies in `target/` and
# `.venv/`; delete these two folders and nothing is left.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../tests/setup.sh"

case "${1:-}" in
    -h | --help) explain "${BASH_SOURCE[0]}" && exit ;;
    -*) fail "unknown option $1" "usage: notebooks/run.sh [NOTEBOOK]" ;;
esac
notebook=${1:-$root/notebooks/fine_tune_bert.ipynb}
[ -f "$notebook" ] || fail "there is no notebook $notebook"
notebook=$(cd "$(dirname "$notebook")" && pwd)/$(basename "$notebook")
# Files of the folder it was called in, such as a rust-toolchain.toml, are not meant for this.
cd "$root"

find_rust
make_venv
build
install_kernel

say "stratoscope run $notebook"
"$stratoscope" run "$notebook"

say "Done: every cell of $(basename "$notebook") was executed; its outputs are in the file."
printf 'To look at it:\n\n    %q lab %q\n\n' "$venv/bin/jupyter" "$notebook"
