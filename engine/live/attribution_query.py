"""From a query as it is asked to the loss it is about: tokens, targets, statistics."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.errors import PromptError
from engine.influence.frame import NO_DOCUMENT, Sequences
from engine.live import views
from engine.live.attribution_results import AttributionQuery
from engine.live.reader import Reader
from engine.numerics import full_precision, unit_vectors
from engine.prism.attribution.statistics import TokenStatistics, output_errors


@dataclass(frozen=True)
class Traced:
    """The tokens a model reads and the predictions whose loss is summed.

    ids: what is read, within the context.
    rows: places in `ids` whose states predict, rising.
    targets: token predicted at each.
    notices: said beside the result.
    """

    ids: tuple[int, ...]
    rows: tuple[int, ...]
    targets: tuple[int, ...]
    notices: tuple[str, ...] = ()

    def sequence(self) -> Sequences:
        """The query as a row of the common frame: what lies behind the last target is left out."""
        last = self.rows[-1]
        tokens = np.array([[*self.ids[: last + 1], self.targets[-1]]], np.int64)
        predicted = np.zeros((1, last + 1), bool)
        predicted[0, list(self.rows)] = True
        return Sequences(
            tokens,
            predicted,
            np.array([""], dtype=object),
            np.array([NO_DOCUMENT]),
            np.array([0]),
            np.array([last + 2]),
        )


def resolve(query: AttributionQuery, reader: Reader) -> Traced:
    """Find the tokens a query is about.

    A prompt longer than the context is read from its last tokens, with a notice, as everywhere; a
    span or generation of which the model cannot read all is refused.

    Raises:
        PromptError: the text is empty, a token is not in the vocabulary, a position or span lies
            outside the prompt, or the query does not fit the context.
    """
    ids = reader.ids(query.prompt)
    if query.generation:
        ids = [*ids, *reader.checked(list(query.generation))]
    if query.span is not None:
        return _span(query.span, ids, reader)
    if query.generation:
        return _span((len(ids) - len(query.generation), len(ids) - 1), ids, reader)
    _, row = reader.row(ids, query.position)
    window = ids[-reader.model.context :]
    target = None if query.target is None else reader.codec.token_id(query.target)
    if target is None:
        with reader.lock, torch.inference_mode():
            states = reader.read(ids).states[:, row]
            target = int(reader.model.logits(states)[0].argmax())
    notice = views.notice(len(ids), reader.model.context)
    return Traced(tuple(window), (row,), (target,), () if notice is None else (notice,))


def _span(span: tuple[int, int], ids: Sequence[int], reader: Reader) -> Traced:
    """The predictions of the tokens first..last; the tokens behind them are not read."""
    first, last = span
    if not 0 <= first <= last < len(ids):
        raise PromptError(
            f"The span {first} to {last} lies outside the text; its tokens are 0 to {len(ids) - 1}."
        )
    if first == 0:
        raise PromptError(
            "Nothing stands before token 0, so nothing predicts it; begin the span at token 1."
        )
    context = reader.model.context
    read = ids[:last]
    if last - first + 1 > context:
        raise PromptError(
            f"The query has {last - first + 1:,} tokens, and {reader.name} reads {context:,} at "
            f"once; choose a span of {context:,} tokens at most."
        )
    window = read[-context:]
    offset = len(read) - len(window)
    rows = tuple(range(first - 1 - offset, last - offset))
    notice = views.notice(len(read), context)
    notices = () if notice is None else (notice,)
    return Traced(tuple(window), rows, tuple(ids[first : last + 1]), notices)


def query_statistics(traced: Traced, reader: Reader) -> TokenStatistics:
    """Statistics of the traced predictions."""
    model = reader.model
    reader.require_bank("attributed")
    with reader.lock, torch.inference_mode():
        found = reader.read(list(traced.ids)).at(torch.tensor(traced.rows, device=model.device))
        states = full_precision(found.states[0])
        targets = torch.tensor(traced.targets, device=model.device)
        errors, loss = output_errors(states, targets, model.head, model.factor)
        _, activations, indices = model.bank(found)
    n = len(traced.rows)
    return TokenStatistics(
        row=torch.zeros(n, dtype=torch.long, device=model.device),
        position=torch.tensor(traced.rows, device=model.device),
        activations=full_precision(activations[0]),
        indices=indices[0],
        errors=errors,
        unit_states=unit_vectors(states),
        square_norm=states.square().sum(-1),
        loss=loss,
    )
