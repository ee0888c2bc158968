"""Curvature of one run: a pass over training rows, then every term's figures and spectrum."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from engine.config import LossWeights, require, require_within
from engine.corpus.batches import BatchStream
from engine.corpus.documents import Progress, no_progress
from engine.errors import ConfigError, UnsupportedModel
from engine.pipeline.coverage import StateSource, settings, state_source
from engine.pipeline.curvature_cousage import category_table, pair_table
from engine.prism.curvature.matrices import term_matrix
from engine.prism.curvature.measures import DAMPING, measure
from engine.prism.curvature.sums import CurvatureSums, Head
from engine.prism.curvature.terms import TERMS
from engine.prism.evaluation import states_and_logits
from engine.prism.model import PrismForCausalLM
from engine.store import Run, read_table


RANKS = 120
"""Eigenvalues of a spectrum that are kept, at ranks spaced evenly in their logarithm."""
ROWS = 16
"""Rows of a forward pass."""
Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class CurvatureStudy:
    """How curvature is measured."""

    tokens: int = 131_072
    """Training tokens the Hessian is summed over; cut to whole batches."""
    damping: float = DAMPING
    """Share of the mean eigenvalue added to each for condition numbers."""
    seed: int = 0
    """Seed of the rows, the same for every arm."""

    def __post_init__(self) -> None:
        require_within(self, 1, float("inf"), "tokens")
        require_within(self, 0, 1e6, "damping")


def require_bank(run: Run) -> None:
    """Refuse a run without prototypes, or without the settings that say what a batch is.

    Raises:
        UnsupportedModel: It is a dense twin, or a run that no command trained.
    """
    if run.kind == "dense":
        raise UnsupportedModel(
            f"Run {run.name} is a dense twin and has no bank to measure; name a run of "
            "`headwater train` without --dense, or of `headwater retrofit`."
        )
    missing = {"weights", "context", "n_prototypes"} - set(settings(run))
    if missing:
        raise UnsupportedModel(
            f"Run {run.name} does not say with which {', '.join(sorted(missing))} it was trained, "
            "so its losses are not known; name a run of `headwater train`."
        )


def loss_weights(run: Run) -> LossWeights:
    """Weights the bank of a run was trained with."""
    return LossWeights(**settings(run)["weights"])


def batch_rows(run: Run) -> int:
    """Rows of a batch in the sense of L_R1, which looks for the nearest token within it."""
    config = settings(run)
    rows = config.get("batch_size") or config["batch_tokens"] // config["context"]
    return max(1, int(rows))


def check_tokens(run: Run, tokens: int) -> None:
    """Refuse fewer tokens than a batch, or than prototypes.

    Raises:
        ConfigError: There would be no batch, or a matrix that is empty for want of tokens.
    """
    config = settings(run)
    batch = batch_rows(run) * int(config["context"])
    least = max(batch, int(config["n_prototypes"]))
    require(
        tokens >= least,
        f"tokens is {tokens:,}; run {run.name} has batches of {batch:,} tokens and "
        f"{config['n_prototypes']:,} prototypes, so ask for at least {least:,}.",
    )


def measure_run(run: Run, study: CurvatureStudy, progress: Progress = no_progress) -> Tables:
    """The tables of one run, by name; those of labels only where it has an index.

    Args:
        run: A run with a bank.
        study: Tokens, damping and seed.
        progress: Wraps batches.

    Raises:
        ConfigError: Too few tokens.
        UnsupportedModel: The run has no bank.
    """
    require_bank(run)
    check_tokens(run, study.tokens)
    source = state_source(run, progress)
    model = source.model
    if not isinstance(model, PrismForCausalLM):
        raise ConfigError(f"Run {run.name} holds no prototype model; train it again.")
    sums = accumulate(source, run, study, progress)
    figures, spectra = term_tables(sums, run, study)
    tables = {
        "curvature_arms": pd.DataFrame([arm_row(run, sums, batch_rows(run) * source.context)]),
        "curvature": figures,
        "curvature_spectrum": spectra,
        "curvature_pairs": pair_table(sums),
    }
    if run.has("prototypes"):
        labels = read_table(run, "prototypes", columns=["category"])["category"]
        tables["curvature_cousage"] = category_table(sums, labels.to_numpy(str))
    return tables


def accumulate(
    source: StateSource, run: Run, study: CurvatureStudy, progress: Progress
) -> CurvatureSums:
    """Sum over whole batches of training rows, mixed as in training."""
    model, rows = source.model, batch_rows(run)
    assert isinstance(model, PrismForCausalLM)
    weight = model.get_output_embeddings().weight
    assert isinstance(weight, Tensor)
    head = Head(weight.detach(), model.logit_factor)
    sums = CurvatureSums(model.prototypes, model.config.n_active, head)
    stream = BatchStream(
        source.shards,
        split="train",
        context=source.context,
        batch_size=rows,
        seed=study.seed,
        domain_weights=settings(run).get("domain_weights", {}),
    )
    steps = range(study.tokens // (rows * source.context))
    for step in progress(steps, label=f"Curvature of {run.name}", total=len(steps)):
        sums.update(*_forward(model, torch.as_tensor(stream.batch(step), device=source.device)))
    return sums


def _forward(model: PrismForCausalLM, rows: Tensor) -> tuple[Tensor, Tensor]:
    """States and logits of a batch, a few rows at a time."""
    found = [states_and_logits(model, part[:, :-1]) for part in rows.split(ROWS)]
    states = torch.cat([z.flatten(0, 1) for z, _ in found])
    return states, torch.cat([logits.flatten(0, 1) for _, logits in found])


def term_tables(
    sums: CurvatureSums, run: Run, study: CurvatureStudy
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of `curvature` and of `curvature_spectrum`."""
    weights, d_model = loss_weights(run), sums.prototypes.shape[1]
    ranks = kept_ranks(len(sums.prototypes))
    figures, spectra = [], []
    for term in TERMS:
        found, values = measure(term_matrix(sums, term, weights), d_model, study.damping)
        figures.append({"arm": run.name, "term": term, **vars(found)})
        kept = {"arm": run.name, "term": term, "rank": ranks, "eigenvalue": values[ranks]}
        spectra.append(pd.DataFrame(kept))
    return pd.DataFrame(figures), pd.concat(spectra, ignore_index=True)


