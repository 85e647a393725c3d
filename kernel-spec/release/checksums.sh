#!/usr/bin/env bash
# Writes SHA256SUMS of the wheels and bills of materials in a folder:
#
#     kernel-spec/release/checksums.sh DIST
#
# Who has downloaded them checks them with `sha256sum --check --ignore-missing SHA256SUMS`.
set -euo pipefail
cd "${1:?the folder of the release}"
shopt -s nullglob
wheels=(*.whl) bills=(*.cdx.json)
[ ${#wheels[@]} -gt 0 ] && [ ${#bills[@]} -gt 0 ] || { echo "error: $PWD needs a wheel and a bill of materials (*.cdx.json)" >&2; exit 1; }
sha256sum -- "${wheels[@]}" "${bills[@]}" >SHA256SUMS
cat SHA256SUMS
