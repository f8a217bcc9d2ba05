# Two commands do everything on a machine with Python 3.11+, make and pip: make demo, make test.
# Each installs what it needs into .venv, once: the stamps below know what is there.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: install demo test check bench bench-quick clean help

help:            ## what there is to make
	@grep -E '^[a-z-]+: .*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

install: .venv/.core            ## .venv with the plaudit command
demo: .venv/.local              ## a real model judges real answers, then the speed table
	$(BIN)/python examples/demo.py
test: .venv/.dev                ## the whole test suite
	$(BIN)/python -m pytest
check: .venv/.dev               ## ruff, mypy --strict, layers and sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py
bench: .venv/.bench             ## every claim of the README, measured (half an hour)
	$(BIN)/python benchmarks/all.py
bench-quick: .venv/.bench       ## the same in a minute or two: that it works, not what it says
	$(BIN)/python benchmarks/all.py --quick
clean:           ## forget the environment
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -m venv .venv
.venv/.core: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e .
	@touch $@
.venv/.local: .venv/.core
	$(PIP) install -c constraints.txt -e ".[local]"
	@touch $@
.venv/.dev: .venv/.core
	$(PIP) install -c constraints.txt -e ".[dev]"
	@touch $@ .venv/.local
.venv/.bench: .venv/.core
	$(PIP) install -c constraints.txt -e ".[bench]"
	@touch $@
