#!/usr/bin/env bash
# The tests of the project:
#
#     tests/run.sh              # what CI runs: all that is quick, the lanes whose inputs changed, a sample of the rest
#     tests/run.sh --full       # everything: all lanes and cases, 5 seeds, the PyTorch comparison, soaks, fuzzing, more on a GPU
#     tests/run.sh --only NAME  # a crate (`data`), a file (`test_kernel.py`, `kernel`), a lane (`course`), `on_gpu`, `tidy`, `lints`
#     tests/run.sh --lanes      # the lanes, and which of them the next run takes
#
# Has the requirements of `notebooks/run.sh`. As root on Debian it installs what the tests need: lavapipe (a software Vulkan
# device), Chromium, LLDB, and for lanes that run qemu-user, Open MPI, MPICH, Slurm; otherwise the tests that need them are skipped,
# and the last line counts them. With CI=true a skip is a failure. The last line also names what was not run.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

full= only=
case "${1:-}" in
    '') ;;
    --full) full=1 ;;
    --only) only=${2:?usage: tests/run.sh --only NAME} ;;
    --lanes) find_python && exec "$python" "$root/tests/lanes.py" ;;
    -h | --help) explain "${BASH_SOURCE[0]}" && exit ;;
    *) fail "unknown option $1" "usage: tests/run.sh [--full | --only NAME | --lanes]" ;;
esac
cd "$root"
export STRATOSCOPE_FULL_TESTS=$full
# Also a sample of the cases of which there are many; a run of one file takes all of them.
[ -n "$full$only" ] || export STRATOSCOPE_SHORT_TESTS=1
# The notebooks and tests write no cell into the user's history.
export STRATOSCOPE_HISTORY=off
# Many tests cause a panic on purpose, and naming the functions of a backtrace takes seconds in programs of this size.
export RUST_BACKTRACE=0

