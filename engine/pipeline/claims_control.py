"""The claims on controllers and on downstream accuracy: paired over questions, sets alike."""

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from engine.errors import CacheMissing
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import DEMO, OURS, PAPER, RETROFIT, run_setting
from engine.questions.reading import MEAN
from engine.store import Run, open_run, read_table


Row = dict[str, Any]
_POINTS = "percentage points of accuracy"


def measure_gain(evidence: Path, *, comparison: str) -> Measured:
    """Mean gain over the sets of one comparison; every set's own gain and the others beside."""
    run = open_run(evidence.parent)
    rows = _rows(read_table(run, evidence.stem))
    own = {str(row["set"]): row for row in rows if row["comparison"] == comparison}
    if MEAN not in own:
        raise CacheMissing(f"{evidence} has no comparison {comparison}.")
    mean = own.pop(MEAN)
    control = {
        str(row["comparison"]).replace("-", "_"): float(row["gain"])
        for row in rows
        if row["set"] == MEAN and row["comparison"] != comparison
    }
    control |= {name.replace("/", "_"): float(row["gain"]) for name, row in own.items()}
    return Measured(
        value=float(mean["gain"]),
        interval=(float(mean["low"]), float(mean["high"])),
        control=control,
        setting=_control_setting(run, mean),
    )


def _rows(table: pd.DataFrame) -> list[Row]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _control_setting(run: Run, mean: Row) -> str:
    stage = run.manifest["stages"].get("control", {})
    study, sae = stage.get("settings", {}), stage.get("sae")
    results = read_table(run, "control_results")
    kinds = [kind for kind in ("prototypes", "sae") if kind in set(results["condition"])]
    nonzeros = [results.loc[results["condition"] == kind, "nonzeros"].mean() for kind in kinds]
    weights = ", ".join(f"{n:.0f} {kind}" for n, kind in zip(nonzeros, kinds, strict=True))
    sets = ", ".join(results["set"].unique())
    beside = (
        f"; SAE (SAELens, TopK) on {sae['training_states']:,} states, "
        f"{sae['variance_explained']:.2f} of variance explained, {sae['dead_share']:.0%} dead"
        if sae
        else ""
    )
    return (
        f"{run_setting(run)}; {sets}; {int(mean['n_questions']):,} test questions over "
        f"{int(mean['n_seeds'])} splits (50/20/30), at most {study.get('max_nonzeros')} weights "
        f"(mean {weights}){beside}"
    )


def measure_downstream(evidence: Path) -> Measured:
    """Accuracy minus the dense twin's, mean over sets, with chance beside.

    Comparable only where the twin itself knows something: where the interval of its mean accuracy
    lies above chance.
    """
    run = open_run(evidence.parent)
    table = read_table(run, evidence.stem)
    means = {str(row["model"]): row for row in _rows(table) if row["set"] == MEAN}
    if not {"prism", "dense"} <= set(means):
        raise CacheMissing(f"{evidence} lacks the model or its dense twin.")
    prism, dense = means["prism"], means["dense"]
    sets = [name for name in table["set"].unique() if name != MEAN]
    return Measured(
        value=float(prism["difference"]),
        interval=(float(prism["difference_low"]), float(prism["difference_high"])),
        control={
            "prism": 100 * float(prism["accuracy"]),
            "dense": 100 * float(dense["accuracy"]),
            "dense_low": 100 * float(dense["low"]),
            "chance": 100 * float(prism["chance"]),
        },
        setting=(
            f"{run_setting(run)}; {', '.join(sets)}, {int(prism['n_questions']):,} questions, "
            f"log-likelihood per byte; mean over sets {prism['accuracy']:.1%}, dense twin "
            f"{dense['accuracy']:.1%} ({dense['low']:.1%} to {dense['high']:.1%}), chance "
            f"{prism['chance']:.1%}"
        ),
        comparable=bool(dense["low"] > dense["chance"]),
    )


def _controller_claims(prefix: str, folder: str, command: str, of: str) -> list[ClaimDefinition]:
    define = partial(
        ClaimDefinition,
        unit=_POINTS,
        criterion="low > 0",
        evidence=f"{folder}/control_gains.parquet",
        command=command,
    )
    return [
        define(
            id=f"prism.{prefix}controller-gain",
            paper=PAPER,
            claim="A sparse linear controller over active prototypes raises held-out accuracy on "
            f"four multiple-choice sets, {of}. (The paper names neither sets nor training.)",
            paper_value=2.72,
            measure=partial(measure_gain, comparison="prototypes-none"),
        ),
        define(
            id=f"prism.{prefix}controller-vs-sae",
            paper=PAPER,
            claim="It gains more than the same controller over features of a sparse autoencoder "
            f"of the same states, with the same budget of weights, {of}.",
            paper_value=2.40,
            measure=partial(measure_gain, comparison="prototypes-sae"),
        ),
        define(
            id=f"prism.{prefix}controller-beyond-length",
            paper=OURS,
            claim="It beats dividing the log-likelihood by the bytes of the option, which needs "
            f"no controller, {of}.",
            paper_value=None,
            measure=partial(measure_gain, comparison="prototypes-per-byte"),
        ),
    ]


DEFINITIONS: list[ClaimDefinition] = [
    *_controller_claims("", DEMO, "headwater control --run demo", "demo"),
    *_controller_claims(
        "retrofit-",
        RETROFIT,
        "headwater control --run smollm2 --items 500",
        "SmolLM2-135M-Instruct with a fitted bank",
    ),
    ClaimDefinition(
        id="prism.downstream",
        paper=PAPER,
        claim="On downstream tasks the prototype model surpasses its dense twin or stays within "
        "2.5 points of it.",
        paper_value=-2.5,
        unit=_POINTS,
        criterion="low >= -2.5",
        evidence=f"{DEMO}/downstream.parquet",
        command="headwater study downstream --run demo --dense-run demo-dense",
        measure=measure_downstream,
    ),
]
"""The claims on control and downstream accuracy, in the order of the ledger."""
