"""Settings of a run as a file that people write: YAML or TOML, one line a setting, named as on the command line."""

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from softdpg.algorithms.hyperparameters import HYPERPARAMETERS
from softdpg.errors import UserError, near_matches
from softdpg.runs.config import RunConfig, flag

FORMATS = (".yaml", ".yml", ".toml")


def read_config_file(path: Path) -> dict[str, Any]:
    """The settings in a file, by the names that :class:`RunConfig` has for them; ``UserError`` for what is none."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read --config {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        values = tomllib.loads(text) if _suffix(path, "--config") == ".toml" else _load_yaml(text)
    except ValueError as error:
        raise UserError(f"cannot read --config {path}: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise UserError(f"--config {path} must be a list of names and values, not {type(values).__name__}")
    names = {flag(name).removeprefix("--"): name for name in (*_settings(), *HYPERPARAMETERS)}
    settings = {}
    for key, value in values.items():
        name = names.get(str(key).replace("_", "-"), str(key))
        if name not in names.values():
            raise UserError(f"--config {path}: no setting {key!r}{near_matches(str(key), list(names))}")
        settings[name] = tuple(value) if isinstance(value, list) else value
    if not isinstance(settings.get("env_kwargs", {}), dict):
        raise UserError(f"--config {path}: env-kwargs must be names and values")
    return settings


def write_config_file(config: RunConfig, path: Path) -> None:
    """Write all settings of a run, those that are at their defaults included, so that the file says what it does."""
    suffix = _suffix(path, "--write-config")
    settings = {
        flag(name).removeprefix("--"): _plain(value)
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
        raise UserError(f"cannot write --write-config {path}: {error.strerror}") from None


def _plain(value: Any) -> Any:
    """A setting as values of JSON."""
    return json.loads(json.dumps(value))


def _toml(value: Any) -> str:
    """A value of JSON as TOML has it, which knows no null."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None:
        raise UserError("--write-config: TOML has no None, write a .yaml file")
    return json.dumps(value, ensure_ascii=False)


def _settings() -> list[str]:
    return [field.name for field in fields(RunConfig) if field.name != "hyperparameters"]


def _suffix(path: Path, name: str) -> str:
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{name} {path} must end in {', '.join(FORMATS)}")
    return path.suffix.lower()


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
