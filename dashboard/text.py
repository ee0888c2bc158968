"""Every explanation, unit and empty-state sentence of the dashboard."""

import re
from collections.abc import Sequence
from typing import Any

from engine import schema


_COMMAND = re.compile(r"`((?:headwater|make|pip|python)\b[^`]*)`")

NO_RUNS_TITLE = "No runs yet"
NO_RUNS = (
    "There is no run to show yet. A run appears here once a model has been trained and indexed; "
    "the first command below prepares the one that ships, the others make one of your own."
)
NO_RUNS_COMMAND = (
    "headwater demo\n\n"
    "headwater corpus build small\n"
    "headwater train --corpus small --run first\n"
    "headwater index --run first"
)


def split_command(message: str) -> tuple[str, str | None]:
    """A sentence and the first command it names between backticks, ready to be copied."""
    found = _COMMAND.search(message)
    return message.replace("`", ""), found.group(1) if found else None


def any_of(choice: str) -> str:
    """Name of a choice where the empty one filters nothing."""
    return choice or "any"


def missing_table(table: str, run: str) -> str:
    """What a panel says when the run lacks its table."""
    return f"This run has no table {table}; make it with: headwater index --run {run}"


def build_status(done: int, total: int, running: bool) -> str:
    """How far the rebuilding of a corpus is."""
    if running:
        return f"It is being rebuilt: {done} of {total} domains are done; this page looks again."
    return f"{done} of {total} domains are built." if done else "It has not been built."


def no_document(document: int) -> str:
    """What the reader sees when a link names a document the run does not hold."""
    return f"This run has no document {document}; close this window and choose another."


LABEL_SCORE = (
    "Balanced accuracy with which the label predicts, on held-out examples, where the prototype is "
    "active; 0.5 is chance. Beside it the same for the label of another prototype, drawn at random."
)
PREFERS = "The domain with the largest lift, and the share of its active tokens that lie there."
FIRES = "Largest activation (cosine) over the tokens of your sentence."
BANDS = "0: the strongest tokens; 1 and up: quantile bands of activation, from high to low."
NO_EXAMPLES = "This prototype is active on no scanned token, so it has no training neighbours."
TEXT_NOT_HERE = (
    "The text of these documents is not on this machine yet; numbers and ids below need none."
)
DOCUMENT_NOT_KEPT = "Of this document only the activations around examples are kept."
MAP_HINT = "Click a point to open it, lasso to filter."
OWN_TEXT = "Type or paste a text, then press Ctrl+Enter"
PROTOTYPES = "Each prototype is a direction in the last layer, held up by training tokens near it."
PROTOTYPES_HOW = """
**What a prototype is.** At every token the model compares its last state with all prototypes
(cosine), keeps the k most similar and rebuilds the state from them. What is left is the residual.

**Card.** Strips show training text; the shade of a token is the prototype's activation there (0 to
its largest). The strongest tokens alone mislead, so each quantile band of activation is shown too.
Hover a token to mark its bin in the histogram; click to keep the mark.

**Signature.** Tokens whose logit one unit of activation raises (blue, right) or lowers (orange,
left).

**Label.** Found from signature, contexts and statistics. It is an aid for navigation; its score
says how well it predicts where the prototype is active.

**Map.** UMAP of directions. Near points are similar; gaps and densities mean nothing.

Keys: **P** previous, **N** next, **X** random.
"""

