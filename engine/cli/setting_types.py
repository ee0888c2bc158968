"""Whether a value read from a file is of the type that a setting has."""

import json
import sys
import types
from typing import Any, Literal, Union, get_args, get_origin

from engine.errors import ConfigError


_WORDS = {
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}
_LONGEST = 60
"""Characters of an unfitting value that are quoted."""


def fitting(name: str, kind: Any, value: Any) -> Any:
    """`value` as the setting holds it: a whole number given for a number becomes one.

    Args:
        name: Of the setting, as the user writes it.
        kind: int, float, str, bool, None, a Literal, a dictionary of these or a union of them.
        value: As typed or read from JSON.

    Raises:
        ConfigError: It is of another type; the sentence names setting, value and type wanted.
    """
    if not _fits(kind, value):
        shown = json.dumps(value, default=str, ensure_ascii=False)
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
        raise ConfigError(f"{name} is {shown}; it must be {_described(kind)}.")
    return _widened(kind, value)


def _fits(kind: Any, value: Any) -> bool:
    if _is_union(kind):
        return any(_fits(choice, value) for choice in get_args(kind))
    if get_origin(kind) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if get_origin(kind) is dict:
        of_key, of_value = get_args(kind)
        return isinstance(value, dict) and all(
            _fits(of_key, key) and _fits(of_value, entry) for key, entry in value.items()
        )
    if kind is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is kind


def _widened(kind: Any, value: Any) -> Any:
    """Whole numbers as floats where the setting is a float, so that equal settings are equal."""
    if get_origin(kind) is dict:
        return {key: _widened(get_args(kind)[1], entry) for key, entry in value.items()}
    kinds = get_args(kind) if _is_union(kind) else (kind,)
    return float(value) if float in kinds and type(value) is int else value


def _described(kind: Any) -> str:
    if _is_union(kind):
        return " or ".join(_described(choice) for choice in get_args(kind))
    if get_origin(kind) is Literal:
        return f"one of {', '.join(json.dumps(choice) for choice in get_args(kind))}"
    if get_origin(kind) is dict:
        return f"an object that gives each name {_described(get_args(kind)[1])}"
    return _WORDS[kind]


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)
