"""The claims on relations of models: how well attributions tell relatives, and what else does."""

from functools import partial
from pathlib import Path

import pandas as pd

from engine.able.embedding import PAPER as PAPER_VARIANT
from engine.errors import CacheMissing
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import OURS
from engine.store import Run, open_run, read_table


PAPER = "ABLE, arXiv 2606.07524"
TESTING = "Model provenance testing: precision 0.90 to 0.95, recall 0.80 to 0.90"
CHOSEN = "chosen"
"""Stands for the method that was chosen on development roots."""
_RESULTS = "assets/zoo/model_relation_results.parquet"
_COMMAND = "headwater models relate --run zoo"
_OUTPUTS = ("log_likelihoods", "option_probabilities", "phylolm")
"""Methods that look at what models put out."""
_LABELS = "architecture_tokenizer"
_SPLITS = "means over random splits by root, half of the unrelated pairs hard"
_ONCE = "once on the half of the roots that nothing was chosen on"
_THRESHOLD = "threshold"


def _results(evidence: Path) -> tuple[Run, pd.DataFrame, str]:
    """The run, its results and the method chosen on development roots."""
    run = open_run(evidence.parent)
    results = read_table(run, "model_relation_results")
    named = results.loc[results["metric"] == CHOSEN, "method"].tolist()
    if len(named) != 1:
        raise CacheMissing(
            f"Run {run.name} names no method chosen on development roots; run "
            f"`headwater models relate --run {run.name}`."
        )
    return run, results, str(named[0])


def _row(
    results: pd.DataFrame, method: str, group: str, metric: str, classifier: str = _THRESHOLD
) -> dict[str, float]:
    """One figure with its spread.

    Raises:
        CacheMissing: It was not computed.
    """
    own = results[
        (results["method"] == method)
        & (results["classifier"] == classifier)
        & (results["group"] == group)
        & (results["metric"] == metric)
    ]
    if own.empty:
        raise CacheMissing(f"There is no {metric} of {method} over {group}.")
    row = own.iloc[0]
    return {name: float(row[name]) for name in ("value", "sd", "low", "high", "n")}


def _setting(run: Run, more: str) -> str:
    models = len(read_table(run, "model_cards", columns=["model"]))
    pairs = len(read_table(run, "model_pairs", columns=["pair"]))
    return f"{models} models of a synthetic zoo, {pairs:,} pairs of known lineage; {more}"


def measure_splits(evidence: Path, *, method: str, metric: str) -> Measured:
    """A figure over splits, with its spread, the paper's setting and every baseline beside."""
    run, results, chosen = _results(evidence)
    of = partial(_row, results, group="all", metric=metric)
    name = chosen if method == CHOSEN else method
    own = of(method=name)
    control = {"sd": own["sd"], "paper_setting": of(method=PAPER_VARIANT)["value"]}
    known = set(results["method"])
    control |= {
        each: of(method=each)["value"]
        for each in (*_OUTPUTS, "weights", _LABELS, "tokenizer", "random")
        if each in known
    }
    return Measured(
        value=own["value"], control=control, setting=_setting(run, f"{name} by cosine; {_SPLITS}")
    )


def measure_twins(evidence: Path, *, method: str) -> Measured:
    """AUC of related pairs against pairs of twin families, on held-out roots."""
    run, results, chosen = _results(evidence)
    of = partial(_row, results, group="held_out:twin", metric="auc")
    name = chosen if method == CHOSEN else method
    own = of(method=name)
    beside = (PAPER_VARIANT, *_OUTPUTS, "weights")
    known = set(results["method"])
    control = {each: of(method=each)["value"] for each in beside if each in known}
    control["all_splits"] = _row(results, name, "twin", "auc")["value"]
    return Measured(
        value=own["value"],
        interval=(own["low"], own["high"]),
        control=control,
        setting=_setting(run, f"{name} by cosine; {_ONCE}; {own['n']:.0f} pairs; bootstrap"),
    )


def measure_hard(evidence: Path) -> Measured:
    """AUC against all hard negatives, with that of labels alone."""
    run, results, chosen = _results(evidence)
    of = partial(_row, results, group="hard", metric="auc")
    own = of(method=chosen)
    control = {"sd": own["sd"], _LABELS: of(method=_LABELS)["value"]}
    return Measured(
        value=own["value"],
        control=control,
        setting=_setting(run, f"{chosen} by cosine; {_SPLITS.partition(',')[0]}"),
    )


def measure_distilled(evidence: Path) -> Measured:
    """Share of pairs of a student and its teacher's family that are taken for relatives."""
    run, results, chosen = _results(evidence)
    of = partial(_row, results, group="hard:distilled", metric="false_positive_rate")
    own = of(method=chosen)
    control = {
        each: of(method=each)["value"] for each in _OUTPUTS if each in set(results["method"])
    }
    return Measured(
        value=own["value"], control=control, setting=_setting(run, f"{chosen} by cosine; {_SPLITS}")
    )


def measure_derivations(evidence: Path) -> Measured:
    """Smallest recall over derivations, with the recall of each."""
    run, results, chosen = _results(evidence)
    mine = results[
        (results["method"] == chosen)
        & (results["classifier"] == _THRESHOLD)
        & results["group"].str.startswith("derivation:")
    ]
    control = {
        group.partition(":")[2]: float(value)
        for group, value in zip(mine["group"], mine["value"], strict=True)
    }
    if not control:
        raise CacheMissing("There is no recall of a derivation.")
    return Measured(
        value=min(control.values()),
        control=control,
        setting=_setting(run, f"{chosen} by cosine; {_SPLITS}"),
    )


