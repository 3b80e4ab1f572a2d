# The two commands of the README, and what CI calls. Everything is installed into .venv; nothing by hand.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
# Half of what tests do is wait, for terminals, sockets and killed processes: two workers for each processor.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
PROMPT ?= Create a small project and run its tests.

.PHONY: demo test check install install-test packages soak bench clean

demo: install
	$(BIN)/agentsh new --model demo --empty -p "$(PROMPT)"
	$(BIN)/agentsh ls --limit 3

# pip compiles what it copies and not what it links to; where Python may not do so itself (PYTHONDONTWRITEBYTECODE),
# each command would begin with that.
install: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	$(BIN)/python -m compileall -q agentsh
	touch $@

install-test: $(VENV)/.installed-test
$(VENV)/.installed-test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[test]"
	$(BIN)/python -m compileall -q agentsh
	touch $@

# Debian packages that tests use: installed where they are missing and we are root; else it is said, and those
# tests are skipped. With CI set, a package that is missing and cannot be installed is a failure.
packages:
	@sh .ci/packages

test: packages install-test check

check:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) -m "not soak"

soak: install-test
	$(BIN)/pytest -m soak -n 0 -s
	$(BIN)/pytest -m "not soak" -n 0 -q tests/log/test_scan.py tests/log/test_large_flips.py tests/crash

# The table of targets, on a machine that does nothing else; some minutes. BENCH=--quick: five at most, fewer rounds.
bench: install
	$(BIN)/python benches/all.py $(BENCH) --svg docs/benches.svg

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
