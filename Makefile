# SPDX-License-Identifier: MIT
# The front door: `make help` lists what there is. CMake does the work; the presets are in CMakePresets.json.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
BUILD := build
MAKEFLAGS += --no-print-directory
TEXT ?=

.PHONY: all deps configure tests bench test test-long test-interop demo install uninstall format lint clean help

all: configure
	@cmake --build $(BUILD) --parallel $(JOBS)

help:
	@echo "make                 the program (build/leanstep) and the libraries"
	@echo "make demo            train a small model on this repository's text, about a minute (TEXT=path for your own)"
	@echo "make test            every test; one closing line"
	@echo "make test-long       also what takes an hour: all 2^32 floats"
	@echo "make test-interop    against PyTorch and transformers, in a virtual environment under build/"
	@echo "make tests, bench    build the test programs, the benchmarks, without running them"
	@echo "make install         PREFIX=/usr/local DESTDIR= ; make uninstall takes it away again"
	@echo "make format, lint    clang-format in place; clang-format and clang-tidy as checks"
	@echo "make deps            install what the build needs (apt-get), or name it"
	@echo "make clean           remove build/"

# Says what is missing, or installs it where it may. Fast when nothing is.
deps:
	@scripts/install_deps

configure: deps
	@mkdir -p $(BUILD)
	@cmake --preset release > $(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }

tests: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target all tests_all examples_all fuzz_all

bench: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target bench_all

test: deps
	@scripts/run_tests all

test-long: deps
	@scripts/run_tests all long

test-interop: all
	@scripts/run_interop

demo: all
	@scripts/demo "$(TEXT)"

install: all
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

uninstall:
	@sed 's|^|$(DESTDIR)|' $(BUILD)/install_manifest.txt | tr '\n' '\0' | xargs -0 rm -fv

format:
	@scripts/check_style --fix

lint: configure
	@scripts/check_style
	@scripts/check_tidy

clean:
	@rm -rf $(BUILD)
