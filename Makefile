# Everything here needs only python3 (3.11 or later, with venv), pip and make. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
AUDIT := .venv-audit
BIN := $(VENV)/bin
# -qq: silent unless something fails
PIP_INSTALL = $(BIN)/python -m pip install -qq -c constraints.txt
WORKERS ?= 2
SOURCES := src tests $(wildcard benchmarks examples tools)
# how many hostile calls and how many kills, and from which seed
N ?=
SEED ?= 0
BENCHMARKS := $(filter-out benchmarks/_%,$(sort $(wildcard benchmarks/*.py)))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# what runs here is what .venv holds, whatever the caller's environment adds
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# under -j two pips must not write into one .venv
.NOTPARALLEL:
.PHONY: help setup demo serve test test-all test-ray test-lowest test-portable fuzz kills torture flat audit lint format docs book bench wheel release-check clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.has-dev ## set up .venv for everything but the benchmarks
	@echo "ready: $(BIN)/manyarms --help"

demo: $(VENV)/.has-experiments ## show the main jobs on 100,000 items: tables, pictures, out/demo/report.html
	@$(BIN)/manyarms demo --out out/demo

serve: $(VENV)/.has-service ## serve a made-up shop with simulated visitors: the dashboard at http://127.0.0.1:8080/; PORT=9000
	@$(BIN)/manyarms serve --demo --port $(or $(PORT),8080)

# one thread per process: two pools of threads on two cores cost more than they give
test test-all test-ray test-lowest fuzz kills torture flat bench: export OMP_NUM_THREADS := 1
test test-all test-ray test-lowest fuzz kills torture flat bench: export OPENBLAS_NUM_THREADS := 1
test test-all test-ray test-lowest fuzz kills torture flat bench: export MKL_NUM_THREADS := 1

# a later -m takes the place of an earlier one: PYTEST_ARGS='-m slow' runs the others alone
test: lint ## lint, then all tests but the slow ones; PYTEST_ARGS='-k storage' for some
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m 'not slow' $(PYTEST_ARGS)

# hostile calls and loads, kills and an hour's work are programs of their own: slow tests run a short part of each
test-all: lint $(VENV)/.has-ray ## every test, also with the lowest supported dependencies, hard use (fuzz, kills, flat), the audit and the release's files
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --ignore tests/engine/on_ray $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory test-ray fuzz kills flat test-lowest audit release-check

# an old dependency may use what a newer one of its own has deprecated: that is no fault of ours
test-lowest: $(LOWEST)/.has-test ## every test with the lowest supported dependencies
	@$(LOWEST)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal -W ignore::DeprecationWarning $(PYTEST_ARGS)

# Ray is 700 MB, so that `make test` does without; one process, since a second one would join the first one's runtime
test-ray: $(VENV)/.has-dev $(VENV)/.has-ray ## the tests that start a Ray runtime on this machine
	@$(BIN)/python -m pytest -q tests/engine/on_ray $(PYTEST_ARGS)

test-portable: $(VENV)/.has-dev ## tests as on other processors, with threads, on a busy machine; PORTABLE_ARGS=--all, '--only plain'
	@$(BIN)/python tools/portable.py --workers $(WORKERS) $(PORTABLE_ARGS)

fuzz: $(VENV)/.has-dev ## hostile calls over the whole public interface, then hostile folders and logs: N=100000 SEED=0
	@cd tests && ../$(BIN)/python -m hard_use.fuzz --calls $(or $(N),100000) --seed $(SEED) --workers $(WORKERS)
	@cd tests && ../$(BIN)/python -m hard_use.loads --calls 5000 --seed $(SEED)

kills: $(VENV)/.has-dev ## kill -9 at random moments: N=100 SEED=0
	@cd tests && ../$(BIN)/python -W ignore -m hard_use.kills --kills $(or $(N),100) --seed $(SEED)

# half an hour for each store and program at most; PostgreSQL is left out where it is not installed
torture: $(VENV)/.has-dev ## kill -9 in live stores and of servers, SQLite and PostgreSQL, then hostile requests: N=1000 SEED=0
	@cd tests && ../$(BIN)/python -W ignore -m live.torture --store all --kills $(or $(N),1000) --seed $(SEED) --seconds 1800
	@cd tests && ../$(BIN)/python -W ignore -m service.killing --store all --kills $(or $(N),1000) --seed $(SEED) --seconds 1800
	@cd tests && ../$(BIN)/python -W ignore -m service.fuzzing --requests 100000 --seed $(SEED)

flat: $(VENV)/.has-dev ## deciding, learning, evaluating and saving for long: memory, files and threads do not grow
	@cd tests && ../$(BIN)/python -m hard_use.flat

audit: $(VENV)/.has-dev ## licences, and known advisories where a service can be reached, of what is installed; out/licences.md
	@$(BIN)/python tools/audit.py --environment $(AUDIT) --out out/licences.md

lint: $(VENV)/.has-dev ## style (ruff), types (mypy --strict) and the layers' import contracts
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES) || { echo "make format puts this right" >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }
	@echo "lint: style, types and import contracts are fine"

format: $(VENV)/.has-dev ## put the code into the project's style
	@$(BIN)/ruff check --quiet --fix --exit-zero $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

# strict: a link that leads nowhere fails; so does anything that a reader's browser would fetch from elsewhere
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/.has-docs ## build the manual: out/site/index.html
	@$(BIN)/mkdocs build --strict > $(VENV)/mkdocs.log 2>&1 || { cat $(VENV)/mkdocs.log; exit 1; }
	@$(BIN)/python tools/site/check.py out/site

book: $(VENV)/.has-experiments ## make the book of results, docs/reproduction.md, from the records in results/
	@$(BIN)/python -m manyarms_thesis.book

bench: $(VENV)/.has-experiments $(VENV)/.has-bench ## run every benchmark; each ends with one line of JSON
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

release-check: $(VENV)/.has-dev ## is this a release? version, changelog, wheel, sdist, metadata, an empty environment
	@$(BIN)/python tools/release_check.py

wheel: $(VENV)/.created ## build dist/manyarms-*.whl
	@rm -rf build dist
	@$(BIN)/python -m pip wheel -qq --no-deps --wheel-dir dist .
	@rm -rf build
	@ls dist/*.whl

clean: ## remove what was built, the caches and out/, but not .venv
	@rm -rf build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove the virtual environments too
	@rm -rf $(VENV) $(LOWEST) $(AUDIT)

# ---- the virtual environment: a stamp says what it holds, and is out of date when pyproject.toml changes

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "manyarms needs Python 3.11 or later, and $(PYTHON) is not: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2> /dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: its venv or ensurepip module is missing." >&2; \
	  echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(LOWEST)/.has-test: pyproject.toml constraints-lowest.txt
	@echo "installing the lowest supported dependencies into $(LOWEST) (a minute or so, the first time)"
	@$(LOWEST)/bin/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip install -qq -c constraints-lowest.txt -e '.[test,frames]'
	@touch $@

$(VENV)/.has-experiments: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing into $(VENV) (a minute or so, the first time)"
	@$(PIP_INSTALL) -e '.[experiments,torch]'
	@touch $@

$(VENV)/.has-service: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing the decision service into $(VENV) (a minute or so, the first time)"
	@$(PIP_INSTALL) -e '.[service]'
	@touch $@

$(VENV)/.has-dev: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing into $(VENV), with the tools for tests and lint (a minute or so, the first time)"
	@$(PIP_INSTALL) -e '.[test,lint]'
	@touch $(VENV)/.has-experiments $(VENV)/.has-service $@

$(VENV)/.has-docs: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing what the manual is built with into $(VENV) (a minute or so, the first time)"
	@$(PIP_INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/.has-ray: $(VENV)/.has-dev
	@echo "installing Ray into $(VENV) (a minute or so, the first time)"
	@$(PIP_INSTALL) -e '.[ray]'
	@touch $@

$(VENV)/.has-bench: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing the benchmarks' neighbours into $(VENV) (a minute or so, the first time)"
	@$(PIP_INSTALL) -e '.[bench]' || { \
	  echo "contextualbandits is compiled as it is installed: it needs a C++ compiler and Python's headers" >&2; \
	  echo "(Debian and Ubuntu: apt-get install g++ python3-dev)." >&2; exit 1; }
	@touch $@
