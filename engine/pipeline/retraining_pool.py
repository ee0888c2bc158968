"""Pool and queries of the study: real text of every domain, and invented facts among it."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Int, Shaped
from tokenizers import Tokenizer

from engine.config import require
from engine.corpus.documents import document_id
from engine.corpus.shards import TokenShards
from engine.corpus.tokenizer import plain_encoder
from engine.influence.frame import NO_DOCUMENT, Sequences, draw_sequences
from engine.pipeline.retraining_facts import Fact, invent_facts
from engine.pipeline.retraining_settings import RetrainConfig
from engine.provenance import fingerprint


PLANTED = "planted"
"""Domain of the documents of invented facts."""
HELD_OUT, REPEATED, REPHRASED = "held-out", "repeated", "rephrased"
"""Kinds of queries: real text, a fact in its document's words, and in words no document has."""


@dataclass(frozen=True)
class StudyData:
    """What the models of the study are trained on, and what they are asked."""

    pool: Sequences
    """Real sequences in the order of their documents, then one document a fact."""
    queries: Sequences
    """Held-out sequences, then the facts' questions: repeated ones, then rephrased ones."""
    kind: Shaped[np.ndarray, " queries"]
    """held-out, repeated or rephrased."""
    facts: list[Fact]
    """The facts; the document of fact j stands in row `n_real + j` of the pool."""

    @property
    def n_real(self) -> int:
        """Sequences of real text in the pool."""
        return len(self.pool) - len(self.facts)

    @property
    def fact_of_query(self) -> Int[np.ndarray, " queries"]:
        """Number of the fact a query asks for; -1 for held-out text."""
        numbers = np.full(len(self.queries), -1, np.int64)
        for kind in (REPEATED, REPHRASED):
            numbers[self.kind == kind] = np.arange(len(self.facts))
        return numbers

    @property
    def fingerprint(self) -> str:
        """Changes with any token of pool or queries."""
        return fingerprint([self.pool.fingerprint, self.queries.fingerprint])


def study_data(config: RetrainConfig, shards: TokenShards, tokenizer: Tokenizer) -> StudyData:
    """Draw the pool and the queries of a study.

    Args:
        config: Sizes and seed.
        shards: The corpus as tokens.
        tokenizer: The tokenizer they were made with.

    Raises:
        CorpusError: The corpus holds fewer sequences than asked for.
    """
    length, seed = config.length, config.seed
    real = draw_sequences(shards, config.pool_sequences, length=length, split="train", seed=seed)
    held_out = draw_sequences(shards, config.queries, length=length, split="validation", seed=seed)
    facts = invent_facts(config.facts, config.seed)
    plain = plain_encoder(tokenizer)
    planted = _fact_documents(facts, plain, shards.separator, length)
    asked = [_fact_questions(facts, which, plain, shards.separator, length) for which in (0, 1)]
    kinds = [HELD_OUT] * len(held_out) + [REPEATED] * len(facts) + [REPHRASED] * len(facts)
    return StudyData(
        pool=join_sequences([real, planted]),
        queries=join_sequences([held_out, *asked]),
        kind=np.array(kinds, dtype=object),
        facts=facts,
    )


def join_sequences(parts: list[Sequences]) -> Sequences:
    """Sequences of several sets, one after another; all have one width."""
    columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Sequences)}
    return Sequences(**{name: np.concatenate(values) for name, values in columns.items()})


def fact_text(fact: Fact) -> str:
    """The text of a fact's document, before it is cut to the length of a sequence."""
    return " ".join(fact.statements * 4)


def fact_doc_id(fact: Fact) -> str:
    """Id of a fact's document, made as those of a corpus are."""
    return document_id(PLANTED, fact_text(fact))


def _fact_documents(
    facts: list[Fact], tokenizer: Tokenizer, separator: int, length: int
) -> Sequences:
    """A sequence a fact; all its tokens are predicted."""
    tokens = np.full((len(facts), length), separator, np.int64)
    lengths = np.empty(len(facts), np.int64)
    for row, fact in enumerate(facts):
        ids = tokenizer.encode(fact_text(fact), add_special_tokens=False).ids[: length - 1]
        tokens[row, 1 : 1 + len(ids)] = ids
        lengths[row] = 1 + len(ids)
    predicted = np.arange(1, length) < lengths[:, None]
    return _facts_as_sequences(tokens, predicted, lengths)


def _fact_questions(
    facts: list[Fact], phrasing: int, tokenizer: Tokenizer, separator: int, length: int
) -> Sequences:
    """A sequence a fact: its question, of which the tokens of the answer alone are predicted.

    A question too long for a sequence loses its beginning.
    """
    tokens = np.full((len(facts), length), separator, np.int64)
    predicted = np.zeros((len(facts), length - 1), bool)
    lengths = np.empty(len(facts), np.int64)
    for row, fact in enumerate(facts):
        prompt, answer = fact.questions[phrasing]
        before = tokenizer.encode(prompt, add_special_tokens=False).ids
        ids = tokenizer.encode(prompt + answer, add_special_tokens=False).ids
        n_answer = len(ids) - len(before)
        require(
            n_answer < length - 1,
            f"length is {length}; the answer {fact.answer} alone has {n_answer} tokens.",
        )
        kept = ids[1 - length :]
        tokens[row, 1 : 1 + len(kept)] = kept
        predicted[row, len(kept) - n_answer : len(kept)] = True
        lengths[row] = 1 + len(kept)
    return _facts_as_sequences(tokens, predicted, lengths)


def _facts_as_sequences(
    tokens: Int[np.ndarray, "n length"],
    predicted: Bool[np.ndarray, "n length-1"],
    lengths: Int[np.ndarray, " n"],
) -> Sequences:
    n = len(tokens)
    return Sequences(
        tokens=tokens,
        predicted=predicted,
        domain=np.array([PLANTED] * n, dtype=object),
        document=np.full(n, NO_DOCUMENT, np.int64),
        start=np.zeros(n, np.int64),
        length=lengths,
    )
