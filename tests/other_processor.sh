#!/usr/bin/env bash
# Runs a command on an emulated older processor:
#
#     tests/other_processor.sh x86-64-v2 target/debug/stratoscope --version
#     tests/other_processor.sh x86-64-v3 target/debug/deps/train-0123456789abcdef averages
#
# Levels: x86-64-v2 (SSE 4.2, of 2008), x86-64-v3 (AVX2 and FMA, of 2013), x86-64-v4 (this processor, if it has
# AVX-512). The first two are emulated by qemu-x86_64 from Debian's package qemu-user; processes that the
# command starts are not emulated. Emulation is ten to fifty times slower.
set -euo pipefail

level=${1:?a level: x86-64-v2, x86-64-v3 or x86-64-v4}
shift
case $level in
    x86-64-v2) exec qemu-x86_64 -cpu Nehalem "$@" ;;
    x86-64-v3) exec qemu-x86_64 -cpu Haswell "$@" ;;
    x86-64-v4)
        grep -qw avx512dq /proc/cpuinfo || { echo "this processor has no AVX-512" >&2; exit 1; }
        exec "$@"
        ;;
    *) echo "unknown level $level" >&2; exit 1 ;;
esac
