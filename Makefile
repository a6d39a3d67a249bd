# SPDX-License-Identifier: Apache-2.0
# The front door: each target is a line or two of cmake or a script. `make help` lists them.
PREFIX ?= /usr/local
CMAKE_FLAGS ?=                     # for configuring, e.g. CMAKE_FLAGS=-DSTINT_WERROR=ON
JOBS ?= $(shell nproc)
# Many tests wait: for a disk, a browser, a server.
TEST_JOBS ?= $(shell expr $(JOBS) + 2)

.PHONY: all demo test check asan tsan dev arm fuzz bench install wheel deb clean help bootstrap
.PHONY: everything phone hexagon opencl soak coverage memcheck msan
.PHONY: build/stint

all: build/stint                   ## build the command at build/stint

bootstrap:
	@scripts/bootstrap

# Configured once; from then on ninja itself sees when that must be done again.
build/build.ninja: CMakePresets.json | bootstrap
	@mkdir -p build
	cmake --preset release $(CMAKE_FLAGS) >build/configure.log || { cat build/configure.log; exit 1; }
	@touch $@

build/%/build.ninja: CMakePresets.json | bootstrap
	@mkdir -p build
	cmake --preset $* $(CMAKE_FLAGS) >build/configure-$*.log || { cat build/configure-$*.log; exit 1; }
	@touch $@

build/stint: build/build.ninja | bootstrap
	cmake --build --preset release -j $(JOBS) --target stint_command

everything: build/build.ninja | bootstrap
	cmake --build --preset release -j $(JOBS)

demo: build/stint                  ## a question to a real model, or where none can be had the bundled one
	@scripts/demo build/stint

test: everything                   ## style rules and all tests that this machine can run
	ctest --preset release -j $(TEST_JOBS)
	@scripts/count_skips build

check: test                        ## the same

asan: build/asan/build.ninja       ## the tests under the address and undefined-behaviour sanitizers
tsan: build/tsan/build.ninja       ## the tests under the thread sanitizer
dev: build/dev/build.ninja         ## the tests without optimisation, for a debugger
asan tsan dev:
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@ -j $(TEST_JOBS) $(if $(filter 1,$(STINT_CI_LONG)),,-LE long)
	@[ "$(STINT_CI_LONG)" = 1 ] || ctest --preset $@ -N -L long
	@scripts/count_skips build/$@

arm:                               ## cross-build for 64-bit Arm and test under qemu
	@scripts/bootstrap arm
	@$(MAKE) --no-print-directory build/aarch64/build.ninja
	cmake --build --preset aarch64 -j $(JOBS)
	ctest --preset aarch64 -j $(JOBS)
	@scripts/count_skips build/aarch64

phone:                             ## build/phone/stint, one file without libraries for 64-bit Arm phones
	@scripts/bootstrap arm
	@$(MAKE) --no-print-directory build/phone/build.ninja
	cmake --build --preset phone -j $(JOBS)

hexagon:                           ## the program for Hexagon DSPs, and its tests under qemu
opencl:                            ## the device for GPUs, and its tests on PoCL
hexagon opencl:
	@scripts/bootstrap $@
	@$(MAKE) --no-print-directory build/build.ninja
	cmake --preset release >build/configure.log # what was not there when it was configured
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS) -R '$@|device'

FUZZ_SECONDS ?= 60
fuzz:                              ## FUZZ_SECONDS=60 of each fuzz target
	@scripts/bootstrap fuzz
	@$(MAKE) --no-print-directory build/fuzz/build.ninja
	cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	scripts/fuzz $(FUZZ_SECONDS)

MINUTES ?= 120
soak: build/stint                  ## MINUTES=120 of 32 clients with cancels and faults
	tests/e2e/soak.py $(MINUTES)

# Of the code that reads what others wrote, by the tests of these folders and of the server.
COVERED = src/(format|tokenizer|template|constraint|chat|server)/
coverage:                          ## lines of parsers and server that tests reach, and those not
	@scripts/bootstrap coverage
	@$(MAKE) --no-print-directory build/coverage/build.ninja
	cmake --build --preset coverage -j $(JOBS)
	find build/coverage -name '*.gcda' -delete
	ctest --preset coverage -j $(JOBS) -L '^(format|tokenizer|template|constraint|chat|server|fuzz)$$'
	ctest --preset coverage -j $(JOBS) -R 'e2e.test_serve|e2e.test_hostile|golden.test_tok|generate'
	gcovr --root . --filter '$(COVERED)' --txt build/coverage/lines.txt \
	  --html-details build/coverage/lines.html build/coverage
	cat build/coverage/lines.txt

memcheck: everything               ## the fuzz corpora under Valgrind: uninitialised values too
	@scripts/bootstrap memcheck
	scripts/memcheck

msan:                              ## the parsers' corpora under clang's MemorySanitizer
	@scripts/bootstrap fuzz
	scripts/msan

bench: build/stint                 ## the peaks, the fixed set; appends to bench/history.jsonl, draws it
	cmake --build --preset release -j $(JOBS) --target bench_peaks
	build/bench/bench_peaks
	scripts/bench_history.py
	scripts/bench_plot.py

install: everything                ## command, library, header, man pages below PREFIX=/usr/local
	cmake --install build --prefix $(PREFIX)

wheel: everything                  ## build/wheel/stint-*.whl, a Python package with the library in it
	rm -rf build/wheel && mkdir -p build/wheel
	cp -r bindings/python build/wheel/source
	STINT_LIBRARY=$(CURDIR)/build/libstint.so python3 -m pip wheel --no-index --no-deps \
	  --no-build-isolation --wheel-dir build/wheel build/wheel/source

deb: bootstrap                     ## build/deb/*.deb, Debian packages of the last commit
	scripts/make_deb

clean:                             ## remove build/
	rm -rf build

help:                              ## this list
	@sed -nE 's/^([a-z]+):[^#]*## (.*)/  make \1\t\2/p' Makefile | expand -t 18