KINDS = {
    "prism": "prototype model trained end to end",
    "dense": "dense twin, no prototypes",
    "retrofit": "bank fitted to an existing model",
    "heads": "attention heads and the samples behind them",
    "models": "a map of models by what their answers depend on",
}
NO_PROTOTYPES = {
    "heads": (
        "This run is about attention heads: it holds how heads form and which samples form them, "
        "and no prototypes, which this page shows."
    ),
    "models": (
        "This run is a map of models: it holds what the answers of each model depend on and how "
        "models are related, and no prototypes, which this page shows."
    ),
}
"""What a page about prototypes says on runs of other kinds."""
SHOWN_HERE = "What this run holds is shown by these pages:"
HOLDS_PROTOTYPES = "Runs with prototypes; a click switches to one:"
DOORS: tuple[tuple[str, str, str, str], ...] = (
    (
        "prototypes",
        "Prototypes: what did it learn, from which text?",
        "Search, map and cards of every prototype, with the training text behind it.",
        ":material/scatter_plot:",
    ),
    (
        "prompt",
        "Prompt: why this token and not that one?",
        "The logit of a prediction as prototypes, residual and gap, adding up.",
        ":material/edit_note:",
    ),
    (
        "attribution",
        "Attribution: which training texts made it likelier?",
        "Texts ranked for a prediction, both ways, with the tokens and prototypes that carry it.",
        ":material/travel_explore:",
    ),
    (
        "suppression",
        "Suppression: what if it were switched off?",
        "Switch prototypes off and read the change, its side effects and a random control.",
        ":material/toggle_off:",
    ),
)
HEAD_DOORS: tuple[tuple[str, str, str, str], ...] = (
    (
        "heads",
        "Heads: which samples formed them?",
        "Atlas of all heads, attention on a text, influence of every training sample, both signs.",
        ":material/visibility:",
    ),
    (
        "emergence",
        "Emergence: what if they had been missing?",
        "Training with samples deleted, copied, replaced or made up, against random controls.",
        ":material/trending_up:",
    ),
    (
        "runs",
        "Runs: where does each number come from?",
        "Stages, settings, fingerprints and a check of every file.",
        ":material/inventory_2:",
    ),
)
"""Ways into a run of attention heads."""
MODEL_DOORS: tuple[tuple[str, str, str, str], ...] = (
    (
        "models",
        "Models: which are alike, and which are relatives?",
        "Map, tree and neighbours of every model, with documented and predicted lineage.",
        ":material/hub:",
    ),
    (
        "catalogue",
        "Catalogue: what is documented of 239 public models?",
        "Family, lineage with its evidence, published scores, and the command that embeds each.",
        ":material/account_tree:",
    ),
    (
        "runs",
        "Runs: where does each number come from?",
        "Stages, settings, fingerprints and a check of every file.",
        ":material/inventory_2:",
    ),
)
"""Ways into a map of models."""
_HEAD_TABLES = tuple(name for name in schema.TABLES if name.startswith("head_"))
_MODEL_TABLES = tuple(name for name in schema.TABLES if name.startswith("model_"))
_STUDIED = tuple(name for name in _HEAD_TABLES if name != "head_tokens")
"""Tables of a study; which tokens carry an influence is kept of a given model alone."""
OPTIONAL_TABLES: dict[str, tuple[str, ...]] = {
    "prism": (*_HEAD_TABLES, *_MODEL_TABLES),
    "models": tuple(n for n in schema.TABLES if n not in _MODEL_TABLES),
    "heads": tuple(n for n in schema.TABLES if n not in (*_STUDIED, "documents")),
    "retrofit": (
        *_HEAD_TABLES,
        *_MODEL_TABLES,
        "training_log",
        "evaluations",
        "validation_loss",
        "tradeoff",
        "downstream",
        "downstream_answers",
    ),
    "dense": tuple(
        name
        for name in schema.TABLES
        if name not in ("documents", "training_log", "evaluations", "validation_loss")
    ),
}
"""Tables a run of a kind never has."""
KEPT = (
    "Tokens whose states were scanned for the tables, and those whose activations are kept one by "
    "one for documents in context."
)
BANK = "Prototypes of the bank (the paper's K)."
R1 = "R̄1: mean over prototypes of the largest cosine with a scanned held-out token; 1 is best."
R2 = "R2: mean over held-out tokens of the largest cosine with a prototype; 1 is best."
RESIDUAL = "Mean of ||r||² / ||z||²: how much of the state the active prototypes leave over."
DEAD = "Share of prototypes that no scanned held-out token activates."
PAIR = "Mean cosine of random pairs of token states; near 1 the states have collapsed into a cone."
LOSS = "Mean held-out cross-entropy over tokens of all domains, beside the dense twin's."
NO_CLAIMS = "No claim has been measured yet; headwater claims --update measures them."
OVERVIEW = "What this run holds, how good it is, and the ways in."
OVERVIEW_HOW = """
**Coverage** asks whether the bank is grounded in text: R̄1 looks from each prototype to its nearest
token, R2 from each token to its nearest prototype. It can be bought by collapse, so loss against a
dense twin, pair cosine, residual and dead prototypes stand beside it, and a random and a k-means
bank of the same size.

**Claims ledger.** One row for each claim of the papers: their figure, ours, the criterion written
before measuring, and whether it holds. A claim that fails stays.
"""
RUNS = "Every run on this machine: where it comes from, what it holds, whether it is whole."
RUNS_HOW = """
A **run** is a folder with `run.json`, written last, and Parquet tables. Its **fingerprints** say
from which corpus, tokenizer and settings it was made. The **check** compares every file with its
hash, every table with the contract, and every reference with its target.
"""

DENSE = (
    "This run is a dense twin: the same model without prototypes, trained for comparison. Choose "
    "another run in the sidebar."
)


def corpus_command(manifest: dict[str, Any]) -> str:
    """The command that rebuilds the corpus of a run."""
    corpus = manifest.get("corpus", {})
    name = corpus.get("preset") or corpus.get("name") or "small"
    return f"headwater corpus build {name}"


def no_fit(filters: Sequence[str]) -> str:
    """That no model fits the filters in use, and what to do."""
    articles = {"search": "the search", "the lasso": "the lasso"}
    names = [articles.get(name, f"the filter {name}") for name in filters]
    if len(names) == 1:
        return f"No model fits {names[0]}; loosen it."
    return f"No model fits {', '.join(names[:-1])} and {names[-1]} together; loosen one of them."
