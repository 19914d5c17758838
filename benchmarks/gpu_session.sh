#!/usr/bin/env bash
# Uses a CUDA machine for so many minutes (30 unless told), results first. In this order:
#
#     smoke      one real epoch in every precision, that of the results first, held against a CPU's
#                (two and a half minutes at most; the next call goes on if that one has not passed, and
#                repeats nothing that has passed with this code on this kind of GPU)
#     results    pending runs of the paper preset, the cheapest and most telling first, in the
#                precision asked for or the best one that passed; they stop between two epochs
#     benchmark  a training step of every engine, group by group
#     tests      pytest -m gpu
#
#     benchmarks/gpu_session.sh [MINUTES]
#
# What is new is in OUT afterwards: summary.txt, and session.tar.* with results/, figures/ and
# gpu-session/ (logs, smoke.json, train_step.json); it is put there every half minute as well, for
# machines that are taken away. A later call that is given these as FROM goes on where this one
# stopped, on another machine too. Environment, all optional:
#     PYTHON     the interpreter                                      (python3)
#     DATA       what --data is given                                 (cifar10)
#     PRECISION  fp32, tf32 or mixed                                  (mixed)
#     STEPS      which of the above                                   (smoke results benchmark tests)
#     SMOKE      seconds that the smoke test has at most              (150)
#     RUNS       scripts and their flags, one a line                  (below)
#     JOBS       runs at a time                                       (the scripts' default)
#     BENCHMARK  more flags for benchmarks/train_step.py
#     WHEELS     a folder of wheels to install first, into a place of their own, for a machine
#                without network: chainer and nvidia-cudnn-frontend, say
#     FROM       OUT of the session before
#     OUT        where everything goes                                (gpu-session/out)
#     PACK       seconds before they are written again                (30)
#     RESERVE    seconds of MINUTES that are kept for packing         (40)
#     TESTS      the files of the tests    (tests/test_gpu.py tests/test_gpu_runs.py
#                tests/test_compat.py)
#     CHAINER_JO_COMMIT   what results name as their commit where there is no git
set -euo pipefail

