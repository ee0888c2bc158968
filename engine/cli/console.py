"""What every command shares: logging, sentences on stderr, JSON on stdout, progress."""

import dataclasses
import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, cast

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text


Item = TypeVar("Item")
logger = logging.getLogger(__name__)
errors = Console(stderr=True, highlight=False)
"""Where logs, progress and errors go, so that stdout holds results alone."""
SECONDS_BETWEEN_LINES = 10.0
"""Time between progress lines where no bar can be drawn."""
_FILE_WIDTH = 200
"""Columns of a table that goes into a file or pipe."""
_NOISY = ("transformers", "datasets", "urllib3", "httpx", "filelock", "fsspec", "numba", "umap")


def configure_logging(*, verbose: bool) -> None:
    """Send the engine's log to stderr; `verbose` shows its details."""
    if errors.is_terminal:
        handler: logging.Handler = RichHandler(
            console=errors, show_path=False, show_level=False, log_time_format="%H:%M:%S"
        )
        handler.setFormatter(logging.Formatter("%(message)s"))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    level = logging.DEBUG if verbose else logging.INFO
    logging.getLogger("engine").setLevel(level if first_process() else logging.WARNING)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


def first_process() -> bool:
    """Whether this process speaks: alone, or the first of those that `torchrun` started."""
    return os.environ.get("RANK", "0") == "0"


def say(text: str = "") -> None:
    """Write a line of the result to stdout."""
    typer.echo(text)


def note(text: str) -> None:
    """Write a remark to stderr."""
    typer.echo(text, err=True)


def say_json(value: Any) -> None:
    """Write a value to stdout as JSON; what is not a finite number becomes null."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """The value as JSON holds it: dataclasses as objects, NaN and infinities as null."""
    if dataclasses.is_dataclass(value):
        return plain(dataclasses.asdict(cast(Any, value)))
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if getattr(value, "ndim", None) == 0:  # a number of NumPy or torch
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def say_table(headings: dict[str, str], rows: Iterable[tuple[str, ...]]) -> None:
    """Draw a table on stdout; `headings` gives each column's justification."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, (heading, justify) in enumerate(headings.items()):
        side = "right" if justify == "right" else "left"
        table.add_column(heading, justify=side, no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    Console(highlight=False, width=width).print(table)


def digits(value: float | None) -> str:
    """A number with three significant digits and thousands separators."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


class _Rate(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{digits(speed)}/s", style="progress.data.speed")


class Reporter:
    """Progress of the engine's loops: a bar on a terminal, a line every ten seconds elsewhere.

    Called as `reporter(items, label=..., total=...)` it returns an iterable of the same items.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def __call__(
        self, items: Iterable[Item], *, label: str = "", total: int | None = None
    ) -> Iterable[Item]:
        """Report while `items` is consumed."""
        if total is None and hasattr(items, "__len__"):
            total = len(items)  # pyright: ignore[reportArgumentType]
        if self._quiet:
            return items
        draw = self._bar if errors.is_terminal else self._lines
        return draw(items, label or "working", total)

    def _bar(self, items: Iterable[Item], label: str, total: int | None) -> Iterator[Item]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=errors, transient=False) as progress:
            task = progress.add_task(label, total=total)
            for item in items:
                yield item
                progress.advance(task)

    def _lines(self, items: Iterable[Item], label: str, total: int | None) -> Iterator[Item]:
        start = shown = time.monotonic()
        for count, item in enumerate(items, start=1):
            yield item
            now = time.monotonic()
            if now - shown >= SECONDS_BETWEEN_LINES:
                shown = now
                logger.info("%s", progress_line(label, count, total, now - start))


def progress_line(label: str, count: int, total: int | None, seconds: float) -> str:
    """One line of progress: how much, how fast, how long still."""
    rate = count / seconds if seconds > 0 else 0.0
    if total is None or rate == 0:
        return f"{label}: {count:,} done, {digits(rate)}/s"
    left = max(0, total - count) / rate
    return f"{label}: {count:,} of {total:,}, {digits(rate)}/s, {duration(left)} left"


def duration(seconds: float) -> str:
    """A time in words: 42 s, 3 min 10 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(n_bytes: float) -> str:
    """A size in words: 12 kB, 3.4 MB."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{digits(n_bytes)} {unit}"
        n_bytes /= 1000
    return f"{digits(n_bytes)} GB"
