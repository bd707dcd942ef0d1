"""Where people write the settings of a run: the flags of ``softdpg train``, and YAML or TOML files."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro

from softdpg.algorithms import registry
from softdpg.algorithms.settings import HYPERPARAMETERS, Hyperparameter
from softdpg.errors import UserError, near_matches
from softdpg.runs.config import (
    ENV_KWARGS_METAVAR,
    SETTINGS,
    EnvKwargs,
    RunConfig,
    flag,
    parse_env_kwargs,
    wrong_type,
)
from softdpg.runs.files import is_full

_DEEPEST = 25  # levels of YAML
FILE_FORMATS = (".yaml", ".yml", ".toml")


def settings_class(defaults: Mapping[str, Any] | None = None) -> Any:
    """Make a dataclass for tyro with a field for each flag; its method ``config()`` returns the :class:`RunConfig`.

    :param defaults: values, from a file, of settings whose flags are not given
    """
    given = dict(defaults or {})
    given["env_kwargs"] = tuple(EnvKwargs(given.get("env_kwargs", {})).strings())
    columns: list[tuple[str, Any, Any]] = []
    for name, setting in SETTINGS.items():
        kind, text, metavar = setting.type, setting.metadata["help"], None
        if name == "algo":
            kind, text = Literal[tuple(registry.ALGORITHMS)], f"{text} {_algorithms()}"
        if name == "env_kwargs":
            kind, metavar = tuple[str, ...], ENV_KWARGS_METAVAR
        wrong = wrong_type(given[name], kind) if name in given else ""
        if wrong:
            raise UserError(f"{flag(name)} {wrong}")
        default = given.get(name, setting.default)
        columns.append((name, Annotated[kind, tyro.conf.arg(help=text, metavar=metavar)], field(default=default)))
    columns += [
        (name, Annotated[hyperparameter.type | None, _argument(hyperparameter)], field(default=given.get(name)))
        for name, hyperparameter in HYPERPARAMETERS.items()
    ]
    return make_dataclass("Settings", columns, namespace={"config": _config, "__doc__": "Settings of the run."})


def _config(settings: Any) -> RunConfig:
    return RunConfig(**(vars(settings) | {"env_kwargs": parse_env_kwargs(settings.env_kwargs)}))


def _algorithms() -> str:
    return " ".join(f"{name}: {entry.summary or entry.label}." for name, entry in registry.ALGORITHMS.items())


def _argument(hyperparameter: Hyperparameter) -> Any:
    """Describe the flag of a hyperparameter, with the defaults of the algorithms that have it."""
    defaults: dict[str, list[str]] = {}
    for entry in registry.ALGORITHMS.values():
        value = entry.hyperparameters.get(hyperparameter.name)
        if value is not None:
            text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            defaults.setdefault(text, []).append(entry.name)
    shown = [f"{value} ({', '.join(names)})" for value, names in defaults.items()]
    default = next(iter(defaults)) if len(defaults) == 1 else ", ".join(shown)
    return tyro.conf.arg(
        name=hyperparameter.flag.removeprefix("--"),
        metavar=_metavar(hyperparameter.type),
        help=f"{hyperparameter.help} Default: {default}." if defaults else hyperparameter.help,
        help_behavior_hint="",
    )


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{{{','.join(get_args(kind))}}}"
    if get_origin(kind) is tuple:
        return "INT [INT ...]"
    if get_args(kind):
        return "|".join(map(_metavar, get_args(kind)))
    return {int: "INT", float: "FLOAT", bool: "{True,False}", str: "TEXT"}[kind]


def read_config_file(path: Path) -> dict[str, Any]:
    """Read the settings in a YAML or TOML file, by their names in :class:`RunConfig`; raise ``UserError`` if invalid.

    :param path: one line per setting, named as on the command line
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read --config {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        values = tomllib.loads(text) if _suffix(path, "--config") == ".toml" else _load_yaml(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"cannot read --config {path}: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise UserError(f"--config {path} must be a list of names and values, got {type(values).__name__}")
    names = {flag(name).removeprefix("--"): name for name in (*SETTINGS, *HYPERPARAMETERS)}
    settings = {}
    for key, value in values.items():
        name = names.get(str(key).replace("_", "-"), str(key))
        if name not in names.values():
            raise UserError(f"--config {path}: no setting {key!r}{near_matches(str(key), list(names))}")
        if name in settings:
            raise UserError(f"--config {path}: {flag(name).removeprefix('--')} is given twice")
        settings[name] = tuple(value) if isinstance(value, list) else value
        wrong = _wrong(name, settings[name])
        if wrong:
            raise UserError(f"--config {path}: {flag(name)} {wrong}")
    return settings


def _wrong(name: str, value: Any) -> str:
    """Return what is wrong with a setting in a file, as the end of a sentence; empty if nothing is."""
    if name == "env_kwargs":
        return EnvKwargs(value).wrong() if isinstance(value, dict) else "must be names and values"
    if name in HYPERPARAMETERS:
        return "" if value is None else HYPERPARAMETERS[name].wrong(value)
    return wrong_type(value, SETTINGS[name].type)


def write_config_file(config: RunConfig, path: Path) -> None:
    """Write all settings of a run to a YAML or TOML file, defaults included.

    :param config: the settings
    :param path: the file; its suffix decides the format
    """
    suffix = _suffix(path, "--write-config")
    settings = {
        flag(name).removeprefix("--"): json.loads(json.dumps(value))
        for name, value in config.resolved().flat().items()
        if value is not None
    }
    if suffix == ".toml":
        text = "".join(f"{name} = {_toml(value)}\n" for name, value in settings.items())
    else:
        import yaml

        text = yaml.safe_dump(settings, default_flow_style=None, sort_keys=False, width=10**6)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        if is_full(error):
            raise
        raise UserError(f"cannot write --write-config {path}: {error.strerror}") from None


def _toml(value: Any) -> str:
    """Format a value of JSON in TOML, which has no null."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None:
        raise UserError("--write-config: TOML has no None; write a .yaml file")
    return json.dumps(value, ensure_ascii=False)


def _suffix(path: Path, name: str) -> str:
    if path.suffix.lower() not in FILE_FORMATS:
        raise UserError(f"{name} {path} must end in {', '.join(FILE_FORMATS)}")
    return path.suffix.lower()


def _load_yaml(text: str) -> Any:
    """Parse YAML without aliases, which can grow without bound, deep nesting and duplicate keys."""
    import yaml

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent) or self.depth > _DEEPEST:
                raise ValueError("aliases (*name) are not supported" if self.depth <= _DEEPEST else "nested too deep")
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys: set[str] = set()
            for key in (str(key.value) for key, _ in node.value):
                if key in keys:
                    raise ValueError(f"{key[:50]} is given twice")
                if key == "<<":
                    raise ValueError("merge keys (<<) are not supported")
                keys.add(key)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
