# SPDX-License-Identifier: BSD-3-Clause
# A front to meson and ninja, which do the work.
#
#   make            build into build/; everything runs uninstalled from there
#   make demo       install what is missing, build, run RDMA programs on it
#   make check      unit tests, small programs and the model explorer: about 3 minutes
#   make test       install what is missing, build, run all tests: about 13 minutes
#   make soak       random requests against a model, for SECONDS= (else until it is ended), from SEED= on
#   make bench      measure beside UCX and libfabric: results in build/bench/
#   make install    DESTDIR= and PREFIX= are honoured
#   make fmt clean

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# More options for meson setup, such as -Dwerror=true.
MESONFLAGS ?=

RUN_TESTS = tools/run-tests $(BUILD)
# The guests are x86-64; a suite of which nothing was built is a failure.
GUESTS = $(if $(filter x86_64,$(shell uname -m)),guest:2)

all: $(BUILD)/build.ninja
	ninja -C $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || \
		{ echo "make: meson is not installed; run: tools/setup build" >&2; exit 1; }
	meson setup --prefix=$(PREFIX) $(MESONFLAGS) $(BUILD)

# Looks again for what was optional and may have been installed since.
configure: $(BUILD)/build.ninja
	@meson setup --reconfigure $(MESONFLAGS) $(BUILD) >$(BUILD)/reconfigure.log || \
		{ cat $(BUILD)/reconfigure.log; exit 1; }

setup-%:
	tools/setup $*

demo: setup-demo
	$(MAKE) all
	tools/demo $(BUILD)

check: configure
	$(MAKE) all
	$(RUN_TESTS) unit:2 model:2 prog:2

# First what a wire can do, by packets between processes of this machine; then everything.
test: setup-test
	$(MAKE) configure
	$(MAKE) all
	@[ "$$(uname -m)" != x86_64 ] || tools/debian-kernel bookworm build-kernel-bookworm || \
		echo "make: no kernel for a guest: what needs one is skipped" >&2
	rm -f $(BUILD)/packets.json
	-WEFT_WIRE=always tools/run-tests --without tests/wire/always.table --under tests/lib/in_netns.sh \
		--into $(BUILD)/packets.json $(BUILD) verbs:2 faces:2 -- --no-suite still --no-suite slow
	tools/run-tests --from $(BUILD)/packets.json $(BUILD) unit:2 model:2 prog:2 programs:2 programs-user:2 across:2 wire:2 storm:3 slow:2 $(GUESTS) rest

# No limit but one's patience; a difference ends it and prints how to repeat it.
SOAK_SECONDS = $(if $(filter undefined,$(origin SECONDS)),1000000000,$(SECONDS))
soak: configure
	$(MAKE) all
	$(BUILD)/tests/storm/differ/differ $(BUILD) --progress --seconds $(SOAK_SECONDS) \
		$(if $(SEED),--seed $(SEED))

bench: setup-bench
	$(MAKE) configure
	$(MAKE) all
	bench/run --build $(BUILD) all

install: $(BUILD)/build.ninja
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	ninja -C $(BUILD) -j $(JOBS)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD)

fmt:
	git ls-files '*.c' '*.h' | xargs clang-format -i

.PHONY: all configure demo check test soak bench install clean fmt
