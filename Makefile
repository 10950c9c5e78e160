# SPDX-License-Identifier: Apache-2.0
#
# Short names for the everyday jobs; the real build is CMake with CMakePresets.json.
#   make run      build the release and start a playground  make lint    format and clang-tidy
#   make test     build with checks and run every test     make format  rewrite to .clang-format
#   make build    the same build without the tests         make asan, tsan, clang: tests elsewhere
#   make fuzz     libFuzzer on each fuzzer for FUZZ_S s     make bench   benchmarks at -O3
# JOBS=n limits compiler processes; FILES="a.cc b.h" limits lint and format.

JOBS ?= $(shell nproc)
FUZZ_S ?= 60
FILES ?=
PRESET ?= dev

.DEFAULT_GOAL := build
.PHONY: run test build release lint lint-ci format asan tsan clang fuzz bench coverage setup clean

setup:
	@tools/setup.sh build

build: setup
	@cmake --preset $(PRESET) > /dev/null
	@cmake --build --preset $(PRESET) -j $(JOBS)

release: setup
	@cmake --preset release > /dev/null
	@cmake --build --preset release -j $(JOBS)

# With a terminal a cluster to play with; without one the demo, which ends by itself.
run: release
	@KUBECTL=$$(tools/kubectl.sh) || exit 1; \
	[ "$$KUBECTL" != "$$(command -v kubectl)" ] || KUBECTL=kubectl; \
	if [ -t 0 ] && [ -t 1 ]; then \
	  JOGAK_KUBECTL=$$KUBECTL ./build/release/src/cli/jogak up; \
	else \
	  JOGAK_KUBECTL=$$KUBECTL ./build/release/src/cli/jogak up --demo; \
	fi

test: build
	@PATH="$$PATH:$$(tools/programs.sh)" tools/run_tests.py build/$(PRESET)

asan tsan clang coverage:
	@tools/setup.sh build fuzz
	@$(MAKE) --no-print-directory test PRESET=$@

lint:
	@tools/setup.sh build lint
	@tools/lint.sh $(FILES)

lint-ci:
	@tools/setup.sh build lint
	@tools/lint.sh --ci

format:
	@tools/setup.sh lint
	@tools/lint.sh --fix $(FILES)

fuzz:
	@tools/setup.sh build fuzz
	@cmake --preset fuzz > /dev/null
	@cmake --build --preset fuzz -j $(JOBS)
	@tools/fuzz.sh build/fuzz/fuzz $(FUZZ_S)

bench: setup
	@cmake --preset bench > /dev/null
	@cmake --build --preset bench -j $(JOBS)
	@for program in build/bench/bench/*_bench; do echo "== $$program"; $$program || exit 1; done

clean:
	@rm -rf build
