"""The six sources of the paper's probes, drawn and put in order as the paper's set is.

Each source is permuted with NumPy's default generator of seed 12345 and its first 200 rows kept;
the six are laid end to end in the order below and permuted once more with the same seed. This
reproduces source, row and place of the published set wherever we compared them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.able.probes import Probe, letter_probe
from engine.errors import ConfigError


SEED = 12345
COUNT = 200
Asked = tuple[str, list[str], int]
"""Question, choices, right one."""


@dataclass(frozen=True)
class PaperSource:
    """A public data set: where it is, and how a row is read."""

    name: str
    """Name in the published set."""
    repository: str
    """Place on the hub, or below a folder of copies."""
    config: str | None
    """Configuration."""
    split: str
    """Split."""
    read: Callable[[Mapping[str, Any]], Asked]
    """Question, choices and right one of a row."""
    gated: bool = False
    """Whether one must ask for access; its text may not be published."""


def _labelled(row: Mapping[str, Any]) -> Asked:
    labels = list(row["choices"]["label"])
    return row["question"], list(row["choices"]["text"]), labels.index(row["answerKey"])


def _winogrande(row: Mapping[str, Any]) -> Asked:
    question = f"Which one is best to put in the blank: {row['sentence']}"
    return question, [row["option1"], row["option2"]], int(row["answer"]) - 1


def _mmlu(row: Mapping[str, Any]) -> Asked:
    return row["question"], list(row["choices"]), int(row["answer"])


def _hellaswag(row: Mapping[str, Any]) -> Asked:
    return f"{row['activity_label']}: {row['ctx']}", list(row["endings"]), int(row["label"])


def _gpqa(row: Mapping[str, Any]) -> Asked:
    wrong = [row[f"Incorrect Answer {number}"] for number in (1, 2, 3)]
    return row["Question"], [row["Correct Answer"], *wrong], 0


SOURCES = (
    PaperSource("ai2_arc", "allenai/ai2_arc", "ARC-Challenge", "test", _labelled),
    PaperSource("winogrande", "allenai/winogrande", "winogrande_xl", "validation", _winogrande),
    PaperSource("mmlu", "cais/mmlu", "all", "test", _mmlu),
    PaperSource("hellaswag", "Rowan/hellaswag", None, "validation", _hellaswag),
    PaperSource("gpqa", "Idavidrein/gpqa", "gpqa_main", "train", _gpqa, gated=True),
    PaperSource("commonsense_qa", "tau/commonsense_qa", None, "validation", _labelled),
)
"""In the order in which they are laid end to end."""


def drawn_rows(n_rows: int, count: int = COUNT, seed: int = SEED) -> list[int]:
    """Rows kept of a source, in the order drawn; all of them where it has no more."""
    return np.random.default_rng(seed).permutation(n_rows)[:count].tolist()


def paper_order(count: int = COUNT, seed: int = SEED) -> list[tuple[int, int]]:
    """(source, place among its drawn rows) of every probe of the whole set, in order."""
    order = np.random.default_rng(seed).permutation(len(SOURCES) * count)
    return [(int(place) // count, int(place) % count) for place in order]


def paper_probes(
    *, gated: bool = False, sources: Path | None = None, count: int = COUNT
) -> list[Probe]:
    """Probes of the paper's sources in the paper's order.

    Args:
        gated: Also the source one must ask access for; without it the others keep their order.
        sources: Folder with a copy of each repository, `OWNER/NAME`; the hub where it is None.
        count: Rows of each source.

    Raises:
        ConfigError: A source cannot be read or has fewer rows.
    """
    wanted = [source for source in SOURCES if gated or not source.gated]
    drawn = {source.name: _drawn(source, sources, count) for source in wanted}
    order = [(SOURCES[number].name, place) for number, place in paper_order(count)]
    return [drawn[name][place] for name, place in order if name in drawn]


def _drawn(source: PaperSource, sources: Path | None, count: int) -> list[Probe]:
    from datasets import load_dataset  # imported here: it takes seconds

    place = source.repository if sources is None else str(sources / source.repository)
    try:
        rows: Any = load_dataset(place, source.config, split=source.split)
        if len(rows) < count:
            raise ConfigError(
                f"The source {place} has {len(rows)} rows, and {count} are drawn from it."
            )
        asked = [source.read(rows[row]) for row in drawn_rows(len(rows), count)]
    except ConfigError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        access = (
            " Ask for access on its page and log in with `hf auth login`, or use `public`."
            if source.gated
            else " Check the connection, name a folder of copies with --probe-sources, or use "
            "`embedded`."
        )
        raise ConfigError(
            f"The source {place} of the paper's probes cannot be read ({reason}).{access}"
        ) from error
    return [letter_probe(source.name, *row) for row in asked]
