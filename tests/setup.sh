# Shared steps of `notebooks/run.sh` and `tests/run.sh`: find the tools, make the Python environment,
# build the workspace, install the kernel into the environment. Sourced, not run; bash.
#
# Every cargo call of the project uses the whole workspace, without RUSTFLAGS or --features: other settings
# would compile burn again, which takes half an hour.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
# CARGO_TARGET_DIR is respected.
target=${CARGO_TARGET_DIR:-$root/target}
stratoscope=$target/debug/stratoscope

# The install step and the tests do not depend on the caller's Python settings.
unset PYTHONHOME PYTHONPATH
# rust-analyzer's crates read CI while they are compiled: with it, cargo would compile them once more.
in_ci=${CI:-}
unset CI

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

fail() {
    printf '\nerror: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}

# Prints the comment at the beginning of a script.
explain() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$1"; }

# Sets `python` to a Python of 3.11 or later; $PYTHON takes precedence over the path.
find_python() {
    [ -z "${python:-}" ] || return 0
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            return
        fi
    done
    fail "no Python 3.11 or later with the venv module was found" \
        "install one (on Debian and Ubuntu: python3 and python3-venv), or name it: PYTHON=/path/to/python3"
}

# Checks for a recent Rust compiler and a linker.
find_rust() {
    local wanted found
    command -v cargo >/dev/null || fail "cargo was not found" \
        "install Rust with rustup (stable), and open a new shell so that cargo is on the path"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    found=$(rustc --version | cut -d ' ' -f 2)
    if [ "$(printf '%s\n%s\n' "$wanted" "${found%%-*}" | sort -V | head -n 1)" != "$wanted" ]; then
        fail "Rust $found is too old, $wanted or later is needed" "run: rustup update stable"
    fi
    command -v cc >/dev/null || fail "no C linker was found (cc)" \
        "install one (on Debian and Ubuntu: the package gcc; on macOS: xcode-select --install)"
    # rust-analyzer infers the types of a notebook's variables from the source of the standard library.
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
        say "rustup component add rust-src"
        rustup component add rust-src || fail "the source of Rust's standard library is missing" \
            "it is the component rust-src of rustup, or a package of that name in your distribution"
    fi
}

# Creates the environment `.venv` with exactly the packages of the lock file, unless it has them already.
make_venv() {
    local lock=$root/kernel-spec/requirements.lock stamp=$venv/installed.lock
    if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null && cmp -s "$lock" "$stamp"; then
        register_papermill
        return
    fi
    find_python
    # In an environment that is active, Python is the one that is removed here.
    python=$("$python" -c 'import sys; print(sys._base_executable)')
    say "Python packages into .venv (about 350 MB, the BERT checkpoint among them)"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "the environment could not be made" \
        "on Debian and Ubuntu the venv module is the package python3-venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$lock" ||
        fail "the Python packages could not be installed" "see the lines above; nothing else was changed"
    cp "$lock" "$stamp"
    register_papermill
}

# With the translator of the wheel, papermill in .venv writes parameters in Rust. It is a link into the checkout.
register_papermill() {
    local site about
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    about=$site/stratoscope_papermill-0.dist-info
    mkdir -p "$about"
    ln -sfn "$root/kernel-spec/wheel/papermill.py" "$site/stratoscope_papermill.py"
    printf 'Metadata-Version: 2.1\nName: stratoscope-papermill\nVersion: 0\n' >"$about/METADATA"
    printf '[papermill.engine]\nstratoscope = stratoscope_papermill:Engine\n' >"$about/entry_points.txt"
}

# What third-party crates compile to, kept for the next clone: in $STRATOSCOPE_CRATES, a folder outside of the checkout,
# if that variable is set. One entry for each lock file, profile and compiler; the two that were used last stay.
MAX_KEPT_BUILDS=2

# The name of the entry: of everything that third-party crates are compiled from and with.
crates_key() {
    (cd "$root" && cat Cargo.lock Cargo.toml src/features/Cargo.toml src/cubecl-llvm/Cargo.toml src/cubecl-llvm/src/*.rs && rustc -vV) |
        sha256sum | cut -c 1-16
}

# Runs a command that reads ($1: -s) or changes (-x) the kept builds while no other clone changes them.
with_kept_crates() {
    mkdir -p "$STRATOSCOPE_CRATES"
    (flock "$1" 9 && shift && "$@") 9>"$STRATOSCOPE_CRATES/lock"
}

can_keep_crates() { [ -n "${STRATOSCOPE_CRATES:-}" ] && command -v flock >/dev/null; }

# Copies the kept crates into a target folder that has none yet.
restore_crates() {
    can_keep_crates && [ ! -e "$target/debug/.fingerprint" ] || return 0
    with_kept_crates -s copy_kept_crates "$STRATOSCOPE_CRATES/$(crates_key)"
}

copy_kept_crates() {
    [ -d "$1" ] || return 0
    say "third-party crates from $1"
    touch "$1"
    mkdir -p "$target"
    cp -a --reflink=auto "$1/." "$target/"
    # A crate in the checkout: cargo compares the times of its files with that of the build.
    find "$root/src/cubecl-llvm" -type f -exec touch -d '2020-01-01' {} +
}

# Keeps the third-party crates of the target folder, all kinds that were built, for the next clone.
keep_crates() {
    can_keep_crates || return 0
    with_kept_crates -x store_crates "$STRATOSCOPE_CRATES/$(crates_key)" || say "third-party crates could not be kept"
}

# The builds of third-party crates in a target folder.
third_party() { ls "$1/debug/.fingerprint" 2>/dev/null | grep -v stratoscope | sort; }

store_crates() {
    local kept=$1
    local new=$kept.new
    if [ -z "$(comm -13 <(third_party "$kept") <(third_party "$target"))" ]; then
        touch "$kept"
        return
    fi
    # A copy that was cut short is of an ended process: nobody else holds the lock.
    rm -rf "$STRATOSCOPE_CRATES"/*.new
    mkdir -p "$new/debug"
    # The own crates and programs of the workspace are left out; a library or a build script of a crate is not.
    (cd "$target/debug" && find .fingerprint build deps -mindepth 1 -maxdepth 1 \
        \( -path 'deps/*.rlib' -o -path 'deps/*.rmeta' -o -path 'deps/*.so' -o -path 'deps/*.d' -o -path 'build/*' -o -path '.fingerprint/*' \) \
        ! -name '*stratoscope*' -print0 | tar --create --null --files-from - | tar --extract --directory "$new/debug")
    cp -a "$target/.rustc_info.json" "$target/CACHEDIR.TAG" "$new/" 2>/dev/null || true
    rm -rf "$kept"
    mv "$new" "$kept"
    touch "$kept"
    ls -td "$STRATOSCOPE_CRATES"/*/ | tail -n +$((MAX_KEPT_BUILDS + 1)) | xargs -r rm -rf
}

# One build for the kernel, the facade and the tests.
build() {
    find_rust
    restore_crates
    say "cargo build --workspace (the first time a quarter to half an hour on two cores, then seconds)"
    find_python
    "$python" "$root/tests/build.py" --workspace --locked || fail "the build failed" "see the lines above"
}

# Installs the kernel spec into the environment and not into the user's folders, and activates the
# environment for the rest of the script.
install_kernel() {
    export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
    say "stratoscope install --prefix .venv"
    "$stratoscope" install --prefix "$venv" || fail "the kernel could not be installed" \
        "run: $stratoscope doctor"
}
