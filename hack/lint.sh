#!/usr/bin/env bash
# lint.sh: style, types, imports between the rooms, generated files, shell scripts. All are run; any failure fails.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
PATH=$ROOT/.venv/bin:$PATH
failed=()

check() { # NAME COMMAND...
  local begin=$SECONDS name=$1 output
  shift
  if output=$("$@" 2>&1); then
    say "    $name: ok, $((SECONDS - begin)) s"
  else
    printf '%s\n' "$output" >&2
    say "    $name: FAILED"
    failed+=("$name")
  fi
}

scripts() { # every shell script of the repository, by its first line
  git ls-files -co --exclude-standard | while read -r file; do
    if [[ -f $file ]] && head -n 1 "$file" | grep -qE '^#!.*(ba)?sh$|^# shellcheck shell='; then echo "$file"; fi
  done
}

check "ruff check" ruff check -q .
check "ruff format" ruff format -q --check .
check "mypy" mypy
check "import-linter" lint-imports
check "CRDs are what the models say" python -m realcli.api.crd --check
check "JSON Schemas are what the models say" python -m realcli.benchmark.schemas --check
check "JSON Schema of the summary is what the model says" python -m realcli_judge.schemas --check
check "capability matrix is what the results say" python -m realcli.checks.capabilities --check
check "page of the known answers is what they say" python -m realcli.known.matrix --check
check "page of outcomes is what the tables say" python -m realcli_operator.outcomes_page --check
check "CRDs of the chart" diff -r -x '*.md' crds charts/realcli/crds-source
if command -v shellcheck >/dev/null; then
  mapfile -t shell < <(scripts | grep -vE '^(benchmark|tests/support/scripts)/') # what a task's image holds is the task's own
  check "shellcheck" shellcheck "${shell[@]}"
fi

((${#failed[@]} == 0)) || die "lint: ${failed[*]}"
