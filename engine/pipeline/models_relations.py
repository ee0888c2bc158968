"""The stage that says which models of a map are related, and how well that can be told."""

import dataclasses
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from engine.able.embedding import centred_log_probabilities, option_contrast
from engine.atlas.features import (
    label_scores,
    option_probabilities,
    pair_features,
    probe_cosines,
    random_scores,
    signed_root,
)
from engine.atlas.pairs import N_SPLITS, Pairs, halves, make_pairs
from engine.atlas.relation_scores import permutation_p
from engine.atlas.relations import (
    ALL,
    DEV,
    NO_CLASSIFIER,
    THRESHOLD,
    Comparison,
    Judge,
    Result,
    choose,
)
from engine.atlas.sampling import SamplingSettings, nei_similarity
from engine.atlas.similarity import cosines, unit_rows
from engine.atlas.weights import weight_cosines
from engine.config import MAX_SEED, require_positive, require_within
from engine.corpus.documents import Progress, no_progress
from engine.pipeline.models_relations_reading import MapData, input_marks, open_map_data
from engine.pipeline.models_relations_sampling import sample_models
from engine.pipeline.models_relations_tables import (
    neighbour_frame,
    parent_frame,
    parent_results,
    tree_frame,
    tree_results,
)
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)
STAGE = "relations"
LABELS = ("tokenizer", "architecture_size", "architecture_tokenizer", "random")
"""Methods that look at no model."""
SAME_LABELS = "same_labels"


@dataclass(frozen=True, kw_only=True)
class RelationSettings:
    """How relations are computed and judged."""

    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    """What models write, for PhyloLM."""
    sample: bool = True
    """Let models write, where their weights are on this machine."""
    seed: int = 0
    """Seed of splits, draws and shuffles."""
    n_splits: int = N_SPLITS
    """Random splits by root."""

    def __post_init__(self) -> None:
        require_positive(self, "n_splits")
        require_within(self, 0, MAX_SEED, "seed")


