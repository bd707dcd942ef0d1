"""Runs as processes on this machine, one thread each.

A process never outlives the process that started it. This module is also the program that the processes execute.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from softdpg.errors import UserError
from softdpg.experiments.jobs import Ended, Job
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.display import speak_any_encoding
from softdpg.runs.process import keep_compiled, use_one_thread
from softdpg.runs.training import train

_PR_SET_PDEATHSIG = 1


class LocalEngine:
    """Execute jobs in processes on this machine.

    :param slots: number of processes at a time; all cores that this process may use by default
    """

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or cores()
        self._waiting: deque[Job] = deque()
        self._running: dict[Job, subprocess.Popen[bytes]] = {}

    def start(self, jobs: Sequence[Job]) -> None:
        """Start as many jobs as there are slots; the others wait."""
        self._waiting.extend(jobs)
        self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self.slots:
            job = self._waiting.popleft()
            self._running[job] = start_run(job.config, job.path)

    def ended(self) -> list[Ended]:
        """Return the jobs that have ended since the last call; waiting jobs take their slots."""
        ended = []
        for job, process in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[job]
                finished = code == 0 and job.directory.read_status().get("state") == "finished"
                message = "" if finished else failure_message(job.path, code)
                ended.append(Ended(job, 0 if finished else code or 1, message))
        self._fill()
        return ended

    def stop(self) -> None:
        """Ask the running jobs to write a checkpoint and end, and wait for them."""
        self._waiting.clear()
        for process in self._running.values():
            process.terminate()
        try:
            for process in self._running.values():
                process.wait()
        except KeyboardInterrupt:
            for process in self._running.values():
                process.kill()
            raise


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_run(config: RunConfig, out: Path) -> subprocess.Popen[bytes]:
    """Start or resume a run in a process of its own. Its output is appended to ``train.log`` in ``out``.

    :param config: settings of the run
    :param out: the run directory
    """
    environment = dict(os.environ)
    use_one_thread(environment)
    keep_compiled(environment)
    # -P keeps Python from importing modules of the current directory.
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
            start_new_session=True,  # Ctrl-C in the terminal reaches only the parent, which then ends its runs
        )


def failure_message(out: Path, exit_code: int) -> str:
    """Return one line that says why a run failed: the last line of ``softdpg:`` in its log, or the last line at all.

    :param out: the run directory
    :param exit_code: of the run's process; negative for a signal
    """
    if exit_code == 0:
        return "the process ended before the run was finished"
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    try:
        lines = files.read_bytes(RunDirectory(out).log, files.TABLE).decode(errors="replace").strip().splitlines()
    except (OSError, files.FileError):
        lines = []
    own = [line for line in lines if line.startswith("softdpg: ") and not line.startswith("softdpg: warning: ")]
    last = (own or lines or [f"exit code {exit_code}"])[-1]
    return last.removeprefix("softdpg: ").removeprefix("error: ").partition("; resume from ")[0]


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
