"""Options of question sets read by a model, kept on disk in chunks: what was read is read once."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from engine.config import cache_root
from engine.control.encoding import EncodedQuestion, encode_questions
from engine.control.options import OptionTokens, joined, read_options
from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing, ConfigError
from engine.live.opening import Opened
from engine.provenance import fingerprint
from engine.questions import Question, QuestionSet
from engine.store.files import atomic_file


CHUNK_QUESTIONS = 50
"""Questions read between two writes."""
FOLDER = "control"
"""Folder of the cache that keeps states of options and autoencoders, by model."""


@dataclass(frozen=True)
class ReadSet:
    """A question set as one model read it."""

    name: str
    questions: tuple[Question, ...]
    """Questions that fit the model, in the order of their hashes."""
    options: OptionTokens
    """Their options, numbered through in the same order."""
    n_left_out: int
    """Questions of which an option fills the model's context."""


def model_folder(opened: Opened) -> Path:
    """Where what is computed of a model for its questions is kept, apart from its run.

    Runs that hold the same model share it.

    Raises:
        CacheMissing: The model belongs to no run, so nothing says which model it is.
    """
    facts = {} if opened.run is None else opened.run.manifest.get("model", {})
    if "fingerprint" not in facts:
        raise CacheMissing(
            f"{opened.name} is no finished run with a model; train one with `headwater train`, or "
            "fit a bank with `headwater retrofit`."
        )
    return cache_root() / FOLDER / str(facts["fingerprint"])


def read_question_set(
    opened: Opened, found: QuestionSet, progress: Progress = no_progress
) -> ReadSet:
    """Read every option of a set; chunks that are on disk are not read again.

    Questions are read in the order of their hashes, so a larger part of a set begins with the
    chunks of a smaller one.

    Raises:
        ConfigError: No question of the set fits the model's context.
    """
    ordered = sorted(found, key=lambda question: question.id)
    encoded = encode_questions(opened.codec.tokenizer, ordered, opened.model.context)
    if not encoded:
        raise ConfigError(
            f"No question of {found.name} fits the {opened.model.context} tokens that "
            f"{opened.name} reads; choose another set."
        )
    chunks = [encoded[i : i + CHUNK_QUESTIONS] for i in range(0, len(encoded), CHUNK_QUESTIONS)]
    folder = model_folder(opened)
    parts = [
        _read_chunk(opened, chunk, folder, found.name.replace("/", "-"))
        for chunk in progress(chunks, label=f"Reading {found.name}", total=len(chunks))
    ]
    questions = tuple(e.question for e in encoded)
    return ReadSet(found.name, questions, joined(parts), len(found) - len(encoded))


def _read_chunk(
    opened: Opened, chunk: list[EncodedQuestion], folder: Path, name: str
) -> OptionTokens:
    """A chunk from disk, or from the model; the file's name says which tokens it holds."""
    mark = fingerprint([[encoded.prompt, encoded.options] for encoded in chunk])
    path = folder / f"{name}-{mark}.safetensors"
    known = _stored(path)
    if known is not None:
        return known
    read = read_options(opened.model.backbone, chunk)
    with atomic_file(path) as file:
        file.write(save({name: np.ascontiguousarray(v) for name, v in read.arrays().items()}))
    return read


def _stored(path: Path) -> OptionTokens | None:
    """What an earlier call read; None where there is nothing, or a damaged file."""
    if not path.is_file():
        return None
    try:
        return OptionTokens(**load_file(path))
    except (SafetensorError, TypeError):
        return None
