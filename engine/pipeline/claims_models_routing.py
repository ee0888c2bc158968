"""The claims on what embeddings are used for: routing, forecasts of scores, whom to adapt."""

from functools import partial
from pathlib import Path

import pandas as pd

from engine.able.embedding import ABLE
from engine.errors import CacheMissing
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import OURS
from engine.store import Run, open_run, read_table


PAPER = "ABLE, arXiv 2606.07524"
EMBEDLLM = "embedllm"
_ROUTING = "assets/zoo/model_routing_results.parquet"
_FORECASTS = "assets/zoo/model_forecast_results.parquet"
_SELECTION = "assets/zoo/model_selection_results.parquet"
_MEAN = "mean"


def _row(table: pd.DataFrame, **key: str) -> pd.Series:
    """The row of a key.

    Raises:
        CacheMissing: It was not computed.
    """
    own = table
    for name, value in key.items():
        own = own[own[name] == value]
    if own.empty:
        raise CacheMissing(f"There is no row with {', '.join(f'{n} {v}' for n, v in key.items())}.")
    return own.iloc[0]


def _values(table: pd.DataFrame, by: str, **key: str) -> dict[str, float]:
    """Values of all rows of a key, by another column; those that are not defined are left out."""
    own = table
    for name, value in key.items():
        own = own[own[name] == value]
    known = own[own["value"].notna()]
    return {str(n): float(v) for n, v in zip(known[by], known["value"], strict=True)}


def _interval(row: pd.Series) -> tuple[float, float] | None:
    low, high = row["low"], row["high"]
    return None if pd.isna(low) or pd.isna(high) else (float(low), float(high))


def _models(run: Run) -> str:
    return f"{len(read_table(run, 'model_answers', columns=['model']))} models of a synthetic zoo"


def measure_over(evidence: Path, *, metric: str, over: str) -> Measured:
    """How much more the router on frozen embeddings gets right than another, paired."""
    run = open_run(evidence.parent)
    results = read_table(run, evidence.stem)
    row = _row(results, router=ABLE, group="all", metric=over)
    control = _values(results, "router", group="all", metric=metric)
    if metric == "accuracy":
        control["usage_random"] = _values(
            results, "router", group="all", metric="usage_random"
        ).get(ABLE, float("nan"))
        spreads = _values(results, "router", group="all", metric="seed_spread")
        control |= {f"{name}_seed_spread": value for name, value in spreads.items()}
    for group in ("held_out", "unseen"):
        found = _values(results, "group", router=ABLE, metric=over)
        control |= {f"{group}_difference": found[group]} if group in found else {}
    facts = run.manifest["stages"].get("routing", {})
    return Measured(
        value=float(row["value"]),
        interval=_interval(row),
        control=control,
        setting=f"{_models(run)}; {row['n']:.0f} {_unit(metric)}, each tested once in ten folds "
        f"that no fact is split over; means over {facts.get('seeds', 1)} seeds; paired bootstrap "
        "over facts; TF-IDF and SVD in place of a sentence encoder; learning rates and the end of "
        f"training chosen on validation questions, rates {facts.get('rates', {})}",
    )


def _unit(metric: str) -> str:
    return "questions" if metric == "accuracy" else "pairs of model and question"


def measure_new(evidence: Path, *, kind: str) -> Measured:
    """Share of pairs of new models and questions that are told right by embedding alone."""
    run = open_run(evidence.parent)
    results = read_table(run, evidence.stem)
    row = _row(results, router=ABLE, group=f"{kind}:k=0", metric="correctness")
    own = results[
        results["group"].str.startswith(f"{kind}:") & (results["metric"] == "correctness")
    ]
    control = {
        f"{router}_{group.partition(':')[2].replace('=', '')}": float(value)
        for router, group, value in zip(own["router"], own["group"], own["value"], strict=True)
    }
    control["able_auc"] = _values(results, "router", group=f"{kind}:k=0", metric="auc").get(
        ABLE, float("nan")
    )
    return Measured(
        value=float(row["value"]),
        interval=_interval(row),
        control={name: value for name, value in control.items() if value == value},
        setting=f"{_models(run)}, a fifth of them new at a time; {row['n']:.0f} pairs of new model "
        "and question; bootstrap over facts; embedllm_k20: given 20 answers of each new model, its "
        "vector fitted and the head left; retrained: trained with all answers of the new models",
    )


def measure_forecast(evidence: Path, *, regime: str) -> Measured:
    """Mean Spearman correlation over the targets, with every other way of telling."""
    run = open_run(evidence.parent)
    results = read_table(run, evidence.stem)
    key = {"target": _MEAN, "regime": regime, "metric": "spearman"}
    row = _row(results, method=ABLE, **key)
    control = {
        name: value for name, value in _values(results, "method", **key).items() if name != ABLE
    }
    rest = {"regime": regime, "method": ABLE, "metric": "spearman"}
    by_target = {n: v for n, v in _values(results, "target", **rest).items() if n != _MEAN}
    control |= {"lowest_target": min(by_target.values()), "highest_target": max(by_target.values())}
    return Measured(
        value=float(row["value"]),
        interval=_interval(row),
        control=control,
        setting=f"{_models(run)}; {len(by_target)} targets: accuracy on held-out questions of a "
        "domain, of which other wordings may be probes; bootstrap over roots; other_domains: "
        "without probes of the target's domain",
    )


