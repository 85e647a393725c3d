#!/usr/bin/env bash
# Tests and measures stratoscope on this machine's GPU, and writes one table:
#
#     ./run.sh                        # all parts on CUDA if there is an NVIDIA device, else on Vulkan
#     ./run.sh PART …                 # some: parity, tests, speed, memory, profile, replicas
#     ./run.sh --device vulkan PART … # on Vulkan (or cuda)
#     ./run.sh --small PART …         # small sizes: to try the kit itself on a software device
#     ./run.sh --results FOLDER …     # where report.md and the logs go (default: results, here)
#
# A part ends after 9 minutes at most; what it has not reached by then is in the table. Each part has one log, DEVICE-PART.log. Parts
# that run later, also on the other device, are added to the table. STRATOSCOPE_TEST_GPU names the device, too.
# Programs are unpacked into `unpacked`, here, or into GPU_KIT_UNPACKED.
set -uo pipefail
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)

PARTS=(parity tests speed memory profile replicas)
MAX_PART_SECONDS=540
# What a program gets to end by itself before it is killed.
GRACE_SECONDS=5

usage() {
    local line
    while IFS= read -r line; do
        case $line in '#!'*) ;; '#'*) line=${line#'#'} && printf '%s\n' "${line# }" ;; *) break ;; esac
    done <"${BASH_SOURCE[0]}"
}
fail() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 2
}

device=${STRATOSCOPE_TEST_GPU:-} small= results=$here/results parts=()
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit ;;
        --device) device=${2:?--device needs cuda or vulkan} && shift ;;
        --results) results=${2:?--results needs a folder} && shift ;;
        --small) small=1 ;;
        *)
            case " ${PARTS[*]} " in *" $1 "*) parts+=("$1") ;; *) fail "there is no part $1: ${PARTS[*]}" ;; esac
            ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=("${PARTS[@]}")
if [ -z "$device" ]; then
    device=vulkan
    [ ! -e /dev/nvidiactl ] && [ ! -e /proc/driver/nvidia/version ] || device=cuda
fi
case $device in
    cuda) name=cuda:0 ;;
    vulkan) name=wgpu:0 ;;
    *) fail "--device is cuda or vulkan, not $device" ;;
esac
mkdir -p "$results" || exit
results=$(cd "$results" && pwd)
unpacked=${GPU_KIT_UNPACKED:-$here/unpacked}
scratch=$(mktemp -d) || exit
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# The programs, unpacked once.
unpack() {
    local packed program
    mkdir -p "$unpacked" || exit
    for packed in "$here"/programs/*.xz; do
        [ -f "$packed" ] || fail "$here/programs has no programs"
        program=$unpacked/${packed##*/}
        program=${program%.xz}
        [ ! -x "$program" ] || [ "$packed" -nt "$program" ] || continue
        if command -v xz >/dev/null; then
            xz --decompress --stdout "$packed" >"$program.new" || fail "$packed is damaged"
        elif command -v python3 >/dev/null; then
            python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$packed" >"$program.new" ||
                fail "$packed is damaged"
        else
            fail "neither xz nor python3 was found: one of them unpacks the programs"
        fi
        chmod +x "$program.new" && mv "$program.new" "$program"
    done
}

# What the programs find: the reference values, a folder for sockets, this device.
export STRATOSCOPE_PARITY=$here/parity STRATOSCOPE_HISTORY=off STRATOSCOPE_FULL_TESTS=1 RUST_BACKTRACE=0
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$scratch} HOME=${HOME:-$scratch}
# Expected values of the tests are those of the processor; the tests name the GPU.
export STRATOSCOPE_DEVICE=cpu
unset STRATOSCOPE_TEST_GPU
if [ "$device" = cuda ]; then
    export STRATOSCOPE_TEST_GPU=cuda
    toolkit=${CUDA_PATH:-/usr/local/cuda}
    [ ! -d "$toolkit/lib64" ] || export LD_LIBRARY_PATH=$toolkit/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# A line of the table, in the log of its part: what, result, seconds.
