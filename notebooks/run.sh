#!/usr/bin/env bash
# Sets everything up and executes a notebook with the stratoscope kernel:
#
#     notebooks/run.sh [NOTEBOOK]         # fine_tune_bert.ipynb unless another one is named
#     notebooks/run.sh --renew [NOTEBOOK] # one or all notebooks of this folder, and puts the outputs into the file
#
# All notebooks are those of this folder and the solutions of the course; its lessons have no outputs.
#
# The executed copy is written to target/notebooks/; the notebook itself is changed by --renew only.
# Needs Rust (stable), Python 3.11 or later and a C linker. What it makes lies in `target/` and
# `.venv/`; delete these two folders and nothing is left.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../tests/setup.sh"

renew=
case "${1:-}" in
    -h | --help) explain "${BASH_SOURCE[0]}" && exit ;;
    --renew) renew=1 && shift ;;
    -*) fail "unknown option $1" "usage: notebooks/run.sh [--renew] [NOTEBOOK]" ;;
esac
notebooks=("${1:-$root/notebooks/fine_tune_bert.ipynb}")
[ -z "$renew" ] || [ $# -gt 0 ] || notebooks=("$root"/notebooks/*.ipynb "$root"/notebooks/course/solutions/*.ipynb)
[ -f "${notebooks[0]}" ] || fail "there is no notebook ${notebooks[0]}"
notebooks[0]=$(cd "$(dirname "${notebooks[0]}")" && pwd)/$(basename "${notebooks[0]}")
# Run from the checkout, so that files of the calling folder, such as a rust-toolchain.toml, have no effect.
cd "$root"

find_rust
make_venv
build
install_kernel

executed=$target/notebooks
mkdir -p "$executed"
for notebook in "${notebooks[@]}"; do
    copy=$executed/$(basename "$notebook")
    say "stratoscope run $notebook"
    if [ -z "$renew" ]; then
        "$stratoscope" run "$notebook" --output "$copy"
    else
        # Cards quote paths of temporary files: the usual folder, whoever renews.
        env -u TMPDIR "$stratoscope" run "$notebook" --output "$copy"
        "$venv/bin/python" "$root/tests/notebook_outputs.py" "$copy" "$notebook"
    fi
done

if [ -n "$renew" ]; then
    say "Done: the notebooks carry the outputs of this run. See: git diff --stat notebooks"
    exit
fi
say "Done: every cell of $(basename "$notebook") was executed; the copy with its outputs is $copy."
printf 'To look at it:\n\n    %q lab %q\n\n' "$venv/bin/jupyter" "$copy"
