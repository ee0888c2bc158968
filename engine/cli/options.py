"""Command-line options made from a configuration dataclass.

Every field becomes one option: its type is the field's, its help the string under the field, its
default the field's. Fields that are dataclasses are flattened with their name as a prefix, and
dictionaries are given as `name=value`, repeated. `--config FILE` reads settings from JSON (a file
written by `--dry-run`, or a stage's settings in `run.json`); what is typed beside it wins.
"""

import ast
import dataclasses
import functools
import inspect
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_origin, get_type_hints

import typer

from engine.cli.setting_types import fitting
from engine.errors import ConfigError


Config = TypeVar("Config")
_CONFIG_FILE = "config_file"
_CONTEXT = "typer_context"


def field_help(config_class: type) -> dict[str, str]:
    """Help of each field: the string literal under it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(config_class))).body[0]
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, str] = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        value = following.value if isinstance(following, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            texts[statement.target.id] = " ".join(value.value.split())
    return texts


def with_config(
    config_class: type[Config],
    panel: str,
    adjust: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: the command's parameter `config` is built from one option a field.

    Args:
        config_class: A dataclass whose fields are numbers, texts, flags, choices, dictionaries of
            numbers, or dataclasses of these.
        panel: Heading over the options in `--help`.
        adjust: Completes the settings that were typed or read, before they are checked.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = inspect.signature(function).parameters.values()
        own = [p.replace(kind=keyword) for p in parameters if p.name != "config"]
        options = [*_field_options(config_class, panel, ""), _config_file_option(panel)]

        @functools.wraps(function)
        def command(**values: Any) -> None:
            context = values.pop(_CONTEXT)
            file: Path | None = values.pop(_CONFIG_FILE)
            given = {o.name: values.pop(o.name) for o in options if o.name in values}
            typed = {n: v for n, v in given.items() if _is_typed(context, n)}
            settings = (_read_settings(file, config_class) if file else {}) | typed
            function(**values, config=build_config(config_class, adjust(settings)))

        context = _parameter(_CONTEXT, typer.Context, inspect.Parameter.empty)
        shown = [context, *own, *options]
        vars(command)["__signature__"] = inspect.Signature(shown)
        command.__annotations__ = {p.name: p.annotation for p in shown}
        del command.__wrapped__
        return command

    return decorate


def read_config(path: Path, config_class: type[Config]) -> Config:
    """A configuration from a JSON file alone, as `--config` reads it.

    Raises:
        ConfigError: The file cannot be read, or its settings do not fit.
    """
    return build_config(config_class, _read_settings(path, config_class))


def build_config(config_class: type[Config], settings: dict[str, Any], prefix: str = "") -> Config:
    """A configuration from flat settings: `weights_clip` sets `clip` of the field `weights`.

    Args:
        config_class: A dataclass that `with_config` takes.
        settings: Values by name.
        prefix: What stands before the names where the user wrote them.

    Raises:
        ConfigError: A value is of another type than its field, or not allowed.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, config_class)):
        inner = get_type_hints(config_class)[field.name]
        if dataclasses.is_dataclass(inner):
            values |= _inner_value(config_class, field, inner, settings)
        elif field.name in settings:
            name = f"{prefix}{field.name}"
            values[field.name] = fitting(name, inner, _plain(name, inner, settings[field.name]))
    try:
        return config_class(**values)
    except TypeError as error:
        raise ConfigError(f"The settings do not fit {config_class.__name__}: {error}.") from error


def _inner_value(
    config_class: type, field: "dataclasses.Field[Any]", inner: Any, settings: dict[str, Any]
) -> dict[str, Any]:
    """The value of a field that is itself a dataclass; empty where nothing of it is set."""
    prefix = f"{field.name}_"
    chosen = {n.removeprefix(prefix): v for n, v in settings.items() if n.startswith(prefix)}
    if not chosen:
        return {}
    default = _default(config_class, field)
    return {field.name: build_config(inner, dataclasses.asdict(default) | chosen, prefix)}


def _field_options(config_class: type, panel: str, prefix: str) -> list[inspect.Parameter]:
    hints, texts = get_type_hints(config_class), field_help(config_class)
    options: list[inspect.Parameter] = []
    for field in dataclasses.fields(cast(Any, config_class)):
        kind, default = hints[field.name], _default(config_class, field)
        if dataclasses.is_dataclass(kind):
            inner = _field_options(type(default), panel, f"{prefix}{field.name}_")
            values = dataclasses.asdict(default)
            options += [
                o.replace(default=values[o.name.removeprefix(f"{prefix}{field.name}_")])
                for o in inner
            ]
            continue
        name = f"{prefix}{field.name}"
        text = texts.get(field.name, "")
        if _is_mapping(kind):
            kind, default = list[str], []
            text = f"{text} Give name=value, once for each."
        option = typer.Option(*_flags(name, kind), help=text, rich_help_panel=panel)
        options.append(_parameter(name, Annotated[kind, option], default))
    return options


def _flags(name: str, kind: Any) -> list[str]:
    flag = name.replace("_", "-")
    return [f"--{flag}/--no-{flag}"] if kind is bool else [f"--{flag}"]


def _config_file_option(panel: str) -> inspect.Parameter:
    text = "Read these settings from a JSON file; options typed beside it win."
    option = typer.Option("--config", help=text, rich_help_panel=panel)
    return _parameter(_CONFIG_FILE, Annotated[Path | None, option], None)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _default(config_class: type, field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    assert field.default is not dataclasses.MISSING, f"{config_class}.{field.name} has no default"
    return field.default


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is dict


def _is_typed(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _plain(name: str, kind: Any, value: Any) -> Any:
    """`name=value` texts of a dictionary option as a dictionary; anything else as it is."""
    if not _is_mapping(kind) or not isinstance(value, list):
        return value
    pairs: dict[str, int | float] = {}
    for text in value:
        key, sign, number = str(text).partition("=")
        try:
            pairs[key] = _number(number)
        except ValueError:
            sign = ""
        if not sign or not key:
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} {text!r} is not name=value; write --{flag} code=2.")
    return pairs


def _number(text: str) -> int | float:
    """A whole number as such, for settings that take no other; any other number as a float."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _read_settings(path: Path, config_class: type) -> dict[str, Any]:
    """Settings of a JSON file, flattened as the options are; unknown names are refused."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read; --config takes a JSON file.") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON ({error}); --config takes a JSON file.") from error
    if not isinstance(loaded, dict):
        raise ConfigError(f"{path} holds no object of settings; write {{'name': value, ...}}.")
    known = {o.name for o in _field_options(config_class, "", "")}
    flat: dict[str, Any] = {}
    for name, value in loaded.items():
        nested = isinstance(value, dict) and name not in known
        flat |= {f"{name}_{n}": v for n, v in value.items()} if nested else {name: value}
    unknown = sorted(set(flat) - known)
    if unknown:
        raise ConfigError(f"{path} has settings this command does not know: {', '.join(unknown)}.")
    return flat
