"""Docstrings for the site: every parameter of an algorithm, inherited ones included, and roles as plain code."""

import importlib
import inspect
import re
from typing import Any

import griffe

import softdpg

_PARAM = re.compile(r"^[ \t]*:param (?:[^\s:]+ )?(\w+):(.*?)(?=^[ \t]*:\w|^[ \t]*\.\. |^[ \t]*$|\Z)", re.M | re.S)
_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")


class InheritedParameters(griffe.Extension):
    """Completes the docstrings of our algorithms with ``:param`` lines of the classes that they inherit from."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Show what a Sphinx role names as code."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(lambda match: f"`{match[1]}`", obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Append what is missing, in the order of the constructor."""
        if not cls.path.startswith("softdpg.algorithms.") or cls.docstring is None:
            return
        implementation = getattr(importlib.import_module(cls.path.rpartition(".")[0]), cls.name, None)
        if not hasattr(implementation, "learn"):
            return
        cls.docstring.value = complete(implementation, cls.docstring.value)


def complete(cls: type, docstring: str) -> str:
    """``docstring`` with a line for every parameter of the constructor, in its order."""
    described: dict[str, str] = {}
    # What an algorithm of the family leaves out is as in DDPG or SoftDDPG, and failing that as in SB3.
    for base in (*reversed(cls.__mro__), softdpg.DDPG, softdpg.SoftDDPG, cls):
        described |= parameters(inspect.getdoc(base) if base.__dict__.get("__doc__") else "")
    described |= parameters(docstring)
    text = docstring[: docstring.index(":param")].rstrip() if ":param" in docstring else docstring.rstrip()
    names = [name for name in inspect.signature(cls).parameters if name in described]
    return text + "\n\n" + "\n".join(f":param {name}: {described[name]}" for name in names) + "\n"


def parameters(docstring: str | None) -> dict[str, str]:
    """The ``:param`` lines of a docstring: name to text on one line."""
    return {name: " ".join(text.split()) for name, text in _PARAM.findall(docstring or "")}
