# The front door for those who type make; the work is in scripts/ and meson.build.
PROMPT ?= search the north corridor for survivors and come back
# where make install puts things, if not below /usr/local; DESTDIR stands before it, for packages
PREFIX ?=
.PHONY: all run test check install uninstall dist clean

all:
	@scripts/build $(if $(PREFIX),build -Dprefix=$(PREFIX))
run:
	@scripts/muc run --prompt "$(PROMPT)"
test:
	@scripts/test
check:
	@.ci/run
install: all
	@[ ! -f build-web/muc.html ] || meson setup --reconfigure build >/dev/null # which looks for the page
	meson install -C build
uninstall: # what the last install put in place
	ninja -C build uninstall
dist: # build-dist: a source tarball, tried, and a Homebrew formula
	@scripts/dist
clean:
	rm -rf build build-*
