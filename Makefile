# Everything a newcomer needs: `make run`, `make test`. Each target does its own set-up.
#
# Set-up is a virtual environment in .venv with locked versions, and a release build of the Rust crates placed beside the
# Python sources. Both are redone only when something they are made from has changed.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/.tools
PACKAGES := $(VENV)/.packages
BUILT := $(VENV)/.built
COMPILED := $(VENV)/.compiled
CRATES := native/Cargo.lock src/ophion/_native.pyi $(shell find native -name target -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print 2>/dev/null)
DIST := dist
CARGO_FLAGS := --release --locked --manifest-path native/Cargo.toml
# Sources and documents are UTF-8, whatever the language of the machine.
export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.PHONY: help build run test test-rust test-python interop check format bench faults seeds abuse fuzz audit lock docs wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(BUILT) $(COMPILED) ## Build everything: leaves a working .venv/bin/ophion

run: build ## Start a development node
	@$(BIN)/ophion dev

# Python packages are downloaded while cargo compiles.
test: ## Run all tests
	@$(MAKE) --no-print-directory $(PACKAGES) & packages=$$!; \
		$(MAKE) --no-print-directory test-rust; tests=$$?; \
		wait $$packages && exit $$tests
	@$(MAKE) --no-print-directory test-python

test-rust: ## Run the tests of the Rust crates
	@scripts/set-up rust $(VENV)
	@cargo test -q $(CARGO_FLAGS)

# Bytecode of tests is written, even where Python is told not to write any: four workers compile for half a minute.
test-python: build ## Run the Python tests
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder

interop: build ## Run the suites of go-ethereum's devp2p tool (DEVP2P=…, DEVP2P_1135=…) and the tests with geth (GETH=…), GoQuorum (GOQUORUM=…), Besu (BESU=…, BESU_SNAP=…) and Tessera (TESSERA=…)
	@$(BIN)/python -m pytest -q -rs tests/interop tests/integration/test_poa_geth.py

check: build ## Format, lints, types, import contracts, clippy, stubs, documents; then all tests
	$(BIN)/ruff format --check src tests bench scripts
	$(BIN)/ruff check src tests bench scripts
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m mypy.stubtest ophion._native --ignore-disjoint-bases --allowlist native/stubs-allowed.txt
	$(BIN)/python scripts/documents.py --check
	cargo fmt --manifest-path native/Cargo.toml --all --check
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	@$(MAKE) --no-print-directory test

format: $(PACKAGES) ## Rewrite sources in the project's format
	$(BIN)/ruff format src tests bench scripts
	$(BIN)/ruff check --fix src tests bench scripts
	cargo fmt --manifest-path native/Cargo.toml --all

bench: build ## Measure the import of blocks (and, with GETH=…, of geth beside it)
	@$(BIN)/python bench/import_chain.py

seeds: build ## Play 10,000 seeds of each BFT network in the simulator (some minutes)
	@for protocol in ibft2 qbft; do for validators in 4 7; do \
		echo "$$protocol, $$validators validators"; \
		$(BIN)/ophion simulate --protocol=$$protocol --validators=$$validators --seeds=10000 || exit 1; \
	done; done

faults: build ## Kill, freeze, divide and wipe validators for a long time (about half an hour)
	@OPHION_FAULTS=long $(BIN)/python -m pytest -q -x tests/faults

abuse: build ## Attack nodes in every way we know, and print how long honest clients had to wait (a quarter of an hour; ATTACKS="name ..." for some)
	@$(BIN)/python -m tests.abuse.abuse $(ATTACKS)

fuzz: build ## Send a node bytes, frames and bodies that are almost right, ten minutes each (SECONDS=600)
	@$(BIN)/python -m tests.fuzz.running_node --seconds=$(or $(SECONDS),600)

audit: $(PACKAGES) ## Look for known faults in what Ophion is built from (with cargo-deny and pip-audit, where they are installed)
	@$(BIN)/python scripts/audit.py

lock: $(PACKAGES) ## Write the hashes of all locked Python packages, as the package index INDEX=URL tells them
	@$(BIN)/python scripts/lock.py $(if $(INDEX),--index=$(INDEX))

docs: build ## Write the generated pages of docs/
	@$(BIN)/python scripts/documents.py

wheel: build ## Build packages into dist/ (or DIST=…): a wheel for every Python from 3.11 on, and a source package
	@mkdir -p "$(DIST)"
	@rm -f "$(DIST)"/ophion-*.whl "$(DIST)"/ophion-*.tar.gz
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --release --locked --out "$(DIST)" >$(VENV)/wheel.log 2>&1 || { cat $(VENV)/wheel.log; exit 1; }
	@$(BIN)/maturin sdist --out "$(DIST)" >$(VENV)/wheel.log 2>&1 || { cat $(VENV)/wheel.log; exit 1; }
	@ls "$(DIST)"/ophion-*.whl "$(DIST)"/ophion-*.tar.gz

clean: ## Remove everything that was built
	rm -rf $(VENV) dist native/target src/ophion/_native.*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The virtual environment, from the first Python that is new enough.
$(TOOLS): scripts/set-up
	@scripts/set-up tools $(VENV)
	@touch $@

$(PACKAGES): $(TOOLS) requirements.lock requirements-dev.lock
	@echo "Installing Python packages"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: -r requirements-dev.lock
	@touch $@

$(BUILT): $(PACKAGES) $(CRATES) pyproject.toml
	@scripts/set-up rust $(VENV)
	@echo "Building the Rust crates (some minutes the first time; progress in $(VENV)/build.log)"
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@touch $@

# Bytecode, written even where Python is told not to write any: a start without it takes twice as long.
$(COMPILED): $(BUILT) $(shell find src -name '*.py' 2>/dev/null)
	@$(BIN)/python -m compileall -q "$(CURDIR)/src/ophion"
	@touch $@
