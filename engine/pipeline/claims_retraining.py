"""The claims on attribution that retraining decides: LDS, planted documents, removal."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import CacheMissing
from engine.influence import lds
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import OURS, run_setting
from engine.pipeline.retraining_judge import ALL, CEILING, DOMAIN, STAGE
from engine.pipeline.retraining_summary import RECALL_AT, removal_changes
from engine.pipeline.retraining_tables import REPORT
from engine.store import Run, open_run, read_table


STUDY = "assets/study"
EKFAC = "ekfac"
_BESIDE = (EKFAC, "full", "projected", "gradient-dot", "knn", "tfidf", "bm25", "random", CEILING)
"""Methods whose figures, and the noise ceiling, stand beside the cached default's."""


def measure_lds(evidence: Path, *, scope: str) -> Measured:
    """Mean LDS of the cached default over the reported half, beside every other method's.

    The interval is over queries. `difference_mean`, `_low` and `_high` are default minus EK-FAC,
    paired, over queries too.
    """
    run = open_run(evidence.parent)
    default = _default(run)
    table = read_table(run, evidence.stem, where={"scope": scope})
    reported = _queries(run, half=REPORT)
    by_method = {
        str(method): own.set_index("query")["spearman"].loc[reported].to_numpy(np.float64)
        for method, own in table.groupby("method")
    }
    if EKFAC not in by_method:
        raise CacheMissing(f"{evidence} knows no scores of EK-FAC.")
    over = lds.mean_over_queries(by_method[default])
    paired = lds.mean_difference(by_method[default], by_method[EKFAC])
    control = _beside({name: float(values.mean()) for name, values in by_method.items()})
    control |= {f"difference_{name}": value for name, value in paired._asdict().items()}
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=control,
        setting=f"{_setting(run, default)}; {len(reported)} held-out queries, the half on which "
        "the variant was not chosen; interval over queries",
    )


def measure_recall(evidence: Path, *, kind: str) -> Measured:
    """Share of questions whose own document the cached default ranks among the first ten."""
    run = open_run(evidence.parent)
    default = _default(run)
    found = _found(run, evidence.stem, kind)
    over = lds.mean_over_queries(found[default])
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=_beside({name: float(values.mean()) for name, values in found.items()}),
        setting=f"{_setting(run, default)}; {len(found[default])} questions in {kind} words, "
        "answer tokens predicted",
    )


def measure_removal(evidence: Path) -> Measured:
    """Rise of the loss without what the default ranks first, over a random removal's.

    Nats a query, the mean over domains of the mean over seeds; the interval is over domains.
    """
    run = open_run(evidence.parent)
    default = _default(run)
    table = read_table(run, evidence.stem)
    changes = removal_changes(table)
    means = changes.groupby(["method", "part"])["change"].mean()
    own = changes[(changes["method"] == default) & (changes["part"] == "top")]["change"]
    if own.empty:
        raise CacheMissing(f"{evidence} holds no removal of {default}.")
    over = lds.mean_over_queries(own.to_numpy(np.float64))
    control = {
        f"{method}_{part}".replace("+", "_").replace("-", "_"): float(value)
        for (method, part), value in means.items()  # pyright: ignore[reportGeneralTypeIssues]
    }
    first = table.iloc[0]
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=control,
        setting=f"{_setting(run, default)}; {int(first['n_removed'])} sequences of each of "
        f"{table['domain'].nunique()} domains removed; interval over domains",
    )


def _found(run: Run, table: str, kind: str) -> dict[str, Float[np.ndarray, " questions"]]:
    """1 where a method ranks a question's document among the first ten, else 0."""
    ranks = read_table(run, table).merge(read_table(run, "retraining_queries"), on="query")
    own = ranks[ranks["kind"] == kind]
    return {
        str(method): (rows.sort_values("query")["rank"].to_numpy() <= RECALL_AT).astype(np.float64)
        for method, rows in own.groupby("method")
    }


def _default(run: Run) -> str:
    """The cached variant that was chosen."""
    chosen = read_table(run, "attribution_validity", where={"is_default": True})
    if chosen.empty:
        raise CacheMissing(f"Run {run.name} knows no scores of a cached variant.")
    return str(chosen["method"].iloc[0])


def _queries(run: Run, *, half: str) -> list[int]:
    return read_table(run, "retraining_queries", where={"half": half})["query"].tolist()


def _beside(means: dict[str, float]) -> dict[str, float]:
    """Figures of the other methods, by names that a criterion can hold."""
    return {name.replace("-", "_"): means[name] for name in _BESIDE if name in means}


def _setting(run: Run, default: str) -> str:
    facts: dict[str, Any] | None = run.manifest["stages"].get(STAGE)
    if facts is None:
        raise CacheMissing(f"Run {run.name} holds no study by retraining.")
    return (
        f"{run_setting(run)}; variant {default}; pool of {facts['pool']} sequences, "
        f"{facts['subsets']} subsets of {facts['subset_share']:g} of it, {facts['seeds']} seeds; "
        f"{facts['optimiser']}"
    )


_define = partial(
    ClaimDefinition,
    paper=OURS,
    paper_value=None,
    command="headwater retrain-check --run study --config docs/study.json",
)
DEFINITIONS: list[ClaimDefinition] = [
    _define(
        id="prism.lds",
        claim="Cached scores predict the outcome of retraining at least as well as EK-FAC's do.",
        unit="LDS, mean Spearman correlation over queries",
        criterion="value >= control.ekfac",
        evidence=f"{STUDY}/retraining_lds.parquet",
        measure=partial(measure_lds, scope=ALL),
    ),
    _define(
        id="prism.lds-within-domain",
        claim="They do so too within a domain, its number of sequences partialled out.",
        unit="LDS, mean Spearman correlation over queries",
        criterion="value >= control.ekfac",
        evidence=f"{STUDY}/retraining_lds.parquet",
        measure=partial(measure_lds, scope=DOMAIN),
    ),
    _define(
        id="prism.planted-recall",
        claim="The one document that states an invented fact is among the ten that cached scores "
        "rank first, for a question in its own words, in nine cases of ten.",
        unit="share of questions",
        criterion="value >= 0.9",
        evidence=f"{STUDY}/planted_recall.parquet",
        measure=partial(measure_recall, kind="repeated"),
    ),
    _define(
        id="prism.planted-recall-rephrased",
        claim="It is so too for a question in words that no document has.",
        unit="share of questions",
        criterion="value >= 0.9",
        evidence=f"{STUDY}/planted_recall.parquet",
        measure=partial(measure_recall, kind="rephrased"),
    ),
    _define(
        id="prism.removal",
        claim="Without the sequences that cached scores rank first, a retrained model predicts the "
        "queries worse than without as many random ones.",
        unit="nats a query, top − random removal",
        criterion="low > 0",
        evidence=f"{STUDY}/retraining_removal.parquet",
        measure=measure_removal,
    ),
]
"""The claims on attribution that retraining decides, in the order of the ledger."""
