#!/usr/bin/env bash
# Tries the configuration beside this file in a real Kakoune, without a terminal: opens a program, sees the diagnostic, applies a rewrite
# and compares with what `gridfuse rewrite` writes. Needs kak, kak-lsp and gridfuse on PATH; on Debian and Ubuntu:
#
#   sudo apt-get install kakoune && cargo install --locked kak-lsp && editors/kakoune/try.sh
#
# GRIDFUSE_TRY_SECONDS says how long anything may take.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${GRIDFUSE_TRY_SECONDS:-60}

work=$(mktemp -d)
session=gridfuse-try-$$
trap 'echo kill! | kak -p "$session" 2>/dev/null || true; sleep 1; rm -rf "$work"' EXIT
mkdir -p "$work"/{home/.config/kak,program,expected}
mkdir -m 700 "$work/run"
cp "$here/gridfuse.kak" "$work/home/.config/kak/"
cat >"$work/home/.config/kak/kakrc" <<CONFIGURATION
eval %sh{kak-lsp}
source "%val{config}/gridfuse.kak"
lsp-enable
CONFIGURATION
cp "$here/../../tests/corpus/bfs.cu" "$work/program"
cp "$here/../../tests/corpus/bfs.cu" "$work/expected"
line=$(grep -n 'expand<<<' "$work/program/bfs.cu" | head -n 1 | cut -d: -f1)
(cd "$work/expected" && gridfuse rewrite bfs.cu --at "$line" --apply aggregate-block --in-place >/dev/null 2>&1)

export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config XDG_RUNTIME_DIR=$work/run TMPDIR=$work/run GRIDFUSE_ANSWER_WITHIN_MS=600000
cd "$work/program"
kak -s "$session" -ui dummy -e "rename-client editor" bfs.cu +"$line":10 </dev/null >"$work/kak.log" 2>&1 &

# Has the editor do something.
editor() {
    echo "evaluate-commands -client editor %{ $1 }" | kak -p "$session"
}
# Waits until a command succeeds; $1 says for what.
wait_for() {
    local end=$((SECONDS + seconds))
    until "${@:2}" 2>/dev/null; do
        if [ $SECONDS -ge $end ]; then
            echo "kakoune/try.sh: waited in vain: $1" >&2
            editor "buffer *debug*; write -force $work/debug" || true
            sleep 1
            cat "$work/kak.log" "$work/debug" >&2
            exit 1
        fi
        sleep 0.2
    done
    echo "ok: $1"
}
finds() {
    editor 'echo -to-file '"$work/found"' %opt{lsp_inline_diagnostics}'
    sleep 0.2
    grep -q "$line\..*DiagnosticWarning" "$work/found"
}
rewritten() {
    editor 'write-all'
    sleep 0.2
    cmp -s "$work/expected/bfs.cu" bfs.cu && cmp -s "$work/expected/gridfuse.cuh" gridfuse.cuh
}
wait_for "the diagnostic" finds
editor 'lsp-code-action "Collect launches per block.*"'
wait_for "the rewrite is what 'gridfuse rewrite' makes of it" rewritten
echo "Kakoune has applied the rewrite, and saved bfs.cu and gridfuse.cuh; kak-lsp is $(kak-lsp --version)"
