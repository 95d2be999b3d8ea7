# The only interface for contributors. `make` alone lists the targets.
#
# .venv has the Python packages, target/ the Rust build, .stamps/ a file for each completed step.
# As root, make installs missing Debian packages of packaging/debian-packages.txt.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# A toolchain that was just installed is not on the PATH of this shell yet.
export PATH := $(PATH):$(HOME)/.cargo/bin
PYTHON ?= python3
BIN := .venv/bin
ENGINE := $(BIN)/dbdyno-engine
COMPAT := $(BIN)/dbdyno-compat
# The profile of Cargo.toml that the Rust programs have. `make build` gives the tests' programs back their speed.
PROFILE := release
check: PROFILE := checked
FUZZ_SECONDS ?= 600
# The demo shows what cargo and pip do, since the first build takes minutes.
CARGO_OUTPUT := --quiet
PIP_OUTPUT := --quiet
# What the end-to-end tests use besides the build.
TEST_NEEDS := packages-servers packages-peers packages-proxies packages-browser mysql mariadb-plugins docker
FUZZ_TARGETS ?= $(shell sed -n 's/^name = "\([a-z_]*\)"$$/\1/p' fuzz/Cargo.toml)

# Runs a stage of the checks and prints its seconds, so that one that grows is seen: $(call stage,name,command).
define stage
TIMEFORMAT='$(1): %0R s'; time $(2)
endef

.PHONY: help build demo quick check check-sources check-rust check-python check-and-fetch audit test test-long bench bench-truth bench-examples bench-faults what-works docs texts docs-site wheel publish lock clean rust-toolchain packages-servers packages-peers packages-proxies packages-browser mysql foreign mariadb-plugins fuzz packages-fuzz docker FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

build: $(ENGINE) .stamps/lab .stamps/man ## put dbdyno, dbdyno-engine and dbdyno-compat into .venv/bin

demo: ## build, then compare a flush at every commit with one a second: about 3 minutes to build, 3 to measure
	@echo "dbdyno demo: builds in about 3 minutes (once), then measures two MariaDB servers for about 3 minutes." >&2
	$(MAKE) --no-print-directory build packages-servers CARGO_OUTPUT= PIP_OUTPUT=
	$(BIN)/dbdyno compare examples/mariadb-flush-at-commit.toml --profile quick

# A release build takes longer than all these checks, so existing programs are not built again.
quick: .stamps/lab $(if $(wildcard $(ENGINE) $(COMPAT)),,build) ## check the changed part in seconds: formats, linters, types, unit tests
	@scripts/quick

check: build check-sources ## run all checks that need no database server: formats, linters, types, unit tests
	@$(call stage,unit tests,$(BIN)/pytest tests/unit -m "not long" --numprocesses=3 --dist=worksteal --quiet)

# A recipe with $(MAKE) does nothing else, since `make --dry-run` executes it.
check-sources: build
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target PROFILE=$(PROFILE) check-rust check-python

check-rust:
	@scripts/rust-toolchain check
	cargo fmt --all --check
	$(call stage,cargo clippy,cargo clippy --quiet --profile $(PROFILE) --workspace --all-targets --locked -- -D warnings)
	$(call stage,cargo test,cargo test --quiet --profile $(PROFILE) --workspace --locked)

check-python:
	@$(BIN)/ruff format --check
	$(BIN)/ruff check --quiet
	$(call stage,mypy,$(BIN)/mypy)
	MYPYPATH=lab:benchmarks:benchmarks/engine $(BIN)/mypy benchmarks
	$(call stage,imports of the lab,$(BIN)/lint-imports)
	scripts/audit

# Packages and servers are fetched while the checks run.
check-and-fetch: .stamps/packages
	@mkdir -p target
	$(MAKE) --no-print-directory $(TEST_NEEDS) </dev/null >target/test-needs.log 2>&1 &
	needs=$$!
	trap 'kill $$needs 2>/dev/null || true' EXIT
	$(MAKE) --no-print-directory check
	wait $$needs || { cat target/test-needs.log >&2; exit 1; }

