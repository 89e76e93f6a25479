# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034,SC2154
# What the scripts that do a whole job share: resumable steps, packages, the build. They source it
# from the repository's root and set `out`, `times` (a file) and `ranks`.

python=/usr/bin/python3
mhf=${MHF:-$PWD/build/release/mhf}

# Ranks may outnumber cores: a waiting rank gives its core away, and each has one thread.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_io=romio321
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
export OMP_NUM_THREADS=1
run_mhf() { mpirun --quiet --bind-to none -n "$ranks" "$mhf" "$@"; }

say() { printf '\n== %s\n' "$*"; }

# step NAME OUTPUT COMMAND...: run the command unless its output is whole; note its seconds.
step() {
    local name=$1 output=$2 begun=$EPOCHREALTIME code=0
    shift 2
    [ -e "$output" ] && return
    say "$name"
    "$@" || code=$?
    awk -v name="$name" -v a="$begun" -v b="$EPOCHREALTIME" \
        'BEGIN { printf "%s\t%.1f\n", name, b - a }' >>"$times"
    [ $code = 0 ] && return
    echo "$(basename "$0" .sh): '$name' ended with exit code $code; the same command goes on" \
        "from here" >&2
    exit $code
}

# keep_settings TEXT: what the results in `out` are of; results of other settings are not mixed in.
keep_settings() {
    local file=$out/settings.txt
    mkdir -p "$out"
    [ -e "$file" ] || { printf '%s\n' "$1" >"$file.part" && mv "$file.part" "$file"; }
    [ "$(<"$file")" = "$1" ] && return
    echo "$(basename "$0" .sh): $out holds results of: $(<"$file"); asked for: $1;" \
        "name another folder with --out, or remove this one" >&2
    exit 2
}

# into FILE COMMAND...: standard output to a file that appears only when whole.
into() {
    local file=$1
    shift
    "$@" >"$file.part" && mv "$file.part" "$file"
}

# fetch_packages FOLDER PACKAGE...: unpack Debian packages into FOLDER/unpacked; none is installed.
fetch_packages() (
    folder=$PWD/$1
    shift
    sandbox=()
    [ "$(id -u)" = 0 ] && sandbox=(-o APT::Sandbox::User=root)
    rm -rf "$folder.part" && mkdir -p "$folder.part" && cd "$folder.part" &&
        apt-get -qq "${sandbox[@]}" download "$@" &&
        for package in *.deb; do dpkg-deb -x "$package" unpacked || return; done &&
        mv "$folder.part" "$folder"
)

# build: the release, unless MHF names a program.
build() {
    [ "${MHF:-}" ] && return
    { cmake --preset release && cmake --build --preset release --target mhf; } \
        >"$out/log/build.log" 2>&1 && return
    tail -n 30 "$out/log/build.log" >&2
    return 1
}
