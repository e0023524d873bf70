# The two commands of a newcomer are `make demo` and `make test`.
.PHONY: demo test tools build lint check doc bench install

export SP_BD := $(CURDIR)/.tools/bin/bd
export SP_PI := $(CURDIR)/.tools/bin/pi
CARGO := cargo

# Runs a whole chain in a throw-away repository, on real git, bd and pi, with a rehearsed model.
demo: tools build
	@scripts/demo.sh

# Everything: formatting, lints, documentation, unit, actor and end-to-end tests.
test: tools lint build check doc

# Only the pinned parts: bd and pi, into .tools/.
tools:
	@scripts/tools.sh

build:
	$(CARGO) build --locked

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

check:
	$(CARGO) test --locked --no-fail-fast

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --quiet

# The figures we claim, each beside its reference.
bench: tools
	@benches/run.sh

install:
	$(CARGO) install --locked --path .