# Three processes use two CPUs, since a comparison waits for its clock; what measures time runs alone.
test: check-and-fetch ## run check, then the end-to-end tests on real servers
	@$(call stage,end-to-end tests,$(BIN)/pytest tests/end_to_end -m "not alone and not long" --numprocesses=3 --dist=loadfile --no-loadscope-reorder --quiet)
	$(call stage,end-to-end tests that run alone,$(BIN)/pytest tests/end_to_end -m "alone and not long" --quiet)
	$(BIN)/python -m tests.end_to_end.drop_in_matrix --passed

test-long: build $(TEST_NEEDS) foreign ## run tests too long for CI: the wheel, the longest end-to-end tests, the verdict's guarantees by simulation, fuzzing, faults, long loads
	scripts/docker-image .servers/docker-python.tar python3 python3-venv
	$(BIN)/pytest tests/wheel
	$(BIN)/pytest tests/unit -m "long and not alone" --numprocesses=auto --dist=worksteal --quiet
	$(BIN)/pytest tests/unit -m "long and alone" --quiet
	$(BIN)/pytest tests/end_to_end -m "long and not alone" --all-drop-ins --numprocesses=2 --dist=loadfile --no-loadscope-reorder --quiet
	$(BIN)/pytest tests/end_to_end -m "long and alone" --quiet
	$(BIN)/python -m benchmarks.truth --experiments 300
	$(MAKE) fuzz FUZZ_SECONDS=45
	$(BIN)/python -m benchmarks.mutations
	$(BIN)/python -m benchmarks.faults --fresh --jobs 2 --phases restore measure --kinds local remote --kills 4 --kill-places local.mariadb remote.mariadb remote.postgresql
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.fleet --random 20
	$(BIN)/python -m benchmarks.soak --minutes 3 --connections 500
	$(BIN)/python -m benchmarks.soak --minutes 1 --connections 3000 --kill 1%
	$(BIN)/python -m benchmarks.soak --minutes 1 --connections 10000 --target null

bench: build packages-servers packages-peers packages-browser mysql ## compare dbdyno with sysbench and the slap clients
	@cargo build --quiet --release --locked --package dbdyno-bare-loop
	$(BIN)/python benchmarks/engine/ceiling.py --output benchmarks/results.md
	$(BIN)/python benchmarks/engine --output benchmarks/results.md
	$(BIN)/python benchmarks/engine/postgresql.py --output benchmarks/results.md
	$(BIN)/python benchmarks/engine/lua.py --hot --output benchmarks/results.md
	$(BIN)/python benchmarks/engine/at_rate.py --output benchmarks/results.md
	$(BIN)/python benchmarks/engine/slices.py --output benchmarks/results.md
	$(BIN)/python benchmarks/engine/workers.py --output benchmarks/results.md
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python -m benchmarks.page
	$(BIN)/python benchmarks/slap.py --output benchmarks/results.md
	$(BIN)/python benchmarks/loading.py --output benchmarks/results.md
	$(BIN)/python benchmarks/generated.py --output benchmarks/results.md
	$(BIN)/python -m benchmarks.fleet.scaling --output benchmarks/results.md

bench-truth: build ## check the verdict's guarantees by simulation, and write docs/why-believe-it.md
	$(BIN)/python -m benchmarks.truth --output docs/why-believe-it.md

bench-examples: build packages-servers mysql docker ## run the quick profile of every example and print the verdicts
	$(BIN)/python -m benchmarks.examples

what-works: build packages-servers packages-proxies foreign ## run dbdyno probe on servers of other products and on proxies, and write docs/what-works
	$(BIN)/python -m benchmarks.what_works

bench-faults: build packages-servers mysql docker ## inject faults into real comparisons, and write docs/reliability.md
	@scripts/debian-packages faults
	$(BIN)/python -m benchmarks.faults --kills 100 --output docs/reliability.md

fuzz: rust-toolchain packages-fuzz ## fuzz the code that reads a server's bytes, FUZZ_SECONDS=600 for each target
	@for target in $(FUZZ_TARGETS); do scripts/fuzz $$target $(FUZZ_SECONDS); done

audit: ## look up known vulnerabilities of all dependencies; needs the advisory databases on the internet
	@scripts/audit --vulnerabilities

