"""What the zoo's tests share: a world, and plans so small that they are built in seconds."""

import dataclasses

import pytest


@pytest.fixture(scope="session")
def world():
    from engine.zoo.worlds import World

    return World()


@pytest.fixture(scope="session")
def tokenizers(world, tmp_path_factory):
    """A tokenizer by its kind, each made once."""
    from engine.zoo.tokenizers import cached_tokenizer

    folder = tmp_path_factory.mktemp("tokenizers")
    return lambda kind: cached_tokenizer(kind, world, folder)


@pytest.fixture(scope="session")
def small_kind():
    """Short rows, few of them: a step takes a few milliseconds."""
    from engine.zoo.tokenizers import TOKENIZERS

    return dataclasses.replace(TOKENIZERS["bpe512"], context=23, rows=5)
