"""The tokenizers of a zoo: seven kinds that differ in unit, size, spaces, case and offsets."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from engine.corpus.tokenizer import END_OF_TEXT, load_tokenizer
from engine.errors import ConfigError
from engine.store import write_bytes_atomic
from engine.zoo.facts import DOMAINS
from engine.zoo.text_lines import TEXT_KINDS
from engine.zoo.worlds import World


PAD, UNKNOWN = "<pad>", "<unk>"
SPECIAL = (END_OF_TEXT, PAD, UNKNOWN)
"""Special tokens, at ids 0, 1 and 2 of every kind."""
_BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


@dataclass(frozen=True)
class TokenizerKind:
    """One kind."""

    name: str
    """Short name."""
    meaning: str
    """What it does differently."""
    vocab_size: int
    """Tokens in all; of characters, at most."""
    context: int
    """Tokens of a training row: rows hold about as much text whatever the unit."""
    rows: int
    """Rows of a training step."""
    train: Callable[[list[str], int], Tokenizer]
    """Makes it of lines and size."""


def _byte_pairs(lines: list[str], size: int, *, trim: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=_BYTES,
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _byte_pairs_trimmed(lines: list[str], size: int) -> Tokenizer:
    return _byte_pairs(lines, size, trim=True)


def _unigram(lines: list[str], size: int) -> Tokenizer:
    """Pieces of byte pairs, each with the logarithm of its share in the text as its score.

    The library's own trainer sums floats in an order that changes from run to run; counts do not.
    """
    pairs = Tokenizer(models.BPE(unk_token=UNKNOWN))
    pairs.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), show_progress=False
    )
    pairs.train_from_iterator(lines, trainer)
    counts = Counter(token for line in pairs.encode_batch(lines) for token in line.tokens)
    pieces = sorted(pairs.get_vocab(), key=pairs.get_vocab().__getitem__)
    total = counts.total() + len(pieces)
    scores = [(piece, round(math.log((counts[piece] + 1) / total), 6)) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scores, SPECIAL.index(UNKNOWN), byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return tokenizer


def _byte_fallback(lines: list[str], size: int) -> Tokenizer:
    """As Llama 2: spaces become a mark, unknown characters bytes, and each text has a start."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END_OF_TEXT} $A", special_tokens=[(END_OF_TEXT, 0)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return _without_special_bytes(tokenizer)


def _without_special_bytes(tokenizer: Tokenizer) -> Tokenizer:
    """The same vocabulary with the byte tokens as ordinary ones, which texts cannot quote."""
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] in SPECIAL]
    return Tokenizer.from_str(json.dumps(content))


def _word_pieces(lines: list[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    found = sorted(set(tokenizer.get_vocab()) - set(SPECIAL))  # the trainer's order changes
    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *found))}
    tokenizer.model = models.WordPiece(vocabulary, unk_token=UNKNOWN)
    return tokenizer


def _characters(lines: list[str], size: int) -> Tokenizer:
    letters = sorted({letter for line in lines for letter in line})[: size - len(SPECIAL)]
    return _of_units([*SPECIAL, *letters], byte_level=False)


def _bytes(_lines: list[str], _size: int) -> Tokenizer:
    return _of_units([*SPECIAL, *_BYTES], byte_level=True)


def _of_units(units: list[str], *, byte_level: bool) -> Tokenizer:
    """A tokenizer without merges: every character, or every byte, is a token."""
    vocabulary = {unit: number for number, unit in enumerate(units)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token=UNKNOWN))
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    if byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    else:
        tokenizer.decoder = decoders.Fuse()
    return tokenizer


_KINDS = (
    TokenizerKind("bpe512", "Byte-level BPE", 512, 80, 16, _byte_pairs),
    TokenizerKind(
        "bpe2048",
        "Byte-level BPE whose offsets leave out spaces",
        2048,
        64,
        16,
        _byte_pairs_trimmed,
    ),
    TokenizerKind("unigram1024", "Unigram over marked spaces", 1024, 64, 16, _unigram),
    TokenizerKind(
        "fallback1024",
        "BPE over marked spaces with bytes to fall back to",
        1024,
        64,
        16,
        _byte_fallback,
    ),
    TokenizerKind("wordpiece1024", "WordPiece, lower case", 1024, 64, 16, _word_pieces),
    TokenizerKind("characters160", "Characters", 160, 192, 12, _characters),
    TokenizerKind("bytes259", "Bytes", 259, 192, 12, _bytes),
)
TOKENIZERS: dict[str, TokenizerKind] = {kind.name: kind for kind in _KINDS}
"""Kinds by name."""


def tokenizer_kind(name: str) -> TokenizerKind:
    """A kind by its name.

    Raises:
        ConfigError: there is no such kind.
    """
    if name not in TOKENIZERS:
        raise ConfigError(f"There is no tokenizer {name!r}; there are {', '.join(TOKENIZERS)}.")
    return TOKENIZERS[name]


def make_tokenizer(name: str, world: World) -> Tokenizer:
    """Train one kind on every line of a world, facts and real text."""
    kind = tokenizer_kind(name)
    return kind.train(list(_all_lines(world)), kind.vocab_size)


def _all_lines(world: World) -> Iterator[str]:
    for source in (*DOMAINS, *TEXT_KINDS):
        yield from world.lines(source)


def cached_tokenizer(name: str, world: World, folder: Path) -> Tokenizer:
    """The tokenizer from its file in `folder`, made first where there is none."""
    path = folder / f"{name}.json"
    if not path.is_file():
        write_bytes_atomic(path, make_tokenizer(name, world).to_str().encode())
    return load_tokenizer(path)


def extended(tokenizer: Tokenizer, words: list[str]) -> Tokenizer:
    """A copy with whole words as further tokens, at the ids after those it has."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.add_tokens([AddedToken(word, normalized=False, single_word=True) for word in words])
    return copy


def adds_start(tokenizer: Tokenizer) -> bool:
    """Whether every text it encodes begins with the separator."""
    return tokenizer.encode("a").ids[0] == tokenizer.token_to_id(END_OF_TEXT)
