"""Runs in the process of the test instead of processes of their own, which would import JAX each."""

from contextlib import redirect_stderr, redirect_stdout

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
