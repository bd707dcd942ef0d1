"""Runs and commands in the process of the test instead of processes of their own, which would import JAX each."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.experiments.jobs import Ended
from softdpg.experiments.local import failure_message
from softdpg.runs.training import train


class InlineRun:
    """Stands for the process of :func:`softdpg.experiments.local.start_run`; it has ended when it is made."""

    def __init__(self, config, out):
        out.mkdir(parents=True, exist_ok=True)
        with (out / "train.log").open("a") as log, redirect_stdout(log), redirect_stderr(log):
            try:
                self.code = train(config, out)
            except UserError as error:
                print(f"softdpg: error: {error}")
                self.code = 2

    def poll(self):
        return self.code

    def wait(self):
        return self.code

    def terminate(self):
        pass


class InlineEngine:
    """Makes one run at each call of :meth:`ended`."""

    slots = 1

    def __init__(self, *_):
        self.waiting = []

    def start(self, jobs):
        self.waiting += jobs

    def ended(self):
        job = self.waiting.pop(0)
        code = InlineRun(job.config, job.path).code
        return [Ended(job, code, failure_message(job.path, code) if code else "")]

    def stop(self):
        self.waiting.clear()


def command(*arguments):
    """Run ``softdpg`` and return its exit code, standard output and standard error; an exception is a traceback."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    line = ["softdpg", *map(str, arguments)]
    with patch.object(sys, "argv", line), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    if code == 2:
        assert err.getvalue().startswith("softdpg: error: ")
        assert len(err.getvalue().splitlines()) == 1
    return code, out.getvalue(), err.getvalue()
