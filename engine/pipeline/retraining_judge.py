"""Every method held against the retrainings that are done: the tables of the study.

The LDS of the headline is over held-out text. The cached variant that is the default is the one
with the largest mean LDS on the development half of the held-out queries, domains left in; every
figure that stands beside another is of the other half.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from engine.errors import CacheMissing
from engine.influence import lds
from engine.pipeline.retraining import Study
from engine.pipeline.retraining_outcomes import SubsetOutcomes, finished_outcomes
from engine.pipeline.retraining_removal import removal_outcomes, removal_table
from engine.pipeline.retraining_scores import CACHED, ScoreFolder
from engine.pipeline.retraining_tables import (
    DEVELOPMENT,
    REPORT,
    data_tables,
    halves,
    outcome_tables,
)
from engine.provenance import fingerprint_bytes, now_iso
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)

STAGE = "retrain-check"
"""Stage of the run that holds the study's tables."""
ALL, DOMAIN = "all", "domain"
"""Scopes: outcomes as they are, and with the members of each domain partialled out."""
CEILING = "ceiling"
"""Stands where a method's name does for one seed held against another."""
FEWEST_SUBSETS = 8
"""Subsets below which a rank correlation says nothing."""

Correlations = dict[tuple[str, str], Float[np.ndarray, " queries"]]
"""Spearman's correlation of every query by method and scope."""


@dataclass(frozen=True)
class Judgement:
    """Methods held against the finished subsets."""

    found: SubsetOutcomes
    counts: Float[np.ndarray, "subsets domains"]
    """Members of each domain."""
    correlations: Correlations
    ceiling: dict[str, Float[np.ndarray, " queries"]]
    """Ceiling of every query by scope; empty where there was one seed."""
    default: str | None
    """The cached variant that was chosen; None where none was scored."""

    def outcomes(self, values: lds.Predicted, scope: str) -> lds.Predicted:
        """Outcomes as a scope compares them."""
        return values if scope == ALL else lds.partial_out(values, self.counts)


def judge(study: Study) -> Judgement:
    """Correlate the scores that are here with the outcomes that are here.

    Raises:
        CacheMissing: Too few subsets are retrained, or no method has been scored.
    """
    data, folder = study.data, ScoreFolder(study)
    found = finished_outcomes(study.config, len(data.pool), study.outcomes)
    if len(found.subsets) < FEWEST_SUBSETS:
        raise CacheMissing(
            f"{len(found.subsets)} subsets have been retrained with every seed and at least "
            f"{FEWEST_SUBSETS} are needed; run `headwater retrain-check --stage train`."
        )
    methods = folder.done()
    if not methods:
        raise CacheMissing(
            "No method has been scored on this study; run `headwater retrain-check --stage score`."
        )
    counts = lds.domain_counts(found.members, data.pool.domain)
    measured = lds.measured_outcomes(found.losses)
    correlations: Correlations = {}
    for method in methods:
        predicted = lds.predicted_outcomes(folder.read(method), found.members)
        correlations[method, ALL] = lds.rank_correlations(predicted, measured)
        correlations[method, DOMAIN] = lds.rank_correlations(
            lds.partial_out(predicted, counts), lds.partial_out(measured, counts)
        )
    ceiling = {}
    if len(found.losses) > 1:
        ceiling = {
            ALL: lds.noise_ceiling(found.losses),
            DOMAIN: lds.noise_ceiling(found.losses, counts),
        }
    default = chosen_variant(correlations, halves(data) == DEVELOPMENT)
    return Judgement(found, counts, correlations, ceiling, default)


def chosen_variant(
    correlations: Mapping[tuple[str, str], Float[np.ndarray, " queries"]],
    development: Bool[np.ndarray, " queries"],
) -> str | None:
    """The cached variant with the largest mean LDS on the development half; None if none is here.

    Args:
        correlations: By method and scope.
        development: Which queries the choice may look at.
    """
    means = {
        method: float(values[development].mean())
        for (method, scope), values in correlations.items()
        if scope == ALL and method in CACHED
    }
    return max(means, key=lambda name: means[name]) if means else None


