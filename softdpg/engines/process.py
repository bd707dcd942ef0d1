"""The process of one run: ``softdpg train`` with one thread, which never outlives the process that started it."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.threads import use_one_thread
from softdpg.runs.training import train

_PR_SET_PDEATHSIG = 1


def start(config: RunConfig, out: Path) -> subprocess.Popen[bytes]:
    """Start a run in ``out``; what it prints is appended to ``train.log`` there."""
    environment = dict(os.environ)
    use_one_thread(environment)
    command = [sys.executable, "-m", __name__, str(os.getpid())]
    command += [json.dumps(config.to_json()), str(out)]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "train.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal reaches the parent alone, which then ends its runs
        )


def reason(out: Path, exit_code: int) -> str:
    """Why a run failed, in one line: the last line it printed."""
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    try:
        lines = (out / "train.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1].removeprefix("softdpg: error: ") if lines else f"exit code {exit_code}"


def _main() -> None:
    # The kernel kills this process together with its parent. Nothing is lost: the run resumes from its checkpoint.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv.pop(1)):
        sys.exit("the process that started this run is gone")
    try:
        code = train(RunConfig.from_json(json.loads(sys.argv[1])), Path(sys.argv[2]))
    except UserError as error:
        print(f"softdpg: error: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    _main()