entry() {
    printf 'entry\t%s\t%s\t%s\n' "${1//|//}" "${2//|//}" "$3" >>"$log"
    printf '%s: %s: %s (%s s)\n' "$part" "$1" "$2" "$3"
    # Each time, so that a run that is ended from outside leaves a table.
    report >"$results/report.new" && mv "$results/report.new" "$results/report.md"
}

# The seconds that are left of the part.
left() { printf '%s\n' $((MAX_PART_SECONDS - GRACE_SECONDS - (SECONDS - part_began))); }

# Runs a program and takes its rows; WHAT is named if it has none.
measure() {
    local what=$1 begun=$SECONDS status=0 line kind of result rows=0 last=
    shift
    if [ "$(left)" -le 0 ]; then
        entry "$what" "not reached: the part's 9 minutes were over" 0
        return
    fi
    printf '\n$ %s\n' "$*" >>"$log"
    timeout --kill-after=$GRACE_SECONDS "$(left)" "$@" >"$scratch/out" 2>&1 || status=$?
    cat "$scratch/out" >>"$log"
    while IFS=$'\t' read -r kind of result; do
        if [ "$kind" = row ]; then
            entry "$of" "$result" $((SECONDS - begun))
            rows=$((rows + 1))
        elif [ -z "$last" ] || [[ $kind == *error* || $kind == *panicked* ]]; then
            [[ -z ${kind// /} ]] || last=$kind
        fi
    done <"$scratch/out"
    case $status in
        0) [ "$rows" -gt 0 ] || entry "$what" "done, without a result" $((SECONDS - begun)) ;;
        124 | 137) entry "$what" "not finished in the part's 9 minutes" $((SECONDS - begun)) ;;
        *) entry "$what" "FAILED ($status): ${last:0:300}" $((SECONDS - begun)) ;;
    esac
}

kit() {
    local command=$1
    shift
    measure "$command${*:+ $*}" "$unpacked/kit" "$command" --device "$name" "${network[@]}" "$@"
}

. "$here/tests.sh"

network=()
[ -z "$small" ] || network=(--layers 2 --hidden 32 --heads 4 --inner 64 --words 128)

part_parity() {
    local steps=20 shape=(--batch 16 --seq 64)
    [ -z "$small" ] || { steps=3 && shape=(--batch 2 --seq 8); }
    run_tests bert classification_on_gpu layers_and_gradients_are_those_of_transformers_on_gpu
    run_tests train the_traces_on_gpu
    kit agree --steps $steps "${shape[@]}"
}

# The tests that failed on CUDA come first, one by one in the table.
part_tests() {
    local first=(pieces_of_one_output_on_gpu the_default_device_is_used_outside_of_scopes optimizers_on_gpu policies_on_gpu)
    local program
    run_tests train "${first[@]}"
    for program in gpu bert train; do
        run_others "$program" "${first[@]}"
    done
}

part_speed() {
    if [ -n "$small" ]; then
        kit train --batch 2 --seq 8 --steps 3
        kit predict --batch 2 --seq 8 --steps 3
        torch train 2 8 fp32 3
        return
    fi
    kit train --batch 16 --seq 64
    torch train 16 64 fp32 20
    kit train --batch 8 --seq 512 --steps 8
    torch train 8 512 fp32 8
    kit predict --batch 1 --seq 64
    kit predict --batch 32 --seq 64
    torch infer 32 64 fp32 20
    if [ "$device" = cuda ]; then
        kit train --batch 16 --seq 64 --policy mixed_bfloat16
        torch train 16 64 amp-bf16 20
        kit train --batch 8 --seq 512 --steps 8 --policy mixed_bfloat16
        torch train 8 512 amp-bf16 8
        kit predict --batch 256 --seq 64 --policy mixed_bfloat16
    fi
    kit train --batch 16 --seq 64 --policy mixed_float16
    kit train --batch 64 --seq 128
    torch train 64 128 fp32 20
}

