# Two commands do everything: `make run` (the benchmark, ends with a verdict) and `make test`.
# Everything lives in .venv (the environment), .espbench (services, jars, data) and results.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check unit format lock clean distclean help

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

run: .venv/ready ## run the default benchmark on embedded services and print the verdict
	@$(BIN)/espbench run $(ARGS)

test: .venv/ready ## pass the checks and all tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/pytest $(ARGS)

check: test ## the same: linter, formatter, types, tests

unit: .venv/ready ## only the tests that need no server (seconds)
	@$(BIN)/pytest -m "not integration" $(ARGS)

format: .venv/ready ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# An environment that was made elsewhere (the checkout was moved) is made anew.
HERE := $(shell [ "$$(cat .venv/ready 2>/dev/null)" = "$$(pwd -P)" ] || rm -f .venv/ready)

# Locked: the same versions everywhere, each checked by its hash.
.venv/ready: pyproject.toml requirements.lock tools/environment.py
	@$(PYTHON) tools/environment.py

lock: .venv/ready ## choose the newest allowed versions anew and write requirements.lock
	@$(PYTHON) tools/environment.py --lock

clean: ## stop the services and remove all that was set up; results stay
	@if [ -d .espbench/services ]; then $(BIN)/espbench down --quiet || echo "servers may still run: see .espbench/services/*/*.pid" && [ -z "$$(ls .espbench/services/*/*.pid 2>/dev/null)" ]; fi
	@rm -rf .venv .espbench .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -d results ]; then echo "kept: results ($$(du -sh results | cut -f1)); \`make distclean\` removes them too"; fi

distclean: ## clean, and remove the results as well
	@rm -rf results
	@$(MAKE) --no-print-directory clean
