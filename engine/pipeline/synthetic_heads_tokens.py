"""The token table of a synthetic study: influence of samples dealt out over their tokens."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


RANKED = 5
"""Samples of either side."""


def token_rows(
    generator: np.random.Generator,
    influence: pd.DataFrame,
    heads: Sequence[tuple[int, int]],
    chosen: Mapping[str, tuple[int, int]],
    context: int,
) -> pd.DataFrame:
    """Rows of `head_tokens` for the chosen head of every seed and kind.

    Args:
        generator: Source of every number.
        influence: Rows of `head_influence`.
        heads: Layer and head of each of its columns.
        chosen: The chosen head by kind.
        context: Tokens that a sample reads.
    """
    rows = []
    for (seed, unit), own in influence.groupby(["seed", "unit"]):
        layer, head = chosen[str(unit)]
        scores = np.stack(own["influence"].to_list())[:, heads.index((layer, head))]
        for sign, side in (("positive", -scores), ("negative", scores)):
            first = np.argsort(np.where(np.isfinite(side), side, np.inf), kind="stable")[:RANKED]
            for rank, place in enumerate(first):
                shares = generator.dirichlet(np.full(context, 0.05))
                sample = own.iloc[int(place)]
                rows.append(
                    {
                        "seed": seed,
                        "unit": unit,
                        "layer": layer,
                        "head": head,
                        "sign": sign,
                        "rank": rank,
                        "step": sample["step"],
                        "row": sample["row"],
                        "influence": (scores[place] * shares).astype(np.float32),
                    }
                )
    return pd.DataFrame(rows)