# PyTorch at the same shape, on CUDA: mode, rows, tokens, type, steps.
torch() {
    local model=minilm on=cuda
    [ "$device" = cuda ] || on=cpu
    [ -z "$small" ] || model=tiny
    # Once a part: a Vulkan device has no PyTorch beside it.
    if ! python3 -c 'import torch, transformers' >/dev/null 2>&1; then
        [ -n "${torch_is_missing:-}" ] || entry "PyTorch" "skipped: python3 has no torch with transformers" 0
        torch_is_missing=1
        return
    fi
    if [ "$on" = cpu ] && [ -z "$small" ]; then
        [ -n "${torch_is_missing:-}" ] || entry "PyTorch" "skipped: it has no Vulkan; the table of --device cuda has it" 0
        torch_is_missing=1
        return
    fi
    measure "PyTorch $1 $2 × $3, $4" python3 "$here/torch_row.py" --model "$model" --device "$on" --mode "$1" --batch "$2" --seq "$3" \
        --dtype "$4" --steps "$5"
}

# Memory by the length of rows, 4096 tokens in each batch, and in the course of a run.
part_memory() {
    local seq lengths=(512 1024 2048 4096) tokens=4096 run=(--batch 16 --seq 64 --steps 500)
    [ -z "$small" ] || { lengths=(16 32) && tokens=64 && run=(--batch 2 --seq 8 --steps 20); }
    kit memory "${run[@]}"
    for seq in "${lengths[@]}"; do
        kit train --batch $((tokens / seq)) --seq "$seq" --steps 3
        torch train $((tokens / seq)) "$seq" fp32 3
    done
    for seq in "${lengths[@]}"; do
        kit attention --of ours --batch 1 --seq "$seq"
        kit attention --of tiles --batch 1 --seq "$seq"
    done
}

part_profile() {
    if [ -n "$small" ]; then
        kit profile --batch 2 --seq 8 --steps 3
        kit graph --of predict --batch 1 --seq 8 --steps 3
        kit graph --of update --steps 3
        return
    fi
    kit profile --batch 16 --seq 64
    kit graph --of predict --batch 1 --seq 64
    kit graph --of predict --batch 32 --seq 64
    kit graph --of update
    kit profile --batch 8 --seq 512 --steps 8
    [ "$device" != cuda ] || kit profile --batch 16 --seq 64 --policy mixed_bfloat16
}

part_replicas() {
    local shape=(--batch 16 --seq 64) replicas
    [ -z "$small" ] || shape=(--batch 2 --seq 8 --steps 3)
    for replicas in 1 2; do
        kit train --replicas "$replicas" "${shape[@]}"
        kit profile --replicas "$replicas" "${shape[@]}"
    done
}

# The table of all logs in the folder of the results.
report() {
    local file of line kind what result seconds
    printf '# stratoscope on a GPU\n\n'
    while IFS= read -r line; do printf '%s  \n' "$line"; done <"$here/about.txt"
    printf 'run on %s\n\n' "$(date -u '+%F %H:%M')"
    cat "$here/questions.md"
    printf '\n## Results\n\nThe time is that of the whole program, of a test that of the test.\n\n'
    printf '| device | part | what | result | time, s |\n| --- | --- | --- | --- | --- |\n'
    for file in "$results"/{cuda,vulkan}-*.log; do
        [ -f "$file" ] || continue
        of=${file##*/} && of=${of%.log}
        while IFS=$'\t' read -r kind what result seconds; do
            [ "$kind" != entry ] || printf '| %s | %s | %s | %s | %s |\n' "${of%%-*}" "${of#*-}" "$what" "$result" "$seconds"
        done <"$file"
    done
}

unpack
for part in "${parts[@]}"; do
    log=$results/$device-$part.log
    : >"$log"
    part_began=$SECONDS
    torch_is_missing=
    kit device
    "part_$part"
    entry "all of $part" "$([ "$(left)" -gt 0 ] && echo "reached its end" || echo "ended by its limit")" $((SECONDS - part_began))
done
printf '%s\n' "$results/report.md"
