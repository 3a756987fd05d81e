# make demo and make test do all set-up themselves: they need python3 (3.11 or newer) and make.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test slow lint types bench clean

help:
	@echo "make demo   a sweep of three policies over three tasks; table and picture in demo/"
	@echo "make test   all tests at reduced size"
	@echo "make slow   the slow tests at full size (10^8 draws, 10^5 episodes)"
	@echo "make lint   lint, format, types and import contracts"
	@echo "make bench  steps per second against peers and a C limit; results in benchmarks/results/"

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: use make PYTHON=python3.12, for example"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed-demo: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cli,plot]'
	@touch $@

.venv/installed-test: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	@touch $@ .venv/installed-demo

demo: .venv/installed-demo
	$(BIN)/lifedrift sweep life_drift/drift_correction-v0 life_drift/energy_balance-v0 \
	  life_drift/long_term_stability-v0 --policy random,rule,greedy@20000 \
	  --episodes 1000000 --out demo
	$(BIN)/lifedrift plot demo --out demo/sweep.png

test: .venv/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile

slow: .venv/installed-test
	$(BIN)/python -m pytest --slow -m slow

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed-test
	$(BIN)/python benchmarks/steps_per_second.py --out benchmarks/results

clean:
	rm -rf .venv demo