def relate_models(
    run_name: str | Path,
    settings: RelationSettings | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Write the tables of relations of a map.

    Args:
        run_name: Name or folder of the map.
        settings: How.
        progress: Wraps models and methods.

    Raises:
        ConfigError: The run is no map, or documents no related or no unrelated models.
        CacheMissing: It holds no embeddings or no cards.
    """
    settings = settings or RelationSettings()
    data = open_map_data(run_name)
    pairs = make_pairs(data.lineage, data.names)
    places = data.places()
    if places is None:
        logger.info("Weights are not all on this machine: phylolm and weights are left out")
    writer = RunWriter.resume(data.run.path)
    with_attributions = data.has_attributions
    if not with_attributions:
        logger.info("Attributions in full are not there: comparisons without projection left out")
    identity = {
        "inputs": input_marks(data.run),
        "settings": dataclasses.asdict(settings),
        "weights": places is not None,
        "attributions": with_attributions,
    }
    if writer.begin_stage(STAGE, identity):
        return data.run
    compared = comparisons(data, pairs, settings, progress)
    frames, chosen = relation_frames(data, pairs, compared, settings, progress)
    for name, frame in frames.items():
        writer.write_table(name, frame)
    facts = {"chosen": chosen, "methods": sorted(compared), "n_pairs": len(pairs.frame)}
    writer.finish_stage(STAGE, facts | {"settings": identity["settings"]})
    return open_run(data.run.path)


def comparisons(
    data: MapData, pairs: Pairs, settings: RelationSettings, progress: Progress = no_progress
) -> dict[str, Comparison]:
    """Every way to compare the models of a map, by name."""
    cards = [data.lineage.by_name[name] for name in data.names]
    found = {name: _vectors(rows, pairs, able=True) for name, rows in data.vectors.items()}
    if data.has_attributions:
        found |= _whole(data, pairs)
    scores = data.log_probabilities()
    centred = np.nan_to_num(centred_log_probabilities(scores, data.columns))
    found["log_likelihoods"] = _vectors(centred, pairs)
    found["option_probabilities"] = _vectors(option_probabilities(scores, data.columns), pairs)
    places = data.places()
    if places is not None:
        found["weights"] = Comparison(weight_cosines(places))
    if places is not None and settings.sample:
        sampled = sample_models(
            data.run.path, data.names, places, data.probes, settings.sampling, progress
        )
        found["phylolm"] = Comparison(nei_similarity(sampled))
    found["tokenizer"] = Comparison(label_scores(cards, "tokenizer"))
    found["architecture_size"] = Comparison(label_scores(cards, "architecture", "size"))
    found["architecture_tokenizer"] = Comparison(label_scores(cards, "architecture", "tokenizer"))
    found["random"] = Comparison(random_scores(len(cards), settings.seed))
    return found


def _vectors(
    rows: Float[np.ndarray, "models columns"], pairs: Pairs, *, able: bool = False
) -> Comparison:
    return Comparison(
        cosines(rows), partial(pair_features, unit_rows(rows), pairs.a, pairs.b), able=able
    )


def _whole(data: MapData, pairs: Pairs) -> dict[str, Comparison]:
    """Attributions without projection, as they are and less the mean over options."""
    rows = data.attributions()
    contrast = option_contrast(rows.pop("words"), data.columns)
    rows |= {"contrast_plain": contrast, "contrast": signed_root(contrast)}
    return {
        f"{name}_whole": Comparison(
            cosines(own),
            partial(probe_cosines, own, data.columns, pairs.a, pairs.b),
            able=True,
        )
        for name, own in rows.items()
    }


def relation_frames(
    data: MapData,
    pairs: Pairs,
    compared: dict[str, Comparison],
    settings: RelationSettings,
    progress: Progress = no_progress,
) -> tuple[dict[str, pd.DataFrame], str]:
    """Frames of every table of relations, and the method chosen on development roots."""
    seed, judge = settings.seed, Judge(pairs, settings.seed, settings.n_splits)
    results: dict[str, list[Result]] = {}
    for name in progress(sorted(compared), label="Judging methods", total=len(compared)):
        results[name] = list(judge.judge(compared[name]))
        results[name] += _permutations(data, pairs, compared[name], seed)
    chosen = choose({name: results[name] for name, own in compared.items() if own.able})
    results[chosen].append(Result(THRESHOLD, DEV, "chosen", 1.0, 1))
    half = np.isin(pairs.unit, halves(pairs, seed)[1]).astype(np.int64)
    looked = {name: own.similarity for name, own in compared.items() if name not in LABELS}
    for name, similarity in looked.items():
        results[name] += parent_results(data, pairs, similarity, half)
        results[name] += tree_results(data, name, similarity)
    shown = [*data.vectors, *({chosen} - set(data.vectors))]
    frames = {
        "model_pairs": pairs.frame,
        "model_pair_scores": _score_frame(pairs, compared),
        "model_relation_results": _result_frame(results),
        "model_neighbours": _joined(
            neighbour_frame(data, pairs, name, looked[name]) for name in shown
        ),
        "model_parents": _joined(
            parent_frame(data, pairs, name, own, half) for name, own in looked.items()
        ),
        "model_trees": _joined(tree_frame(data, name, looked[name]) for name in shown),
    }
    return frames, chosen


def _permutations(
    data: MapData, pairs: Pairs, comparison: Comparison, seed: int
) -> Iterator[Result]:
    """How surprising the AUC is when roots are shuffled, among all and among equal labels."""
    cards = [data.lineage.by_name[name] for name in data.names]
    named = ["+".join(card.roots) or card.name for card in cards]
    labels = [f"{card.architecture}\n{card.tokenizer}" for card in cards]
    roots, same = (np.unique(each, return_inverse=True)[1] for each in (named, labels))
    scores = pairs.of(comparison.similarity)
    for group, within in ((ALL, np.zeros_like(same)), (SAME_LABELS, same)):
        p = permutation_p(scores, pairs, roots, within, seed=seed)
        yield Result(NO_CLASSIFIER, group, "permutation_p", p, len(scores))


def _score_frame(pairs: Pairs, compared: dict[str, Comparison]) -> pd.DataFrame:
    number = pairs.frame["pair"]
    return _joined(
        pd.DataFrame({"method": name, "pair": number, "score": pairs.of(own.similarity)})
        for name, own in sorted(compared.items())
    )


def _result_frame(results: dict[str, list[Result]]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {"method": name} | dataclasses.asdict(result)
        for name, own in results.items()
        for result in own
        if math.isfinite(result.value)
    ]
    return pd.DataFrame(rows)


def _joined(frames: Iterator[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(list(frames), ignore_index=True)
