# Every target sets up what it needs: a virtual environment in .venv with the versions of the lock files.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-extended test-random bench format lint type docs docs-serve dist check-codestyle lock clean

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

# Three processes: some tests wait for other processes. An idle one takes tests from the others.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal

test: .venv/.dev  ## Run the tests: at most 5 minutes on two cores
	$(PYTEST) -m "not extended" tests

test-all: test test-extended  ## Run all tests, the long ones included: about 30 minutes

# With XLA's optimisations, as users have them; tests/conftest.py turns them off. The update and exact resume run again.
OPTIMIZED := XLA_FLAGS=--xla_cpu_multi_thread_eigen=false

test-extended: .venv/.dev
	$(OPTIMIZED) $(PYTEST) -m extended --timeout 1800 tests
	$(OPTIMIZED) $(PYTEST) -m "not extended" \
		tests/algorithms/test_update.py tests/algorithms/test_family.py tests/runs/test_resume.py
	.ci/user_way.sh

MINUTES ?= 30
test-random: .venv/.dev  ## Run the property tests with fresh random examples for MINUTES=30
	end=$$(($$(date +%s) + 60 * $(MINUTES))); \
	while [ $$(date +%s) -lt $$end ]; do \
		$(PYTEST) -q -m hypothesis --timeout 1800 --hypothesis-profile=random --hypothesis-seed=$$(date +%s) tests || exit 1; \
	done

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

docs: .venv/.dev  ## Build the documentation in build/site; open index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

docs-serve: .venv/.dev  ## Show the documentation at http://127.0.0.1:8000 and rebuild it at every change
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

dist:  ## Build wheel and sdist in dist/, check them, and try the wheel in a clean environment
	.ci/dist.sh

lock:  ## Write the lock files anew from pyproject.toml
	rm -rf .lock-venv && $(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet torch==2.13.0
	.lock-venv/bin/python -m pip install --quiet ".[mujoco,box2d,report,video,peers]"
	.lock-venv/bin/python -m pip freeze --exclude softdpg | sed 's/+cpu//' > requirements.lock
	.lock-venv/bin/python -m pip install --quiet ".[all,benchmark,dev,docs]"
	.lock-venv/bin/python -m pip freeze --exclude softdpg | sed 's/+cpu//' | \
		sed -E "/^(dm[_-]control|dm-env|labmaze)==/s/$$/; python_version < '3.13'/" > requirements-dev.lock
	rm -rf .lock-venv

clean:  ## Remove the virtual environment and caches
	rm -rf .venv .lock-venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