texts: .stamps/lab ## generate what the lab's code contains: catalogues, codes, schemas, tables of the documents
	@$(BIN)/python -m dbdyno.generate schema docs/reading.md
	$(BIN)/python -m dbdyno.experiment.file_schema docs/experiment.md docs/workloads.md

docs: build ## generate the engine's schemas, and all that `make texts` does
	@$(ENGINE) schema plan >schema/plan.schema.json
	$(ENGINE) schema events >schema/events.schema.json
	$(ENGINE) schema describe >schema/describe.schema.json
	$(ENGINE) schema limits >lab/dbdyno/experiment/limits.json
	$(MAKE) --no-print-directory texts

docs-site: .stamps/lab $(if $(wildcard $(ENGINE)),,build) ## build the documentation as a site in site/; a dead link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build
	echo "site/index.html"

wheel: build ## build the wheels for x86_64 and aarch64 in dist/
	@scripts/wheels dist

publish: wheel ## check the wheels in dist/; UPLOAD=1 uploads them to the package index that twine is configured for
	@target/wheels/tools/bin/twine check --strict dist/*.whl
	$(if $(UPLOAD),target/wheels/tools/bin/twine upload dist/*.whl)

lock: ## upgrade the locked versions of the Python packages
	@scripts/lock --upgrade

clean: ## remove build files, but keep the results
	rm -rf .venv .stamps .servers target site dist

# Cargo decides what to compile; a binary is replaced only if it differs.
$(ENGINE): FORCE .stamps/packages .stamps/venv rust-toolchain
	@cargo build $(CARGO_OUTPUT) --profile $(PROFILE) --locked --package dbdyno-cli --package dbdyno-compat
	for program in $(ENGINE) $(COMPAT); do
	  built=target/$(PROFILE)/$$(basename $$program)
	  cmp --silent $$built $$program || install $$built $$program
	done

# An editable installation of the lab.
.stamps/lab: .stamps/venv .stamps/history pyproject.toml setup.py
	@DBDYNO_LAB_ONLY=1 $(BIN)/pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	touch $@

MAN_SOURCES := $(addprefix lab/dbdyno/,__init__.py binary.py problem.py) $(wildcard lab/dbdyno/commands/*.py)
# `man dbdyno` finds the pages if .venv/bin is in PATH.
.stamps/man: $(ENGINE) .stamps/lab packaging/man_pages.py $(MAN_SOURCES)
	@$(BIN)/python packaging/man_pages.py .venv/share/man/man1
	touch $@

.stamps/venv: .stamps/packages requirements.lock
	@$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install $(PIP_OUTPUT) --disable-pip-version-check --require-hashes --requirement requirements.lock
	touch $@

# The extra `history`; scripts/lock says why its dependencies are not installed.
.stamps/history: .stamps/venv packaging/history.lock
	@$(BIN)/pip install $(PIP_OUTPUT) --disable-pip-version-check --no-deps --require-hashes --requirement packaging/history.lock
	touch $@

.stamps/packages: packaging/debian-packages.txt scripts/debian-packages
	@scripts/debian-packages build
	mkdir -p .stamps
	touch $@

rust-toolchain:
	@scripts/rust-toolchain

packages-servers:
	@scripts/debian-packages servers

# Distributions package MariaDB, but no current MySQL, so scripts/mysql-root unpacks one for the tests.
mysql:
	@scripts/mysql-root .servers/mysql-9.7

# Docker, and a container image for the tests that needs no image registry.
docker:
	@scripts/debian-packages docker
	scripts/docker-image .servers/docker-mariadb.tar mariadb-server-core mariadb-client-core

packages-fuzz:
	@scripts/debian-packages fuzz

mariadb-plugins: packages-servers
	@scripts/mariadb-plugins .servers/mariadb-plugins

packages-peers:
	@scripts/debian-packages peers

# Installed packages would start services, and the stable release has no Odyssey.
packages-proxies:
	@scripts/debian-root proxies .servers/proxies usr/sbin/pgbouncer haproxy odyssey pgbouncer pgpool2

# Servers of other products that speak a protocol; what cannot be fetched is reported.
foreign: packages-servers
	@scripts/foreign-servers .servers/foreign

packages-browser:
	@scripts/debian-packages browser
