# Everything runs in .venv, made from Python 3.11 or newer. Another interpreter: make PYTHON=python3.12 test
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
NOTEBOOK_STAMP := $(VENV)/.installed-notebook
OLDEST := .venv-oldest
# Each worker keeps to one half of the tests until it has none left, so that hardly a kernel is compiled by both.
# Tests start processes: without files of bytecode each of them compiles all sources again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all soak test-oldest lint package bench papers examples docs docs-quick notebooks guide readme-table pictures clean clean-kernels

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP)  ## .venv with headwater and its tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[plot,test,lint,package]'
	@touch $@

demo: $(STAMP)  ## a stream, learned while you watch (STORY=mixture, odd-rows, topics or regimes)
	$(PY) -m headwater.demo $(STORY)

test: $(STAMP)  ## the fast tests and the docstring examples
	$(PYTEST)

# An empty -m replaces the default selection of pyproject.toml.
test-all: $(STAMP)  ## every test, slow ones and those that read data too
	$(PYTEST) -m ""

soak: $(STAMP)  ## a live model for an hour: drift, bad events, kills of brokers and of the process
	HEADWATER_SOAK_SECONDS=3600 $(PY) -m pytest -m "" -n 0 tests/live/test_live_soak.py

# The oldest releases have wheels for Python 3.11, not for the newest Python.
test-oldest: $(OLDEST)/.installed  ## the fast tests with the oldest dependencies that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal

$(OLDEST)/.installed: pyproject.toml .ci/lower_bounds.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) .ci/lower_bounds.py plot test > $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(OLDEST)/pins.txt --editable .
	@touch $@

lint: $(STAMP)  ## style, formatting, types, import layers
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

package: $(STAMP)  ## the sdist and the wheel in dist/, checked; then the wheel in a clean environment
	rm -rf dist
	$(PY) -m build --quiet
	$(PY) -m twine check --strict dist/*
	$(PY) -m pytest -m "" -n 0 tests/test_package.py

bench: $(STAMP)  ## peers side by side in one run
	$(PY) -m benchmarks

papers: $(STAMP)  ## figures and tables of the papers, made again (about an hour and a half; data sets from HEADWATER_DATA)
	$(PY) -m pages papers

examples: $(STAMP)  ## real data, with tables and pictures (about 20 minutes; data sets from HEADWATER_DATA)
	$(PY) -m pages examples

$(DOCS_STAMP): $(STAMP)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# The site needs no network. Warnings are errors; all of them are listed before the build fails.
docs: $(DOCS_STAMP)  ## the documentation site, into build/docs/index.html (the gallery runs: some minutes)
	$(PY) -m sphinx -W --keep-going --quiet -b html docs build/docs

docs-quick: $(DOCS_STAMP)  ## the site without running the gallery
	$(PY) -m sphinx -W --keep-going --quiet -b html -D plot_gallery=0 docs build/docs

guide: $(STAMP)  ## what code and commands on the pages say, run again
	$(PY) -m examples.guide

$(NOTEBOOK_STAMP): $(STAMP)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[notebook]'
	@touch $@

notebooks: $(NOTEBOOK_STAMP)  ## the notebooks of examples/notebooks, run from beginning to end
	$(PY) -m pytest -m notebook -n 0 tests/pages/test_notebooks.py

readme-table: $(STAMP)  ## the table of the README, measured again (some minutes)
	$(PY) -m benchmarks.readme

pictures: $(STAMP)  ## the picture of the README, made by the demo
	$(PY) -m headwater.demo --picture docs/demo.png

clean: clean-kernels  ## remove all that make has made
	rm -rf $(VENV) $(OLDEST) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests benchmarks pages papers examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

clean-kernels:  ## forget the compiled kernels
	find src \( -name '*.nbi' -o -name '*.nbc' \) -type f -delete
