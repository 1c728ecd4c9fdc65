#!/usr/bin/env bash
# test.sh [--full]: everything a change must pass, from nothing: set-up, lint, unit, integration (real API server, real
# object store), end to end on kind. Two lanes run side by side, because one mostly waits for the cluster:
#   checks    lint -> unit -> integration
#   cluster   engine -> kind cluster -> images -> end to end
# Every part prints its time when it ends; what a lane says is shown in one piece at the end.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
export REALCLI_BIN=$BIN
SELECT=(-m "not slow")
[[ ${1:-} == --full ]] && SELECT=()
SLOWEST=(--durations=5 --durations-min=5)
TIMES=$(mktemp -d)
trap 'rm -rf "$TIMES"' EXIT
BEGIN=$SECONDS
exec 3>&2

part() { # NAME COMMAND...: a step whose time is also kept for the table at the end
  local name=$1 begin=$SECONDS code=0
  shift
  "$@" || code=$?
  # Lanes write to files; what ended is told on the terminal at once.
  say "==> $LANE: $name: $((SECONDS - begin)) s, exit $code" 2>&3
  printf '%-34s %4d s%s\n' "$name" "$((SECONDS - begin))" "$([[ $code == 0 ]] || echo "   FAILED")" >>"$TIMES/$LANE"
  return "$code"
}

suite() { # FOLDER: pytest on a folder; a suite without tests would be a mistake, so pytest's own code 5 fails too
  .venv/bin/pytest "${SELECT[@]}" "${SLOWEST[@]}" "$1"
}

checks() { # a failure does not hide what the later parts would say
  LANE=checks
  local code=0
  part "lint" hack/lint.sh || code=1
  part "unit" unit_tests "${SELECT[@]}" "${SLOWEST[@]}" || code=1
  part "binaries for integration" hack/cluster/build-binaries apiserver weed || return 1
  part "integration" suite tests/integration || code=1
  return "$code"
}

cluster() {
  LANE=cluster
  part "binaries for the cluster" hack/cluster/build-binaries helm weed &&
    part "engine" hack/cluster/engine up &&
    part "kind cluster" hack/cluster/up &&
    docker_ready && part "images" .venv/bin/python hack/images.py --load >/dev/null &&
    if compgen -G 'tests/e2e/test_*.py' >/dev/null; then part "end to end" suite tests/e2e; fi
}

LANE=setup
part "packages" hack/setup.sh
part "venv" hack/venv.sh

checks >"$TIMES/checks.log" 2>&1 &
checks_pid=$!
cluster_code=0 checks_code=0
cluster >"$TIMES/cluster.log" 2>&1 || cluster_code=$?
wait "$checks_pid" || checks_code=$?

# The failing lane last, so that its end is what is on the screen.
if ((checks_code == 0)); then order=(checks cluster); else order=(cluster checks); fi
for lane in "${order[@]}"; do
  echo "---- $lane"
  cat "$TIMES/$lane.log"
done
echo "---- time per part"
cat "$TIMES/setup" "$TIMES/checks" "$TIMES/cluster"
total=$((SECONDS - BEGIN))
printf '%-34s %4d s = %d.%d minutes\n' "all" "$total" "$((total / 60))" "$((total % 60 / 6))"
for log in "$TIMES"/{checks,cluster}.log; do grep -hE '^[0-9]+ (passed|failed|skipped).* in [0-9.]+s' "$log" || true; done
((checks_code == 0 && cluster_code == 0)) || exit 1
