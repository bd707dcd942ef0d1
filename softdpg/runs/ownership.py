"""Whose a run is: this user's own runs may choose the module that is imported, anybody else's need ``--trust``.

A run that is made here gets a signature in its ``config.json``: an HMAC of its settings, of its directory and of the
file of its module, under a secret key of this user. The key is ``key`` in ``~/.local/state/softdpg``, or
``$XDG_STATE_HOME/softdpg``, and only the user can read it. Who owns a file says nothing: an archive that the user
unpacks is the user's, too. So a run from elsewhere is not the user's own, and neither is an own run after somebody
changed its settings, moved it, or put another file in the place of its module.
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

SIGNATURE = "signature"  # in config.json
_KEY_BYTES = 32


def signed(config: Mapping[str, Any], directory: Path, modules: list[str]) -> dict[str, Any]:
    """Return the contents of a ``config.json`` with this user's signature, or without one if there can be no key.

    :param config: the contents
    :param directory: of the run
    :param modules: what is imported for the run: names of modules and paths of files
    """
    key = _key(create=True)
    unsigned = {name: value for name, value in config.items() if name != SIGNATURE}
    return unsigned | ({SIGNATURE: _sign(key, unsigned, directory, modules)} if key else {})


def is_own(config: Mapping[str, Any], directory: Path, modules: list[str]) -> bool:
    """Return whether this user's key signed a ``config.json`` in this directory; see :func:`signed`."""
    key, signature = _key(create=False), config.get(SIGNATURE)
    if key is None or not isinstance(signature, str):
        return False
    return hmac.compare_digest(signature.encode(), _sign(key, config, directory, modules).encode())


def _sign(key: bytes, config: Mapping[str, Any], directory: Path, modules: list[str]) -> str:
    settings = {name: value for name, value in config.items() if name != SIGNATURE}
    about = [settings, str(directory.resolve()), [_origin(module) for module in modules]]
    return hmac.new(key, json.dumps(about, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _origin(module: str) -> str:
    """Return the file of a module, or of the package that it is in, without importing anything."""
    if module.endswith(".py"):
        return str(Path(module).expanduser().resolve())
    top = module.partition(".")[0]
    for place in (None, [str(Path.cwd())]):  # as the environment is imported: the current directory last
        found = PathFinder.find_spec(top, place)
        if found is not None:
            return str(found.origin or list(found.submodule_search_locations or ()))
    return ""


def _key(*, create: bool) -> bytes | None:
    """Return this user's key; None if there is none, or if others could have read or written it."""
    try:
        root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        path = root / "softdpg" / "key"
        if create and not os.path.lexists(path):
            _create(path)
        about = path.parent.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            about = os.fstat(fd)
            private = stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
            key = file.read(_KEY_BYTES + 1) if private else b""
    except (OSError, RuntimeError):  # no home, or not writable
        return None
    return key if len(key) == _KEY_BYTES else None


def _create(path: Path) -> None:
    """Write a new key. Of several processes that do so at once, one key stays, and none is ever seen half."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".key-{secrets.token_hex(8)}")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
    try:
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
