"""Frames and sentences built from what the model found; pure."""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.live.decomposition import Slices
from engine.live.results import PromptActivations, Token
from engine.live.text import Codec


def as_tokens(codec: Codec, ids: list[int]) -> list[Token]:
    """Tokens with their positions and texts."""
    texts = codec.texts(ids)
    return [Token(i, token, text) for i, (token, text) in enumerate(zip(ids, texts, strict=True))]


def notice(n_tokens: int, context: int) -> str | None:
    """A sentence when the model cannot read the whole prompt."""
    if n_tokens <= context:
        return None
    return (
        f"The prompt has {n_tokens:,} tokens; the model reads the last {context:,}, and nothing "
        "before them counts."
    )


def slice_frame(
    slices: Slices, labels: dict[int, str], n_slices: int | None
) -> tuple[pd.DataFrame, float, int]:
    """The slices shown by falling absolute logit, and sum and number of the others."""
    frame = pd.DataFrame(
        {
            "prototype": np.array(slices.prototypes, dtype=np.int64),
            "label": pd.Series([labels.get(i, "") for i in slices.prototypes], dtype=object),
            "activation": np.array(slices.activations, dtype=np.float64),
            "logit": np.array(slices.logits, dtype=np.float64),
        }
    )
    order = np.argsort(-frame["logit"].abs().to_numpy(), kind="stable")
    frame = frame.iloc[order].reset_index(drop=True)
    kept = len(frame) if n_slices is None else max(0, n_slices)
    hidden = frame.iloc[kept:]
    return frame.iloc[:kept].copy(), float(hidden["logit"].sum()), len(hidden)


def next_frame(
    codec: Codec, before: Float[Tensor, " vocab"], after: Float[Tensor, " vocab"], n: int
) -> pd.DataFrame:
    """The n likeliest tokens of either distribution with their logits and probabilities."""
    # Rows past the tokenizer's vocabulary pad the embedding; they count in the softmax only.
    count = min(n, codec.vocab_size, len(before))
    top = [side[: codec.vocab_size].topk(count).indices for side in (before, after)]
    chosen = torch.unique(torch.cat(top))
    shares = [side.double().softmax(-1)[chosen].cpu().numpy() for side in (before, after)]
    frame = pd.DataFrame(
        {
            "token_id": chosen.cpu().numpy(),
            "token": pd.Series([codec.token_text(i) for i in chosen.tolist()], dtype=object),
            "logit": before[chosen].double().cpu().numpy(),
            "probability": shares[0],
            "logit_suppressed": after[chosen].double().cpu().numpy(),
            "probability_suppressed": shares[1],
        }
    )
    frame = frame.sort_values(["probability", "token_id"], ascending=[False, True])
    return frame.reset_index(drop=True)


def activation_frame(
    activations: Float[Tensor, "pos k"],
    indices: Int[Tensor, "pos k"],
    first: int,
    labels: dict[int, str],
) -> pd.DataFrame:
    """position, rank, prototype, label and activation of what is active."""
    values, which = activations.cpu().numpy(), indices.cpu().numpy()
    rows, ranks = np.nonzero(values > 0)
    prototypes = which[rows, ranks]
    return pd.DataFrame(
        {
            "position": rows + first,
            "rank": ranks,
            "prototype": prototypes,
            "label": pd.Series([labels.get(int(i), "") for i in prototypes], dtype=object),
            "activation": values[rows, ranks],
        }
    )


def residual_frame(shares: Float[Tensor, " pos"], first: int) -> pd.DataFrame:
    """Residual share by position."""
    values = shares.cpu().numpy()
    return pd.DataFrame({"position": np.arange(len(values)) + first, "residual_share": values})


_FIRING = ("prototype", "label", "activation", "position", "token", "n_tokens")


def firing_frame(found: PromptActivations) -> pd.DataFrame:
    """The strongest token of every prototype that fires, strongest prototype first."""
    frame = found.frame.sort_values(
        ["activation", "position", "rank"], ascending=[False, True, True], kind="stable"
    )
    counts = frame["prototype"].value_counts()
    best = frame.drop_duplicates("prototype").reset_index(drop=True)
    texts = [token.text for token in found.tokens]
    best["token"] = pd.Series([texts[i] for i in best["position"]], dtype=object)
    best["n_tokens"] = counts.loc[best["prototype"]].to_numpy(dtype=np.int64)
    return pd.DataFrame({name: best[name] for name in _FIRING})


def strip_frame(
    tokens: list[Token], activation: Float[Tensor, " pos"], similarity: Float[Tensor, " pos"]
) -> pd.DataFrame:
    """position, token_id, token, activation and similarity of one prototype."""
    return pd.DataFrame(
        {
            "position": [token.position for token in tokens],
            "token_id": [token.token_id for token in tokens],
            "token": pd.Series([token.text for token in tokens], dtype=object),
            "activation": activation.cpu().numpy(),
            "similarity": similarity.cpu().numpy(),
        }
    )
