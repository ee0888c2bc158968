"""What a view shows lives in the URL; this file names its parameters and reads them safely.

Widgets bind themselves (`st.selectbox(..., key="domain", bind="query-params")`: the key is the
parameter's name). What is not a widget (a chosen prototype, a lassoed set, a locked token) is read
and written here. A value that makes no sense is dropped with one sentence and the default is used.
"""

import base64
import binascii
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import streamlit as st


READABLE_IDS = 40
"""Sets up to this size are written as plain numbers, larger ones as a packed bitmap."""
MAX_ID = 1 << 20
"""No id above this is accepted from a URL."""
_WARNINGS = "headwater_url_warnings"


def read_text(name: str, default: str = "", *, limit: int = 4000) -> str:
    """Text of a URL parameter, cut to `limit` characters."""
    return st.query_params.get(name, default)[:limit]


def read_int(name: str, default: int | None, *, low: int = 0, high: int = MAX_ID) -> int | None:
    """Whole number of a URL parameter in [low, high], else `default` and one sentence."""
    raw = st.query_params.get(name)
    if raw is None:
        return default
    try:
        value = int(raw)
    except ValueError:
        return _reject(name, raw, default, f"a whole number between {low} and {high:,}")
    if low <= value <= high:
        return value
    return _reject(name, raw, default, f"a whole number between {low} and {high:,}")


def check_number(name: str, low: float, high: float) -> None:
    """Note one sentence when the URL gives a bound slider what is no number in [low, high].

    Call it before the widget is drawn: the widget takes the parameter out of the URL without a
    word and shows its default.
    """
    raw = st.query_params.get(name)
    if raw is None:
        return
    try:
        fits = low <= float(raw) <= high  # also refuses NaN
    except ValueError:
        fits = False
    if not fits:
        _reject(name, raw, None, f"a number between {low:,g} and {high:,g}")


def read_choice(name: str, options: Iterable[str], default: str) -> str:
    """One of `options` from the URL, else `default` and one sentence."""
    raw = st.query_params.get(name)
    allowed = list(options)
    if raw is None or raw in allowed:
        return default if raw is None else raw
    more = f" and {len(allowed) - 8:,} more" if len(allowed) > 8 else ""
    return _reject(name, raw, default, "one of " + ", ".join(allowed[:8]) + more)


def read_ids(name: str, *, below: int = MAX_ID) -> tuple[int, ...]:
    """Sorted ids of a URL parameter that are smaller than `below`."""
    raw = st.query_params.get(name, "")
    try:
        ids = decode_ids(raw)
    except ValueError:
        return _reject(name, raw, (), "whole numbers with commas between them")
    kept = tuple(i for i in ids if i < below)
    if len(kept) < len(ids):
        _reject(name, raw, (), f"ids below {below:,}; the others are left out")
    return kept


def write(**values: str | float | Iterable[int] | None) -> None:
    """Put values into the URL; None and empty ones are removed from it."""
    for name, value in values.items():
        text = _as_text(value)
        if text == "":
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != text:
            st.query_params[name] = text


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, str | int | float) else encode_ids(value)


def encode_ids(ids: Iterable[int]) -> str:
    """Ids as URL text: `3,5,8`, or `z` and a packed bitmap when they are many."""
    ordered = sorted({int(i) for i in ids})
    if len(ordered) <= READABLE_IDS:
        return ",".join(map(str, ordered))
    bits = np.zeros(ordered[-1] + 1, dtype=bool)
    bits[ordered] = True
    packed = zlib.compress(np.packbits(bits).tobytes(), 9)
    return "z" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_ids(text: str) -> tuple[int, ...]:
    """The inverse of `encode_ids`; raises ValueError on anything else."""
    if text.startswith("z"):
        return _unpacked(text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 10 and int(part) <= MAX_ID for part in parts):
        raise ValueError(f"not a set of ids: {text!r}")
    return tuple(sorted({int(part) for part in parts}))


def _unpacked(text: str) -> tuple[int, ...]:
    """Ids of a packed bitmap; a short text may not unpack into a large one."""
    try:
        packed = base64.b64decode(text[1:] + "=" * (-len(text[1:]) % 4), b"-_", validate=True)
        raw = zlib.decompressobj().decompress(packed, MAX_ID // 8)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError(f"not a set of ids: {text[:40]!r}") from error
    if not raw:
        raise ValueError(f"not a set of ids: {text[:40]!r}")
    return tuple(np.flatnonzero(np.unpackbits(np.frombuffer(raw, np.uint8))).tolist())


def selected_ids(event: Any) -> tuple[int, ...]:
    """Ids a chart selection carries in `customdata`, in order of appearance, each once.

    Accepts both forms a selection takes: an object with `.selection.points` (the browser) and plain
    nested dictionaries (tests, session state). Anything else is an empty selection.
    """
    selection = _field(event, "selection")
    points = _field(selection, "points") or []
    found: dict[int, None] = {}
    for point in points:
        custom = _field(point, "customdata")
        value = custom[0] if isinstance(custom, list | tuple) and custom else custom
        if isinstance(custom, dict):  # a row of a typed array, as the browser sends it
            value = custom.get("0")
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            found[int(value)] = None
    return tuple(found)


def selected_rows(event: Any) -> tuple[int, ...]:
    """Row positions a table selection carries, in both forms."""
    rows = _field(_field(event, "selection"), "rows") or []
    return tuple(int(r) for r in rows)


def _field(value: Any, name: str) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(name)
    return getattr(value, name, None)


def refuse(name: str, raw: str, wanted: str) -> None:
    """Note one sentence about a parameter whose value a page cannot use, and leave it out."""
    _reject(name, raw, None, wanted)
    write(**{name: None})


def _reject(name: str, raw: str, default: Any, wanted: str) -> Any:
    """Note one sentence about a parameter that was not used; returns `default`."""
    shown = raw if len(raw) <= 40 else raw[:37] + "…"
    notes: dict[str, str] = st.session_state.setdefault(_WARNINGS, {})
    notes[name] = f"The link's {name} is “{shown}”; it takes {wanted}, so it was left out."
    return default


def warnings() -> list[str]:
    """Sentences about URL parameters that were dropped since the last call."""
    return list(st.session_state.pop(_WARNINGS, {}).values())
