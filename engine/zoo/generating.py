"""Text that a model says, for students that read other tokens than their teacher."""

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from engine.corpus.tokenizer import separator_id
from engine.zoo.training import logits_of, one_thread


@torch.inference_mode()
def sampled_texts(
    model: PreTrainedModel, tokenizer: Tokenizer, count: int, length: int, seed: int
) -> tuple[str, ...]:
    """Texts drawn from a model at temperature 1, each begun after a separator.

    Args:
        model: a decoder.
        tokenizer: its tokenizer.
        count: texts to draw.
        length: tokens at most; a text ends at the first separator.
        seed: seed of the draws.

    Returns:
        The texts that are not empty, in order.
    """
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    end = separator_id(tokenizer)
    ids = torch.full((count, 1), end)
    with one_thread():
        for _ in range(length):
            probabilities = logits_of(model, ids)[:, -1].softmax(-1)
            drawn = torch.multinomial(probabilities, 1, generator=generator)
            ids = torch.cat([ids, drawn], 1)
    rows = [_until(row, end) for row in ids[:, 1:].tolist()]
    texts = [text.strip() for text in tokenizer.decode_batch(rows)]
    return tuple(text for text in texts if text)


def _until(row: list[int], end: int) -> list[int]:
    return row[: row.index(end)] if end in row else row
