"""The windows of chosen examples: their bounds, and the prototype's activation at every token."""

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int

from engine.pipeline.examples import Examples, Pairs
from engine.pipeline.index_shards import Shard, token_key
from engine.pipeline.index_windows import WindowPlan


BLOCK = 50_000
"""Examples whose windows are looked up at once."""


def window_bounds(
    plan: WindowPlan, pairs: Pairs, *, before: int, after: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Start and stop of the window around each pair, cut to the stretch that was scanned."""
    key = token_key(plan.document, plan.start)
    joined = np.concatenate(
        [
            [False],
            (plan.document[1:] == plan.document[:-1])
            & (plan.start[1:] == plan.start[:-1] + plan.length[:-1]),
        ]
    )
    stretch = np.cumsum(~joined) - 1
    first = plan.start[~joined]
    last = np.zeros(len(first), np.int64)
    np.maximum.at(last, stretch, plan.start + plan.length)
    window = np.searchsorted(key, token_key(pairs.document, pairs.position), side="right") - 1
    position = pairs.position.astype(np.int64)
    start = np.maximum(position - before, first[stretch[window]])
    return start, np.minimum(position + after + 1, last[stretch[window]])


class WindowActivations:
    """Collects, shard by shard, each example's prototype at every token of its window."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples
        self.length = examples.stop - examples.start
        self.offsets = np.concatenate([[0], np.cumsum(self.length)])
        self.values = np.zeros(int(self.offsets[-1]), np.float32)
        self._order = np.argsort(examples.pairs.document, kind="stable")
        self._documents = examples.pairs.document[self._order]

    def read(self, shard: Shard) -> None:
        """Fill in the tokens of one shard."""
        begin = np.searchsorted(self._documents, shard.document[0], side="left")
        end = np.searchsorted(self._documents, shard.document[-1], side="right")
        for start in range(int(begin), int(end), BLOCK):
            self._fill(shard, self._order[start : min(start + BLOCK, int(end))])

    def _fill(self, shard: Shard, rows: Int[np.ndarray, " rows"]) -> None:
        length = self.length[rows]
        example = np.repeat(rows, length)
        offset = np.arange(len(example)) - np.repeat(np.cumsum(length) - length, length)
        pairs = self.examples.pairs
        wanted = token_key(pairs.document[example], self.examples.start[example] + offset)
        keys = token_key(shard.document, shard.position)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = keys[place] == wanted
        place, example, offset = place[found], example[found], offset[found]
        own = shard.prototypes[place] == pairs.prototype[example][:, None]
        values = np.where(own, shard.activations[place], np.float16(0)).max(axis=1, initial=0)
        self.values[self.offsets[example] + offset] = values

    def column(self) -> pa.Array:
        """One list of float32 per example."""
        return pa.ListArray.from_arrays(
            pa.array(self.offsets, pa.int32()), pa.array(self.values, pa.float32())
        )


def late_positions(
    position: Int[np.ndarray, " n"], window_start: Int[np.ndarray, " n"], reach: int
) -> Bool[np.ndarray, " n"]:
    """True within the first `reach` tokens of a window that does not open its document."""
    return (window_start > 0) & (position - window_start < reach)
