"""Rows of the tables of routing."""

import numpy as np
import pandas as pd
from jaxtyping import Bool

from engine.atlas.new_models import NewModelFold, new_model_figures
from engine.atlas.routers import EMBEDLLM
from engine.atlas.routing import Judged, budget_figures, figures, seed_spread
from engine.pipeline.models_routing_reading import RoutingMap


def route_frame(found: RoutingMap, predicted: dict[str, np.ndarray]) -> pd.DataFrame:
    """Rows of `model_routes`: the first seed of every router."""
    data, names = found.data, list(found.names)
    n_models, n_questions = data.correct.shape
    frames = [
        pd.DataFrame(
            {
                "router": router,
                "question": np.repeat(np.arange(n_questions), n_models),
                "model": pd.Categorical(names * n_questions, categories=names).astype(str),
                "predicted": seeds[0].T.ravel(),
                "correct": data.correct.T.ravel(),
                "fold": np.repeat(data.fold, n_models),
            }
        )
        for router, seeds in sorted(predicted.items())
    ]
    return pd.concat(frames, ignore_index=True)


def result_frame(
    found: RoutingMap,
    predicted: dict[str, np.ndarray],
    added: dict[str, list[NewModelFold]],
) -> pd.DataFrame:
    """Rows of `model_routing_results`."""
    data = found.data
    judged = Judged(data.correct, data.facts, data.fold)
    rows = [
        *figures(predicted, judged, question_groups(found), learned=EMBEDLLM),
        *seed_spread(predicted, judged),
        *budget_figures(predicted, judged, found.answered.n_parameters()),
    ]
    for kind, folds in added.items():
        rows += new_model_figures(data, folds, kind)
    return pd.DataFrame(
        [
            {"router": router, "group": group, "metric": metric, **estimate._asdict()}
            for router, group, metric, estimate in rows
        ]
    )


def question_groups(found: RoutingMap) -> dict[str, Bool[np.ndarray, " questions"]]:
    """Questions of each group that has any."""
    questions = found.answered.questions
    probe = questions["is_probe"].to_numpy(dtype=bool)
    domain = questions["domain"].to_numpy()
    probed = np.isin(found.data.facts, found.data.facts[probe])
    groups = {
        "all": np.ones(len(probe), dtype=bool),
        "probe": probe,
        "held_out": ~probe,
        "unseen": ~probed,
        **{f"domain:{name}": domain == name for name in sorted(set(domain))},
    }
    return {name: kept for name, kept in groups.items() if kept.any()}