find_python
started=$SECONDS
skipped=()
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# Installs Debian packages where no password is needed.
system_packages() {
    [ $# -gt 0 ] || return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "apt-get install $*"
        { apt-get -qq -o Acquire::Retries=3 update && DEBIAN_FRONTEND=noninteractive \
            apt-get -qq -o Acquire::Retries=3 install --no-install-recommends -y "$@" >/dev/null; } ||
            printf 'not installed: %s; the tests that need them are skipped\n' "$*" >&2
    fi
}

# Whether this run takes a lane.
takes() { [[ " ${lanes[*]-} " == *" $1 "* ]]; }

# A device, a browser and an older processor.
display_packages() {
    local wanted=()
    ls /usr/share/vulkan/icd.d/*lvp* >/dev/null 2>&1 || wanted+=(mesa-vulkan-drivers libvulkan1)
    command -v chromium >/dev/null || wanted+=(chromium fonts-dejavu-core)
    ! takes gpu || command -v xz >/dev/null || wanted+=(xz-utils)
    ! takes processors || [ "$(uname -m)" != x86_64 ] || command -v qemu-x86_64 >/dev/null || wanted+=(qemu-user)
    system_packages "${wanted[@]}"
}

# LLDB with its debug adapter, and Python, in which the formatters of Rust's values are written. By itself: a distribution
# without this version has the other packages.
debugger_packages() {
    has_debugger || system_packages lldb-19 python3-lldb-19
}
has_debugger() {
    local adapter
    adapter=$(compgen -c lldb-dap | sort -V | tail -n 1)
    [ -n "$adapter" ] && [ "$("lldb${adapter#lldb-dap}" --no-lldbinit --batch -o 'script print(6 * 7)' 2>/dev/null | tail -n 1)" = 42 ]
}

# What starts jobs of several processes.
launcher_packages() {
    takes launchers || return 0
    local wanted=() PATH=$PATH:/usr/sbin
    command -v mpirun >/dev/null || wanted+=(openmpi-bin)
    command -v mpiexec.hydra >/dev/null || wanted+=(mpich)
    command -v munged >/dev/null || wanted+=(munge)
    command -v slurmctld >/dev/null || wanted+=(slurmctld)
    command -v slurmd >/dev/null || wanted+=(slurmd)
    command -v srun >/dev/null || wanted+=(slurm-client)
    system_packages "${wanted[@]}"
}

# What makes a bare Debian in a folder, in which a wheel is installed. Only runs with STRATOSCOPE_FULL_TESTS have such tests.
root_packages() {
    takes package && [ -n "$full$only" ] || return 0
    local wanted=() PATH=$PATH:/usr/sbin
    command -v debootstrap >/dev/null || wanted+=(debootstrap)
    command -v openssl >/dev/null || wanted+=(openssl)
    command -v ip >/dev/null || wanted+=(iproute2)
    system_packages "${wanted[@]}"
}

# What reaches a kernel on another machine.
network_packages() {
    local wanted=() PATH=$PATH:/usr/sbin
    command -v ip >/dev/null || wanted+=(iproute2)
    command -v ssh >/dev/null || wanted+=(openssh-client)
    command -v sshd >/dev/null || wanted+=(openssh-server)
    system_packages "${wanted[@]}"
    # The test starts a server of its own. That of the package would let users of this machine in, which nobody asked for.
    case " ${wanted[*]} " in
        *" openssh-server "*) systemctl --quiet disable --now ssh >/dev/null 2>&1 || true ;;
    esac
}

# NVIDIA's compiler of CUDA kernels, which needs no GPU; for Linux on x86-64 alone.
cuda_compiler() {
    takes cuda || return 0
    [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || return 0
    say "NVRTC into .venv (65 MB)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r tests/cuda/requirements.lock ||
        printf 'not installed: NVRTC; the tests that need it are skipped\n' >&2
}

# What checks and runs ONNX files.
onnx_runtime() {
    takes onnx || takes serving || return 0
    say "onnxruntime into .venv (60 MB)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r tests/onnx/requirements.lock ||
        printf 'not installed: onnxruntime; the tests that need it are skipped\n' >&2
}

# npm, which fetches what a page loads: that of the machine, or Node.js from PyPI.
node_packages() {
    takes serving || return 0
    ! command -v npm >/dev/null || return 0
    say "Node.js into .venv (60 MB)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r tests/serving/requirements.lock ||
        printf 'not installed: Node.js; the tests that need npm are skipped\n' >&2
}

# Runs a step and records a failure, so that one run reports all failures.
failed=()
step() {
    local name=$1 begun=$SECONDS
    shift
    say "$name"
    if "$@"; then
        printf -- '-- %s: ok, %d s\n' "$name" $((SECONDS - begun))
    else
        printf -- '-- %s: FAILED after %d s\n' "$name" $((SECONDS - begun))
        failed+=("$name")
    fi
}

# A test that cannot run here prints `skipped: reason` and passes; it is counted at the end. Tests of a CUDA device are
# not counted, because no package can provide one.
count_skips() {
    while read -r line; do
        skipped+=("$line")
    done < <(sed -n 's/^ *skipped: *//p' "$1" | grep -vi cuda | sort | uniq -c | sed 's/^ *//')
}

# The examples that tests of the kernel and of the documents run; `lints` compiles the others, too.
examples=(all_reduce check encoder_step export_onnx fine_tune gpu_kit gpu_step losses memory train_step)

# Unit and integration tests of all crates, but those of `gpu_tests`.
rust_tests() {
    local log=$results/rust.log status=0
    cargo build --workspace --locked "${examples[@]/#/--example=}" || return
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --config-file tests/nextest.toml --workspace --locked --lib --bins --tests --no-fail-fast \
            --success-output final -E 'not test(on_gpu)' 2>&1 | tee "$log" || status=$?
    else
        cargo test --workspace --locked --no-fail-fast --lib --bins --tests -- --nocapture \
            --skip on_gpu 2>&1 | tee "$log" || status=$?
    fi
    count_skips "$log"
    return "$status"
}

# Those of every run; the lane `gpu` has all.
gpu_smoke=(layers_on_gpu the_traces_on_gpu products_of_all_sizes_and_orders_on_gpu cross_entropy_on_gpu_agrees
    losses_of_one_launch_on_gpu_agree classification_on_gpu)

# The tests of the kernels on wgpu, those of a binary in one process and one after the other: a process compiles and tunes
# each kernel once, which takes most of their time, and nextest starts a process a test.
gpu_tests() {
    local wanted=(on_gpu)
    takes gpu || wanted=("${gpu_smoke[@]}")
    local begun=$SECONDS status=0
    cargo test --workspace --locked --no-fail-fast --lib --test bert --test train --test cross_entropy -- \
        "${wanted[@]}" --test-threads=1 --show-output 2>&1 | grep -v -e '^running 0 tests' -e ' 0 passed; 0 failed' -e '^$' |
        tee "$results/gpu.log" || status=$?
    echo $((SECONDS - begun)) >"$results/gpu.seconds"
    return "$status"
}

doc_tests() { cargo test --workspace --locked --doc; }

# Tests that compute much and wait for nothing. Those of commands come first: cargo builds for them, and later for the checks.
documents=(documented_commands additions articles book cards commands course gpu_kit heads jupyterlab notebook notebook_outputs python_cells
    rules tables_in_jupyterlab training)

# Runs files of `tests/`; NAME.skips has the reasons for what was skipped, NAME.late the tests for which no time was left.
out_of_time=$(sed -n 's/^OUT_OF_TIME = "\(.*\)"$/\1/p' tests/conftest.py)
python_tests() {
    local name=$1 report=$results/$1.xml status=0
    shift
    "$venv/bin/python" -m pytest "$@" --durations 30 --junitxml "$report" || status=$?
    "$venv/bin/python" - "$report" >"$report.skips" <<'PYTHON'
import collections, sys, xml.etree.ElementTree as tree
reasons = collections.Counter(skip.get("message") for skip in tree.parse(sys.argv[1]).iter("skipped"))
for reason, count in reasons.items():
    print(count, reason)
PYTHON
    # Not skipped, but not run.
    grep "$out_of_time" "$report.skips" >"$results/$name.late" || true
    grep -v "$out_of_time" "$report.skips" >"$results/$name.skips" || true
    return "$status"
}

# The files of a run that belong to no lane, or to one of its lanes.
files_of_run() {
    local file
    for file in "$@"; do
        ! left_out "${file#tests/}" || continue
        printf '%s\n' "$file"
    done
}
left_out() { grep -qxF "$1" "$results/left_out"; }

document_tests() { python_tests documents $(files_of_run $(printf "tests/test_%s.py " "${documents[@]}")); }
kernel_tests() {
    local others=() file
    for file in tests/test_*.py; do
        [[ " ${documents[*]/%/.py} " == *" ${file#tests/test_} "* ]] || others+=("$file")
    done
    python_tests kernel $(files_of_run "${others[@]}")
}

# clippy and the documentation of all crates.
lints() { RUSTC_WORKSPACE_WRAPPER=$PWD/tests/front_end.py cargo build --workspace --locked --all-targets --keep-going; }

# wgpu's software device needs a private folder for its sockets.
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$results}
# The expected values are those of the processor; tests of other devices name them.
export STRATOSCOPE_DEVICE=${STRATOSCOPE_DEVICE:-cpu}

