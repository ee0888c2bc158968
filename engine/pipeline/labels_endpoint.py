"""Snippets for an endpoint that labels: the same contexts the local method sees, as text."""

import os

import numpy as np
from jaxtyping import Int

from engine.config import IndexConfig
from engine.corpus.documents import Progress
from engine.corpus.shards import TokenShards
from engine.endpoint import KEY, Endpoint
from engine.pipeline.index_windows import WindowPlan
from engine.prism.labels.contexts import Contexts
from engine.prism.labels.endpoint import Snippets, label_by_endpoint
from engine.prism.labels.label import Label, LabelExamples, held_out
from engine.prism.labels.vocabulary import Vocabulary


N_SHOWN = 8
N_TESTED = 5
"""Active, and as many inactive, held-out snippets a label is tested on."""


def endpoint_labels(
    config: IndexConfig,
    vocabulary: Vocabulary,
    plan: WindowPlan,
    tokens: TokenShards,
    examples: LabelExamples,
    progress: Progress,
) -> list[Label]:
    """Labels of all prototypes from the endpoint that the configuration names."""
    endpoint = Endpoint(
        url=str(config.label_endpoint), model=str(config.label_model), key=os.environ.get(KEY)
    )

    def snippet(contexts: Contexts, row: int) -> str:
        document = tokens.document_tokens(int(plan.corpus_document[contexts.document[row]]))
        position = int(contexts.position[row])
        first = max(position - config.window_before, 0)
        return marked_text(
            vocabulary, document[first : position + config.window_after + 1], position - first
        )

    snippets = []
    for number in range(len(examples.first) - 1):
        shown, active, inactive = choose_rows(examples, number, config.seed)
        generator = np.random.default_rng([config.seed, number])
        mixed = [(snippet(examples.active, int(row)), True) for row in active]
        mixed += [(snippet(examples.inactive, int(row)), False) for row in inactive]
        order = generator.permutation(len(mixed))
        snippets.append(
            Snippets(
                tuple(snippet(examples.active, int(row)) for row in shown),
                tuple(mixed[i][0] for i in order),
                tuple(mixed[i][1] for i in order),
            )
        )
    return label_by_endpoint(endpoint, snippets, seed=config.seed, progress=progress)


def choose_rows(
    examples: LabelExamples, prototype: int, seed: int
) -> tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"], Int[np.ndarray, " c"]]:
    """Active rows to show, active rows to test on, and as many inactive rows to test on."""
    rows = np.arange(examples.first[prototype], examples.first[prototype + 1])
    out = held_out(examples.active.document[rows], seed)
    tested = rows[out][:N_TESTED]
    silent = ~(examples.inactive_prototypes == prototype).any(axis=1)
    silent &= held_out(examples.inactive.document, seed)
    generator = np.random.default_rng([seed, prototype, 1])
    inactive = np.flatnonzero(silent)
    inactive = generator.permutation(inactive)[: len(tested)]
    return rows[~out][:N_SHOWN], tested, inactive


def marked_text(vocabulary: Vocabulary, tokens: Int[np.ndarray, " n"], marked: int) -> str:
    """Text of tokens with one of them between ⟦ and ⟧, on one line."""
    texts = [vocabulary.texts[int(token)] for token in tokens]
    texts[marked] = f"⟦{texts[marked]}⟧"
    return "".join(texts).replace("\n", "⏎")
