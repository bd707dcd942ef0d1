"""The process of one run: ``softdpg train`` with one thread, which never outlives the process that started it."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from softdpg.errors import UserError
from softdpg.runs import files
from softdpg.runs.compiled import keep_compiled
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.terminal import speak_any_encoding
from softdpg.runs.threads import use_one_thread
from softdpg.runs.training import train

_PR_SET_PDEATHSIG = 1


def start(config: RunConfig, out: Path) -> subprocess.Popen[bytes]:
    """Start a run in ``out``; what it prints is appended to ``train.log`` there."""
    environment = dict(os.environ)
    use_one_thread(environment)
    keep_compiled(environment)
    # -P: a module of ours, or one that ours import, is not looked for in the current directory.
    command = [sys.executable, "-P", "-m", __name__, str(os.getpid())]
    command += [json.dumps(config.to_json()), str(out)]
    out.mkdir(parents=True, exist_ok=True)
    with open(files.open_regular(RunDirectory(out).log, os.O_WRONLY | os.O_APPEND), "ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal reaches the parent alone, which then ends its runs
        )


def reason(out: Path, exit_code: int) -> str:
    """Why a run failed, in one line: the last one that it printed in its own name, or the last of all."""
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    try:
        lines = files.read_bytes(RunDirectory(out).log, files.TABLE).decode(errors="replace").strip().splitlines()
    except (OSError, files.FileError):
        lines = []
    ours = [line for line in lines if line.startswith("softdpg: ") and not line.startswith("softdpg: warning: ")]
    last = (ours or lines or [f"exit code {exit_code}"])[-1]
    return last.removeprefix("softdpg: ").removeprefix("error: ")


def _main() -> None:
    # The kernel kills this process together with its parent. Nothing is lost: the run resumes from its checkpoint.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv.pop(1)):
        sys.exit("the process that started this run is gone")
    speak_any_encoding()
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
