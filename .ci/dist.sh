#!/usr/bin/env bash
# Build wheel and sdist in dist/, check them with twine, and try the wheel in a clean environment.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet build twine
rm -rf "$root/dist"
"$work/tools/bin/python" -m build --quiet --outdir "$root/dist" "$root"
"$work/tools/bin/twine" check --strict "$root"/dist/*

echo "== the wheel has the package and its data, and nothing else"
"$work/tools/bin/python" - "$root"/dist/*.whl <<'PYTHON'
import sys
import zipfile

files = zipfile.ZipFile(sys.argv[1]).namelist()
others = [file for file in files if not file.startswith("softdpg/") and ".dist-info/" not in file]
kinds = {file.rpartition(".")[2] for file in files if file.startswith("softdpg/")}
assert not others, others
assert kinds == {"py", "typed", "html", "json", "safetensors"}, kinds
assert "softdpg/report/report.html" in files
assert sum(file.startswith("softdpg/zoo/policies/") for file in files) >= 2
PYTHON

echo "== the wheel in a clean environment"
python3 -m venv "$work/clean"
# The CPU build of torch, if there is one at hand: the default one brings GPU libraries.
"$work/clean/bin/pip" install --quiet torch==2.13.0
"$work/clean/bin/pip" install --quiet "$root"/dist/*.whl
cd "$work"
softdpg() { "$work/clean/bin/softdpg" "$@"; }
softdpg --version
softdpg zoo
softdpg eval --zoo MountainCarDiscrete --episodes 2
softdpg train --env softdpg/PendulumDiscrete-v0 --algo soft-td3 --steps 400 --learning-starts 200 --out run
softdpg eval run --episodes 1
"$work/clean/bin/python" -c "
from softdpg import SoftTD3
model = SoftTD3('MlpPolicy', 'softdpg/MountainCarDiscrete-v0', learning_starts=50).learn(100)
model.save('model')
SoftTD3.load('model')
"
echo "the wheel works"
