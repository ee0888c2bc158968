"""Features of options: what each prototype, or feature of an autoencoder, adds to their tokens.

    f_i(option) = sum over the option's tokens v_t of a_ti (W p_i)[v_t]

in logits; positive where the feature raises the option's tokens. For an autoencoder its
activations h_ti and decoder rows d_i take the place of a_ti and p_i.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import sparse
from torch import Tensor

from engine.control.options import OptionTokens
from engine.numerics import full_precision


_ROWS = 1024
"""Tokens whose features exist at once: [rows x active x d_model] values."""
Encoder = Callable[
    [Float[Tensor, "tokens d_model"]],
    tuple[Float[Tensor, "tokens k"], Int[Tensor, "tokens k"]],
]
"""Activations of the active features of each state, and which they are."""


@dataclass(frozen=True)
class Dictionary:
    """Directions that states are written in: prototypes, or an autoencoder's decoder rows."""

    encode: Encoder
    directions: Float[Tensor, "features d_model"]

    @property
    def width(self) -> int:
        """Features in all."""
        return len(self.directions)


@torch.inference_mode()
def option_features(
    read: OptionTokens,
    dictionary: Dictionary,
    head: Float[Tensor, "vocab d_model"],
    factor: float = 1.0,
) -> sparse.csr_array:
    """F of every option, [options x features] in float64, sparse.

    Args:
        read: Tokens of the options with the states that predicted them.
        dictionary: Prototypes or an autoencoder.
        head: Rows of the LM head W.
        factor: Constant the decoder multiplies its logits by.
    """
    values, rows, columns = [], [], []
    for start in range(0, len(read.tokens), _ROWS):
        own = slice(start, start + _ROWS)
        states = torch.from_numpy(read.states[own]).to(head.device)
        activations, indices = dictionary.encode(states)
        words = full_precision(head[torch.from_numpy(read.tokens[own]).to(head.device).long()])
        directions = full_precision(dictionary.directions[indices])
        added = activations * torch.einsum("tkd,td->tk", directions, words * factor)
        values.append(added.cpu().numpy().astype(np.float64).ravel())
        rows.append(np.repeat(read.option[own], indices.shape[1]))
        columns.append(indices.cpu().numpy().ravel())
    shape = (len(read.question), dictionary.width)
    where = (np.concatenate(rows), np.concatenate(columns))
    found = sparse.coo_array((np.concatenate(values), where), shape=shape).tocsr()
    found.eliminate_zeros()
    return found


def centred(features: sparse.csr_array, question: Int[np.ndarray, " options"]) -> sparse.csr_array:
    """Features minus their mean over the options of the same question.

    A controller chooses alike with and without: what all options of a question share cancels in
    the softmax. Effects are read from these, because only they can move a choice.
    """
    n_questions, n_options = int(question.max()) + 1, len(question)
    ones = np.ones(n_options)
    member = sparse.csr_array((ones, (question, np.arange(n_options))), (n_questions, n_options))
    means = sparse.diags_array(1 / np.bincount(question)) @ (member @ features)
    return sparse.csr_array(features - means[question])
