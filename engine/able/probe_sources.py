"""Where probes come from: a JSONL file, the paper's public sources, packages, generated facts."""

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.able.facts import fact_probes
from engine.able.paper_sources import paper_probes
from engine.able.probes import Probe, ProbeSet, Style, probe_of, probe_set
from engine.errors import ConfigError
from engine.questions import PACKAGED_SETS, read_sets
from engine.questions.question import MalformedRowError, question_of


logger = logging.getLogger(__name__)

PAPER, PUBLIC, FACTS, EMBEDDED = "paper", "public", "facts", "embedded"
EMBEDDED_PARTS = (
    "facts:240",
    "mmlu:80",
    "commonsense_qa:80",
    "openbook_qa:80",
    "siqa:80",
    "piqa:80",
    "logiqa:40",
    "medqa:40",
)
"""Parts of the embedded set; all but the facts come from a text package."""
_DEFAULT_FACTS = 240
_LINES = (".jsonl", ".ndjson")


def read_probes(
    text: str = EMBEDDED, *, style: Style = "letters", sources: Path | None = None
) -> ProbeSet:
    """The probes that `text` names: parts with commas between, each `NAME` or `NAME:COUNT`.

    A name is `facts` (generated, nothing is read), `embedded` (facts and packaged sets), a packaged
    set, `public` (the paper's five public sources), `paper` (with the sixth, whose readers must
    have been given access) or a JSONL file in the format of the public set or of
    `engine.questions`. A count keeps so many questions, chosen by their hashes.

    Args:
        text: Parts.
        style: Whether letters or the options' texts are scored.
        sources: Folder with copies of the public sources, `OWNER/NAME` each; a hub without it.

    Raises:
        ConfigError: A part is unknown, cannot be read or holds no question.
        PackageMissing: The package of a packaged set is not here.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    probes: list[Probe] = []
    left_out = 0
    for part in [p for given in parts for p in (EMBEDDED_PARTS if given == EMBEDDED else (given,))]:
        found, malformed = _read_part(part, sources)
        probes += found
        left_out += malformed
    return probe_set(text, probes, style, left_out)


def _read_part(part: str, sources: Path | None) -> tuple[list[Probe], int]:
    name, _, count = part.rpartition(":") if part.rpartition(":")[2].isdecimal() else (part, "", "")
    items = int(count) if count else None
    if items == 0:
        raise ConfigError(f"The part {part!r} of the probes asks for none; write 1 or more.")
    if name == FACTS:
        return fact_probes(items or _DEFAULT_FACTS), 0
    if name in (PAPER, PUBLIC):
        return _chosen(paper_probes(gated=name == PAPER, sources=sources), items), 0
    if name in PACKAGED_SETS:
        found = read_sets([name], items)[0]
        return [probe_of(question) for question in found], found.n_malformed
    if Path(name).suffix.lower() in _LINES:
        found, malformed = read_lines(Path(name))
        return _chosen(found, items), malformed
    raise ConfigError(
        f"There are no probes called {name!r}; there are {FACTS}, {EMBEDDED}, {PUBLIC}, {PAPER}, "
        f"{', '.join(PACKAGED_SETS)} and files that end in .jsonl."
    )


def read_lines(path: Path) -> tuple[list[Probe], int]:
    """Probes of a JSONL file, and how many of its lines are none.

    Raises:
        ConfigError: The file cannot be read, or no line is a probe.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(
            f"The probe file {path} cannot be read ({error.strerror}); name a JSONL file with one "
            "question a line."
        ) from error
    rows = [line for line in lines if line.strip()]
    found: list[Probe] = []
    reason = ""
    for number, line in enumerate(rows, start=1):
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()  # refuses half of a character
            found.append(probe_of_row(path.stem, row))
        except (MalformedRowError, ValueError, RecursionError) as error:
            reason = reason or f"line {number}: {error}"
    if not found:
        raise ConfigError(
            f"The probe file {path} holds no question among its {len(rows):,} lines"
            f"{f' ({reason})' if reason else ''}; a line needs question, choices and ans_idx."
        )
    if reason:
        logger.warning(
            "%s: %d lines are no question (%s)", path.name, len(rows) - len(found), reason
        )
    return found, len(rows) - len(found)


def probe_of_row(name: str, row: Any) -> Probe:
    """A probe from a row of the public set, or of any layout that `engine.questions` reads.

    A row of the public set holds its whole prompt as `question`, what is scored as `choices` and
    the right one's place as `ans_idx`; a newline is appended where the prompt does not end in one.

    Raises:
        MalformedRowError: It is neither.
        ConfigError: It has more options than letters.
    """
    if not (isinstance(row, Mapping) and "ans_idx" in row):
        try:
            return probe_of(question_of(name, row))
        except ConfigError as error:
            raise MalformedRowError(str(error)) from error
    prompt, choices, answer = (row.get(key) for key in ("question", "choices", "ans_idx"))
    if not (isinstance(prompt, str) and prompt.strip()):
        raise MalformedRowError("it has no question")
    if not (isinstance(choices, list) and len(choices) >= 2 and all(map(_is_text, choices))):
        raise MalformedRowError("its choices are no list of two or more texts")
    if type(answer) is not int or not 0 <= answer < len(choices):
        raise MalformedRowError(f"its answer {answer!r} is no place among its choices")
    prompt = prompt if prompt.endswith("\n") else f"{prompt}\n"
    return Probe(str(row.get("resource") or name), prompt, tuple(choices), answer)


def public_row(index: int, probe: Probe) -> dict[str, Any]:
    """A probe as a row of the public format."""
    return {
        "index": index,
        "resource": probe.source,
        "question": probe.prompt.removesuffix("\n"),
        "choices": list(probe.options),
        "ans_idx": probe.answer,
    }


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _chosen(probes: Iterable[Probe], items: int | None) -> list[Probe]:
    """All of them, or so many in the order given, chosen by their hashes."""
    found = list(probes)
    if items is None or items >= len(found):
        return found
    kept = {probe.id for probe in sorted(found, key=lambda probe: probe.id)[:items]}
    return [probe for probe in found if probe.id in kept]
