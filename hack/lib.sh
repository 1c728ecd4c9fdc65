# shellcheck shell=bash
# Sourced by every script below hack/: where things are, and how a step is told and timed.
#
#   REALCLI_CACHE   everything that is expensive to make (default ~/.cache/realcli); never inside the clone
#   REALCLI_NODE    official | source: where the node image comes from (default: decided once, see cluster/mode)

set -euo pipefail
shopt -s inherit_errexit

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${REALCLI_CACHE:-$HOME/.cache/realcli}
BIN=$CACHE/bin
NODE_PARTS=$CACHE/node
OUT=$ROOT/out
CLUSTER=realcli
mkdir -p "$BIN" "$CACHE/stamps" "$CACHE/logs"

export REALCLI_CACHE=$CACHE
export PATH=$BIN:$PATH
# A kubeconfig of our own: nothing here ever reads or writes the user's.
export KUBECONFIG=$CACHE/kubeconfig

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# in_memory: where the files of tests lie: in memory where there is a file system with room for them, so that no test waits for
# a disk to say that all is written; else in the usual place.
in_memory() {
  local free
  free=$(df --output=avail -B1M /dev/shm 2>/dev/null | tail -n 1) || free=0
  if [[ -w /dev/shm ]] && ((free > 4096)); then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi
}

# unit_tests OPTION...: pytest on all unit tests, on every core of a machine that has several. A file stays whole, so that what its
# tests share is built once.
unit_tests() {
  local cores spread=()
  cores=$(nproc)
  ((cores == 1)) || spread=(-n "$cores" --dist loadfile)
  TMPDIR=$(in_memory) .venv/bin/pytest -o tmp_path_retention_policy=failed "${spread[@]}" "$@" tests/unit
}

# step TITLE COMMAND...: runs a command (a program, not a function: bash ignores `set -e` in a tested function) and
# says how long it took.
step() {
  local title=$1 begin=$SECONDS
  shift
  say "==> $title"
  if "$@"; then
    say "    $title: $((SECONDS - begin)) s"
  else
    local code=$?
    say "    $title: FAILED after $((SECONDS - begin)) s"
    return "$code"
  fi
}

# digest FILE-OR-TEXT...: one short digest of what a thing is made from; files count by content.
digest() {
  local item
  for item in "$@"; do
    if [[ -f $item ]]; then cat "$item"; else printf '%s\n' "$item"; fi
  done | sha256sum | cut -c1-12
}

# fresh NAME DIGEST FILE...: true when NAME was made from DIGEST and its files still exist.
fresh() {
  local name=$1 want=$2 file
  shift 2
  [[ -f $CACHE/stamps/$name && $(<"$CACHE/stamps/$name") == "$want" ]] || return 1
  for file in "$@"; do [[ -e $file ]] || return 1; done
}

stamp() { printf '%s' "$2" >"$CACHE/stamps/$1"; }

# locked NAME COMMAND...: one at a time over all processes that share the cache. The lock is not inherited
# by what the command leaves running.
locked() {
  local name=$1
  shift
  (
    exec 9>"$CACHE/$name.lock"
    flock 9
    "$@" 9>&-
  )
}

# docker_ready: true when an engine answers; prefers the user's own, else the one started by cluster/engine.
docker_ready() {
  docker version --format '{{.Server.Version}}' >/dev/null 2>&1 && return 0
  [[ -S $CACHE/docker/docker.sock ]] || return 1
  export DOCKER_HOST=unix://$CACHE/docker/docker.sock
  # The engine we start has no BuildKit that could use the runtime wrapper.
  export DOCKER_BUILDKIT=0
  docker version --format '{{.Server.Version}}' >/dev/null 2>&1 && return 0
  unset DOCKER_HOST DOCKER_BUILDKIT
  return 1
}

need_docker() { docker_ready || die "no Docker engine answers; start one with: make engine"; }
