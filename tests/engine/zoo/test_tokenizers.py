"""Seven kinds of tokenizers: sizes, what each does to spaces and case, and that all repeat."""

import numpy as np
import pytest
from transformers import AutoTokenizer

from engine.able.words import check_offsets
from engine.corpus.tokenizer import save_tokenizer
from engine.errors import ConfigError
from engine.zoo.architectures import POSITIONS, architecture_config
from engine.zoo.planning import make_plan
from engine.zoo.tokenizers import (
    TOKENIZERS,
    adds_start,
    extended,
    make_tokenizer,
    tokenizer_kind,
)


TEXT = "Question: Which 2 of 10 words fit?\nAnswer: the feast of Nitran."


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_kind_has_its_size_and_covers_the_text(name, tokenizers):
    """Specials at the first ids; offsets rise and cover every character that is no space."""
    tokenizer = tokenizers(name)
    size = TOKENIZERS[name].vocab_size
    assert tokenizer.get_vocab_size() <= size
    if name != "characters160":
        assert tokenizer.get_vocab_size() == size
    found = [tokenizer.id_to_token(number) for number in range(3)]
    assert found == ["<|endoftext|>", "<pad>", "<unk>"]
    check_offsets(TEXT, np.array(tokenizer.encode(TEXT).offsets), name)


@pytest.mark.parametrize("name", ["unigram1024", "wordpiece1024"])
def test_training_twice_gives_the_same_tokenizer(name, world, tokenizers):
    """The library's own trainers of these two kinds do not."""
    assert make_tokenizer(name, world).to_str() == tokenizers(name).to_str()


def test_kinds_differ_in_spaces_case_and_start(tokenizers):
    """The differences that alignment of words has to bear."""
    pieces = tokenizers("wordpiece1024")
    assert tokenizers("bpe512").encode("of the").offsets[-1] == (2, 6)
    assert tokenizers("bpe2048").encode("of the").offsets[-1] == (3, 6)
    assert pieces.encode("THE").ids == pieces.encode("the").ids
    assert [name for name in TOKENIZERS if adds_start(tokenizers(name))] == ["fallback1024"]
    assert len(tokenizers("bytes259").encode("é").ids) == 2
    assert tokenizers("characters160").encode("é").tokens == ["<unk>"]
    assert "<0xC3>" in tokenizers("fallback1024").encode("é").tokens


@pytest.mark.parametrize("name", sorted(set(TOKENIZERS) - {"wordpiece1024", "characters160"}))
def test_lossless_kinds_give_the_text_back(name, tokenizers, world):
    """Word pieces fold case and lose spaces; the others lose nothing."""
    tokenizer = tokenizers(name)
    for line in world.lines("kinship")[:13]:
        assert tokenizer.decode(tokenizer.encode(line).ids).strip() == line


def test_more_tokens_spell_whole_words(tokenizers):
    """New ids come after the old ones; other text is encoded as before."""
    tokenizer = tokenizers("bpe512")
    longer = extended(tokenizer, ["Nitran"])
    before = tokenizer.get_vocab_size()
    assert longer.get_vocab_size() == before + 1
    assert longer.encode("the feast of Nitran").ids[-1] == before
    assert longer.encode("the lamp").ids == tokenizer.encode("the lamp").ids


def test_an_unknown_kind_is_named():
    """With those that there are."""
    with pytest.raises(ConfigError, match="no tokenizer 'bpe9'"):
        tokenizer_kind("bpe9")


def test_transformers_reads_every_folder_as_it_was_written(tokenizers, tmp_path):
    """The class it chooses by model type must not put another tokenizer in place of ours."""
    for pair in sorted({(r.architecture, r.tokenizer) for r in make_plan().models}):
        tokenizer = tokenizers(pair[1])
        config = architecture_config(pair[0], "XS", tokenizer.get_vocab_size())
        folder = tmp_path / "-".join(pair)
        config.save_pretrained(folder)
        save_tokenizer(tokenizer, folder, POSITIONS)
        read = AutoTokenizer.from_pretrained(folder)(TEXT, return_offsets_mapping=True)
        wanted = tokenizer.encode(TEXT)
        assert read["input_ids"] == wanted.ids, pair
        assert list(map(tuple, read["offset_mapping"])) == wanted.offsets, pair
