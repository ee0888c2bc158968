"""Which tokens of a generated text are traced."""

import pytest

from dashboard.components.attribution_doors import first_written


@pytest.mark.parametrize(
    ("texts", "n_prompt", "first"),
    [
        (["The", " dog", " runs", " off"], 7, 2),
        (["The", " dog", " runs", " off"], 0, 0),
        (["The", " dogs", " run"], 7, 1),  # the generated "s" has joined the prompt's last token
        (["The", " dog", "", "", "🐾", "."], 7, 2),  # a character of three tokens is traced whole
    ],
)
def test_the_span_starts_at_the_first_generated_token(texts: list[str], n_prompt: int, first: int):
    """All of the generated text and as little of the prompt as its tokens allow."""
    assert first_written(texts, n_prompt) == first