minutes=${1:-30}
[[ $minutes =~ ^[0-9]+$ && $minutes -gt 0 ]] || {
    echo "gpu_session.sh $minutes: expected a positive number of minutes" >&2
    exit 2
}
# Seconds that are kept for packing.
reserve=${RESERVE:-40}
end=$((SECONDS + 60 * minutes - reserve))
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
data=${DATA:-cifar10}
precision=${PRECISION:-mixed}
runs=${RUNS:-"
reproduce/table1.py --trials 1 --noise-rates 0
reproduce/table1.py --trials 1 --noise-rates 0.7
reproduce/table1.py --trials 1 --noise-rates 0.3
reproduce/table1.py --trials 1 --noise-rates 0.9
reproduce/table1.py --trials 1 --noise-rates 0.1
reproduce/table2.py --trials 1 --noise-rates 0.4
reproduce/table2.py --trials 1 --noise-rates 0.2
reproduce/table2.py --trials 1 --noise-rates 0.3
reproduce/table2.py --trials 1 --noise-rates 0.1
reproduce/table2.py --trials 1 --noise-rates 0.5
reproduce/figure2.py --trials 1
reproduce/table13.py --trials 1
reproduce/table1.py --trials 2
reproduce/table2.py --trials 2
reproduce/all.py"}
jobs=${JOBS:+--jobs $JOBS}
work=gpu-session
out=${OUT:-$work/out}
mkdir -p "$work" "$out"
: > "$out/summary.txt"

say() { echo "$*" | tee -a "$out/summary.txt"; }

pack() { "$python" benchmarks/gpu_state.py pack "$out"; }

# While steps are at work, and no longer than this script is.
keep_packed() {
    while sleep "${PACK:-30}" && kill -0 $$; do pack || true; done
}

finish() {
    # Not interrupted by what ended the session.
    trap '' INT TERM
    [[ -z ${packer:-} ]] || kill "$packer" || true
    pack | tee -a "$out/summary.txt"
    [[ -z ${site:-} ]] || rm -rf "$site"
    echo "everything new is in $out/"
}
trap finish EXIT

# Logs are whole wherever a program ends, and say where it was if it crashes.
export PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1
# CUB takes longer to compile for the two sums of an epoch's report than all other kernels together.
export CUPY_ACCELERATORS=
# Compiled kernels go along with what is packed: a later call does not compile them again.
export CUPY_CACHE_DIR=${CUPY_CACHE_DIR:-$PWD/$work/kernels}
# Without an installation: scripts find the package here.
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
if [[ -n ${WHEELS:-} ]]; then
    site=$(mktemp -d)
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir \
        --disable-pip-version-check --target "$site" "$WHEELS"/*.whl
    PYTHONPATH=$site:$PYTHONPATH
fi
[[ -z ${FROM:-} ]] || "$python" benchmarks/gpu_state.py unpack "$FROM"
keep_packed > /dev/null 2>&1 &
packer=$!

# The seconds that are left, or a share of them: of the steps still to come, by their weights.
left() { echo $((end - SECONDS)); }
declare -A weight=([smoke]=0 [results]=6 [benchmark]=3 [tests]=1)
steps=(${STEPS:-smoke results benchmark tests})
share() { # index of the step
    local sum=0 step
    for step in "${steps[@]:$1}"; do sum=$((sum + weight[$step])); done
    echo $(($(left) * weight[${steps[$1]}] / sum))
}

run() { # name, seconds, command...
    local name=$1 limit=$2 status=0 started=$SECONDS
    shift 2
    if ((limit < 10)); then
        say "$name: no time left"
        return 1
    fi
    echo "== $name (at most $limit s): $*"
    timeout --signal=INT --kill-after=20 "$limit" "$@" 2>&1 | tee -a "$work/$name.log" || status=$?
    say "$name: exit code $status after $((SECONDS - started)) s"
    return $status
}

smoke_flags() { # of scripts, by what the smoke test has said so far
    "$python" benchmarks/gpu_smoke.py --flags "$work/smoke.json" --precision "$precision"
}

smoke() {
    if [[ -f $work/smoke.json && $(smoke_flags 2> /dev/null) == "--precision $precision" ]]; then
        say "smoke: passed in an earlier session"
        return
    fi
    local limit most=${SMOKE:-150}
    limit=$(left)
    run smoke $((limit < most ? limit : most)) "$python" benchmarks/gpu_smoke.py --data "$data" \
        --precision "$precision" --json "$work/smoke.json" || true
}

results() { # seconds
    local until=$((SECONDS + $1)) flags
    if [[ -f $work/smoke.json ]]; then
        flags=$(smoke_flags) || {
            say "results: no precision has passed the smoke test"
            return
        }
    else
        flags="--precision $precision"
    fi
    say "results with $flags"
    pending() { # script, flags...
        local script=$1 seconds=$((until - SECONDS))
        shift
        # The budget ends between two epochs, and tables are written; the limit is for what hangs.
        local budget=$((seconds - 25))
        ((budget > 5)) || return 0
        # shellcheck disable=SC2086  # flags are words
        run "$(basename "$script" .py)" "$seconds" "$python" "$script" --preset paper \
            --device cuda --data "$data" $flags $jobs \
            --time-budget "$(awk "BEGIN { print $budget / 60 }")" "$@" || true
    }
    local line
    while read -r line; do
        # shellcheck disable=SC2086  # a line is words
        [[ -z $line ]] || pending $line
    done <<< "$runs"
}

benchmark() { # seconds
    # shellcheck disable=SC2086  # flags are words
    run benchmark "$1" "$python" benchmarks/train_step.py --device cuda --rounds 5 \
        --json "$work/train_step.json" --minutes "$(awk "BEGIN { print $1 / 60 - 0.5 }")" \
        ${BENCHMARK:-} || true
}

tests() { # seconds
    # shellcheck disable=SC2086  # several paths
    CHAINER_JO_NEEDS_GPU=1 run tests "$1" "$python" -m pytest -m gpu -rs -q ${TESTS:-tests/test_gpu.py tests/test_gpu_runs.py tests/test_compat.py} || true
}

for i in "${!steps[@]}"; do
    case ${steps[$i]} in
        smoke) smoke ;;
        results | benchmark | tests) "${steps[$i]}" "$(share "$i")" ;;
        *) say "STEPS: ${steps[$i]}, expected smoke, results, benchmark or tests"; exit 2 ;;
    esac
done
