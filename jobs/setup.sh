#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
# Install from Debian what mhf needs and the machine lacks. Quick when nothing is missing.
# As root, or with sudo; without either it names the missing packages and exits 2.
# usage: setup.sh [--full]
#   --full  also what the long test sets need: libFuzzer, Python's virtual environments, Slurm
set -euo pipefail

build="build-essential cmake ninja-build pkg-config"
libraries="libopenmpi-dev openmpi-bin libhdf5-openmpi-dev hdf5-tools libblis-openmp-dev libdnnl-dev
    libjansson-dev libyaml-dev libpcre2-dev libutf8proc-dev libgsl-dev librandom123-dev
    libxxhash-dev libzstd-dev zlib1g-dev"
tests="libcunit1-dev zstd"
case ${1:-} in
    '') ;;
    --full) tests+=" clang libomp-dev python3-venv slurmctld slurmd slurm-client munge" ;;
    *) sed -n '5,6s/^# //p' "$0" >&2; exit 2 ;;
esac
analysis="python3 python3-pip python3-numpy python3-scipy python3-h5py python3-matplotlib"

started=$SECONDS
missing=()
for package in $build $libraries $tests $analysis; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
    echo "set-up: every package is present"
    exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null && { ! command -v sudo >/dev/null || [ ! -t 0 ]; }; then
        echo "set-up: these packages are missing, and installing them needs root or sudo:" >&2
        echo "    apt-get install ${missing[*]}" >&2
        exit 2
    fi
    as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Another apt may be at work on a machine that has just started: wait for its lock.
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" \
        >"$log" 2>&1 </dev/null && return
    cat "$log" >&2
    echo "set-up: apt-get $1 failed" >&2
    exit 4
}
echo "set-up: installing ${#missing[@]} packages: ${missing[*]}"
apt update
apt install -y --no-install-recommends "${missing[@]}"
echo "set-up: ${#missing[@]} packages installed in $((SECONDS - started)) s"
