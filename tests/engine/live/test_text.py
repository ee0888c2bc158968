import pytest
from hypothesis import given, strategies as st

from engine.errors import PromptError
from engine.live.text import Codec, StreamDecoder
from tests.engine.tiny_models import tiny_tokenizer


CODEC = Codec(tiny_tokenizer())


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_texts_of_tokens_put_together_are_the_text(text: str):
    """Nothing is lost or doubled where a character takes several tokens."""
    assert "".join(CODEC.texts(CODEC.encode(text))) == text


def test_a_stream_holds_back_half_a_character():
    """A wave takes four bytes; its text comes with the last of them."""
    ids = CODEC.encode("🌊")
    stream = StreamDecoder(CODEC)
    assert [stream.push(i) for i in ids] == ["", "", "", "🌊"]
    assert stream.finish() == ""
    stream.push(ids[0])
    assert stream.finish() == "\ufffd"


def test_a_target_may_be_an_id_a_text_or_a_spelling():
    """What the page shows can be typed back."""
    river = CODEC.encode(" the")
    assert len(river) == 1
    assert CODEC.token_id(" the") == CODEC.token_id("Ġthe") == CODEC.token_id(river[0]) == river[0]
    assert CODEC.token_id("<|endoftext|>") == 0


def test_a_target_of_several_tokens_says_how_it_splits():
    """The sentence lists what could be chosen."""
    with pytest.raises(PromptError, match="' the' · "):
        CODEC.token_id(" theqzx")