def write_judgement(study: Study, judgement: Judgement) -> Run:
    """Write the tables of the study into its run."""
    data, config = study.data, study.config
    seeds = [config.seed + training for training in range(config.seeds)]
    removed = removal_outcomes(study, judgement.default)
    tables = data_tables(data, study.shards)
    tables |= outcome_tables(judgement.found, seeds)
    tables |= {
        "retraining_lds": _lds_table(judgement),
        "planted_recall": _recall_table(study),
        "attribution_validity": _validity_table(study, judgement),
    }
    if removed:
        tables["retraining_removal"] = removal_table(study, removed)
    writer = RunWriter.resume(study.path)
    mark = {name: _mark(frame) for name, frame in tables.items()}
    if not writer.begin_stage(STAGE, mark):
        for name, frame in tables.items():
            writer.write_table(name, frame)
        writer.finish_stage(STAGE, _facts(study, judgement))
    return open_run(study.path)


def _mark(frame: pd.DataFrame) -> str:
    """Changes with a table's figures, and not with the day they were written."""
    figures = frame.drop(columns="measured", errors="ignore")
    return fingerprint_bytes(figures.to_csv(index=False).encode())


def _facts(study: Study, judgement: Judgement) -> dict[str, object]:
    """What the study did, for the manifest."""
    config, found = study.config, judgement.found
    return {
        "subsets": len(found.subsets),
        "seeds": config.seeds,
        "subset_share": config.subset_share,
        "pool": len(study.data.pool),
        "default": judgement.default,
        "seconds_a_retraining": float(found.seconds.mean()),
        "optimiser": f"AdamW, peak {config.learning_rate:g}, {config.epochs} epochs, batches of "
        f"{config.batch_size}, weight decay {config.weight_decay:g}",
    }


def _lds_table(judgement: Judgement) -> pd.DataFrame:
    rows = dict(judgement.correlations)
    rows |= {(CEILING, scope): values for scope, values in judgement.ceiling.items()}
    frames = [
        pd.DataFrame(
            {
                "method": method,
                "scope": scope,
                "query": np.arange(len(values)),
                "spearman": values,
            }
        )
        for (method, scope), values in rows.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _recall_table(study: Study) -> pd.DataFrame:
    data, folder = study.data, ScoreFolder(study)
    asked = np.flatnonzero(data.fact_of_query >= 0)
    wanted = data.n_real + data.fact_of_query[asked]
    frames = [
        pd.DataFrame(
            {
                "method": method,
                "query": asked,
                "rank": lds.ranks_of(folder.read(method)[asked], wanted),
            }
        )
        for method in folder.done()
    ]
    return pd.concat(frames, ignore_index=True)


def _validity_table(study: Study, judgement: Judgement) -> pd.DataFrame:
    report = halves(study.data) == REPORT
    folder = ScoreFolder(study)
    measured = lds.measured_outcomes(judgement.found.losses)
    common = {
        "model": open_run(study.path).manifest["model"]["fingerprint"],
        "pool": study.data.fingerprint,
        "measured": now_iso()[:10],
        "n_subsets": len(judgement.found.subsets),
        "n_seeds": study.config.seeds,
        "n_queries": int(report.sum()),
    }
    rows = []
    for (method, scope), values in judgement.correlations.items():
        predicted = lds.predicted_outcomes(folder.read(method), judgement.found.members)
        both = (judgement.outcomes(each, scope)[:, report] for each in (predicted, measured))
        over_queries = lds.mean_over_queries(values[report])
        over_subsets = lds.mean_over_subsets(*both)
        ceiling = judgement.ceiling.get(scope)
        rows.append(
            {
                "method": method,
                "scope": scope,
                **common,
                "lds": over_queries.mean,
                "low": over_queries.low,
                "high": over_queries.high,
                "subset_low": over_subsets.low,
                "subset_high": over_subsets.high,
                "ceiling": None if ceiling is None else float(ceiling[report].mean()),
                "is_default": method == judgement.default,
            }
        )
    return pd.DataFrame(rows)
