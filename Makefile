# Every task of this repository. Expensive things are cached in $REALCLI_CACHE (default ~/.cache/realcli).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python

##@ Using it
help: ## List every target
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup venv ## One sweep for real on a local kind cluster, from kubectl apply to a report
	@hack/demo/demo

##@ Developing
setup: ## Install the Debian packages that are missing
	@hack/setup.sh

venv: ## Make or update .venv from constraints.txt
	@hack/venv.sh

format: venv ## Format and fix what ruff can
	@.venv/bin/ruff check -q --fix . && .venv/bin/ruff format -q .

generate: venv ## Write CRDs, the chart's copy, JSON Schemas, capability matrix, known answers and outcomes
	@$(PY) -m realcli.benchmark.schemas --write && $(PY) -m realcli_judge.schemas --write && $(PY) -m realcli.checks.capabilities --write
	@$(PY) -m realcli.known.matrix --write && $(PY) -m realcli_operator.outcomes_page --write
	@$(PY) -m realcli.api.crd --write && mkdir -p charts/realcli/crds-source && cp crds/*.yaml charts/realcli/crds-source/

lint: venv ## Style, types, imports, generated files, shell
	@hack/lint.sh

##@ Testing
test-unit: venv ## Unit tests on every core (about a minute)
	@. hack/lib.sh && unit_tests -m "not slow" --durations=5 --durations-min=1

test-integration: venv ## Tests on a real API server and object store
	@hack/cluster/build-binaries apiserver weed
	@REALCLI_BIN=$${REALCLI_CACHE:-$$HOME/.cache/realcli}/bin .venv/bin/pytest -m "not slow" tests/integration

test-e2e: venv images ## Tests on the kind cluster
	@. hack/lib.sh && docker_ready && REALCLI_BIN=$$BIN .venv/bin/pytest -m "not slow" tests/e2e

test: ## Everything a change must pass, from nothing; prints the time of each part
	@hack/test.sh

test-full: ## All of it, the long tests too
	@hack/test.sh --full

chaos: venv ## Every fault at length, drawn by a seed (CHAOS="--seed 7 --minutes 5 --without-kind"); writes docs/chaos.md
	@hack/cluster/build-binaries apiserver weed
	@. hack/lib.sh && REALCLI_BIN=$$BIN $(PY) hack/chaos/run.py $(CHAOS) --write docs/chaos.md

bench: venv ## Measure gateway, ledger and command record; writes docs/benchmarks.md
	@$(PY) bench/run.py

bench-operator: venv ## The operator at 19,998 trials on real servers and kwok nodes, beside plain Jobs (about an hour)
	@hack/cluster/build-binaries apiserver kube-scheduler kwok
	@$(PY) -m bench.operator $(OPTIONS)

mutation: venv ## Small errors in the operators of hard checks, each noticed by a test; writes docs/mutation.md
	@$(PY) hack/mutation.py --write docs/mutation.md

##@ Cluster
engine: ## A Docker engine: the one that answers, else one of our own
	@hack/cluster/engine up

cluster: engine ## The kind cluster (again = quick)
	@hack/cluster/up

images: venv cluster ## Build the images and load what the node lacks
	@hack/cluster/build-binaries weed
	@. hack/lib.sh && docker_ready && $(PY) hack/images.py --load >/dev/null

down: ## Delete the kind cluster
	@hack/cluster/down

stop: down ## Delete the cluster and stop the engine we started
	@hack/cluster/engine down

clean: ## Remove what was made in the clone; the cache stays
	@rm -rf .venv out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*##.*/\1/p' Makefile)
