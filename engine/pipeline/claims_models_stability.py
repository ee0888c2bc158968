"""The claims on how firm embeddings are, how true a map's pictures are, and whether relatives meet.

Criteria were set before the zoo's values were seen, after a trial of the suite over five models and
16 probes.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from engine.atlas.probe_curves import decay
from engine.errors import CacheMissing
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_models_relations import PAPER
from engine.pipeline.claims_prism import MEASUREMENTS, OURS
from engine.pipeline.measurements import latest_measurement
from engine.store import Run, open_run, read_table


_STABILITY = "assets/zoo/model_stability.parquet"
_LAYOUTS = "assets/zoo/model_layout_results.parquet"
_SMALL_NOISE = 0.1
"""Noise up to which the quotient of distance and noise is held to be bounded."""
RELATIVES = "local-models"
"""Record of the folder of local models."""


def _rows(evidence: Path, study: str, measure: str) -> tuple[Run, pd.DataFrame]:
    """Rows of one measure of a study.

    Raises:
        CacheMissing: There are none.
    """
    run = open_run(evidence.parent)
    found = read_table(run, "model_stability", where={"study": study, "measure": measure})
    if found.empty:
        raise CacheMissing(f"Run {run.name} has no {measure} of the study {study}.")
    return run, found


def _setting(run: Run, n: float, more: str) -> str:
    facts = run.manifest["stages"].get("stability", {})
    return f"{n:.0f} models of {facts.get('n_models', 'a')} of a synthetic zoo; {more}"


def measure_largest(evidence: Path, *, study: str, settings: tuple[str, ...] = ()) -> Measured:
    """Largest distance of any model in any setting of a study, with each setting's."""
    run, found = _rows(evidence, study, "distance")
    if settings:
        found = found[found["setting"].isin(settings)]
    largest = found["high"].fillna(found["value"])
    n_probes = run.manifest["stages"].get("stability", {}).get("n_probes", "some")
    return Measured(
        value=float(largest.max()),
        control={str(s): float(v) for s, v in zip(found["setting"], largest, strict=True)},
        setting=_setting(run, float(found["n"].max()), f"{n_probes} probes; not projected"),
    )


def measure_dtype(evidence: Path) -> Measured:
    """Share of models whose bfloat16 vector is nearest to their own usual one."""
    run, found = _rows(evidence, "dtype", "finds_itself")
    _, near = _rows(evidence, "dtype", "cosine")
    shares = dict(zip(found["setting"], found["value"], strict=True))
    if "bfloat16" not in shares:
        raise CacheMissing(f"Run {run.name} was itself embedded in bfloat16.")
    control = {f"{s}_cosine": float(v) for s, v in zip(near["setting"], near["value"], strict=True)}
    control |= {f"{s}_cosine_low": float(v) for s, v in
                zip(near["setting"], near["low"].fillna(near["value"]), strict=True)}  # fmt: skip
    control |= {f"{s}_share": float(v) for s, v in shares.items()}
    n = float(found["n"].max())
    return Measured(
        value=float(shares["bfloat16"]), control=control,
        setting=_setting(run, n, "among all models; not projected"),
    )  # fmt: skip


def measure_wording(evidence: Path) -> Measured:
    """Smallest agreement of the models' cosines over ways of asking."""
    run, found = _rows(evidence, "template", "agreement")
    control = {str(s): float(v) for s, v in zip(found["setting"], found["value"], strict=True)}
    try:
        _, own = _rows(evidence, "template", "finds_itself")
        control |= {
            f"{s}_finds_itself": float(v) for s, v in zip(own["setting"], own["value"], strict=True)
        }
    except CacheMissing:
        pass
    return Measured(
        value=float(found["value"].min()),
        control=control,
        setting=_setting(run, float(found["n"].max()), "words of the questions alone"),
    )


def measure_lettered_order(evidence: Path) -> Measured:
    """Agreement of cosines when lettered choices stand in another order."""
    run, found = _rows(evidence, "option_order", "agreement")
    lettered = found[found["setting"].str.startswith("lettered")]
    own = found[found["setting"] == "shuffled"] if lettered.empty else lettered
    return Measured(
        value=float(own["value"].iloc[0]),
        setting=_setting(run, float(own["n"].iloc[0]), "letters; words of the questions alone"),
    )


def measure_noise(evidence: Path) -> Measured:
    """Largest over smallest median distance per unit of noise, up to noise of a tenth."""
    run, found = _rows(evidence, "noise", "quotient")
    small = found[found["x"] <= _SMALL_NOISE]
    _, distances = _rows(evidence, "noise", "distance")
    ordered = distances.sort_values("x")["value"].to_numpy()
    control = {"rising": float((np.diff(ordered) > 0).all())}
    control |= {
        f"distance_at_{x:g}": float(v)
        for x, v in zip(distances["x"], distances["value"], strict=True)
    }
    return Measured(
        value=float(small["value"].max() / small["value"].min()),
        control=control,
        setting=_setting(run, float(found["n"].max()), "noise on every matrix; not projected"),
    )


