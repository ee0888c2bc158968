"""Questions as tokens: one prompt, its options, and what does not fit left out and counted."""

from collections.abc import Iterable
from dataclasses import dataclass

from tokenizers import Tokenizer

from engine.questions import Question


@dataclass(frozen=True)
class EncodedQuestion:
    """Tokens of a question: the prompt that its options share, and each option after it."""

    question: Question
    prompt: tuple[int, ...]
    """Tokens of passage, question and `Answer:`, cut at the left to what the model reads."""
    options: tuple[tuple[int, ...], ...]
    """Tokens of each option, with the space that parts it from the prompt."""
    n_bytes: tuple[int, ...]
    """UTF-8 bytes of each option with that space."""


def encode_question(
    tokenizer: Tokenizer, question: Question, context: int
) -> EncodedQuestion | None:
    """Tokens of a question, or None where an option leaves no room for any of its prompt.

    Prompt and options are tokenised apart, so the prompt's tokens are the same before each option.
    A prompt that does not fit loses its first tokens.

    Args:
        tokenizer: The model's.
        question: What to encode.
        context: Tokens the model reads at most.
    """
    texts = [f" {option}" for option in question.options]
    options = [tuple(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    room = context - max(len(option) for option in options)
    if room < 1 or not all(options):
        return None
    prompt = tuple(tokenizer.encode(question.prompt).ids)[-room:]
    sizes = tuple(len(text.encode()) for text in texts)
    return EncodedQuestion(question, prompt, tuple(options), sizes)


def encode_questions(
    tokenizer: Tokenizer, questions: Iterable[Question], context: int
) -> list[EncodedQuestion]:
    """Every question that fits the model, in order."""
    found = [encode_question(tokenizer, question, context) for question in questions]
    return [encoded for encoded in found if encoded is not None]
