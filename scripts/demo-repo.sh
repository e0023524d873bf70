#!/bin/sh
# Makes a throw-away git repository with a small, real bug: a pager that loses its last page.
# Usage: demo-repo.sh DIR     DIR must be missing or empty. Prints nothing but errors.
# `./test.sh` in it fails until the bug is fixed. The commit is the same at every run.
set -eu
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo "usage: demo-repo.sh DIR" >&2
    exit 2
fi
dir=$1
case $dir in -*) dir=./$dir ;; esac
if ! command -v git >/dev/null 2>&1; then
    echo "make the demo repository: no git on PATH" >&2
    exit 6
fi
if [ -e "$dir" ] && [ -n "$(ls -A "$dir")" ]; then
    echo "make the demo repository: $dir is there and not empty" >&2
    exit 3
fi
mkdir -p "$dir"
cd "$dir"
mkdir bin src test

cat >README.md <<'EOF'
# pager

Shows a text file page by page.

    bin/pager FILE SIZE        # how many pages there are
    bin/pager FILE SIZE N      # page N, from 1

`./test.sh` runs all tests; it needs nothing but a POSIX shell.
EOF

cat >AGENTS.md <<'EOF'
# For agents

- POSIX sh only; it must run in dash.
- Code is in `src/`, tests are in `test/*_test.sh`. `./test.sh` runs them all.
- Keep changes small. No new dependencies.
EOF

cat >src/pager.sh <<'EOF'
# Pages of a text file. Sourced by bin/pager and by the tests.

# page_count FILE SIZE: prints how many pages of SIZE lines the file has.
page_count() {
    total=$(wc -l <"$1")
    echo $((total / $2))
}

# page FILE SIZE N: prints page N, from 1. Fails if there is no such page.
page() {
    if [ "$3" -lt 1 ] || [ "$3" -gt "$(page_count "$1" "$2")" ]; then
        echo "no page $3" >&2
        return 1
    fi
    sed -n "$((($3 - 1) * $2 + 1)),$(($3 * $2))p" "$1"
}
EOF

cat >bin/pager <<'EOF'
#!/bin/sh
# See README.md.
set -eu
. "$(dirname "$0")/../src/pager.sh"
case $# in
    2) page_count "$1" "$2" ;;
    3) page "$1" "$2" "$3" ;;
    *) echo "usage: pager FILE SIZE [N]" >&2; exit 2 ;;
esac
EOF

cat >test/support.sh <<'EOF'
# For the tests: `lines N` prints N numbered lines, `check NAME EXPECTED ACTUAL` compares.
failed=0

lines() {
    awk -v last="$1" 'BEGIN { for (i = 1; i <= last; i++) print "line " i }'
}

check() {
    if [ "$2" = "$3" ]; then
        echo "ok: $1"
    else
        echo "FAIL: $1: expected '$2', got '$3'"
        failed=1
    fi
}
EOF

cat >test/pager_test.sh <<'EOF'
. ./src/pager.sh
. ./test/support.sh
file=$(mktemp)
trap 'rm -f "$file"' EXIT
lines 25 >"$file"

check "the first page starts at the first line" "line 1" "$(page "$file" 10 1 | head -n 1)"
check "a full page has all its lines" 10 "$(page "$file" 10 2 | awk 'END { print NR }')"
check "25 lines make 3 pages of 10" 3 "$(page_count "$file" 10)"
check "the last page ends at the last line" "line 25" "$(page "$file" 10 3 2>&1 | tail -n 1)"

exit "$failed"
EOF

cat >test.sh <<'EOF'
#!/bin/sh
# Runs all tests; fails if one does.
cd "$(dirname "$0")" || exit 1
status=0
for file in test/*_test.sh; do
    echo "# $file"
    sh "$file" || status=1
done
exit "$status"
EOF

chmod +x bin/pager test.sh

git init -q --template=
git symbolic-ref HEAD refs/heads/main
git config user.name "Demo"
git config user.email "demo@example.invalid"
git config commit.gpgsign false
git config core.autocrlf false
git add -A
GIT_AUTHOR_DATE="2026-01-01T00:00:00Z" GIT_COMMITTER_DATE="2026-01-01T00:00:00Z" \
    git commit -q --no-verify -m "pager: show a text file page by page"
