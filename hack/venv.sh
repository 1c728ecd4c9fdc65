#!/usr/bin/env bash
# venv.sh: .venv in the clone with exactly what constraints.txt pins, and the project itself, editable. Quick when warm.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

find_python() {
  local candidate
  for candidate in python3.11 python3.12 python3.13 python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$candidate"; return; fi
  done
  die "no Python 3.11 or newer found; install python3"
}

if ! command -v uv >/dev/null; then
  say "    installing uv into the cache"
  "$(find_python)" -m venv "$CACHE/uv"
  "$CACHE/uv/bin/pip" install -q uv
  ln -sf "$CACHE/uv/bin/uv" "$BIN/uv"
fi

want=$(digest constraints.txt pyproject.toml "$ROOT")
[[ -f .venv/.made-from && $(<.venv/.made-from) == "$want" && -x .venv/bin/python ]] && exit 0
[[ -x .venv/bin/python ]] || uv venv -q --clear --python "$(find_python)" .venv
export VIRTUAL_ENV=$ROOT/.venv
uv pip sync -q --require-hashes constraints.txt
uv pip install -q --no-deps -e .
printf '%s' "$want" >.venv/.made-from
