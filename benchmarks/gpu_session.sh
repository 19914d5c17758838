#!/usr/bin/env bash
# Uses a CUDA machine for so many minutes (30 unless told): the GPU tests, the benchmark of a training
# step, then pending runs of the paper's Table 1 and Table 2, which stop cleanly and go on next time.
#
#     benchmarks/gpu_session.sh [MINUTES]
#
# Everything new is in the folder gpu-session/ afterwards: test.log, train_step.json, train_step.log,
# what was added to results/ and figures/, and summary.txt. Environment, all optional:
#     PYTHON     the interpreter                      (python3)
#     DATA       what --data is given                 (the preset's own)
#     PRECISION  fp32, tf32 or mixed                  (mixed)
#     JOBS       runs side by side                    (1)
#     OUT        the folder                           (gpu-session)
set -euo pipefail

minutes=${1:-30}
[[ $minutes =~ ^[0-9]+$ && $minutes -gt 0 ]] || {
    echo "gpu_session.sh $minutes: expected a positive number of minutes" >&2
    exit 2
}
deadline=$((SECONDS + 60 * minutes))
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=${OUT:-gpu-session}
mkdir -p "$out"
started=$out/.started
touch "$started"
: > "$out/summary.txt"

# At most this share of the session, in percent, and never more than what is left of it.
seconds() {
    local share=$((60 * minutes * $1 / 100)) left=$((deadline - SECONDS))
    echo $((share < left ? share : left))
}

step() { # name, seconds, command...
    local name=$1 limit=$2
    shift 2
    if ((limit < 10)); then
        echo "$name: no time left" | tee -a "$out/summary.txt"
        return
    fi
    echo "== $name (at most $limit s): $*"
    local status=0
    timeout --signal=INT --kill-after=30 "$limit" "$@" 2>&1 | tee "$out/$name.log" || status=$?
    echo "$name: exit code $status" | tee -a "$out/summary.txt"
}

step test "$(seconds 35)" "$python" -m pytest -m gpu -rs -q tests
step train_step "$(seconds 35)" "$python" benchmarks/train_step.py --device cuda --rounds 5 \
    --json "$out/train_step.json"

flags=(--preset paper --device cuda --precision "${PRECISION:-mixed}" --jobs "${JOBS:-1}")
[[ -z ${DATA:-} ]] || flags+=(--data "$DATA")
pending() { # script, flags...
    local script=$1 left=$((deadline - SECONDS - 60))
    shift
    # The budget ends between two epochs; the limit is for what does not keep to it.
    ((left < 60)) || step "$(basename "$script" .py)" $((left + 45)) "$python" "$script" \
        "${flags[@]}" --time-budget "$((left / 60))" "$@"
}
pending reproduce/table1.py --noise-rates 0.7 0.5
pending reproduce/table1.py
pending reproduce/table2.py --noise-rates 0.4

for folder in results figures; do
    [[ ! -d $folder ]] || find "$folder" -type f -newer "$started" -not -name lock \
        -exec cp --parents {} "$out" \;
done
rm -f "$started"
echo "everything new is in $out/"
