#!/usr/bin/env bash
# Prepares a bare Debian or Ubuntu, as root, to make a wheel:
#
#     kernel-spec/release/system.sh 1.95.0
#
# It installs a linker, then rustup with this Rust. The system decides which glibc the wheel needs: the workflow takes Debian 11, whose
# glibc 2.31 is older than that of every system with a Jupyter of today.
set -euo pipefail
rust=${1:?a release of Rust: 1.95.0}

apt-get -qq -o Acquire::Retries=3 update
DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 install --no-install-recommends -y ca-certificates curl gcc g++ libc6-dev >/dev/null

command -v rustup >/dev/null || [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/rustup" ] ||
    curl --proto '=https' --tlsv1.2 --fail --silent --show-error https://sh.rustup.rs |
    sh -s -- -y --no-modify-path --profile minimal --default-toolchain none
export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
# rust-src: an outline of the standard library is a part of the wheel.
rustup toolchain install "$rust" --profile minimal --component rust-src --no-self-update
rustup default "$rust"
rustc --version
