# make demo      sets everything up and refines examples/softmax.cu
# make demo-daemon  starts the daemon on examples/, shows its page's address and waits for its first winner
# make test      sets everything up and passes the whole test suite
# make test-gpu  the tests that need an NVIDIA GPU (says so when there is none)
# make check     ruff and mypy
# make coverage  the same tests, and which lines they run (at least 85 %)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
CLANG := $(firstword $(foreach v,-22 -21 -20 -19 -18 -17 -16 -15 -14,$(shell command -v clang++$(v))) $(shell command -v clang++))
BUDGET ?= 120s
SETUP ?= setup
PY ?= $(BIN)/python

.PHONY: demo demo-daemon coverage test test-gpu check setup compiler clean

demo: setup
	mkdir -p .fsr
	$(BIN)/fsr refine examples/softmax.cu --budget $(BUDGET) -o .fsr/softmax.fsr.cu

DEMO_HOME := $(CURDIR)/.fsr/daemon
DEMO_RUN := budget = "2m"\nevaluations = 8
DEMO_DAEMON := FSR_HOME=$(DEMO_HOME) $(BIN)/fsr daemon

demo-daemon: setup
	@mkdir -p $(DEMO_HOME)
	@printf '[run]\n$(DEMO_RUN)\n[polite]\nbattery = true\nnice = 0\nidle_disk = false\n' > $(DEMO_HOME)/daemon.toml
	@touch examples/softmax.cu  # what was saved last goes first
	@$(DEMO_DAEMON) start examples
	@echo "waiting for the first winner in examples/.fsr/, a minute or two; the page shows how it goes"
	@for i in $$(seq 180); do ls examples/.fsr/*.fsr.cu 2> /dev/null && break; sleep 1; done
	@$(DEMO_DAEMON) status
	@ls examples/.fsr/*.fsr.cu > /dev/null 2>&1 || { echo "no winner yet; what happened:"; $(DEMO_DAEMON) logs | tail -n 5; }
	@echo "it goes on with the other examples; to end it: $(DEMO_DAEMON) stop"

# The tests start hundreds of processes: each would compile all that it imports where the environment forbids to keep it
test coverage: export PYTHONDONTWRITEBYTECODE =

test: setup check
	$(BIN)/python -m pytest -n 3 --dist loadgroup tests

# The same tests, with every line that runs counted, which takes its time
coverage: setup
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report= tests
	rm -f .coverage.*  # what processes that tests killed left half written
	$(BIN)/python -m coverage report --skip-covered --sort=cover --fail-under=85

# On a machine without network that has the packages already: make test-gpu SETUP= PY=python3
test-gpu: $(SETUP)
	$(PY) -m pytest tests/gpu -m gpu -rs

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: compiler $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[daemon,dev,nvrtc,ray,llm,mcp]'
	if command -v nvidia-smi > /dev/null; then $(BIN)/python -m pip install --quiet pycuda || \
	  echo "note: PyCUDA was not installed, nothing runs on the GPU here; see $(BIN)/fsr doctor"; fi
	touch $(STAMP)

# The host device needs a C++ compiler; clang also records array bounds and lines more exactly than g++.
compiler:
ifeq ($(CLANG),)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  apt-get update -qq && { apt-get install -y -qq clang-22 || apt-get install -y -qq clang; } > /dev/null; \
	elif command -v g++ > /dev/null; then \
	  echo "note: clang++ was not found, g++ is used; for clang type: sudo apt-get install clang-22"; \
	else \
	  echo "a C++ compiler is needed; type: sudo apt-get install clang-22"; exit 4; \
	fi
endif

clean:
	rm -rf $(VENV) .fsr .mypy_cache .ruff_cache .pytest_cache
