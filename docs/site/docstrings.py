"""Prepare docstrings for the site: Sphinx roles become code, and private arguments are hidden."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|data|func|meth|mod|attr):`~?([^`]+)`")
_PRIVATE = re.compile(r"^[ \t]*:param _\w+:.*?(?=^[ \t]*:|\Z)", re.M | re.S)


class ReadableDocstrings(griffe.Extension):
    """Rewrite every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Replace Sphinx roles by what they name, without the path of the module."""
        if obj.docstring is not None:
            text = _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", obj.docstring.value)
            obj.docstring.value = _PRIVATE.sub("", text)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Remove private arguments from the signature of the constructor."""
        constructor = cls.members.get("__init__")
        if isinstance(constructor, griffe.Function):
            for name in [parameter.name for parameter in constructor.parameters if parameter.name.startswith("_")]:
                del constructor.parameters[name]
