"""Let pages of the site link to files of the repository outside ``docs/``.

The files are copied to ``repository/`` in the site, and the links lead to the copies.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r"\]\((\.\./[^)#\s]+)")
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def on_files(files: Files, config: Any) -> Files:
    """Add every file outside ``docs/`` that a page links to."""
    root = Path(config.docs_dir).parent
    for page in list(files.documentation_pages()):
        for link in _LINK.findall(_FENCE.sub("", page.content_string)):
            target = _outside(page.src_uri, link)
            if target and (root / target).is_file() and f"repository/{target}" not in files.src_uris:
                files.append(File.generated(config, f"repository/{target}", abs_src_path=str(root / target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links that leave ``docs/``, so that they lead to the copies."""

    def rewritten(match: re.Match[str]) -> str:
        target = _outside(page.file.src_uri, match[1])
        if target is None:
            return match[0]
        return "](" + posixpath.relpath(f"repository/{target}", posixpath.dirname(page.file.src_uri) or ".")

    return _LINK.sub(rewritten, markdown)


def _outside(page: str, link: str) -> str | None:
    """Return the path of a link's target in the repository if it is outside ``docs/``, else None."""
    target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if target.startswith(("docs" + os.sep, "..")) else target
