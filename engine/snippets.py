"""Read the texts that tables name by id: training text around a token, multiple-choice questions.

Needs a built corpus and a `tokenizer.json`, or the packages of the questions, and neither torch nor
transformers: pages use it.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

from engine import store
from engine.config import cache_root
from engine.corpus.build import Corpus, open_corpus
from engine.corpus.documents import document_id
from engine.corpus.tokenizer import load_tokenizer, plain_encoder
from engine.errors import CorpusError, PackageMissing
from engine.questions import Question, read_set


_KEPT_DOCUMENTS = 512
PLANTED = "planted"
"""Domain of the documents that a study by retraining invents; they are in no corpus."""


class SnippetToken(NamedTuple):
    """One token of a document."""

    position: int
    """Counted from 0 within the document."""
    token_id: int
    """Id in the tokenizer."""
    text: str
    """The characters it covers, whitespace kept; empty before the last token of a character."""


class SnippetReader:
    """Windows of tokens of a corpus's documents; tokenised documents are kept for a while.

    Sessions may share a reader: a lock guards what is kept.
    """

    def __init__(
        self,
        corpus: Corpus | str | Path,
        tokenizer_path: Path,
        planted: Mapping[str, str] | None = None,
    ) -> None:
        """Open the corpus and the tokenizer.

        Args:
            corpus: A built corpus, its name or its folder.
            tokenizer_path: `tokenizer.json` of the model that the positions belong to.
            planted: Texts beside the corpus by document id, as of `planted_texts`.
        """
        self.planted = dict(planted or {})
        self.corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
        self._tokenizer: Tokenizer = plain_encoder(load_tokenizer(tokenizer_path))
        self._kept: OrderedDict[str, list[SnippetToken]] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, doc_id: str) -> bool:
        """Whether the document is in the corpus or planted beside it."""
        return doc_id in self.planted or self.corpus.position_of(doc_id) is not None

    def window(self, doc_id: str, position: int, before: int, after: int) -> list[SnippetToken]:
        """The token at `position` with up to `before` tokens in front and `after` behind.

        Raises:
            PackageMissing: The document's domain was left out of the corpus for want of a package.
            CorpusError: The corpus does not hold the document, or it has no such position.
        """
        tokens = self.tokens(doc_id)
        if not 0 <= position < len(tokens):
            raise CorpusError(
                f"Document {doc_id} has {len(tokens)} tokens and no position {position}; the "
                "index was made with another tokenizer."
            )
        return tokens[max(0, position - before) : position + after + 1]

    def tokens(self, doc_id: str) -> list[SnippetToken]:
        """All tokens of a document; their texts end to end are its text."""
        with self._lock:
            if doc_id in self._kept:
                self._kept.move_to_end(doc_id)
                return self._kept[doc_id]
        text = self.document(doc_id)
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        tokens = _with_text(text, encoding.ids, encoding.offsets)
        with self._lock:
            self._kept[doc_id] = tokens
            if len(self._kept) > _KEPT_DOCUMENTS:
                self._kept.popitem(last=False)
        return tokens

    def document(self, doc_id: str) -> str:
        """Text of a document."""
        if doc_id in self.planted:
            return self.planted[doc_id]
        document = self.corpus.position_of(doc_id)
        if document is None:
            raise self._not_held(doc_id)
        return self.corpus.text(document)

    def domain(self, doc_id: str) -> str:
        """Domain of a document."""
        if doc_id in self.planted:
            return PLANTED
        document = self.corpus.position_of(doc_id)
        if document is None:
            raise self._not_held(doc_id)
        return self.corpus.domain_of(document)

    def _not_held(self, doc_id: str) -> CorpusError | PackageMissing:
        name = self.corpus.name
        if self.corpus.missing:
            reasons = " ".join(self.corpus.missing.values())
            return PackageMissing(
                f"Document {doc_id} is not in the corpus {name}, which lacks the domains "
                f"{', '.join(self.corpus.missing)}. {reasons}"
            )
        return CorpusError(
            f"Document {doc_id} is not in the corpus {name}; the index was made from another "
            f"state of it. Run `headwater corpus build {name}`, or index again."
        )


def _with_text(text: str, ids: list[int], offsets: list[tuple[int, int]]) -> list[SnippetToken]:
    """Tokens with the characters they cover.

    A character of several tokens (an emoji, say) belongs whole to the last, the one that has seen
    all of it, as in prompts and generations; the others are empty. Characters no token covers (a
    tokenizer may drop spaces) go to the token after them.
    """
    tokens = []
    done = 0
    nexts = [*(start for start, _ in offsets[1:]), len(text)]
    for position, (token_id, (_, stop), following) in enumerate(
        zip(ids, offsets, nexts, strict=True)
    ):
        end = max(done, min(stop, following))
        tokens.append(SnippetToken(position, token_id, text[done:end]))
        done = end
    if tokens and done < len(text):
        last = tokens[-1]
        tokens[-1] = last._replace(text=last.text + text[done:])
    return tokens


def tokenizer_of(model: Path) -> Path:
    """The `tokenizer.json` of a model folder; of the weights it refers to when it has none itself.

    Raises:
        PackageMissing: The weights of the package it refers to are not on this machine.
        CorpusError: It neither has nor names a tokenizer.
    """
    own = model / "tokenizer.json"
    if own.is_file():
        return own
    settings = store.read_json(model / "config.json") if (model / "config.json").is_file() else {}
    base = settings.get("base") or {}
    if "path" in base and (Path(base["path"]) / "tokenizer.json").is_file():
        return Path(base["path"]) / "tokenizer.json"
    for origin in sorted((cache_root() / "models").glob("*/origin.json")):
        if "sha256" in base and store.read_json(origin).get("sha256") == base["sha256"]:
            return origin.with_name("tokenizer.json")
    if "package" in base:
        raise PackageMissing(
            f"The tokenizer of this run comes with the package {base['package']}, which is not on "
            f"this machine; fetch it with `headwater demo --with {base['package']}`."
        )
    raise CorpusError(f"{model} has no tokenizer.json, so tokens cannot be written out.")


def planted_texts(run: store.Run) -> dict[str, str]:
    """The texts that a study invented and planted in its pool, by document id; of others none."""
    if not run.has("planted_facts"):
        return {}
    texts = store.read_table(run, "planted_facts", columns=("text",))["text"]
    return {document_id(PLANTED, text): text for text in texts.astype(str)}


def vocabulary_texts(tokenizer_path: Path) -> list[str]:
    """Text of each token id by itself; bytes that are no whole character become U+FFFD."""
    tokenizer = load_tokenizer(tokenizer_path)
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    texts = tokenizer.decode_batch([[i] for i in range(size)], skip_special_tokens=False)
    names = [tokenizer.id_to_token(i) or "" for i in range(size)]
    return [
        " " + text if name.startswith("\u2581") and not text.startswith(" ") else text
        for name, text in zip(names, texts, strict=True)
    ]


def questions_by_id(reference: str) -> dict[str, Question]:
    """The questions of a set by the `question_id` of the control tables.

    Args:
        reference: Short name of a packaged set, a JSONL file, or a place on a hub.

    Raises:
        PackageMissing: The package that holds the set is not on this machine.
        ConfigError: There is no such set.
    """
    return {question.id: question for question in read_set(reference)}
