"""The command ``softdpg`` in a process of its own, forked from a server that has imported JAX already.

``test_cli.py`` and the tests of ``experiments/local.py`` start new interpreters.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from processes import context

from softdpg.cli import main


def softdpg(*arguments, cwd=None):
    """Run the command in the directory ``cwd``; return the same as ``subprocess.run``."""
    line = ["softdpg", *map(str, arguments)]
    return in_a_process(_command, line, cwd=cwd)


def in_a_process(function, *arguments, cwd=None):
    """Call a function in a process of its own in the directory ``cwd``; return the same as ``subprocess.run``."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        process = context.Process(target=_call, args=(function, arguments, cwd or Path.cwd(), out, err))
        process.start()
        process.join()
        return subprocess.CompletedProcess(arguments, process.exitcode, out.read_text(), err.read_text())


def _call(function, arguments, cwd, *streams):
    for descriptor, path in enumerate(streams, start=1):
        with path.open("wb") as file:
            os.dup2(file.fileno(), descriptor)
    os.chdir(cwd)
    sys.path = [path for path in sys.path if Path(path).is_absolute()]  # without the current directory, as the script
    function(*arguments)


def _command(line):
    warnings.simplefilter("ignore")
    sys.argv = line
    main()