# One crate, file or lane.
only() {
    local name=$1 files=()
    case $name in
        tidy) step tidy "$python" tests/tidy.py && return ;;
        lints) find_rust && step "lints and documentation" lints && return ;;
        on_gpu) find_rust && step "tests on a GPU" gpu_tests && return ;;
    esac
    if [ -f "src/$name/Cargo.toml" ]; then
        find_rust
        # The features are the workspace's (`src/features`), so that nothing of a third party is compiled again.
        local package=$(sed -n 's/^name = "\(.*\)"/\1/p' "src/$name/Cargo.toml" | head -n 1)
        step "tests of $name" cargo nextest run --config-file tests/nextest.toml -p "$package" --locked --lib --bins --tests \
            -E 'not test(on_gpu)'
        return
    fi
    files=($("$python" tests/lanes.py files "$name")) || files=()
    if [ ${#files[@]} = 0 ]; then
        files=("tests/test_$(basename "${name#test_}" .py).py")
        [ -f "${files[0]}" ] || fail "there is no crate, file or lane $name" "see: ls src tests/test_*.py; tests/run.sh --lanes"
    fi
    make_venv
    build
    install_kernel
    lanes=("$name")
    { display_packages && debugger_packages && launcher_packages && root_packages && cuda_compiler && onnx_runtime && node_packages; } >"$results/packages.log" 2>&1
    step "${files[*]}" python_tests only "${files[@]}"
}

if [ -n "$only" ]; then
    lanes=()
    only "$only"
    say "$((SECONDS - started)) s"
    [ ${#failed[@]} = 0 ] && printf 'passed: %s\n' "$only" && exit
    printf 'FAILED: %s\n' "${failed[*]}"
    exit 1
fi

if [ -n "$full" ]; then
    lanes=($("$python" tests/lanes.py names))
else
    lanes=($("$python" tests/lanes.py choose))
fi
"$python" tests/lanes.py left-out ${lanes[@]+"${lanes[@]}"} >"$results/left_out"
say "lanes of this run: ${lanes[*]-}"

step "tidy" "$python" tests/tidy.py
find_rust
step "formatting" cargo fmt --all --check
# What is downloaded is unpacked while burn is compiled.
{
    display_packages
    debugger_packages
    launcher_packages
    root_packages
    network_packages
    make_venv
    cuda_compiler
    onnx_runtime
    node_packages
} >"$results/packages.log" 2>&1 &
packages=$!
build
keep_crates
wait "$packages" || { cat "$results/packages.log" >&2; exit 1; }
cat "$results/packages.log"
install_kernel
step "Rust tests" rust_tests
# CI has 90 minutes. On a slow machine building takes 50 of them, and the tests that are not begun after 75 are not run.
[ -n "$full" ] || [ "$in_ci" != true ] || export STRATOSCOPE_TESTS_END=$(($(date +%s) + 4500 - SECONDS))
# On a slow machine CI takes fewer lanes. It has 90 minutes, and needs at most 30 for what is no lane.
if [ -z "$full${STRATOSCOPE_LANE_SECONDS-}" ] && [ "$in_ci" = true ]; then
    lanes=($("$python" tests/lanes.py fit $((3600 - SECONDS)) ${lanes[@]+"${lanes[@]}"}))
    "$python" tests/lanes.py left-out ${lanes[@]+"${lanes[@]}"} >"$results/left_out"
    say "lanes for which there is time: ${lanes[*]-}"
fi
# Runs steps beside those of the foreground, at a lower priority: their output goes to NAME.log, failures to NAME.failed.
beside() {
    local name=$1 nice=$2
    shift 2
    (
        renice -n "$nice" -p "$BASHPID" >/dev/null
        failed=()
        "$@"
        printf '%s\n' ${failed[@]+"${failed[@]}"} >"$results/$name.failed"
    ) >"$results/$name.log" 2>&1 &
}
documents_steps() { step "tests of notebooks and documents" document_tests; }
checks_steps() {
    step "tests on a GPU" gpu_tests
    step "examples in the documentation" doc_tests
    step "lints and documentation" lints
}
# The tests of the kernel wait more than they compute, and measure some of the waiting: they have the highest priority.
beside documents 10 documents_steps
beside checks 19 checks_steps
step "tests of the real kernel" kernel_tests
wait
keep_crates
for name in documents checks; do
    cat "$results/$name.log"
    while read -r line; do [ -z "$line" ] || failed+=("$line"); done <"$results/$name.failed"
done
count_skips "$results/gpu.log"
late=0
for name in documents kernel; do
    while read -r line; do skipped+=("$line"); done <"$results/$name.skips"
    while read -r count _; do late=$((late + count)); done <"$results/$name.late"
done

# The inputs with which lanes have passed. A step that ended before its tests leaves no report, and no lane has passed.
if [ -f "$results/documents.xml" ] && [ -f "$results/kernel.xml" ]; then
    passed=()
    for name in ${lanes[@]+"${lanes[@]}"}; do
        [[ $name = gpu && " ${failed[*]-} " == *" tests on a GPU "* ]] || passed+=("$name")
    done
    "$python" tests/lanes.py passed "$results" ${passed[@]+"${passed[@]}"}
fi
not_run=$("$python" tests/lanes.py not-run ${lanes[@]+"${lanes[@]}"})
[ "$late" = 0 ] || not_run+="${not_run:+; }$late tests for which $out_of_time"
[ -n "$full" ] || not_run+="${not_run:+; }five of six cases of tests with many or long ones, and what only --full runs"

say "$((SECONDS - started)) s"
for name in ${failed[@]+"${failed[@]}"}; do printf 'failed: %s\n' "$name"; done
total=0
reasons=
for line in ${skipped[@]+"${skipped[@]}"}; do
    total=$((total + ${line%% *}))
    reasons+="; $line"
done
if [ "$total" -gt 0 ]; then
    summary="skipped: $total (${reasons#; })"
else
    summary="skipped: 0"
fi
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED. %s. Not run: %s\n' "$summary" "${not_run:-nothing}"
    exit 1
fi
if [ "$total" -gt 0 ] && [ "$in_ci" = true ]; then
    printf 'FAILED, since in CI nothing may be skipped. %s\n' "$summary"
    exit 1
fi
printf 'All tests passed. %s. Not run: %s\n' "$summary" "${not_run:-nothing}"
