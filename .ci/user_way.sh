#!/usr/bin/env bash
# The whole way of a user with an environment of their own: install, train by id, kill, resume to the same bytes, extend,
# tune, export, use the exported policies, report, and look at it in a browser.
#
#   .ci/user_way.sh            installs into a clean virtual environment
#   VENV=.venv .ci/user_way.sh uses one that is there
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "${VENV:-}" ]; then
    bin=$(cd "$VENV/bin" && pwd)
    export PYTHONPATH=$root
else
    python3 -m venv "$work/venv"
    bin=$work/venv/bin
    "$bin/pip" install --quiet torch==2.13.0
    "$bin/pip" install --quiet "$root[report,tune,export]"
fi
softdpg() { "$bin/python" -P -m softdpg "$@"; }
cd "$work"

cat > my_env.py <<'PYTHON'
import gymnasium as gym
import numpy as np


class Push(gym.Env):
    """A mass on a line, paid by the whole decimetres of its position."""

    observation_space = gym.spaces.Box(-2, 2, (2,), np.float32)
    action_space = gym.spaces.Box(-3, 3, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([self.np_random.uniform(-1, 0), 0.0])
        return self.state.astype(np.float32), {}

    def step(self, action):
        velocity = 0.9 * self.state[1] + 0.05 * float(action[0])
        self.state = np.array([np.clip(self.state[0] + 0.1 * velocity, -2, 2), velocity])
        return self.state.astype(np.float32), float(np.floor(10 * self.state[0]) / 10), False, False, {}


gym.register("Push-v0", Push, max_episode_steps=50)
PYTHON

settings=(--env ./my_env.py:Push-v0 --algo soft-td3 --n-envs 4 --net-arch 16 16 --samples 4 --batch-size 32
    --learning-starts 200 --checkpoint-every 200 --evaluate-every 200 --evaluation-episodes 2)
train() { softdpg train "${settings[@]}" "$@"; }

echo "== train, and the same once more with kill -9"
train --steps 1200 --out runs/whole
"$bin/python" -P -m softdpg train "${settings[@]}" --steps 1200 --out runs/killed &
pid=$!
until [ -d runs/killed/checkpoints ] && [ -n "$(ls runs/killed/checkpoints)" ]; do sleep 0.1; done
kill -9 $pid
wait $pid || true
train --steps 1200 --out runs/killed
cmp runs/whole/model.safetensors runs/killed/model.safetensors
cmp runs/whole/evaluations.csv runs/killed/evaluations.csv

echo "== extend"
train --steps 1600 --out runs/killed
tail -n 1 runs/killed/evaluations.csv | grep -q ^1600,

echo "== tune"
softdpg train "${settings[@]}" --n-envs 1 --write-config base.yaml
softdpg tune --config base.yaml --trials 5 --budget 400 --evaluate-every 200 --params sigma learning-rate --out search
softdpg train --config search/best.yaml --steps 400 --out runs/best

echo "== export, and the same returns from each policy"
for format in onnx numpy; do softdpg export runs/whole --env ./my_env.py:Push-v0 --to $format; done
"$bin/python" -P - <<'PYTHON'
import sys

sys.path[:0] = [".", "runs/whole"]
import gymnasium as gym
import onnxruntime

import my_env
import policy
from softdpg import SoftTD3

session = onnxruntime.InferenceSession("runs/whole/policy.onnx")
model = SoftTD3.load("runs/whole/model.zip", device="cpu")
policies = {
    "predict": lambda x: model.predict(x, deterministic=True)[0],
    "onnx": lambda x: session.run(None, {"observation": x[None]})[0][0],
    "numpy": policy.predict,
}


def returns(act):
    env, totals = gym.make("Push-v0"), []
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, over = total + reward, terminated or truncated
        totals.append(total)
    return totals


found = {name: returns(act) for name, act in policies.items()}
print(found)
for name in ("onnx", "numpy"):
    assert all(abs(a - b) < 0.5 for a, b in zip(found[name], found["predict"], strict=True)), found
PYTHON

echo "== report"
softdpg report runs
if grep -q "†" runs/report/tables.md; then echo "daggers on an environment outside the paper" >&2; exit 1; fi
if command -v chromium >/dev/null; then
    chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom "file://$work/runs/report/report.html" \
        2>/dev/null > page.html
    grep -q "Push-v0" page.html
fi
echo "all the way"