def kept_ranks(n_prototypes: int) -> np.ndarray:
    """Ranks of a spectrum that are kept: first, last, and evenly spaced in their logarithm."""
    return np.unique(np.geomspace(1, n_prototypes, RANKS).round().astype(int)) - 1


def arm_row(run: Run, sums: CurvatureSums, batch_tokens: int) -> dict[str, Any]:
    """A run as a row of `curvature_arms`, the dense run beside it left open."""
    weights, held_out = loss_weights(run), held_out_figures(run)
    return {
        "arm": run.name,
        "role": "run",
        "seed": int(settings(run).get("seed", 0)),
        "reconstruction_weight": weights.reconstruction,
        "prototype_to_token_weight": weights.prototype_to_token,
        "token_to_prototype_weight": weights.token_to_prototype,
        "n_prototypes": len(sums.prototypes),
        "n_active_most": sums.n_active,
        "d_model": sums.prototypes.shape[1],
        "tokens": sums.tokens,
        "batch_tokens": batch_tokens,
        **held_out,
    }


_HELD_OUT = ("coverage_r1", "coverage_r2", "residual_share", "pair_cosine")
_COLLAPSE = (*_HELD_OUT, "participation_ratio", "dead_share")


def held_out_figures(run: Run) -> dict[str, Any]:
    """Loss and collapse on held-out tokens, with those of the dense twin where they were measured.

    They are those of the end of training, or of the stage `coverage`; a run with neither has none.
    """
    losses = _mean_losses(run)
    final = run.manifest["stages"].get("train", {}).get("final")
    twin = None
    if run.has("coverage"):
        banks = read_table(run, "coverage").set_index("bank").to_dict("index")
        final = final or banks.get("trained")
        twin = banks.get("dense-kmeans")
    found = final or {}
    return {
        "validation_loss": losses.get("prism", found.get("validation_loss")),
        "dense_loss": losses.get("dense"),
        **{name: found.get(name) for name in _COLLAPSE},
        "dense_participation_ratio": twin["participation_ratio"] if twin else None,
        "tokens_scanned": int(found.get("tokens_scanned", 0)),
    }


def _mean_losses(run: Run) -> dict[str, float]:
    """Held-out loss by model, mean over domains; empty where it was not measured."""
    if not run.has("validation_loss"):
        return {}
    means = read_table(run, "validation_loss").groupby("model")["loss"].mean()
    return {str(model): float(value) for model, value in means.items()}
