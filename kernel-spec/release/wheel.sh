#!/usr/bin/env bash
# Makes the wheel of this checkout for this processor, this rustc and this system's glibc, or a later one:
#
#     kernel-spec/release/wheel.sh OUTPUT [LEVEL]
#
# MAX_GLIBC=2.31 refuses a wheel that needs a later glibc. LEVEL is the effort of compression, 19 for a release.
# The build is the usual one: what was built before is not built again.
set -euo pipefail
output=${1:?a folder for the wheel}
level=${2:-19}
export PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# rust-analyzer's crates read CI while they are compiled: with it, cargo would compile them once more.
unset CI

mkdir -p "$output"
output=$(cd "$output" && pwd)
if compgen -G "$output/*.whl" >/dev/null; then
    echo "error: $output has a wheel already: name an empty folder" >&2
    exit 1
fi
cd "$root"
cargo build --workspace --locked
"${CARGO_TARGET_DIR:-target}/debug/stratoscope" package --output "$output" --level "$level"

wheels=("$output"/*.whl)
name=$(basename "${wheels[0]}")
rust=$(rustc --version | cut -d ' ' -f 2)
[[ $name =~ ^stratoscope-[0-9.]+-[0-9]+_rustc([0-9.]+)-py3-none-manylinux_([0-9]+)_([0-9]+)_([a-z0-9_]+)\.whl$ ]] || {
    echo "error: $name is for no release of Rust, or for no system but this one" >&2
    exit 1
}
glibc=${BASH_REMATCH[2]}.${BASH_REMATCH[3]}
[ "${BASH_REMATCH[1]}" = "$rust" ] || { echo "error: $name is not for Rust $rust" >&2; exit 1; }
[ "${BASH_REMATCH[4]}" = "$(uname -m)" ] || { echo "error: $name is not for $(uname -m)" >&2; exit 1; }
if [ -n "${MAX_GLIBC:-}" ] && [ "$(printf '%s\n' "$glibc" "$MAX_GLIBC" | sort -V | tail -n 1)" != "$MAX_GLIBC" ]; then
    echo "error: $name needs glibc $glibc, and at most $MAX_GLIBC was wanted" >&2
    exit 1
fi
printf '%s: glibc %s or later, %d MB\n' "$name" "$glibc" $(($(stat -c %s "${wheels[0]}") / 1000000))
