# The only list of commands. The first call makes the environment; later ones find it ready.

# Python that makes the environment
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Where the environment lies
VENV ?= .venv
# Package index to use instead of pip's own
PIP_INDEX ?=
# Address of an index with CPU builds of torch; they are 2 GB smaller than the default
TORCH_INDEX ?=
# Further arguments of the command a target runs
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q -c constraints.txt \
	$(if $(PIP_INDEX),--index-url $(PIP_INDEX)) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
PYTEST := $(BIN)/python -m pytest
CODE := engine dashboard scripts tests

.DEFAULT_GOAL := help
.PHONY: help setup demo app test test-slow bench bench-peers check static fmt fmt-check lint types \
	imports docs pin gpu-check clean

# List the targets
help:
	@awk '/^# /{text=substr($$0,3); next} /^[a-z-]+:/{split($$1,name,":"); \
	if (text) printf "  make %-12s %s\n", name[1], text} {text=""}' $(MAKEFILE_LIST)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python is missing; install Python 3.11."; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(not (3, 11) <= v < (3, 14))' || \
	{ echo "$(PYTHON) is not Python 3.11 to 3.13; name another with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the pinned packages into $(VENV) (some minutes the first time)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the pinned packages and pytest into $(VENV) (some minutes the first time)"
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the pinned packages and the tools into $(VENV) (some minutes the first time)"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.demo

# Make the environment with every tool
setup: $(VENV)/.dev

# Prepare the shipped demo and open the dashboard on localhost
demo: $(VENV)/.demo
	@$(BIN)/headwater demo $(ARGS)

# Open the dashboard on what is there
app: $(VENV)/.demo
	@$(BIN)/headwater dashboard $(ARGS)

# Run the tests: no network, no browser, no text packages
test: $(VENV)/.test
	@$(PYTEST) -m "not slow and not gpu" -n auto --maxprocesses 4 --dist loadfile $(ARGS)

# Run the slow tests, the browser test among them (needs Chromium)
test-slow: $(VENV)/.dev
	@$(PYTEST) -m "slow and not gpu" $(ARGS)

# Measure speed: training, indexing, pages, attribution, heads
bench: $(VENV)/.demo
	@$(BIN)/python -m scripts.bench $(ARGS)

# Install Kronfluence and Bergson for the benchmarks, without the torch they would pull
bench-peers: $(VENV)/.demo
	@$(PIP) -e '.[bench]'
	@$(PIP) --no-deps kronfluence==1.0.1 bergson==2.5.1
	@$(BIN)/python -c "import shutil, sysconfig; \
	shutil.rmtree(sysconfig.get_path('purelib') + '/tests', ignore_errors=True)" # Kronfluence's own

# Everything that must pass before a change goes in
check: static test

# All checks that run no test
static: fmt-check lint types imports

# Format the code and mend what the linter can
fmt: $(VENV)/.dev
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

# Check the format
fmt-check: $(VENV)/.dev
	@$(BIN)/ruff format --check $(CODE)

# Lint
lint: $(VENV)/.dev
	@$(BIN)/ruff check $(CODE)

# Check the types
types: $(VENV)/.dev
	@$(BIN)/basedpyright --pythonpath $(BIN)/python

# Check that imports go one way
imports: $(VENV)/.dev
	@$(BIN)/lint-imports

# Write docs/DATA.md from the contract
docs: $(VENV)/.demo
	@$(BIN)/python -m scripts.make_data_page

# Pin what the environment holds now
pin: $(VENV)/.dev
	@$(BIN)/python -m scripts.pin

# Run what needs a CUDA device: its tests, then training speed at the paper's largest shape
gpu-check: $(VENV)/.test
	@$(PYTEST) -m gpu $(ARGS)
	@$(BIN)/python -m scripts.bench training --shape xl --device cuda --rounds 3

# Remove the environment; caches and runs stay
clean:
	rm -rf $(VENV)
