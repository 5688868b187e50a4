SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CLIENTS := .cache/clients/.ready
CODEX_VERSION := 0.171.0
CODEX := .cache/codex/node_modules/@openai/codex
PIP := -m pip --disable-pip-version-check --no-input

# The groups and the build's own needs, since pip-compile reads only the project's dependencies.
define DEV_REQUIREMENTS
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))
groups = project["dependency-groups"]
def lines(name):
    for entry in groups[name]:
        yield from lines(entry["include-group"]) if isinstance(entry, dict) else [entry]
print(*lines("dev"), *project["build-system"]["requires"], "editables", sep="\n")
endef
export DEV_REQUIREMENTS

.PHONY: help install demo serve migrate test coverage check fix soak mutants bench wheel-check lock clients

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(READY) ## Make .venv with everything that requirements.lock pins

demo: $(READY) ## Show everything at work, with sample agents and no account
	@exec $(BIN)/warmline demo

serve: $(READY) ## Run the gateway and the dashboard
	@exec $(BIN)/warmline serve

migrate: $(READY) ## Bring the database's schema to this version
	@$(BIN)/warmline db upgrade

JOBS ?= 2

# Tests start the service in processes of its own: none compiles it anew, whatever the environment says.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY) clients ## Run all tests: units, contracts, browser, real clients; JOBS=2 at a time
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# Without the random conversations: that one of them happens to pass a line is no test of it.
COVERING ?= tests/engine tests/app/gateway --ignore-glob='*_conversations.py'

coverage: $(READY) ## Lines and branches of the engine that no test runs; fails if there are any
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --hypothesis-seed=0 \
	  --cov=engine --cov-branch --cov-report=term --cov-fail-under=100 $(COVERING)

check: $(READY) ## Check style, format, types, imports, migrations and that each file has its test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/contract/test_migrations.py tests/contract/test_layout.py

fix: $(READY) ## Repair style and format as far as ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

SECONDS ?= 60
KILLS ?= 200

soak: $(READY) ## Random conversations against the oracle, then kills on each database: SECONDS=60 KILLS=200 [JOBS=2] [FRESH=1] [SEED=17]
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(if $(JOBS),--jobs $(JOBS)) $(if $(FRESH),--fresh) $(if $(SEED),--seed $(SEED))
	$(if $(SEED),,$(BIN)/python -m tests.kills --kills $(KILLS))

mutants: $(READY) ## Faults put into the engine, each of which a test has to notice: [FILES=engine/items.py] [FRESH=1]
	PYTHONHASHSEED=0 $(BIN)/python -m tests.mutation --jobs $(JOBS) $(if $(FRESH),--fresh) $(FILES)

bench: $(READY) ## Measure, as ratios in one run
	-$(BIN)/python -m benchmarks.decision --rounds 3
	$(BIN)/python -m benchmarks.relay --short

wheel-check: $(READY) ## Build the wheel and try it alone in an empty environment
	WHEEL_CHECK=1 $(BIN)/python -m pytest -q tests/contract/test_packaging.py

lock: $(READY) ## Pin anew what pyproject.toml asks for
	@mkdir -p .cache && printf '%s\n' "$$DEV_REQUIREMENTS" | $(BIN)/python - > .cache/dev.in
	@$(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --no-emit-options --no-header --no-annotate --strip-extras \
	  --allow-unsafe --output-file requirements.lock pyproject.toml .cache/dev.in
	@sed -i '1i # Every package of the service, its tests and its checks, with hashes.\n# Made by `make lock` from pyproject.toml; it names no index, so that yours is used.' requirements.lock

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing. Install it with: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Name another one: make PYTHON=python3.11 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing. Install it with: apt-get install python3-venv" >&2; exit 1; }
	@echo "Setting up .venv (once; a minute or so) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python $(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

clients: $(CLIENTS) $(CODEX)

$(CLIENTS): tests/clients/requirements.txt $(READY)
	@echo "Setting up the clients' own environment (once) …"
	@test -x .cache/clients/bin/python || $(PYTHON) -m venv .cache/clients
	@.cache/clients/bin/python $(PIP) install --quiet -r tests/clients/requirements.txt
	@touch $@

# Without npm the tests with Codex are skipped, except in CI, where they have to run.
$(CODEX):
	@if command -v npm >/dev/null; then \
	  echo "Installing the Codex CLI for the tests (once) …"; \
	  npm install --silent --no-audit --no-fund --prefix .cache/codex --no-save @openai/codex@$(CODEX_VERSION); \
	else \
	  echo "npm is missing, so the tests with the Codex CLI are skipped. Install it with: apt-get install nodejs npm" >&2; \
	  test "$$CI" != true; \
	fi