def measure_convergence(evidence: Path) -> Measured:
    """Exponent of the gap between two disjoint sets of probes over their size."""
    run, found = _rows(evidence, "convergence", "half_gap")
    if len(found) < 2:
        raise CacheMissing(f"Run {run.name} has too few probes for a curve.")
    found = found.sort_values("x")
    sizes, gaps = found["x"].to_numpy(np.float64), found["value"].to_numpy(np.float64)
    control = {f"gap_at_{x:g}": float(v) for x, v in zip(sizes, gaps, strict=True)}
    n_models = run.manifest["stages"].get("stability", {}).get("n_models", 0)
    more = f"{found['n'].max():.0f} draws of each size; not projected"
    return Measured(
        value=decay(sizes, gaps), control=control, setting=_setting(run, n_models, more)
    )


def measure_projection(evidence: Path, *, dimensions: int = 256) -> Measured:
    """Relative error of squared distances over the expected one."""
    run, found = _rows(evidence, "dimension", "relative_error")
    _, expected = _rows(evidence, "dimension", "expected")
    errors = dict(zip(found["x"], found["value"], strict=True))
    wanted = dict(zip(expected["x"], expected["value"], strict=True))
    if dimensions not in errors:
        raise CacheMissing(f"Run {run.name} has no projection to {dimensions} dimensions.")
    own = found[found["x"] == dimensions].iloc[0]
    n_models = run.manifest["stages"].get("stability", {}).get("n_models", 0)
    return Measured(
        value=float(errors[dimensions]),
        control={"expected": float(wanted[dimensions])},
        setting=_setting(run, n_models, f"{own['n']:.0f} seeds"),
    )


def measure_projection_cost(evidence: Path, *, dimensions: int = 256) -> Measured:
    """AUC of related pairs that the projection loses."""
    run, found = _rows(evidence, "dimension", "lineage_auc")
    by_setting = dict(zip(found["setting"], found["value"], strict=True))
    if str(dimensions) not in by_setting or "none" not in by_setting:
        raise CacheMissing(f"Run {run.name} has no lineage to judge projections by.")
    own = found[found["setting"] == str(dimensions)].iloc[0]
    n_models = run.manifest["stages"].get("stability", {}).get("n_models", 0)
    return Measured(
        value=float(by_setting["none"] - by_setting[str(dimensions)]),
        control={f"auc_{name}": float(value) for name, value in by_setting.items()},
        setting=_setting(run, n_models, f"mean of {own['n']:.0f} seeds; all pairs"),
    )


def measure_picture(evidence: Path, *, variant: str = "able", layout: str = "umap") -> Measured:
    """Trustworthiness of a picture, with its other measures and the other layouts."""
    run = open_run(evidence.parent)
    found = read_table(run, "model_layout_results", where={"variant": variant})
    own = found[found["layout"] == layout]
    if own.empty:
        raise CacheMissing(f"Run {run.name} has no {layout} of {variant}.")
    row = own.iloc[0]
    control = {f"{row_layout}_trustworthiness": float(value) for row_layout, value in
               zip(found["layout"], found["trustworthiness"], strict=True)}  # fmt: skip
    control |= {name: float(row[name]) for name in ("continuity", "neighbours_kept")}
    return Measured(
        value=float(row["trustworthiness"]),
        control=control,
        setting=f"{layout} of {row['n']} models of a synthetic zoo, {variant}; "
        f"{row['n_neighbours']} neighbours",
    )


def measure_relatives(evidence: Path, *, variant: str, origins: bool) -> Measured:
    """Smallest share of a model's relatives among its as many nearest models, by family.

    Args:
        evidence: The file of measurements.
        variant: Way of embedding.
        origins: Judge the models that others were made of alone, not their derivatives.
    """
    record = latest_measurement(RELATIVES, evidence)
    shares: dict[str, list[float]] = {}
    for row in record["rounds"]:
        if row["variant"] == variant and (row["origin"] or not origins):
            shares.setdefault(row["family"], []).append(row["found"] / row["of"])
    if not shares:
        raise CacheMissing(f"{RELATIVES} was not measured with the variant {variant}.")
    setting = record["setting"]
    return Measured(
        value=min(min(own) for own in shares.values()),
        control={family: float(min(own)) for family, own in shares.items()},
        setting=f"{setting['models']} models, {setting['families']} families, "
        f"{setting['questions']} questions, {setting['style']}, {variant}; {record['machine']}",
    )


