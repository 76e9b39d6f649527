# What people and CI both run. A fresh clone needs Rust, Python 3.11 or later and a C compiler; everything
# else goes into .venv here.

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
SHARED := ../shared
JOBS ?= 2
FUZZ_CASES ?= 20000
FUZZ_SEED ?= $(shell date +%s)

export VIRTUAL_ENV := $(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
export PIP_REQUIRE_VIRTUALENV := 1

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo build dev test test-rust test-python lint format bench bench-peers fuzz docs traces clean

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Build, install and analyze a sample trace with two tiers
	$(BIN)/kvreplay analyze traces/multi_turn.jsonl --tier "gpu=300 blocks" --tier "cpu=900 blocks,fill=victim"

build: $(VENV)/.built ## Build the release extension and install kvreplay into .venv

dev: $(VENV)/.dev ## Install the development tools too

test: test-rust test-python ## Run all tests

test-rust:
	cargo test --workspace --exclude kvreplay-py --quiet

test-python: dev
	$(BIN)/python -m pytest -n $(JOBS)

lint: dev ## Check format, lints, types, import directions and the stub
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/stubtest kvreplay._core --mypy-config-file pyproject.toml

format: dev ## Format Rust and Python
	cargo fmt
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: dev ## Run the micro-benchmarks
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-columns=min,median,rounds -n 0

bench-peers: build ## Compare CPU time with other tools on the same work
	@test -f $(SHARED)/bench/peers.py || { echo "no $(SHARED)/bench/peers.py here: see benchmarks/README.md"; exit 1; }
	PATH="$(BIN):$$PATH" python $(SHARED)/bench/peers.py --size small

fuzz: ## Run the Rust property tests on many new cases (FUZZ_CASES=20000, FUZZ_SEED=now)
	PROPTEST_CASES=$(FUZZ_CASES) PROPTEST_RNG_SEED=$(FUZZ_SEED) cargo test --workspace --exclude kvreplay-py --release --quiet

docs: dev ## Refresh the generated parts of the pages, build the Rust documentation, run all doctests
	$(BIN)/python docs/refresh.py
	RUSTDOCFLAGS="-D warnings" cargo doc --package kvreplay-core --no-deps --quiet
	cargo test --package kvreplay-core --doc --quiet
	$(BIN)/python -m pytest python -n 0

traces: build ## Make the sample traces again (they must not change)
	PATH="$(BIN):$$PATH" traces/make.sh traces
	cd traces && sha256sum --check --quiet SHA256SUMS

clean: ## Remove everything that was built
	rm -rf $(VENV) target dist python/kvreplay/_core*.so

# Stamps: a step runs again only when what it depends on has changed.

$(VENV)/.tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later is needed; name it with PYTHON=python3.12"; exit 1; }
	@command -v cargo >/dev/null || { echo "Rust is needed: cargo is not on PATH"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip "maturin>=1.9,<2"
	@touch $@

$(VENV)/.built: $(VENV)/.tools pyproject.toml $(RUST_SOURCES)
	$(BIN)/maturin develop --release --quiet
	@touch $@

# The dependencies alone, read from pyproject.toml: building kvreplay a second time would take minutes.
$(VENV)/.dev: $(VENV)/.built pyproject.toml
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		print(*p["dependencies"], *p["optional-dependencies"]["dev"], *p["optional-dependencies"]["report"], sep="\n")' \
		> $(VENV)/requirements.txt
	$(BIN)/python -m pip install --quiet --requirement $(VENV)/requirements.txt
	@touch $@
