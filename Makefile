# The front door for those who type make; the work is in scripts/ and meson.build.
PROMPT ?= search the north corridor for survivors and come back
.PHONY: all run test check install dist clean

all:
	@scripts/build
run:
	@scripts/muc run --prompt "$(PROMPT)"
test:
	@scripts/test
check:
	@.ci/run
install: all
	meson install -C build
dist: all
	meson dist -C build
clean:
	rm -rf build build-*
