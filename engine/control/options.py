"""Log-likelihood of options after their prompt, with the states that predicted their tokens.

The prompt is read once; its keys and values serve every option, and the options of a question are
read as one batch. Padding stands at the right, where no real token attends to it.
"""

from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.control.encoding import EncodedQuestion
from engine.numerics import full_precision
from engine.prism.model import logit_factor


@dataclass(frozen=True)
class OptionTokens:
    """Tokens of all options of some questions, flat, with what the model said of each.

    Options are numbered through: those of the first question, then those of the second.
    """

    states: Float[np.ndarray, "tokens d_model"]
    """State z that predicted the token, after the final norm."""
    tokens: Int[np.ndarray, " tokens"]
    """The token itself."""
    option: Int[np.ndarray, " tokens"]
    """Option it belongs to, numbered through."""
    log_probability: Float[np.ndarray, " tokens"]
    """Its log-probability, nats, never positive."""
    option_bytes: Int[np.ndarray, " options"]
    """UTF-8 bytes of each option."""
    question: Int[np.ndarray, " options"]
    """Question of each option, counted from 0 among those scored."""

    @property
    def n_tokens(self) -> Int[np.ndarray, " options"]:
        """Tokens of each option."""
        return np.bincount(self.option, minlength=len(self.question))

    def log_likelihood(self, per: str = "sum") -> Float[np.ndarray, " options"]:
        """Log-likelihood of each option, nats: the sum over its tokens, or that per token or byte.

        Args:
            per: sum, token or byte.
        """
        total = np.bincount(self.option, weights=self.log_probability, minlength=len(self.question))
        sizes = {"sum": np.ones(len(total)), "token": self.n_tokens, "byte": self.option_bytes}
        return total / sizes[per]

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def joined(parts: list[OptionTokens]) -> OptionTokens:
    """Options of several groups of questions, numbered through."""
    options = np.cumsum([0, *(len(part.question) for part in parts)])
    questions = np.cumsum([0, *(int(part.question.max()) + 1 for part in parts)])
    shifted = [
        part.arrays() | {"option": part.option + first, "question": part.question + number}
        for part, first, number in zip(parts, options[:-1], questions[:-1], strict=True)
    ]
    names = [field.name for field in fields(OptionTokens)]
    return OptionTokens(**{name: np.concatenate([p[name] for p in shifted]) for name in names})


@torch.inference_mode()
def read_options(backbone: PreTrainedModel, questions: list[EncodedQuestion]) -> OptionTokens:
    """Score every option of every question.

    Args:
        backbone: A causal LM whose logits are its head's output of the last state, times a factor.
        questions: At least one.
    """
    return joined([_read_question(backbone, question) for question in questions])


def _read_question(backbone: PreTrainedModel, encoded: EncodedQuestion) -> OptionTokens:
    options = encoded.options
    lengths = [len(option) for option in options]
    states = _option_states(backbone, encoded)
    flat = torch.cat([states[row, :length] for row, length in enumerate(lengths)])
    tokens = torch.tensor([token for option in options for token in option], device=flat.device)
    return OptionTokens(
        states=full_precision(flat).cpu().numpy(),
        tokens=tokens.cpu().numpy().astype(np.int32),
        option=np.repeat(np.arange(len(options), dtype=np.int32), lengths),
        log_probability=token_log_probability(backbone, flat, tokens).cpu().numpy(),
        option_bytes=np.array(encoded.n_bytes, np.int32),
        question=np.zeros(len(options), np.int32),
    )


def _option_states(
    backbone: PreTrainedModel, encoded: EncodedQuestion
) -> Float[Tensor, "options longest d_model"]:
    """State that predicts each token of each option; rows of shorter options end in padding."""
    device = backbone.device
    n_options, longest = len(encoded.options), max(len(option) for option in encoded.options)
    prompt = torch.tensor([encoded.prompt], device=device)
    needed = longest > 1
    first = _decode(backbone, prompt, use_cache=needed)
    last = first.last_hidden_state[:, -1:].expand(n_options, -1, -1)
    if not needed:
        return last
    cache = first.get("cache")
    cache.batch_repeat_interleave(n_options)
    padded = torch.zeros(n_options, longest - 1, dtype=torch.long)
    for row, option in enumerate(encoded.options):
        padded[row, : len(option) - 1] = torch.tensor(option[:-1], dtype=torch.long)
    rest = _decode(backbone, padded.to(device), cache=cache, use_cache=True)
    return torch.cat([last, rest.last_hidden_state], dim=1)


def _decode(backbone: PreTrainedModel, ids: Int[Tensor, "rows pos"], **settings: Any) -> Any:
    return backbone.base_model(input_ids=ids, **settings)


def token_log_probability(
    backbone: PreTrainedModel,
    states: Float[Tensor, "tokens d_model"],
    tokens: Int[Tensor, " tokens"],
) -> Float[Tensor, " tokens"]:
    """Log-probability, in float32, of each token under the head's output of its state."""
    head = cast(nn.Linear, backbone.get_output_embeddings())
    logits = full_precision(head(states)) * logit_factor(backbone)
    return logits.log_softmax(-1).gather(1, tokens[:, None].long())[:, 0]
