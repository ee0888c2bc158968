"""Text to tokens and back: checks of what a user typed, and decoding of a stream of tokens."""

import codecs
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from engine.errors import CacheMissing, PromptError


MAX_CHARACTERS = 1_000_000
"""Longest prompt read at all."""


class Codec:
    """A tokenizer as the live engine needs it; immutable."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a tokenizer; truncation and padding that it was saved with are switched off."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.vocab_size = tokenizer.get_vocab_size()
        decoder = json.loads(tokenizer.to_str()).get("decoder") or {}
        self.byte_level = "ByteLevel" in json.dumps(decoder)
        """Whether tokens are spelled in the alphabet of GPT-2, one letter a byte."""
        self._letters = {letter: byte for byte, letter in byte_letters().items()}
        added = tokenizer.get_added_tokens_decoder()
        self._added = {token_id: token.content for token_id, token in added.items()}

    @classmethod
    def from_folder(cls, folder: Path) -> "Codec":
        """The tokenizer of a model folder.

        Raises:
            CacheMissing: the folder has no readable tokenizer.json.
        """
        path = folder / "tokenizer.json"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CacheMissing(
                f"{folder} holds no readable tokenizer.json; save the model's tokenizer beside it "
                "(tokenizer.save_pretrained)."
            ) from error
        try:
            return cls(Tokenizer.from_str(text))
        except Exception as error:
            raise CacheMissing(f"{path} is no tokenizer that can be read: {error}.") from error

    def encode(self, text: str, what: str = "prompt") -> list[int]:
        """Token ids of a text that a user typed, with what the tokenizer itself adds.

        Raises:
            PromptError: empty, too long, or not text.
        """
        check_text(text, what)
        ids = list(self.tokenizer.encode(text).ids)
        if not ids:
            raise PromptError(
                f"The {what} holds nothing that the tokenizer keeps; type other text."
            )
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes a token stands for."""
        if token_id in self._added:
            return self._added[token_id].encode()
        spelling = self.tokenizer.id_to_token(token_id)
        if spelling is None:
            return b""  # padded rows of an embedding have no token
        if self.byte_level and all(letter in self._letters for letter in spelling):
            return bytes(self._letters[letter] for letter in spelling)
        return spelling.replace("▁", " ").encode()

    def token_text(self, token_id: int) -> str:
        """Text of one token; bytes that are no whole character show as U+FFFD."""
        return self.token_bytes(token_id).decode(errors="replace")

    @cached_property
    def ids_by_text(self) -> dict[str, int]:
        """Token by text, for tokens that are whole characters; the first of equals."""
        texts: dict[str, int] = {}
        for token_id in range(self.vocab_size):
            texts.setdefault(self.token_text(token_id), token_id)
        return texts

    def token_id(self, target: str | int) -> int:
        """The one token a target names: an id, a token's text or its spelling in the vocabulary.

        Raises:
            PromptError: unknown id, or a text of several tokens, which the sentence lists.
        """
        if isinstance(target, int):
            if not 0 <= target < self.vocab_size:
                raise PromptError(
                    f"Token {target} is not in the vocabulary; ids run from 0 to "
                    f"{self.vocab_size - 1}."
                )
            return target
        check_text(target, "target")
        found = self.ids_by_text.get(target)
        if found is None:
            found = self.tokenizer.token_to_id(target)
        if found is not None:
            return found
        ids = self.tokenizer.encode(target, add_special_tokens=False).ids
        if len(ids) == 1:
            return ids[0]
        pieces = " · ".join(repr(self.token_text(i)) for i in ids) or "nothing"
        raise PromptError(
            f"The target {target!r} is not one token of this model; it splits into {pieces}. "
            "Choose one of these (a leading space counts)."
        )

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Text of every token; what they hold of a character split over several goes to its last.

        The texts put together give the decoded whole.
        """
        stream = StreamDecoder(self)
        texts = [stream.push(token_id) for token_id in ids]
        rest = stream.finish()
        if texts:
            texts[-1] += rest
        return texts


class StreamDecoder:
    """Turns tokens into text as they come, holding back the bytes of an unfinished character."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """Text that is whole now."""
        return self._decoder.decode(self._codec.token_bytes(token_id))

    def finish(self) -> str:
        """What is left of an unfinished character."""
        return self._decoder.decode(b"", final=True)


def check_text(text: str, what: str) -> None:
    """Refuse what no tokenizer can take, in one sentence."""
    if not text:
        raise PromptError(f"The {what} is empty; type at least one character.")
    if len(text) > MAX_CHARACTERS:
        raise PromptError(
            f"The {what} has {len(text):,} characters; shorten it to {MAX_CHARACTERS:,}."
        )
    if "\x00" in text:
        raise PromptError(
            f"The {what} holds a NUL byte at character {text.index(chr(0))}; remove it."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"The {what} holds half a surrogate pair (U+{ord(text[error.start]):04X}) at character "
            f"{error.start}, which is no text; remove it."
        ) from error


def byte_letters() -> dict[int, str]:
    """The printable letter that stands for each byte in a byte-level vocabulary (GPT-2)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    return letters | {byte: chr(256 + i) for i, byte in enumerate(others)}