def measure_parents(evidence: Path, *, metric: str) -> Measured:
    """A measure of naming the base of a model or none, with what else can name it."""
    run, results, chosen = _results(evidence)
    of = partial(_row, results, group="parents", classifier="none")
    own = of(method=chosen, metric=metric)
    control = {"no_parent_recall": of(method=chosen, metric="no_parent_recall")["value"]}
    control |= {"parent_is_nearest": of(method=chosen, metric="recall_at_1")["value"]}
    known = set(results["method"])
    beside = (PAPER_VARIANT, *_OUTPUTS, "weights")
    control |= {each: of(method=each, metric=metric)["value"] for each in beside if each in known}
    return Measured(
        value=own["value"],
        control=control,
        setting=_setting(run, f"{chosen}; {own['n']:.0f} models; corrected level 0.05"),
    )


def measure_tree(evidence: Path) -> Measured:
    """Share of triplets that neighbour joining resolves as the documents do."""
    run, results, chosen = _results(evidence)
    of = partial(_row, results, group="tree", classifier="none")
    own = of(method=chosen, metric="triplets")
    control = {"chance": 1 / 3, "splits_found": of(method=chosen, metric="splits_found")["value"]}
    known = set(results["method"])
    control |= {
        each: of(method=each, metric="triplets")["value"] for each in _OUTPUTS if each in known
    }
    return Measured(
        value=own["value"],
        control=control,
        setting=_setting(run, f"{chosen}; {own['n']:.0f} triplets that the documents resolve"),
    )


_define = partial(ClaimDefinition, evidence=_RESULTS, command=_COMMAND, paper_value=None)

DEFINITIONS: list[ClaimDefinition] = [
    _define(
        id="able.relation-accuracy",
        paper=PAPER,
        claim="In the paper's setting, attributions tell related models from others as accurately "
        "as the paper reports, within its own spread of 0.042.",
        paper_value=0.867,
        unit="share of balanced pairs",
        criterion="value >= 0.825",
        measure=partial(measure_splits, method=PAPER_VARIANT, metric="accuracy"),
    ),
    _define(
        id="able.relation-precision",
        paper=PAPER,
        claim="So is the precision, within the paper's spread of 0.077.",
        paper_value=0.836,
        unit="share of pairs called related that are",
        criterion="value >= 0.759",
        measure=partial(measure_splits, method=PAPER_VARIANT, metric="precision"),
    ),
    _define(
        id="able.relation-outputs",
        paper=PAPER,
        claim="Attributions tell relatives more accurately than outputs do: log-likelihoods, "
        "probabilities of options, and what models write (PhyloLM).",
        unit="share of balanced pairs",
        criterion="value > control.log_likelihoods and value > control.option_probabilities "
        "and value > control.phylolm",
        measure=partial(measure_splits, method=CHOSEN, metric="accuracy"),
    ),
    _define(
        id="able.relation-labels",
        paper=OURS,
        claim="They do more than a look-up of architecture and tokenizer: against unrelated models "
        "that are alike in such ways, they are better.",
        unit="AUC against hard negatives",
        criterion=f"value > control.{_LABELS}",
        measure=measure_hard,
    ),
    _define(
        id="able.relation-twins",
        paper=OURS,
        claim="Related models are told from twins, families of the same architecture, tokenizer "
        "and data whose seed alone differs; the variant was chosen on other roots.",
        unit="AUC against twins on held-out roots",
        criterion="value >= 0.8",
        measure=partial(measure_twins, method=CHOSEN),
    ),
    _define(
        id="able.relation-twins-paper",
        paper=OURS,
        claim="So they are in the paper's setting.",
        unit="AUC against twins on held-out roots",
        criterion="value >= 0.8",
        measure=partial(measure_twins, method=PAPER_VARIANT),
    ),
    _define(
        id="able.relation-distilled",
        paper=OURS,
        claim="A student that only heard a teacher is not taken for its relative in more than a "
        "quarter of the pairs.",
        unit="false-positive rate",
        criterion="value <= 0.25",
        measure=measure_distilled,
    ),
    _define(
        id="able.relation-derivations",
        paper=OURS,
        claim="At least half of the relatives are found whatever was done to them; the derivation "
        "that hides them best counts.",
        unit="smallest recall over derivations",
        criterion="value >= 0.5",
        measure=measure_derivations,
    ),
    _define(
        id="able.parents-precision",
        paper=TESTING,
        claim="A base that is named is the right one as often as in provenance testing.",
        paper_value=0.9,
        unit="share of named bases that are right",
        criterion="value >= 0.9",
        measure=partial(measure_parents, metric="precision"),
    ),
    _define(
        id="able.parents-recall",
        paper=TESTING,
        claim="The base of a derived model is named as often as in provenance testing.",
        paper_value=0.8,
        unit="share of derived models whose base is named",
        criterion="value >= 0.8",
        measure=partial(measure_parents, metric="recall"),
    ),
    _define(
        id="able.tree",
        paper=OURS,
        claim="A tree of the embeddings by neighbour joining is nearer to the documented lineage "
        "than trees of what models put out.",
        unit="share of triplets resolved as documented",
        criterion="value > control.log_likelihoods and value > control.option_probabilities "
        "and value > control.phylolm",
        measure=measure_tree,
    ),
]
"""The claims on relations, in the order of the ledger."""