def measure_selection(evidence: Path, *, outcome: str) -> Measured:
    """Mean NDCG@10 over the targets, with every other way of telling."""
    run = open_run(evidence.parent)
    results = read_table(run, evidence.stem)
    key = {"target": _MEAN, "outcome": outcome, "metric": "ndcg@10"}
    row = _row(results, method=ABLE, regime="one_root_out", **key)
    control = {
        name: value
        for name, value in _values(results, "method", regime="one_root_out", **key).items()
        if name != ABLE
    }
    twins = _values(results, "method", regime="one_family_out", **key)
    control |= {"without_twins": twins[ABLE]} if ABLE in twins else {}
    for metric in ("regret@1", "regret@5"):
        found = _values(results, "method", regime="one_root_out", **(key | {"metric": metric}))
        control[metric.replace("@", "_")] = found[ABLE]
        control[f"random_{metric.replace('@', '_')}"] = found["random"]
    facts = run.manifest["stages"].get("selection", {})
    return Measured(
        value=float(row["value"]),
        interval=_interval(row),
        control=control,
        setting=f"{facts.get('n_models', 0)} roots of a synthetic zoo, each adapted to "
        f"{row['n']:.0f} targets, {(facts.get('schedule') or {}).get('steps', 0)} steps, "
        f"{facts.get('seeds', 1)} seed; gains are the outcomes; t-interval over targets; random: "
        "mean over all orders",
    )


_route = partial(
    ClaimDefinition,
    evidence=_ROUTING,
    command="headwater models route --run zoo",
    paper_value=None,
)
_forecast = partial(
    ClaimDefinition, evidence=_FORECASTS, command="headwater models forecast --run zoo"
)
_select = partial(ClaimDefinition, evidence=_SELECTION, command="headwater models select --run zoo")

DEFINITIONS: list[ClaimDefinition] = [
    _route(
        id="able.routing",
        paper=PAPER,
        claim="A router on frozen embeddings chooses a model that answers right more often than "
        "EmbedLLM, which learns from every model's answers.",
        paper_value=0.011,
        unit="difference of shares of questions",
        criterion="low > 0",
        measure=partial(measure_over, metric="accuracy", over=f"over_{EMBEDLLM}"),
    ),
    _route(
        id="able.routing-correctness",
        paper=PAPER,
        claim="It also tells more often than EmbedLLM whether a model answers a question right.",
        paper_value=0.011,
        unit="difference of shares of pairs",
        criterion="low > 0",
        measure=partial(measure_over, metric="correctness", over=f"correctness_over_{EMBEDLLM}"),
    ),
    _route(
        id="able.routing-single-best",
        paper=OURS,
        claim="Routing by frozen embeddings beats the single best model.",
        unit="difference of shares of questions",
        criterion="low > 0",
        measure=partial(measure_over, metric="accuracy", over="over_single_best"),
    ),
    _route(
        id="able.routing-new-models",
        paper=PAPER,
        claim="Models are added by their embedding alone: within two points of retraining, and no "
        "worse than EmbedLLM with twenty answers of each.",
        unit="share of pairs told right",
        criterion="value >= control.able_retrained - 0.02 and value >= control.embedllm_k20",
        measure=partial(measure_new, kind="new_models"),
    ),
    _route(
        id="able.routing-new-lineages",
        paper=OURS,
        claim="So are models none of whose relatives was trained on: no worse than EmbedLLM with "
        "twenty answers of each.",
        unit="share of pairs told right",
        criterion="value >= control.embedllm_k20",
        measure=partial(measure_new, kind="new_lineages"),
    ),
    _forecast(
        id="able.forecast",
        paper=PAPER,
        claim="Ridge regression on embeddings ranks models by their scores with one model left out "
        "at a time, as well as at the lowest of the paper's five targets.",
        paper_value=0.816,
        unit="Spearman correlation",
        criterion="value >= 0.816",
        measure=partial(measure_forecast, regime="one_model_out"),
    ),
    _forecast(
        id="able.forecast-siblings",
        paper=OURS,
        claim="That is more than the scores of a model's nearest documented relatives tell.",
        paper_value=None,
        unit="Spearman correlation",
        criterion="value > control.relatives",
        measure=partial(measure_forecast, regime="one_model_out"),
    ),
    _forecast(
        id="able.forecast-lineages",
        paper=OURS,
        claim="Models none of whose relatives was fitted on are ranked too, and better than by "
        "accuracy on the same probes.",
        paper_value=None,
        unit="Spearman correlation",
        criterion="low > 0 and value > control.probe_accuracy",
        measure=partial(measure_forecast, regime="one_root_out"),
    ),
    _select(
        id="able.selection",
        paper=PAPER,
        claim="Embeddings before adaptation rank roots by their score after it better than chance "
        "does.",
        paper_value=0.99,
        unit="NDCG@10",
        criterion="low > control.random",
        measure=partial(measure_selection, outcome="after"),
    ),
    _select(
        id="able.selection-gain",
        paper=OURS,
        claim="They rank roots by what adaptation gains them, better than chance and than what "
        "they do not know yet does.",
        paper_value=None,
        unit="NDCG@10",
        criterion="low > control.random and value > control.before",
        measure=partial(measure_selection, outcome="gain"),
    ),
]
"""The claims on uses of embeddings, in the order of the ledger."""
