"""Which questions models answer right: what routing and forecasts are judged by."""

import csv
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from engine.able.probe_sources import read_lines
from engine.able.probes import Probe, ProbeSet, text_probe
from engine.config import require
from engine.errors import ConfigError
from engine.schema.model_lineage_tables import MODEL_ANSWERS, MODEL_QUESTIONS
from engine.store import RunWriter, open_run, read_table


STAGE = "answers"
QUESTIONS, CORRECTNESS = "questions.jsonl", "correctness.csv"
"""Files of the folder of a zoo, or of one's own: questions, and a line a model with 0 and 1."""


@dataclass(frozen=True)
class Answers:
    """Questions and who answers them right."""

    questions: pd.DataFrame
    """Rows of `model_questions`."""
    answers: pd.DataFrame
    """Rows of `model_answers`."""


def read_answers(folder: Path, probes: ProbeSet) -> Answers:
    """Read the two files of a folder.

    The columns of `correctness.csv` are `id` and one a question, in the order of the questions'
    file, each named by its `full_index` where the file has one: `domain/...`.

    Args:
        folder: Holds `questions.jsonl` and `correctness.csv`.
        probes: Probes of the map, so that their questions are told from the others.

    Raises:
        ConfigError: A file is missing or is none, or the two do not belong together.
    """
    found, left_out = read_lines(folder / QUESTIONS)
    names, rows = _table(folder / CORRECTNESS)
    require(
        left_out == 0 and len(found) == len(names),
        f"{folder / QUESTIONS} has {len(found)} questions and {CORRECTNESS} {len(names)} columns "
        "beside `id`; they must be the same questions in the same order.",
    )
    asked = [text_probe(p) for p in found] if probes.style == "texts" else found
    return Answers(_questions(asked, names, probes), _answers(rows, folder / CORRECTNESS))


def probe_answers(probes: pd.DataFrame, options: pd.DataFrame) -> Answers:
    """The probes as questions, with what models answered while they were embedded.

    Args:
        probes: The table `model_probes`.
        options: The table `model_options`; a model that skipped a probe is left out.
    """
    questions = probes.rename(columns={"probe": "question", "source": "domain"})
    questions = questions.drop(columns="n_words").assign(is_probe=True)
    rows = [
        {"model": model, "correct": own.sort_values("probe")["correct"].tolist()}
        for model, own in options.groupby("model", sort=True)
        if len(own) == len(probes)
    ]
    return Answers(questions, pd.DataFrame(rows, columns=["model", "correct"]))


def write_answers(path: Path, answers: Answers | None) -> None:
    """Write the answers of a map, once for each state of them.

    Args:
        path: Folder of the run.
        answers: Questions and who answers them right; of None, what the run has stays, and where
            it has nothing its probes are the questions.
    """
    writer = RunWriter.resume(path)
    if answers is None:
        if MODEL_ANSWERS.name in writer.manifest["tables"]:
            return
        run = open_run(path)
        answers = probe_answers(read_table(run, "model_probes"), read_table(run, "model_options"))
    frames = {MODEL_QUESTIONS.name: answers.questions, MODEL_ANSWERS.name: answers.answers}
    identity = {name: frame.to_json() for name, frame in frames.items()}
    if writer.begin_stage(STAGE, identity):
        return
    for name, frame in frames.items():
        writer.write_table(name, frame)
    writer.finish_stage(STAGE, {"n_questions": len(answers.questions)})


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"The answers {path} cannot be read as CSV ({error}).") from error
    require(
        len(header) > 1 and header[0] == "id",
        f"The answers {path} must begin with a column `id` and have one a question after it.",
    )
    return header[1:], rows


def _answers(rows: list[list[str]], path: Path) -> pd.DataFrame:
    found: dict[str, list[bool]] = {}
    n = len(rows[0]) if rows else 0
    for number, row in enumerate(rows, start=2):
        fits = len(row) == n and set(row[1:]) <= {"0", "1"} and row[0] not in found
        require(
            fits,
            f"Line {number} of {path} is no line of answers; a line has a model's name, once in "
            f"the file, and {n - 1} times 0 or 1.",
        )
        found[row[0]] = [value == "1" for value in row[1:]]
    return pd.DataFrame({"model": list(found), "correct": list(found.values())})


def _questions(asked: list[Probe], names: list[str], probes: ProbeSet) -> pd.DataFrame:
    known = {probe.id for probe in probes.probes}
    domains = [
        name.split("/")[0] if "/" in name else p.source
        for name, p in zip(names, asked, strict=True)
    ]
    return pd.DataFrame(
        {
            "question": range(len(asked)),
            "key": names,
            "domain": domains,
            "prompt": [probe.prompt for probe in asked],
            "options": [list(probe.options) for probe in asked],
            "answer": [probe.answer for probe in asked],
            "is_probe": [probe.id in known for probe in asked],
        }
    )