_of_suite = partial(
    ClaimDefinition,
    paper=OURS,
    paper_value=None,
    evidence=_STABILITY,
    command="headwater models stability --run zoo",
)
_of_local_models = partial(
    ClaimDefinition,
    paper=OURS,
    paper_value=None,
    unit="share of a model's relatives among its as many nearest, the smallest",
    criterion="value >= 1",
    evidence=MEASUREMENTS,
    command="python -m scripts.local_models cache/local-models --run local",
)
_DISTANCE = "distance of vectors of length 1"

DEFINITIONS: tuple[ClaimDefinition, ...] = (
    _of_suite(
        id="able.copy",
        claim="An exact copy of a model has its embedding, bit for bit.",
        unit=_DISTANCE,
        criterion="value <= 0",
        measure=partial(measure_largest, study="copy"),
    ),
    _of_suite(
        id="able.rewrite",
        claim="Rewrites that compute the same function move an embedding by rounding alone.",
        unit=_DISTANCE,
        criterion="value <= 0.0001",
        measure=partial(measure_largest, study="rewrite"),
    ),
    _of_suite(
        id="able.batch",
        claim="How probes are batched moves an embedding by rounding alone.",
        unit=_DISTANCE,
        criterion="value <= 0.0001",
        measure=partial(measure_largest, study="batch"),
    ),
    _of_suite(
        id="able.option-order",
        claim="The order of options that stand outside the prompt moves an embedding by rounding "
        "alone.",
        unit=_DISTANCE,
        criterion="value <= 0.0001",
        measure=partial(measure_largest, study="option_order", settings=("shuffled",)),
    ),
    _of_suite(
        id="able.lettered-order",
        claim="Lettered choices in another order leave the models' cosines nearly as they were.",
        unit="correlation of the pairs' cosines",
        criterion="value >= 0.9",
        measure=measure_lettered_order,
    ),
    _of_suite(
        id="able.wording",
        claim="Asked in other words around the same questions, models keep their cosines in "
        "outline.",
        unit="correlation of the pairs' cosines, the smallest over ways of asking",
        criterion="value >= 0.5",
        measure=measure_wording,
    ),
    _of_suite(
        id="able.dtype",
        claim="A model in bfloat16, the paper's format, is nearest to itself among all models.",
        unit="share of models",
        criterion="value >= 0.95",
        measure=measure_dtype,
    ),
    _of_suite(
        id="able.lipschitz",
        paper=PAPER,
        claim="An embedding moves no faster than its weights: the distance grows with noise, and "
        "per unit of it stays bounded as the noise becomes small. (Constants are not given.)",
        unit="largest ÷ smallest median distance per noise, for noise up to a tenth",
        criterion="value <= 2 and control.rising >= 1",
        measure=measure_noise,
    ),
    _of_suite(
        id="able.convergence",
        paper=PAPER,
        claim="Cosines settle as probes are added, as means of independent draws do. (The rate is "
        "ours to expect.)",
        unit="exponent of the gap between two sets of probes over their size",
        criterion="value >= -0.65 and value <= -0.35",
        measure=measure_convergence,
    ),
    _of_suite(
        id="able.projection",
        claim="Distances after the projection to 256 dimensions are off by what theory expects.",
        unit="relative error of squared distances, root mean square",
        criterion="value <= 1.1 * control.expected",
        measure=measure_projection,
    ),
    _of_suite(
        id="able.projection-cost",
        claim="The projection to 256 dimensions costs next to nothing in telling relatives.",
        unit="AUC lost, all pairs",
        criterion="value <= 0.02",
        measure=measure_projection_cost,
    ),
    ClaimDefinition(
        id="able.picture",
        paper=OURS,
        claim="Neighbours on the UMAP picture of the zoo are neighbours.",
        paper_value=None,
        unit="trustworthiness",
        criterion="value >= 0.9",
        evidence=_LAYOUTS,
        command="headwater models map --run zoo",
        measure=measure_picture,
    ),
    _of_local_models(
        id="able.local-relatives",
        claim="In a catalogue run over nine architectures made here and SmolLM2-135M, each with "
        "derivatives (rounded, pruned, fine-tuned, merged, reordered), every model's relatives are "
        "its nearest models.",
        measure=partial(measure_relatives, variant="able", origins=False),
    ),
    _of_local_models(
        id="able.local-derivatives",
        claim="By the variant that the zoo's development roots chose, the derivatives of SmolLM2 "
        "and of each architecture are its nearest models. "
        "(Added after the figure above was seen.)",
        measure=partial(measure_relatives, variant="contrast", origins=True),
    ),
    _of_local_models(
        id="able.local-relatives-contrast",
        claim="By that variant, the relatives of the derivatives are their nearest models too. "
        "(Added after the figures above were seen.)",
        measure=partial(measure_relatives, variant="contrast", origins=False),
    ),
)
"""Claims on stability, pictures and local models."""
