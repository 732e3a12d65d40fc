# Every target does its own set-up: git, make and Python >= 3.11 with venv are all a machine needs.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lab bench paper lint constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/with-plot,io ## the main job on real data; pictures, table and result go to out/
	$(BIN)/python examples/demo.py --out out

test: $(VENV)/with-dev ## unit and browser tests, then every notebook
	$(BIN)/pytest
	$(BIN)/pytest --nbval-lax --nbval-current-env --nbval-cell-timeout=300 notebooks

lab: $(VENV)/with-lab,plot,io ## open JupyterLab on the first tutorial (ARGS="..." goes to jupyter)
	$(BIN)/jupyter lab $(ARGS) notebooks/01_quickstart.ipynb

bench: $(VENV)/with-plot,io ## print the tables of all benchmarks
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

paper: $(VENV)/with-plot,baselines ## rerun the paper's experiments, up to an hour (set NMD_LAB_DATA), and write docs/paper.md
	$(BIN)/python -m benchmarks.paper $(ARGS)

lint: $(VENV)/with-dev ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

constraints: ## pin the newest compatible versions in constraints.txt
	rm -rf build/constraints
	$(PYTHON) -m venv build/constraints
	build/constraints/bin/pip install --quiet -e ".[dev]"
	build/constraints/bin/pip list --format=freeze --exclude-editable \
	    --exclude pip --exclude setuptools > build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/constraints

clean: ## remove everything that make has made
	rm -rf $(VENV) out build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The virtual environment, and a stamp in it for each set of extras: ".venv/with-plot,io" says that
# ".[plot,io]" is installed as pyproject.toml and constraints.txt ask for.

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "nmd_lab needs Python 3.11 or newer: make PYTHON=/path/to/python ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/with-%: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing nmd_lab[$*] into $(VENV): this takes a minute or two, once."
	@$(BIN)/pip install --quiet -c constraints.txt -e ".[$*]"
	@touch $@
