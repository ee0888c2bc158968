"""Texts of a pool's sequences, read from the corpus by document and position."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer, plain_encoder
from engine.errors import CorpusError, PackageMissing
from engine.influence.frame import Sequences
from engine.influence.neighbours import States, text_states
from engine.numerics import full_precision, unit_vectors
from engine.prism.attribution.index import AttributionIndex
from engine.prism.model import PrismForCausalLM
from engine.snippets import SnippetReader, SnippetToken, planted_texts, tokenizer_of
from engine.store import Run


_BATCH = 32
"""Sequences of a forward pass."""


class PoolTexts:
    """What stands behind the ids of a pool, as far as the corpus is on this machine.

    Texts that a study planted in its pool come from the run itself.
    """

    def __init__(self, index: AttributionIndex, run: Run) -> None:
        self._index = index
        self._run = run
        self._reader: SnippetReader | None = None
        self._rows: Sequences | None = None
        self._states: dict[str, Tensor] = {}

    @property
    def corpus(self) -> str:
        """Name of the corpus.

        Raises:
            CorpusError: the pool names none.
        """
        name = self._index.facts.get("corpus")
        if not name:
            raise CorpusError(f"The attribution pool of {self._run.name} names no corpus.")
        return str(name)

    def tokens(self, sequence: int) -> list[SnippetToken]:
        """Predicted tokens of a sequence; without text and id where the corpus is not here."""
        row = self._index.sequences.iloc[sequence]
        start, n = int(row["start"]), int(row["n_tokens"])
        try:
            if self._reader is None:
                path, planted = tokenizer_of(self._run.model_path), planted_texts(self._run)
                self._reader = SnippetReader(self.corpus, path, planted)
            found = self._reader.tokens(str(row["doc_id"]))[start : start + n]
        except (CorpusError, PackageMissing):
            found = []
        if len(found) == n:
            return found
        return [SnippetToken(start + i, -1, "") for i in range(n)]

    def rows(self, progress: Progress = no_progress) -> Sequences:
        """The pool's sequences with their tokens, for methods that read texts.

        Raises:
            CorpusError: the corpus is not here, or holds another state of the texts.
        """
        if self._rows is None:
            tokenizer = load_tokenizer(tokenizer_of(self._run.model_path))
            shards = tokenise_corpus(open_corpus(self.corpus), tokenizer, progress)
            self._rows = self._read(shards)
        return self._rows

    def likeness(
        self, model: PrismForCausalLM, query: Sequences, states: States, progress: Progress
    ) -> Float[np.ndarray, " sequences"]:
        """Cosine of a query's state with that of each sequence; the pool's are kept."""
        settings: dict[str, Any] = {"states": states, "batch_size": _BATCH}
        with torch.inference_mode():
            if states not in self._states:
                found = text_states(model, self.rows(progress), progress, **settings)
                self._states[states] = unit_vectors(full_precision(found))
            asked = unit_vectors(full_precision(text_states(model, query, **settings)))
            return (self._states[states] @ asked[0]).cpu().numpy()

    def _read(self, shards: TokenShards) -> Sequences:
        ids = self._index.sequences
        lengths = ids["n_tokens"].to_numpy(np.int64)
        start = ids["start"].to_numpy(np.int64)
        tokens = np.full((len(ids), int(lengths.max()) + 1), shards.separator, np.int64)
        document = np.full(len(ids), -1, np.int64)
        planted = self._planted()
        for row, doc_id in enumerate(ids["doc_id"]):
            number = shards.corpus.position_of(doc_id)
            whole = planted.get(str(doc_id)) if number is None else shards.document_tokens(number)
            own = None if whole is None else whole[start[row] :]
            if own is None or len(own) < lengths[row]:
                raise CorpusError(
                    f"Document {doc_id} of the attribution pool is not in the corpus "
                    f"{shards.corpus.name}, or is another text there; make the pool again with "
                    f"`{self._run.command_of_stage('attribution')}`."
                )
            tokens[row, 1 : lengths[row] + 1] = own[: lengths[row]]
            document[row] = -1 if number is None else number
        return Sequences(
            tokens,
            np.arange(tokens.shape[1] - 1) < lengths[:, None],
            ids["domain"].to_numpy(object),
            document,
            start,
            lengths + 1,
        )

    def _planted(self) -> dict[str, np.ndarray]:
        """Token ids of the texts that are in no corpus, by document id."""
        encoder = plain_encoder(load_tokenizer(tokenizer_of(self._run.model_path)))
        return {
            doc_id: np.array(encoder.encode(text, add_special_tokens=False).ids, np.int64)
            for doc_id, text in planted_texts(self._run).items()
        }
