# The far end of `gridfuse measure` on another machine: keeps files, runs programs, and takes all of it along when it goes, which it does
# when its input ends. One request a line on standard input, some with bytes behind it:
#
#   file MODE BYTES PATH      the bytes are a file; no answer
#   run NUMBER SECONDS BYTES  the bytes are a script for sh; answers `started`
#   poll NUMBER               answers `running`, or `ended STATUS`
#   kill NUMBER               ends a script with all that it has started; answers `killed`
#   get MOST PATH             answers `data BYTES`, these bytes and a line end; BYTES is - where there is no such file
#   nvcc PATH                 looks for the compiler; answers a line with it, one for each directory with its libraries, and `end`
umask 077
export LC_ALL=C
root=$(mktemp -d "${TMPDIR:-/tmp}/gridfuse-remote-XXXXXX") || exit 71
for tool in head setsid wc; do
    command -v "$tool" >/dev/null || { echo "$tool is missing there" >&2; rm -rf "$root"; exit 71; }
done

# Ends what a script has started: all that is in its process group.
end() {
    [ -f "$root/group.$1" ] && read -r group <"$root/group.$1" && kill -s KILL -- "-$group" 2>/dev/null
}

leave() {
    trap '' HUP INT TERM PIPE
    trap - EXIT
    for group in "$root"/group.*; do
        end "${group##*.}"
    done
    cd / || exit
    # What was killed may hold on for a moment.
    rm -rf "$root" 2>/dev/null || { sleep 1; rm -rf "$root"; }
    exit
}
trap leave EXIT HUP INT TERM PIPE

# The script runs in a session of its own, whose number is its process group's. A limit, should the other end be cut off.
start() {
    limit=
    command -v timeout >/dev/null && limit="timeout -s KILL $2"
    (
        trap - EXIT HUP INT TERM PIPE
        # shellcheck disable=SC2016,SC2086
        setsid sh -c 'echo $$ >"$1/new.$2" && mv "$1/new.$2" "$1/group.$2" && shift 2 && exec "$@"' sh \
            "$root" "$1" $limit sh "$root/script.$1" </dev/null >"$root/out.$1" 2>"$root/err.$1"
        status=$?
        # Whatever it left behind would disturb the next one.
        end "$1"
        rm -f "$root/group.$1"
        echo "$status" >"$root/new.$1" && mv "$root/new.$1" "$root/status.$1"
    ) </dev/null >/dev/null 2>&1 &
}

# Where nvcc is: as named, on the PATH, in the usual places.
find_nvcc() {
    if [ -n "$1" ]; then
        [ -x "$1" ] && echo "$1"
        return
    fi
    command -v nvcc && return
    for home in "$CUDA_HOME" "$CUDA_PATH" /usr/local/cuda /opt/cuda; do
        [ -n "$home" ] && [ -x "$home/bin/nvcc" ] && echo "$home/bin/nvcc" && return
    done
}

cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
# What the login shell has printed ends here.
printf 'gridfuse-ready\n%s\n%s\n%s\n' "$root" "$cores" "$CUDA_VISIBLE_DEVICES"

while read -r verb rest; do
    case $verb in
    file)
        mode=${rest%% *}
        rest=${rest#* }
        path=${rest#* }
        mkdir -p "${path%/*}" || exit 73
        head -c "${rest%% *}" >"$path" || exit 73
        chmod "$mode" "$path"
        ;;
    run)
        number=${rest%% *}
        rest=${rest#* }
        head -c "${rest#* }" >"$root/script.$number" || exit 73
        rm -f "$root/status.$number"
        start "$number" "${rest%% *}"
        echo started
        ;;
    poll)
        if [ -f "$root/status.$rest" ]; then
            read -r status <"$root/status.$rest"
            echo "ended $status"
        else
            echo running
        fi
        ;;
    kill)
        end "$rest"
        echo killed
        ;;
    get)
        path=${rest#* }
        most=${rest%% *}
        if [ -f "$path" ]; then
            bytes=$(wc -c <"$path")
            [ "$bytes" -gt "$most" ] && bytes=$most
            echo "data $((bytes))"
            head -c "$((bytes))" "$path"
            echo
        else
            echo 'data -'
        fi
        ;;
    nvcc)
        nvcc=$(find_nvcc "$rest")
        echo "$nvcc"
        real=$(readlink -f "$nvcc" 2>/dev/null)
        home=${real%/*/*}
        for libraries in "$home/lib64" "$home/lib"; do
            [ -n "$nvcc" ] && [ -f "$libraries/libcudadevrt.a" ] && echo "$libraries"
        done
        echo end
        ;;
    esac
done
