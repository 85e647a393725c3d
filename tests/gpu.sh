#!/usr/bin/env bash
# Measurements and tests for a machine that has a GPU and neither Rust nor Jupyter:
#
#     tests/gpu.sh make            # builds target/gpu-kit, a folder of at most 60 MB
#     tests/gpu.sh make FOLDER     # builds it elsewhere
#
# Copy the folder to that machine and start `run.sh` in it; `run.sh --help` lists its parts. It needs a 64-bit Linux of this
# machine's processor with a glibc as new as here, bash, coreutils and xz (or python3), and the driver of the GPU; for CUDA also NVRTC
# and its headers (the toolkit, in /usr/local/cuda or CUDA_PATH). PyTorch with transformers is used if `python3` has them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

MAX_KIT_MB=60
# The programs: the name in the kit, and the package and the target that cargo has for it. Each is 7 to 17 MB, compressed: the tests of
# the loss and of the layers' operations by themselves, two more programs, are left out.
TESTS=(gpu:stratoscope-gpu:--lib bert:stratoscope-bert:--test=bert train:stratoscope-models:--test=train)

case "${1:-}" in
    make) ;;
    -h | --help) explain "${BASH_SOURCE[0]}" && exit ;;
    *) fail "usage: tests/gpu.sh make [FOLDER]" ;;
esac
folder=${2:-$target/gpu-kit}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
[ ! -e "$folder" ] || [ -f "$folder/about.txt" ] || fail "$folder exists and is no kit" "name another folder"
cd "$root"

# Builds one program and prints its path. The features are the workspace's (`src/features`), so that no third-party crate is compiled
# again.
program_of() {
    local package=$1 kind=$2 name
    case $kind in --example=*) set -- build ;; *) set -- test --no-run ;; esac
    cargo "$@" --locked --package "$package" "$kind" --message-format=json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

find_rust
for tool in strip xz; do
    command -v "$tool" >/dev/null || fail "$tool was not found" "on Debian and Ubuntu: apt-get install binutils xz-utils"
done
new=$folder.new
rm -rf "$new"
mkdir -p "$new/programs" "$new/parity"
trap 'rm -rf "$new"' EXIT
for entry in "${TESTS[@]}" kit:stratoscope-models:--example=gpu_kit; do
    IFS=: read -r name package kind <<<"$entry"
    say "$package $kind"
    program=$(program_of "$package" "$kind")
    [ -x "$program" ] || fail "cargo built no program for $package $kind"
    strip -o "$new/programs/$name" "$program"
done
say "compressing"
# A filter for x86 code; on other processors xz leaves it out.
filter=()
[ "$(uname -m)" != x86_64 ] || filter=(--x86)
xz --threads=0 "${filter[@]}" --lzma2=preset=6,dict=64MiB "$new"/programs/*
cp -r tests/parity/tiny-bert tests/parity/families "$new/parity/"
cp tests/gpu_kit/* tests/bench/torch_reference.py "$new/"
{
    printf 'commit %s\n' "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
    printf 'built on %s by %s for %s\n' "$(date -u +%F)" "$(rustc --version)" "$(uname -sm)"
} >"$new/about.txt"
megabytes=$(($(du -sb "$new" | cut -f 1) / 1000000 + 1))
[ "$megabytes" -le "$MAX_KIT_MB" ] || fail "the kit has $megabytes MB, $MAX_KIT_MB MB at most" "$(du -sh "$new"/programs/*)"
rm -rf "$folder"
mv "$new" "$folder"
say "$folder: $megabytes MB"
