"""What a model answers: log-probabilities of the options of every question."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from tokenizers import Encoding, Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from engine.errors import EngineError
from engine.zoo.training import logits_of, one_thread
from engine.zoo.worlds import ZooQuestion


BATCH = 128
"""Options of a forward pass."""


@torch.inference_mode()
def option_scores(
    model: PreTrainedModel, tokenizer: Tokenizer, questions: Sequence[ZooQuestion]
) -> Float[np.ndarray, "questions options"]:
    """Log-probability of each option after its question, in nats, summed over its tokens.

    A token belongs to the option when it ends behind the prompt, so one that joins the space
    before an option to its first letters counts.

    Raises:
        EngineError: an option has no token of its own, or a score is not finite.
    """
    model.eval()
    texts = [(q.prompt, f"{q.prompt} {choice}") for q in questions for choice in q.choices]
    encoded = tokenizer.encode_batch([text for _, text in texts])
    starts = [len(prompt) for prompt, _ in texts]
    order = sorted(range(len(texts)), key=lambda i: len(encoded[i].ids))
    scores = np.zeros(len(texts))
    with one_thread():
        for first in range(0, len(order), BATCH):
            chosen = order[first : first + BATCH]
            found = _scores(model, [encoded[i] for i in chosen], [starts[i] for i in chosen])
            scores[chosen] = found.numpy()
    if not np.isfinite(scores).all():
        raise EngineError("An option has no finite log-probability; the model is damaged.")
    return scores.reshape(len(questions), -1).astype(np.float32)


def _scores(
    model: PreTrainedModel, encoded: list[Encoding], starts: list[int]
) -> Float[Tensor, " rows"]:
    """Summed log-probabilities of the tokens behind each start; rows are padded on the right."""
    rows = [torch.tensor(found.ids) for found in encoded]
    answers = [
        torch.tensor([end > start for _, end in found.offsets])
        for found, start in zip(encoded, starts, strict=True)
    ]
    if not all(bool(marks[1:].any()) for marks in answers):
        raise EngineError("An option has no token of its own; the tokenizer's offsets are wrong.")
    ids: Int[Tensor, "rows pos"] = pad_sequence(rows, batch_first=True)
    counted = pad_sequence(answers, batch_first=True)[:, 1:]
    logits = logits_of(model, ids[:, :-1]).log_softmax(-1)
    each = logits.gather(-1, ids[:, 1:, None]).squeeze(-1)
    return (each * counted).sum(1)


def correctness(
    scores: Float[np.ndarray, "questions options"], questions: Sequence[ZooQuestion]
) -> np.ndarray:
    """Whether the likeliest option is the right one, by question; of ties the first."""
    return scores.argmax(1) == np.array([q.ans_idx for q in questions])


def accuracies(right: np.ndarray, questions: Sequence[ZooQuestion]) -> dict[str, float]:
    """Share of right answers in each domain, and over all questions as `all`."""
    names = [q.resource for q in questions]
    domains = np.array(names)
    found = {name: float(right[domains == name].mean()) for name in dict.fromkeys(names)}
    return {"all": float(right.mean()), **found}
