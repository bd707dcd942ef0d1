"""Complete pages: links of types in the reference, pictures and table of the zoo, conclusions above tables.

Types of other packages cannot be looked up without network. So their addresses stand here.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

_SB3 = "https://stable-baselines3.readthedocs.io/en/master/"
_TYPES = {
    "stable_baselines3.common.type_aliases.Schedule": "#types",
    "stable_baselines3.common.type_aliases.GymEnv": "#types",
    "stable_baselines3.common.buffers.ReplayBuffer": f"{_SB3}common/buffers.html",
    "softdpg.algorithms.exploration.Exploration": "#types",
    "softdpg.algorithms.base.Sigma": "#types",
    "softdpg.algorithms.soft_td3.ActorGradient": "#types",
    "softdpg.algorithms.family.CriticReduction": "#types",
    "softdpg.algorithms.family.Estimator": "#types",
    "pathlib.Path": "https://docs.python.org/3/library/pathlib.html#pathlib.Path",
}
_TYPE = re.compile(r'<span title="([\w.]+)">(\w+)</span>')
_GALLERY, _TABLE = "<!-- gallery of the zoo -->", "<!-- table of the zoo -->"
# Pages of tables, and the page whose first paragraph is their conclusion
_TABLES_OF = {
    "results/race/race.md": "results/race/README.md",
    "results/ablation/race.md": "results/ablation/README.md",
    "results/ablation/bodies/race.md": "results/ablation/README.md",
    "results/first/tables.md": "results/first/README.md",
}
_POLICIES = Path(__file__).parents[2] / "softdpg" / "zoo" / "policies"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the zoo where a page asks for it, and the conclusion at the top of a page of tables."""
    if page.file.src_uri in _TABLES_OF:
        results = _TABLES_OF[page.file.src_uri]
        _, conclusion, *_ = (Path(config.docs_dir) / results).read_text(encoding="utf-8").split("\n\n")
        title, rest = markdown.split("\n", 1)
        link = posixpath.relpath(results, posixpath.dirname(page.file.src_uri))
        return f"{title}\n\n{conclusion}\n\n[More about these results]({link})\n{rest}"
    if _GALLERY not in markdown and _TABLE not in markdown:
        return markdown
    entries = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_POLICIES.glob("*.json"))}
    figures = "\n".join(_figure(name, entry) for name, entry in entries.items() if _picture(name, config).is_file())
    rows = "\n".join(_row(name, entry) for name, entry in entries.items())
    head = (
        "| Task | Score | 95 % interval | Target score | Steps | CPU seconds |\n| --- | --- | --- | --- | --- | --- |\n"
    )
    gallery = f'<div class="gallery" markdown>\n{figures}\n</div>'
    return markdown.replace(_GALLERY, gallery).replace(_TABLE, head + rows)


@event_priority(-100)  # after mkdocstrings has put in its own links
def on_post_page(output: str, page: Any, config: Any) -> str:
    """Link the types in the tables of the algorithms."""
    if page.file.src_uri != "api/algorithms.md":
        return output
    return _TYPE.sub(_linked, output)


def _linked(match: re.Match[str]) -> str:
    address = _TYPES.get(match[1])
    return match[0] if address is None else f'<a href="{address}" title="{match[1]}">{match[2]}</a>'


def _picture(name: str, config: Any) -> Path:
    return Path(config.docs_dir) / "assets" / "zoo" / f"{name}.webp"


def _figure(name: str, entry: dict[str, Any]) -> str:
    picture = f"![A trained policy on {name}](assets/zoo/{name}.webp){{ loading=lazy width=240 height=180 }}"
    text = f"{name}<br>score {entry['score']:,.0f}, {entry['cpu_seconds']:,.0f} CPU seconds of training"
    return f"<figure markdown>\n{picture}\n<figcaption>{text}</figcaption>\n</figure>"


def _row(name: str, entry: dict[str, Any]) -> str:
    low, high = entry["interval"]
    interval = f"{low:,.1f} to {high:,.1f}"
    numbers = (entry["score"], entry["target_score"], entry["steps"], entry["cpu_seconds"])
    score, target, steps, seconds = (f"{x:,.{digits}f}" for x, digits in zip(numbers, (1, 1, 0, 0), strict=True))
    return f"| `{name}` | {score} | {interval} | {target} | {steps} | {seconds} |"
