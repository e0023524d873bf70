#!/bin/sh
# Ten code-standard chains at once on real bd and git, with a stub of the agent: how long they take, and how long bd does.
# Usage: real-bd.sh FIGURES [CHAINS]     FIGURES is the built bench; needs SP_BD. Prints `name value` lines.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
figures=$1
chains=${2:-10}
bd=${SP_BD:?names no bd: run it by make bench}
command -v bash >/dev/null || { echo "real-bd: needs bash for its clock" >&2; exit 6; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/sp-bench-bd.XXXXXX")
trap 'rm -rf "$dir"' EXIT

# Nothing of the user's own configuration takes part.
mkdir "$dir/home"
export HOME="$dir/home" XDG_CONFIG_HOME="$dir/home/.config"
export BD_NON_INTERACTIVE=1 BD_DISABLE_METRICS=1 BD_DISABLE_EVENT_FLUSH=1 BD_BACKUP_ENABLED=false BD_NO_HOOKS=1

"$here/scripts/demo-repo.sh" "$dir/pager"
cd "$dir/pager"
"$bd" init --prefix pager --stealth --skip-hooks --skip-agents --quiet --non-interactive --init-if-missing </dev/null >&2
"$bd" gc --skip-decay --json </dev/null >/dev/null
beads=
number=0
while [ "$number" -lt "$chains" ]; do
    number=$((number + 1))
    bead=$("$bd" create "The last page of part $number is lost" -t bug --silent --body-file - <<CONTRACT
<change-contract type="bug" scrutiny="medium">
  <problem>The pager loses its last page when the number of lines is no multiple of the page size.</problem>
  <scope><path>part$number/pager.sh</path></scope>
  <non-goals><item>New options</item></non-goals>
  <validation><criterion>\`./test.sh\` passes</criterion></validation>
  <acceptance><criterion>Every line of a file is on one of its pages.</criterion></acceptance>
</change-contract>
CONTRACT
)
    beads="$beads $bead"
done

# Each call of bd writes when it began and ended; bash has the time without starting another program.
cat >"$dir/bd" <<WRAPPER
#!/bin/bash
began=\$EPOCHREALTIME
'$bd' "\$@"
status=\$?
printf '%s %s\n' "\$began" "\$EPOCHREALTIME" >>'$dir/times'
exit \$status
WRAPPER
chmod +x "$dir/bd"
# shellcheck disable=SC2086 # ids of beads have no spaces
SP_BD="$dir/bd" SP_BENCH_ROOT="$dir/pager" "$figures" real-bd $beads
awk '{ sum += $2 - $1 } END { printf "bd_s %.3f\nbd_calls %d\n", sum, NR }' "$dir/times"
