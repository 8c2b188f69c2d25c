#!/usr/bin/env bash
# Tries the configuration beside this file in a real Kate: opens a program, applies the best rewrite by keys, saves, and compares with
# what `gridfuse rewrite` writes. Needs Kate, Xvfb, xdotool, dbus-run-session, and gridfuse on PATH; on Debian and Ubuntu:
#
#   sudo apt-get install --no-install-recommends kate xvfb xdotool dbus libxcb-cursor0 && editors/kate/try.sh
#
# Where something is slow, GRIDFUSE_TRY_SECONDS says how long Kate gets for each step.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${GRIDFUSE_TRY_SECONDS:-8}

work=$(mktemp -d)
started=()
# With all that they have started.
trap 'for group in "${started[@]}"; do kill -- "-$group" 2>/dev/null || true; done; sleep 1; rm -rf "$work"' EXIT
mkdir -p "$work"/{home/.config/kate/lspclient,home/.local/share/org.kde.syntax-highlighting/syntax,program,expected}
mkdir -m 700 "$work/run"
cp "$here/settings.json" "$work/home/.config/kate/lspclient/"
cp "$here/cuda.xml" "$work/home/.local/share/org.kde.syntax-highlighting/syntax/"
# Kate asks before it starts a server for the first time.
cat >"$work/home/.config/katerc" <<CONFIGURATION
[Kate Plugins]
lspclientplugin=true

[lspclient]
AllowedServerCommandLines=$(command -v gridfuse) lsp
CONFIGURATION
cp "$here/../../tests/corpus/bfs.cu" "$work/program"
cp "$here/../../tests/corpus/bfs.cu" "$work/expected"
line=$(grep -n 'expand<<<' "$work/program/bfs.cu" | head -n 1 | cut -d: -f1)
(cd "$work/expected" && gridfuse rewrite bfs.cu --at "$line" --apply optimize --in-place >/dev/null 2>&1)

export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config XDG_RUNTIME_DIR=$work/run LC_ALL=C.UTF-8 DISPLAY=:77 GRIDFUSE_ANSWER_WITHIN_MS=600000
setsid Xvfb "$DISPLAY" -screen 0 1400x900x24 >"$work/xvfb.log" 2>&1 &
started+=($!)
sleep 2
cd "$work/program"
setsid dbus-run-session -- kate --new --block --line "$line" --column 10 bfs.cu >"$work/kate.log" 2>&1 &
started+=($!)
sleep "$seconds"
xdotool search --name bfs windowfocus
# The code actions, of which the first one is the best.
xdotool key alt+Return
sleep "$seconds"
xdotool key Down Return
sleep "$seconds"
# Saves all.
xdotool key ctrl+l
sleep "$seconds"
for file in bfs.cu gridfuse.cuh; do
    if ! cmp "$work/expected/$file" "$work/program/$file"; then
        echo "kate/try.sh: $file isn't what 'gridfuse rewrite' makes of it" >&2
        cat "$work/kate.log" >&2
        exit 1
    fi
done
echo "Kate has applied the rewrite, and saved bfs.cu and gridfuse.cuh: $(kate --version)"
