"""Turn the formulas of a page, ``$...$`` and ``$$...$$``, into MathML, which browsers show without scripts or network.

Without the package latex2mathml, formulas stay as they are.
"""

import re
from typing import Any

try:
    from latex2mathml.converter import convert
except ImportError:
    convert = None

# Code is left alone: fenced blocks and code spans match first.
_PART = re.compile(r"^```.*?^```|`[^`\n]+`|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+(?:\n[^$\n]+)?)\$", re.M | re.S)
# TeX that the converter does not know, and what it knows instead
_PLAIN = [
    (r"\\[Bb]igg?[lr]?(?![a-zA-Z])", ""),
    (r"\\tfrac", r"\\frac"),
    (r"\\frac(\d|\\\w+)\s*(\d|[a-z])", r"\\frac{\1}{\2}"),
]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Convert every formula of a page."""
    return _PART.sub(_converted, markdown) if convert else markdown


def _converted(match: re.Match[str]) -> str:
    tex = match["block"] or match["inline"]
    if tex is None:
        return match[0]
    for pattern, replacement in _PLAIN:
        tex = re.sub(pattern, replacement, tex)
    mathml = convert(tex, display="block" if match["block"] else "inline")
    # Characters that Markdown would take for its own
    for character in "|*_":
        mathml = mathml.replace(character, f"&#{ord(character)};")
    # In a span, as Markdown takes a line that begins with <math> for a block
    return mathml if match["block"] else f"<span>{mathml}</span>"
