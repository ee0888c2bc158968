"""Probes as a model reads them: rows of tokens, which of them are attributed, and the targets.

The prompt and an option are encoded as one text. The option begins at the first token that ends
after the prompt, so that a token which joins the prompt's last character to the option belongs to
the option; the tokens before it are the ones attributed. One row serves all options that are one
token after the same tokens: its last position gives the log-probability of each. An option of
several tokens has a row of its own, with its tokens but the last appended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from engine.able.probes import Probe, ProbeSet
from engine.errors import UnsupportedModel


_ENCODED_AT_ONCE = 512


@dataclass(frozen=True)
class Row:
    """One row of tokens and what is asked of it."""

    probe: int
    """Probe, counted from 0 within its set."""
    options: tuple[int, ...]
    """Options it answers."""
    tokens: Int[np.ndarray, " tokens"]
    """Prompt tokens, and in a row of one option its tokens but the last."""
    offsets: Int[np.ndarray, "prompt 2"]
    """First character of each prompt token and the one after its last."""
    answers: Int[np.ndarray, "positions options"]
    """Token asked for at each of the last positions, by option."""

    @property
    def n_prompt(self) -> int:
        """Tokens that are attributed."""
        return len(self.offsets)

    @property
    def n_positions(self) -> int:
        """Positions at the row's end whose predictions are asked."""
        return len(self.answers)


@dataclass(frozen=True)
class Encoded:
    """The rows of a probe set for one tokenizer."""

    rows: tuple[Row, ...]
    skipped: tuple[int, ...]
    """Probes that are longer than the model's context."""


def encode_probes(
    probes: ProbeSet, tokenizer: Any, context: int | None, name: str = "the model"
) -> Encoded:
    """Rows of every probe that fits into the context.

    Args:
        probes: The set.
        tokenizer: One of transformers that gives offsets.
        context: Most tokens of a row; None where nothing limits them.
        name: Of the model, for the sentence.

    Raises:
        UnsupportedModel: The tokenizer writes an option with no token, no probe fits, or offsets
            fall back.
    """
    rows: list[Row] = []
    skipped: list[int] = []
    for start in range(0, len(probes), _ENCODED_AT_ONCE):
        chunk = probes.probes[start : start + _ENCODED_AT_ONCE]
        texts = [probe.prompt + option for probe in chunk for option in probe.options]
        encoded = tokenizer(texts, return_offsets_mapping=True)
        place = 0
        for number, probe in enumerate(chunk, start=start):
            own = slice(place, place + len(probe.options))
            place = own.stop
            found = _rows(number, probe, encoded["input_ids"][own], encoded["offset_mapping"][own])
            if found is None:
                raise UnsupportedModel(
                    f"The tokenizer of {name} writes an option of {probe.prompt[-40:]!r} with no "
                    "token, so it has no probability; this model cannot be embedded."
                )
            if context is not None and max(len(row.tokens) for row in found) > context:
                skipped.append(number)
            else:
                rows += found
    if not rows:
        raise UnsupportedModel(
            f"Every probe is longer than the context of {name} ({context} tokens); "
            "use shorter probes (--probes facts)."
        )
    return Encoded(tuple(rows), tuple(skipped))


def _rows(
    number: int, probe: Probe, ids: Sequence[list[int]], offsets: Sequence[list[Any]]
) -> list[Row] | None:
    """Rows of one probe; None where an option has no token."""
    length = len(probe.prompt)
    parts = [_split(length, *pair) for pair in zip(ids, offsets, strict=True)]
    if any(len(answer) == 0 for _, _, answer in parts):
        return None
    rows: list[Row] = []
    sharing: dict[bytes, list[int]] = {}
    for option, (prompt, spans, answer) in enumerate(parts):
        if len(answer) == 1:
            sharing.setdefault(prompt.tobytes(), []).append(option)
        else:
            tokens = np.concatenate([prompt, answer[:-1]])
            rows.append(Row(number, (option,), tokens, spans, answer[:, None]))
    for options in sharing.values():
        prompt, spans, _ = parts[options[0]]
        answers = np.array([[parts[option][2][0] for option in options]])
        rows.append(Row(number, tuple(options), prompt, spans, answers))
    return rows


def _split(
    length: int, ids: list[int], offsets: list[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prompt tokens with their offsets, and the option's tokens, without what follows it."""
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    inside = np.flatnonzero((spans[:, 1] > length) & (spans[:, 1] > spans[:, 0]))
    tokens = np.array(ids, dtype=np.int64)
    if len(inside) == 0:
        return tokens, spans, tokens[:0]
    first, last = int(inside[0]), int(inside[-1])
    return tokens[:first], spans[:first], tokens[first : last + 1]
