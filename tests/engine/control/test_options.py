"""Options scored over one cached prompt, against reading every option in full."""

import numpy as np
import pytest
import torch

from engine.control.encoding import EncodedQuestion, encode_question, encode_questions
from engine.control.options import joined, read_options
from engine.questions.question import question_of
from tests.engine.tiny_decoders import decoder
from tests.engine.tiny_models import tiny_tokenizer


def _encoded(prompt: list[int], options: list[list[int]]) -> EncodedQuestion:
    row = {"question": "q", "options": [f"o{i}" for i in range(len(options))], "answer": 0}
    sizes = tuple(3 + i for i in range(len(options)))
    return EncodedQuestion(
        question_of("s", row), tuple(prompt), tuple(tuple(o) for o in options), sizes
    )


QUESTIONS = [
    _encoded([3, 5, 7, 11, 13], [[17, 19], [23], [29, 31, 37]]),
    _encoded([41, 43], [[47], [53]]),
    _encoded([2, 4, 6, 8, 10, 12, 14], [[16, 18, 20, 22, 24], [26, 28]]),
]


def _plain(model, question):
    """Log-probabilities and states of every option, the whole text read at once."""
    found = []
    for option in question.options:
        ids = torch.tensor([[*question.prompt, *option]])
        with torch.inference_mode():
            out = model(input_ids=ids, output_hidden_states=True)
        logs = out.logits[0].float().log_softmax(-1)
        states = out.hidden_states[-1][0]
        start = len(question.prompt) - 1
        for place, token in enumerate(option):
            found.append((float(logs[start + place, token]), states[start + place].numpy(), token))
    return found


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3", "granite"])
def test_a_cached_prompt_gives_what_reading_each_option_in_full_gives(family):
    """Shared keys and values and padded options must not move a number."""
    model = decoder(family)
    read = read_options(model, QUESTIONS)
    plain = [row for question in QUESTIONS for row in _plain(model, question)]
    assert read.tokens.tolist() == [token for _, _, token in plain]
    np.testing.assert_allclose(read.log_probability, [log for log, _, _ in plain], atol=2e-5)
    np.testing.assert_allclose(read.states, [state for _, state, _ in plain], atol=2e-4)


def test_log_likelihood_sums_over_tokens_and_divides_by_tokens_or_bytes():
    """The three forms differ by the sizes of the options alone."""
    read = read_options(decoder("llama"), QUESTIONS)
    sums = read.log_likelihood()
    assert read.question.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert read.n_tokens.tolist() == [2, 1, 3, 1, 1, 5, 2]
    np.testing.assert_allclose(sums[2], read.log_probability[3:6].sum(), rtol=1e-6)
    np.testing.assert_allclose(read.log_likelihood("token") * read.n_tokens, sums)
    np.testing.assert_allclose(read.log_likelihood("byte") * read.option_bytes, sums)


def test_groups_joined_are_numbered_as_if_read_at_once():
    """Chunks that were cached apart must not share option numbers."""
    model = decoder("llama")
    whole = read_options(model, QUESTIONS)
    parts = joined([read_options(model, QUESTIONS[:1]), read_options(model, QUESTIONS[1:])])
    for name, values in whole.arrays().items():
        np.testing.assert_array_equal(values, parts.arrays()[name])


def _question(text: str, options: list[str]):
    return question_of("s", {"question": text, "options": options, "answer": 0})


def test_a_prompt_that_does_not_fit_loses_its_first_tokens():
    """The question stands last, so its end is what must be kept."""
    tokenizer = tiny_tokenizer()
    question = _question("the quick brown fox jumps over the lazy dog", ["one two", "three"])
    whole = encode_question(tokenizer, question, 1_000)
    longest = max(len(option) for option in whole.options)
    cut = encode_question(tokenizer, question, longest + 5)
    assert cut.prompt == whole.prompt[-5:]
    assert cut.options == whole.options
    assert whole.n_bytes == (8, 6)
    ids = [*whole.prompt, *whole.options[0]]
    assert tokenizer.decode(ids) == f"{question.prompt} one two"


def test_a_question_whose_option_fills_the_context_is_left_out():
    """One long option must not stop a set."""
    tokenizer = tiny_tokenizer()
    short, long = _question("a dog", ["one", "two"]), _question("a dog", ["one", "river " * 30])
    found = encode_questions(tokenizer, [short, long], 29)
    assert [encoded.question for encoded in found] == [short]
