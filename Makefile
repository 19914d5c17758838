# make table1 [ARGS="..."] [GPU=12|13]    sets up .venv, then reproduces Table 1
# make test   [ARGS="..."] [GPU=12|13]    adds the tools of the tests, then runs the whole test suite
# GPU=12 or 13 adds what a GPU with CUDA 12 or 13 needs.

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
GPU    ?=

$(if $(filter-out 12 13,$(GPU))$(word 2,$(GPU)),$(error GPU=$(GPU): expected 12 or 13))
OTHER        := $(if $(GPU),$(if $(filter 12,$(GPU)),13,12))
VARIANT      := $(if $(GPU),-gpu$(strip $(GPU)))
REQUIREMENTS := requirements$(VARIANT).txt
STAMP        := $(VENV)/.stamp$(VARIANT)
TOOLS        := $(STAMP)-tools
BIN          := $(VENV)/bin
PIP          := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: table1 test lint setup setup-test moved requirements clean

# An environment keeps the Python that it was made with.
HAS    := $(shell $(BIN)/python -V 2>/dev/null)
WANTED := $(if $(filter command,$(origin PYTHON)),$(or $(shell $(PYTHON) -V 2>/dev/null),none))
$(if $(and $(HAS),$(filter-out clean,$(or $(MAKECMDGOALS),table1)),$(filter-out $(HAS),$(WANTED))),$(error PYTHON=$(PYTHON): $(VENV) has $(HAS), expected the same, or first make clean))

# An environment runs the code of the checkout that it was set up in: a copy sets up its own.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
$(STAMP): moved
endif

table1: $(STAMP)
	$(BIN)/python reproduce/table1.py $(ARGS)

# A file's tests stay together: they share what is made for them. What has broken down is not tried again.
test: $(TOOLS)
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0 --durations 10 --durations-min 5 $(ARGS)

lint: $(TOOLS)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check --quiet .
	$(BIN)/python -m mypy

setup: $(STAMP)

setup-test: $(TOOLS)

# Chainer comes as source only and its build imports pkg_resources: setuptools < 81 goes in first,
# and the build has to see it.
$(STAMP): requirements-build.txt $(REQUIREMENTS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || { \
	  echo "Python 3.11 to 3.14 is needed, $(PYTHON) is none: try make PYTHON=python3.12" >&2; exit 2; }
	@echo "Setting up $(VENV) from $(REQUIREMENTS)"
	@if $(BIN)/python -c '' 2>/dev/null; then $(BIN)/python -m venv $(VENV); else $(PYTHON) -m venv --clear $(VENV); fi
	@$(if $(OTHER),rm -f $(VENV)/.stamp-gpu$(OTHER)*; $(BIN)/python -m pip uninstall --quiet --yes cupy-cuda$(OTHER)x 2>/dev/null)
	@$(PIP) --require-hashes -r requirements-build.txt
	@$(PIP) --require-hashes --no-build-isolation -r $(REQUIREMENTS)
	@$(PIP) --no-deps --no-build-isolation --editable .
	@echo "$(CURDIR)" > $@

$(TOOLS): $(STAMP) requirements-test.txt
	@echo "Adding the tools of the tests from requirements-test.txt"
	@$(PIP) --require-hashes -r requirements-test.txt
	@touch $@

# Chooses the pins anew, with uv: one version for all Pythons, the hashes of all its files.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
           --generate-hashes --no-emit-index-url --no-annotate --no-header
ALWAYS  := --extra cpu --extra features --extra weights --extra cluster

requirements:
	printf 'setuptools<81\nwheel\n' | $(COMPILE) --upgrade -o requirements-build.txt -
	$(COMPILE) --upgrade pyproject.toml $(ALWAYS) -c requirements-build.txt -o requirements.txt
	$(COMPILE) --upgrade pyproject.toml $(ALWAYS) --extra gpu -c requirements.txt -o requirements-gpu12.txt
	$(COMPILE) --upgrade pyproject.toml $(ALWAYS) --extra gpu13 -c requirements.txt -o requirements-gpu13.txt
	$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*project["optional-dependencies"]["test"], sep="\n")' | \
	  $(COMPILE) --upgrade -c requirements.txt -c requirements-build.txt -o requirements-test.txt -

clean:
	rm -rf $(VENV)
