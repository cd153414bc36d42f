# Every target sets up what it needs: Python >= 3.11, make and a package index are enough.
# ARGS are handed on, as in: make demo ARGS=--no-serve, make test ARGS="tests/warehouse -x".

PYTHON ?= python3
ARGS ?=
VENV := .venv

.DEFAULT_GOAL := help
.PHONY: help demo test lint lock bench screenshots clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.runtime-installed ## Make the demo organisation, run the whole way and open the pages (--no-serve: don't)
	$(VENV)/bin/inferledger demo $(ARGS)

test: $(VENV)/.dev-installed ## Run the tests
	$(VENV)/bin/pytest -n 2 --dist loadfile $(ARGS)

lint: $(VENV)/.dev-installed ## Check style, formatting and types
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

# The locks keep the versions they have where those still fit; ARGS=--upgrade takes the newest.
COMPILE := $(VENV)/bin/uv pip compile --generate-hashes --no-emit-index-url --universal --python-version 3.11

lock: $(VENV)/.dev-installed ## Write both locks anew from pyproject.toml
	$(COMPILE) $(ARGS) --quiet pyproject.toml -o requirements.lock
	$(COMPILE) $(ARGS) --quiet --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

bench: $(VENV)/.dev-installed ## Run the benchmarks, in under five minutes by default
	$(VENV)/bin/python -m bench $(ARGS)

screenshots: $(VENV)/.dev-installed ## Take the pictures that the documentation shows
	$(VENV)/bin/python -m demo.screenshots $(ARGS)

clean: ## Remove the demo's files, build products and caches, but neither data/ nor the environment
	rm -rf .demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +

# --- The environment ---
#
# A stamp is younger than the lock it was installed from. pip leaves a half-installed package behind when it is killed,
# and takes it for a whole one the next time; so an installation that did not end is begun again from nothing. Its mark
# holds the number of the process that installs, so that a second make waits for the first.

define install
	@mark=$(VENV)/.installing; \
	installing() { test -s $$mark && kill -0 "$$(cat $$mark)" 2>/dev/null; }; \
	if installing; then \
		echo "Process $$(cat $$mark) is installing; waiting for it (if it is no make, remove $$mark) ..."; \
		while installing; do sleep 1; done; \
	fi; \
	if test -e $$mark || ! $(VENV)/bin/python -m pip --version >/dev/null 2>&1; then \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
			echo "InferLedger needs Python 3.11 or newer, which $(PYTHON) is not." >&2; \
			echo "Name one that is: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
			exit 1; \
		}; \
		$(PYTHON) -m venv --clear $(VENV) || exit 1; \
	fi; \
	echo $$$$ >$$mark && \
	$(VENV)/bin/python -m pip install --require-hashes -r $< && \
	rm $$mark
	$(VENV)/bin/python -m pip install --no-deps --no-build-isolation -e .
endef

$(VENV)/.runtime-installed: requirements.lock pyproject.toml
	$(install)
	@touch $@

# The development lock is constrained by the other one and holds all of it.
$(VENV)/.dev-installed: requirements-dev.lock pyproject.toml
	$(install)
	@touch $@ $(VENV)/.runtime-installed
