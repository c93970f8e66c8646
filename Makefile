# make demo   train sparse and dense on real data, sweep density and format, print the verdict and the report's path
# make test   every test, by four workers at most, also those that drive a real Chromium where there is one
# make exhaustive  every case of every grid and the longest tests, which `make test` leaves out
# make coverage    which lines and branches the tests of `make test` run
# make mutants     put deliberate errors into copies of the code and check that tests find them
# make bounds kernels on hostile inputs in a debug build, which checks every access of an array (kernels/bounds.py)
# make lab    JupyterLab on the notebooks
# make peers  TensorFlow and PyTorch beside the tests, which then run those of the bridges too
# make docs   the documentation, into build/docs/index.html, with its notebooks executed; docs-quick executes none
# make lint   ruff: lint and format; mypy: types

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Most of the thousands of files of packages are never imported: Python compiles those that are when they are.
UNCOMPILED := $(INSTALL) --no-compile
# What it compiles must be kept: else each of the hundred processes that tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
INPUTS := pyproject.toml constraints.txt

# Compiled kernels and emulated CUDA sources of the tests, under a hash of their source, shared by all checkouts: to
# compile them takes a third of a run. The folder may be removed at any time.
COMPILED := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sparse-workbench/compiled
test exhaustive coverage mutants: export NUMBA_CACHE_DIR ?= $(COMPILED)

.PHONY: demo test exhaustive coverage mutants peers bounds lab docs docs-quick lint clean

demo: $(VENV)/core
	$(BIN)/workbench demo

# A test that ends its process ends the run: pytest-xdist would wait for ever for the rest of that file.
test: $(VENV)/dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0

exhaustive: $(VENV)/dev
	$(BIN)/python -m pytest --exhaustive --numprocesses auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0

coverage: $(VENV)/dev
	$(BIN)/python -m pytest --cov --cov-branch --cov-report=term:skip-covered --numprocesses auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0

mutants: $(VENV)/dev
	$(BIN)/python -m tests.mutants

peers: $(VENV)/peers

bounds: $(VENV)/dev
	$(BIN)/python -m pytest --bounds --numprocesses auto tests/kernels/test_kernels.py -k "same_bits and plain"

lab: $(VENV)/lab
	$(BIN)/workbench lab

docs: $(VENV)/docs
	WORKBENCH_DOCS_EXECUTE=1 $(BIN)/python -m sphinx -W --keep-going -b html docs build/docs

docs-quick: $(VENV)/docs
	$(BIN)/python -m sphinx -j auto -W --keep-going -q -b html docs build/docs

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build *.egg-info runs

# Debian and Ubuntu have venv in a package of its own: what a failed call leaves must not be taken for an environment.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else "Sparse Workbench needs Python 3.11 or newer; this is %d.%d. Name another one: make PYTHON=python3.12 ..." % v)'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/core: $(BIN)/python $(INPUTS)
	$(INSTALL) --editable .
	@touch $@

$(VENV)/lab: $(BIN)/python $(INPUTS)
	$(INSTALL) --editable '.[lab]'
	@touch $@

$(VENV)/dev: $(BIN)/python $(INPUTS)
	$(UNCOMPILED) --editable '.[lab,dev]'
	@touch $@ $(VENV)/core $(VENV)/lab

$(VENV)/docs: $(VENV)/lab
	$(UNCOMPILED) --editable '.[lab,docs]'
	@touch $@

# Imported here, the frameworks' thousands of files are compiled once: else each worker of the tests compiles them all.
$(VENV)/peers: $(VENV)/dev
	$(UNCOMPILED) --editable '.[lab,dev,peers]'
	$(BIN)/python -c 'from importlib import import_module, util; [import_module(name) for name in ("distributed", "torch", "tensorflow", "keras") if util.find_spec(name)]'
	@touch $@
