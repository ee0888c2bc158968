"""Looking for a concept's prototypes in their words, and where they fire more than elsewhere."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from sklearn.feature_extraction.text import TfidfVectorizer

from engine.corpus.build import Corpus
from engine.errors import PromptError
from engine.live.text import Codec
from engine.pipeline.suppression_ranking import Positions
from engine.snippets import SnippetReader, tokenizer_of
from engine.store import Run, read_table


N_SIGNATURE = 12
"""Raised tokens of a signature that are read."""
N_CONTEXTS = 5
"""Strongest contexts that are read."""
AROUND = 3
"""Tokens read on either side of the active one."""
_SHORTEST = 3
_WORDS = re.compile(r"[^\W\d_]{2,}")


def words_of(text: str) -> list[str]:
    """Words of two letters or more, case folded."""
    return _WORDS.findall(text.casefold())


@dataclass(frozen=True)
class PrototypeWords:
    """Every prototype's own words: of its label, its signature and its contexts."""

    words: list[list[str]]

    @classmethod
    def read(cls, run: Run, corpus: Corpus, codec: Codec, n_prototypes: int) -> "PrototypeWords":
        """Gather them from an indexed run and its corpus."""
        texts: list[list[str]] = [[] for _ in range(n_prototypes)]
        labels = read_table(run, "prototypes", columns=["prototype", "category", "role"])
        for number, *parts in labels.itertuples(index=False, name=None):
            texts[number] += parts
        tops = read_table(
            run,
            "prototype_signatures",
            columns=["prototype", "rank", "token_id"],
            where={"side": "top"},
        )
        tops = tops[tops["rank"] < N_SIGNATURE]
        for number, token in zip(tops["prototype"], tops["token_id"], strict=True):
            texts[number].append(codec.token_text(int(token)))
        for number, text in _contexts(run, corpus):
            texts[number].append(text)
        return cls([words_of(" ".join(parts)) for parts in texts])

    def keyword(self, query: Sequence[str]) -> Bool[np.ndarray, " prototypes"]:
        """Which prototypes hold one of the words."""
        wanted = {word.casefold() for word in query}
        return np.array([not wanted.isdisjoint(own) for own in self.words])

    def meaning(self, query: Sequence[str]) -> Float[np.ndarray, " prototypes"]:
        """Cosine of TF-IDF vectors of word parts (three to five letters) with the query's."""
        documents = [" ".join(own) for own in self.words]
        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
        try:
            vectors = vectorizer.fit_transform([*documents, " ".join(query)])
        except ValueError:  # not one word part anywhere
            return np.zeros(len(documents))
        return np.asarray((vectors[:-1] @ vectors[-1].T).todense()).ravel()

    def loosest(self, query: Sequence[str]) -> tuple[str, int] | None:
        """The longest beginning of a word of the query that begins a prototype's word.

        Returns:
            The beginning and how many prototypes hold such a word; None when not even the first
            letters are found.
        """
        best: tuple[str, int] | None = None
        for word in words_of(" ".join(query)):
            for length in range(len(word), _SHORTEST - 1, -1):
                part = word[:length]
                if best is not None and length <= len(best[0]):
                    break
                hits = sum(any(w.startswith(part) for w in own) for own in self.words)
                if hits:
                    best = (part, hits)
                    break
        return best

    def require(self, query: Sequence[str], concept: str) -> Bool[np.ndarray, " prototypes"]:
        """`keyword`, when it finds something.

        Raises:
            PromptError: It finds nothing; the sentence names the loosest query that does.
        """
        found = self.keyword(query)
        if found.any():
            return found
        shown = ", ".join(list(query)[:5]) or concept
        best = self.loosest(query)
        hint = (
            f"the loosest query that matches something is {best[0]!r} "
            f"({best[1]} {'prototype has' if best[1] == 1 else 'prototypes have'} a word that "
            "begins so); write the words you mean with --words"
            if best
            else "no word that begins like it is known either; see the labels with "
            "`headwater dashboard` and write words with --words"
        )
        raise PromptError(f"The concept {concept} ({shown}) matches no prototype: {hint}.")


def _contexts(run: Run, corpus: Corpus) -> list[tuple[int, str]]:
    """Prototype and the text about each of its strongest tokens that the corpus still holds."""
    examples = read_table(
        run,
        "prototype_examples",
        columns=["prototype", "rank", "document", "position"],
        where={"band": 0},
    )
    examples = examples[examples["rank"] < N_CONTEXTS]
    documents = read_table(run, "documents", columns=["document", "doc_id"])
    ids = dict(zip(documents["document"], documents["doc_id"], strict=True))
    reader = SnippetReader(corpus, tokenizer_of(run.model_path))
    found = []
    names = ["document", "prototype", "position"]
    rows = examples.sort_values("document")[names].to_numpy(np.int64).tolist()
    for document, prototype, position in rows:
        doc_id = str(ids.get(document, ""))
        if reader.has(doc_id):
            window = reader.window(doc_id, position, AROUND, AROUND)
            found.append((prototype, "".join(token.text for token in window)))
    return found


def domain_log_ratio(run: Run, domain: str, n_prototypes: int) -> Float[np.ndarray, " prototypes"]:
    """Log ratio of a prototype's firing rate in a domain's training texts over all texts'.

    One firing more is added to what is found and to what the overall rate lets expect, so a
    prototype that fires rarely stays near 0. All 0 where the index scanned no text of the domain.
    """
    frame = read_table(run, "prototype_domains", where={"domain": domain})
    total = read_table(run, "prototypes", columns=["prototype", "n_active_tokens"])
    inside, expected = np.zeros(n_prototypes), np.zeros(n_prototypes)
    inside[frame["prototype"]] = frame["n_active_tokens"]
    lift = frame["lift"].to_numpy(np.float64)
    fired = (lift > 0) & (frame["n_active_tokens"].to_numpy() > 0)
    if not fired.any():
        return np.zeros(n_prototypes)
    overall = np.zeros(n_prototypes)
    overall[total["prototype"]] = total["n_active_tokens"]
    own = frame["prototype"].to_numpy()[fired]
    share = float(np.median(inside[own] / (lift[fired] * overall[own])))
    expected = overall * share
    return np.log((inside + 1) / (expected + 1))


def scored_log_ratio(
    positions: Positions, unwanted: Bool[np.ndarray, " pos"], n_prototypes: int
) -> Float[np.ndarray, " prototypes"]:
    """Log ratio of activation per token where unwanted words are drawn over where others are.

    Args:
        positions: Where tokens were drawn.
        unwanted: Which of these tokens are part of a word that the scorer calls unwanted.
        n_prototypes: Prototypes in the bank.
    """
    activations = positions.activations.cpu().numpy().astype(np.float64)
    indices = positions.indices.cpu().numpy()
    if unwanted.all() or not unwanted.any():
        return np.zeros(n_prototypes)
    mass = [
        np.bincount(indices[rows].ravel(), activations[rows].ravel(), minlength=n_prototypes)
        for rows in (unwanted, ~unwanted)
    ]
    # A token's worth of mass on each side keeps a prototype seen once or twice near 0.
    n_inside, n_outside = int(unwanted.sum()), int((~unwanted).sum())
    overall = (mass[0] + mass[1]) / len(unwanted)
    inside = (mass[0] + 1) / (n_inside + 1 / np.maximum(overall, 1e-9))
    outside = (mass[1] + 1) / (n_outside + 1 / np.maximum(overall, 1e-9))
    return np.log(inside / outside)
