#!/bin/sh
# Builds what ships and prints the figures of docs/benchmarks.md as one table; fails when a goal is missed.
# Usage: benches/run.sh     Needs SP_BD (`make bench` sets it) and a C compiler. Takes some minutes; best on an idle machine.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$here"
target=${CARGO_TARGET_DIR:-$here/target}
say() { printf '== %s\n' "$*" >&2; }

say "a release build"
cargo build --locked --release --bin sp >&2
cargo bench --locked --bench figures --no-run >&2
# The newest one: cargo keeps those of earlier builds.
figures=$(ls -t "$target"/release/deps/figures-* | grep -v '\.d$' | head -n 1)
dir=$(mktemp -d "${TMPDIR:-/tmp}/sp-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"${CC:-cc}" -O2 -o "$dir/measure" benches/measure.c

say "sp ps with 1,000 jobs"
git init -q --template= "$dir/repo"
git -C "$dir/repo" -c user.name=Bench -c user.email=bench@example.invalid commit -q --allow-empty -m "nothing yet"
# One chain warms up; each has six jobs.
SP_BENCH_ROOT="$dir/repo" "$figures" chains 166 >/dev/null
(cd "$dir/repo" && "$dir/measure" 20 "$target/release/sp" ps) >"$dir/ps"
(cd "$dir/repo" && "$dir/measure" 20 "$target/release/sp" ps --all) >"$dir/ps-all"
export SP_BENCH_PS="$dir/ps" SP_BENCH_PS_ALL="$dir/ps-all"

say "ten chains at once on real bd"
benches/real-bd.sh "$figures" >"$dir/real-bd"
export SP_BENCH_REAL_BD="$dir/real-bd"

say "streams and chains on stubs"
"$figures"
