#!/bin/sh
# The main job end to end, in a throw-away repository with a real bug: a real bd workspace, a bead, a whole chain of real
# pi sessions (the model is rehearsed), the finished chain and its diff. Needs SP_BD, SP_PI and a built sp; `make demo`.
# Usage: scripts/demo.sh [DIR]     DIR must be missing or empty; a temporary one by default. It is kept.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
sp=${SP:-$here/target/debug/sp}
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/sp-demo.XXXXXX")}
say() { printf '\n== %s\n' "$*"; }

for tool in "$sp" "${SP_BD:?run it by make demo}" "${SP_PI:?run it by make demo}"; do
    [ -x "$tool" ] || { echo "demo: $tool is missing: run 'make tools build'" >&2; exit 6; }
done
mkdir -p "$dir/home"
repo=$dir/pager
"$here/scripts/demo-repo.sh" "$repo"
cd "$repo"

# Nothing of the user's own configuration takes part.
export HOME="$dir/home" XDG_CONFIG_HOME="$dir/home/.config"
export BD_NON_INTERACTIVE=1 BD_DISABLE_METRICS=1 BD_DISABLE_EVENT_FLUSH=1 BD_BACKUP_ENABLED=false BD_NO_HOOKS=1

say "a repository with a bug: $repo"
./test.sh || true

say "a beads workspace and a bead for the bug"
"$SP_BD" init --prefix pager --stealth --skip-hooks --skip-agents --quiet --non-interactive --init-if-missing </dev/null >&2
"$SP_BD" gc --skip-decay --json </dev/null >/dev/null
bead=$("$SP_BD" create "The last page is lost" -t bug --silent --body-file - <<'CONTRACT'
<change-contract type="bug" scrutiny="medium">
  <problem>The pager loses its last page when the number of lines is no multiple of the page size.</problem>
  <scope><path>src/pager.sh</path></scope>
  <non-goals><item>New options</item></non-goals>
  <validation><criterion>`./test.sh` passes</criterion></validation>
  <acceptance><criterion>Every line of a file is on one of its pages.</criterion></acceptance>
</change-contract>
CONTRACT
)
echo "bead $bead"

say "sp chain run code-standard --bead $bead"
"$sp" chain run code-standard --bead "$bead" --rehearse "$here/config/rehearsals/code-standard-demo.json"

say "the chain in bd"
"$SP_BD" list --all -n 0 </dev/null 2>/dev/null || true

branch=$(git for-each-ref --format='%(refname:short)' "refs/heads/feature/$bead-*")
say "git diff HEAD...$branch"
git --no-pager diff "HEAD...$branch"

say "merged and published"
git merge -q --no-ff -m "Merge $branch" "$branch"
./test.sh
"$sp" chain resume "$bead"

say "done; everything is kept in $dir"
