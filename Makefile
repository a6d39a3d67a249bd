# SPDX-License-Identifier: Apache-2.0
# The front door: each target is one line of cmake or a script. `make help` lists them.
PRESET ?= release
PREFIX ?= /usr/local

all: build/stint                      ## build the command at build/stint
.PHONY: all build/stint demo test check asan tsan arm fuzz bench install clean help

build/stint: bootstrap
	cmake --preset release >build/configure.log || { cat build/configure.log; exit 1; }
	cmake --build --preset release

.PHONY: bootstrap
bootstrap:                            # installs what is missing, or says what to install
	@scripts/bootstrap
	@mkdir -p build

demo: build/stint                     ## answer a prompt with the bundled model
	build/stint run models/novels-10m -p "It was a cold evening in November, and" -n 64 --temp 0.7 --top-p 0.9 --seed 7

test: build/stint                     ## all tests that need no more than this machine
	scripts/check_style.py
	ctest --preset release -j 2

check: test                           ## the same under another well-known name

asan tsan dev aarch64: bootstrap      ## the tests under sanitizers, or for Arm under qemu
	cmake --preset $@ >/dev/null
	cmake --build --preset $@
	ctest --preset $@ -j 2

arm: aarch64                          ## cross-build and test for 64-bit Arm under qemu

fuzz: bootstrap                       ## 60 s of each fuzz target
	cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz
	scripts/fuzz 60

bench: build/stint                    ## the fixed set; appends to bench/history.jsonl
	scripts/bench_history.py

install: build/stint                  ## PREFIX=/usr/local
	cmake --install build --prefix $(PREFIX)

clean:                                ## remove build/
	rm -rf build

help:                                 ## this list
	@grep -hE '^[a-z].*##' Makefile | sed -E 's/^([^:]+):[^#]*## /  \1\t/' | expand -t 24
