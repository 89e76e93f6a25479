#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
# Rooms include only rooms above them: base; tensor; text, hash; model; parallel; store; train,
# infer, study; cmd. Prints every include that breaks the order; exit 1 if there is one.
set -euo pipefail
cd "$1"

declare -A level=([base]=0 [tensor]=1 [text]=2 [hash]=2 [model]=3 [parallel]=4 [store]=5
                  [train]=6 [infer]=6 [study]=7 [cmd]=8)
bad=0
check() { # file, room of the file
    local file=$1 room=$2 other
    while read -r other; do
        [[ -v level[$other] ]] || { echo "$file: includes unknown room mhf/$other.h"; bad=1; continue; }
        [[ $other == "$room" ]] && continue
        if ((level[$other] >= level[$room])); then
            echo "$file: room $room may not include mhf/$other.h"
            bad=1
        fi
    done < <(sed -n 's/^#include [<"]mhf\/\([a-z]*\)\.h[>"].*/\1/p' "$file")
    if grep -nE '^#include "\.\./' "$file"; then
        echo "$file: a room's private headers stay private"
        bad=1
    fi
}
n=0
for file in src/*/*.[ch] include/mhf/*.h; do
    case $file in
    src/*) room=${file#src/} room=${room%%/*} ;;
    *) room=${file##*/} room=${room%.h} ;;
    esac
    check "$file" "$room"
    n=$((n + 1))
done
echo "include order: $n files checked"
exit $bad
