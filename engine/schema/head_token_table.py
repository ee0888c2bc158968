"""Which tokens of the samples behind a head carry their influence."""

import pyarrow as pa

from engine.schema.columns import RANK, ColumnSpec, TableSpec, identifier, text


HEAD_TOKENS = TableSpec(
    "head_tokens",
    "Which tokens of a head's most influential samples, on either side, carry the influence",
    "one row per seed, unit, head, sign and rank",
    ("seed", "unit", "layer", "head", "sign", "rank"),
    (
        identifier("seed", "Seed of the study; 0 in a run about a given model", pa.int16()),
        text("unit", "Kind of head whose probe was asked: induction, previous_token, ..."),
        identifier("layer", "Layer, counted from 0", pa.int16()),
        identifier("head", "Head within its layer, counted from 0", pa.int16()),
        text("sign", "positive or negative: the side of the influence"),
        RANK,
        identifier("step", "Optimiser step of the sample"),
        identifier("row", "Row of the step's batch, counted from 0", pa.int16()),
        ColumnSpec(
            "influence",
            pa.list_(pa.float32()),
            "number",
            "By token that the sample reads, in order: what the head's blocks read and wrote "
            "there. The numbers add up to the sample's influence",
        ),
    ),
)
