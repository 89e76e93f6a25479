#!/bin/bash
# SPDX-License-Identifier: ISC
# Exported directories beside the transformers library; its packages go to a folder of the build.
# usage: transformers.sh BUILD
# With MHF_RELEASED_CODE naming a checkout of the released model code (its folder hashformer), the models
# are run there too: that installs torch, some gigabytes, unless MHF_TORCH_PYTHON names a Python with torch,
# transformers 5.3.0, ml_dtypes, h5py and mmh3.
# Exit code 77: the library can't be had. MHF names the program, MHF_GOLDEN golden folders.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?BUILD}/transformers
python=${MHF_TORCH_PYTHON:-$folder/venv/bin/python3}
packages="transformers==5.3.0 safetensors numpy ml_dtypes"
[ -z "${MHF_RELEASED_CODE:-}" ] || packages+=" torch mmh3 h5py"

mkdir -p "$folder"
if [ -z "${MHF_TORCH_PYTHON:-}" ]; then
    [ -x "$python" ] || python3 -m venv "$folder/venv" >"$folder/log" 2>&1 || {
        echo "skipped: no virtual environment: apt-get install python3-venv"
        exit 77
    }
    if ! "$python" -m pip -q --disable-pip-version-check --timeout 20 --retries 1 install $packages \
        >"$folder/log" 2>&1; then
        tail -n 3 "$folder/log"
        echo "skipped: the packages $packages can't be installed"
        exit 77
    fi
fi
[ "${MHF_RELEASED_CODE:-}" ] || echo "skipped: the released model code: MHF_RELEASED_CODE is not set"
exec "$python" "$here/transformers_models.py" "$@"
