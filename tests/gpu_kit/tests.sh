# Runs tests of the programs by name, one after the other in one process, which compiles each kernel once; sourced by run.sh. A test that
# hangs or ends its process is named, and the others run in a new process.

# The longest time without a line of output.
MAX_TEST_SECONDS=240

# Names of the tests of a program that contain a word.
names_of() {
    local line
    "$unpacked/$1" --list "$2" 2>/dev/null | while IFS= read -r line; do
        [[ $line != *': test' ]] || printf '%s\n' "${line%: test}"
    done
}

# The tests of a program with these names, each in the table.
run_tests() {
    local program=$1 name wanted=()
    shift
    for name in "$@"; do
        mapfile -t -O ${#wanted[@]} wanted < <(names_of "$program" "$name")
    done
    run_names all "$program" "${wanted[@]}"
}

# All other tests on a GPU of a program: those that fail by name, the others by their number.
run_others() {
    local program=$1 name others=() leave
    shift
    while IFS= read -r name; do
        for leave in "$@"; do
            [[ ::$name != *"::$leave" ]] || continue 2
        done
        others+=("$name")
    done < <(names_of "$program" on_gpu)
    run_names failed "$program" "${others[@]}"
}

run_names() {
    local shown=$1 program=$2 begun=$SECONDS passed=0 skipped=0 not_reached=0 name rest
    local -A ended=()
    shift 2
    [ $# -gt 0 ] || { entry "tests of $program" "FAILED: it has no such tests" 0 && return; }
    while [ $# -gt 0 ] && [ "$(left)" -gt 0 ]; do
        one_process "$@"
        rest=()
        for name in "$@"; do [ -n "${ended[$name]:-}" ] || rest+=("$name"); done
        set -- ${rest[@]+"${rest[@]}"}
    done
    for name in "$@"; do
        not_reached=$((not_reached + 1))
        [ "$shown" = failed ] || entry "$name" "not reached: the part's 9 minutes were over" 0
    done
    [ "$shown" = failed ] || return 0
    entry "other tests of $program" "$passed passed, $skipped skipped, $not_reached not reached$([ $not_reached = 0 ] || printf ': %s' "$*")" \
        $((SECONDS - begun))
}

# One process for these tests, until it ends. Sets `ended` of each test that has a result.
one_process() {
    local line current= message= since=$SECONDS status=0 out pid next= name before=${#ended[@]}
    printf '\n$ %s %s\n' "$program" "$*" >>"$log"
    exec {out}< <(exec timeout --kill-after=$GRACE_SECONDS "$(left)" "$unpacked/$program" --exact "$@" --test-threads=1 --nocapture 2>&1)
    pid=$!
    while :; do
        status=0
        IFS= read -r -t $MAX_TEST_SECONDS -u "$out" line || status=$?
        [ -z "$line" ] || printf '%s\n' "$line" >>"$log"
        if [[ $line =~ ^test\ ([^ ]+)\ \.\.\.\ ?(.*)$ ]]; then
            current=${BASH_REMATCH[1]} line=${BASH_REMATCH[2]} message= since=$SECONDS
        fi
        [ -z "$next" ] || [ -z "$line" ] || { message=$line && next=; }
        case $line in
            *' panicked at '*) next=1 ;;
            skipped:*) message=$line ;;
            ok | FAILED | ignored) test_ended "$current" "$line" "$message" $((SECONDS - since)) && current= message= ;;
        esac
        # More than 128: no line in time. Else: the program has ended.
        [ "$status" = 0 ] || break
    done
    [ "$status" -le 128 ] || kill "$pid"
    exec {out}<&-
    # What the shell waits for is `timeout`, which ends as its program does.
    wait "$pid" 2>/dev/null
    local code=$?
    if [ "$status" -gt 128 ]; then
        code="no output for $MAX_TEST_SECONDS s"
    elif [ $code = 124 ]; then
        # The part is over: what has not ended was not reached.
        return
    fi
    if [ -n "$current" ]; then
        test_ended "$current" FAILED "ended its process: $code${message:+; $message}" $((SECONDS - since))
    elif [ ${#ended[@]} = "$before" ]; then
        for name in "$@"; do test_ended "$name" FAILED "the program does not start: $code" 0; done
    fi
}

# A test has a result: ok, FAILED or ignored, and what it said last.
test_ended() {
    local name=$1 result=$2 message=$3
    ended[$name]=1
    case $result:$message in
        ok:skipped:*) skipped=$((skipped + 1)) && result=$message ;;
        ok:*) passed=$((passed + 1)) ;;
        ignored:*) skipped=$((skipped + 1)) ;;
        *) entry "$name" "FAILED${message:+: $message}" "$4" && return ;;
    esac
    [ "$shown" = failed ] || entry "$name" "$result" "$4"
}
