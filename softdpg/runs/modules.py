"""Environments of one's own by id: ``mypackage.envs:MyEnv-v0``, or ``./my_env.py:MyEnv-v0`` for a file.

Importing a module runs its code. Whoever calls :func:`import_module_of` must have the id from the command line or be
told to trust where it comes from; the settings of a run directory are neither.
"""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from softdpg.errors import UserError

HOW = "an environment of your own is given with its module, mypackage.envs:MyEnv-v0 or ./my_env.py:MyEnv-v0"


def names_a_module(env_id: str) -> bool:
    """Whether making this environment imports a module."""
    return ":" in env_id


def import_module_of(env_id: str) -> str:
    """Import the module of an id, which registers the environment; returns the id that Gymnasium knows.

    Modules are looked for in the current directory as well, after all others.
    """
    module, _, name = env_id.rpartition(":")
    if not module:
        return env_id
    try:
        if module.endswith(".py"):
            _import_file(Path(module))
        else:
            _look_in(Path.cwd())
            importlib.import_module(module)
    except UserError:
        raise
    except BaseException as error:  # of the module's own code
        if isinstance(error, KeyboardInterrupt):
            raise
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"cannot import the module of --env {env_id}: {cause}") from None
    return name


def _import_file(path: Path) -> None:
    path = path.expanduser().absolute()
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    known = sys.modules.get(path.stem)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return
        raise UserError(f"the name of {path} is taken by the module {path.stem!r}; give the file another name")
    _look_in(path.parent)  # for what the file itself imports
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def _look_in(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.append(str(directory))
