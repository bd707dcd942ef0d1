# Every target sets up what it needs: a virtual environment in .venv with the versions of the lock files.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-optimized bench format lint type docs check-codestyle lock clean

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# torch comes first and pinned, so that no other package pulls in a different build of it.
.venv/.runtime: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

.venv/.dev: requirements-dev.lock .venv/.runtime
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock
	touch $@

demo: .venv/.runtime  ## Race Soft TD3 against SAC on MountainCar with discrete rewards; a table and pictures in 5 minutes
	$(BIN)/softdpg demo

# Four at a time, as some of them wait for most of theirs; one that is idle takes tests from the others.
test: .venv/.dev  ## Run the test suite (about 15 minutes on two slow cores the first time, then less)
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not slow" tests

# As users have it; tests/conftest.py has XLA compile quickly instead.
OPTIMIZED := XLA_FLAGS=--xla_cpu_multi_thread_eigen=false

test-slow: .venv/.dev  ## Run the long learning tests
	$(OPTIMIZED) $(BIN)/python -m pytest -n 2 -m slow --timeout 3600 tests

test-optimized: .venv/.dev  ## Run the tests of the update and of exact resume with XLA's optimisations
	$(OPTIMIZED) $(BIN)/python -m pytest -n 2 -m "not slow" \
		tests/algorithms/test_update.py tests/algorithms/test_family.py tests/runs/test_resume.py

bench: .venv/.dev  ## Measure throughput and memory beside SBX and SB3, checkpoints, environment wrappers, exported policies
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/checkpoint.py
	$(BIN)/python benchmarks/envs.py
	$(BIN)/python benchmarks/export_latency.py

format: .venv/.dev  ## Sort imports and format
	$(BIN)/ruff check --fix-only --exit-zero softdpg tests benchmarks examples
	$(BIN)/ruff format softdpg tests benchmarks examples

lint: .venv/.dev  ## Check style, and that imports between folders go one way
	$(BIN)/ruff check softdpg tests benchmarks examples
	$(BIN)/ruff format --check softdpg tests benchmarks examples
	$(BIN)/lint-imports --no-cache

type: .venv/.dev  ## Check types
	$(BIN)/mypy

docs: .venv/.dev  ## Build the documentation in build/site, without network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

lock:  ## Write the lock files anew from pyproject.toml
	rm -rf .lock-venv && $(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet torch==2.13.0
	.lock-venv/bin/python -m pip install --quiet ".[mujoco,box2d,report,video,peers]"
	.lock-venv/bin/python -m pip freeze --exclude softdpg | sed 's/+cpu//' > requirements.lock
	.lock-venv/bin/python -m pip install --quiet ".[all,dev,docs]"
	.lock-venv/bin/python -m pip freeze --exclude softdpg | sed 's/+cpu//' > requirements-dev.lock
	rm -rf .lock-venv

clean:  ## Remove the virtual environment and caches
	rm -rf .venv .lock-venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache
