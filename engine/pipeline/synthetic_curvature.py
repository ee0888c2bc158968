"""The curvature tables of a synthetic run: random numbers of the right shape, no result."""

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_tables import Columns
from engine.prism.curvature.terms import COUSAGE, CROSS_ENTROPY, TERMS


_WEIGHTS = (0.0, 0.1, 0.5, 1.5, 5.0)
_SEEDS = (0, 1)
_RANKS = 40


def curvature_tables(
    generator: np.random.Generator, run: str, prototypes: Columns, n_active: int
) -> dict[str, Columns]:
    """Five arms at two seeds and the run itself, with co-usage by the run's own categories.

    Args:
        generator: Source of every number.
        run: Name of the run.
        prototypes: Columns of its `prototypes` table.
        n_active: Active prototypes a token.
    """
    n_prototypes = len(prototypes["prototype"])
    arms = [("arm", seed, weight) for seed in _SEEDS for weight in _WEIGHTS]
    listed = [("run", 0, 1.5), *arms]
    names = [run, *(f"{run}-seed{seed}-arm-{weight:g}" for _, seed, weight in arms)]
    return {
        "curvature_arms": _arms(generator, names, listed, n_prototypes, n_active),
        "curvature": _columns(_measures(generator, names, [w for *_, w in listed], n_prototypes)),
        "curvature_spectrum": _columns(_spectra(names, [w for *_, w in listed], n_prototypes)),
        "curvature_cousage": _columns(_categories(generator, prototypes["category"])),
        "curvature_pairs": _pairs(generator, n_prototypes),
    }


def _columns(frame: pd.DataFrame) -> Columns:
    return {str(name): frame[name] for name in frame}


def _arms(
    generator: np.random.Generator,
    names: list[str],
    listed: list[tuple[str, int, float]],
    n_prototypes: int,
    n_active: int,
) -> Columns:
    weights = np.array([weight for *_, weight in listed])
    count, reach = len(names), weights / (weights + 0.3)
    return {
        "arm": names,
        "role": [role for role, *_ in listed],
        "seed": [seed for _, seed, _ in listed],
        "reconstruction_weight": np.full(count, 0.1),
        "prototype_to_token_weight": weights,
        "token_to_prototype_weight": weights,
        "n_prototypes": np.full(count, n_prototypes),
        "n_active_most": np.full(count, n_active),
        "d_model": np.full(count, 64),
        "tokens": np.full(count, 65_536),
        "batch_tokens": np.full(count, 4_096),
        "validation_loss": 3.3 + 0.03 * weights + generator.normal(0, 0.004, count),
        "dense_loss": np.full(count, 3.29),
        "coverage_r1": 0.85 + 0.1 * reach,
        "coverage_r2": 0.8 + 0.12 * reach,
        "residual_share": 0.3 - 0.1 * reach,
        "pair_cosine": 0.12 + 0.2 * reach,
        "participation_ratio": 30 - 15 * reach,
        "dense_participation_ratio": np.full(count, 31.0),
        "dead_share": 0.02 * reach,
        "tokens_scanned": np.full(count, 100_000),
    }


def _measures(
    generator: np.random.Generator, names: list[str], weights: list[float], n_prototypes: int
) -> pd.DataFrame:
    rows = []
    for name, weight in zip(names, weights, strict=True):
        for place, term in enumerate(TERMS):
            fall = 1 / (1 + weight) if term != COUSAGE else 1.0
            coupling = 0.8 * fall * float(generator.uniform(0.9, 1))
            known = term not in (COUSAGE, CROSS_ENTROPY)
            rows.append(
                {
                    "arm": name,
                    "term": term,
                    "mean_eigenvalue": 1e-3 * (1 + place),
                    "coupling": coupling,
                    "coupling_normalised": 0.9 * coupling,
                    "local_share": 1 - fall if known else None,
                    "block_diagonal_share": 1 - 0.5 * coupling,
                    "isotropic_share": 0.97 if known else None,
                    "participation": n_prototypes * (0.5 + 0.4 * (1 - fall)),
                    "largest": 0.2 * fall,
                    "smallest": 1e-5,
                    "n_zero": place,
                    "damping": 1e-4 * (1 + place),
                    "condition_number": 5 + 200 * fall,
                    "condition_scaled": 4 + 90 * fall,
                    "condition_effective": 40 + 3_000 * fall,
                }
            )
    return pd.DataFrame(rows)


def _spectra(names: list[str], weights: list[float], n_prototypes: int) -> pd.DataFrame:
    ranks = np.unique(np.geomspace(1, n_prototypes, _RANKS).astype(int)) - 1
    parts = [
        pd.DataFrame(
            {
                "arm": name,
                "term": term,
                "rank": ranks,
                "eigenvalue": 1e-2 / (1 + ranks) ** (0.9 / (1 + weight)),
            }
        )
        for name, weight in zip(names, weights, strict=True)
        for term in TERMS
    ]
    return pd.concat(parts)


def _categories(generator: np.random.Generator, categories: list[str]) -> pd.DataFrame:
    names, sizes = np.unique(categories, return_counts=True)
    count = len(names)
    mass = generator.gamma(3, 1, (count, count)) * np.outer(sizes, sizes)
    mass = mass + mass.T + 4 * np.diag(np.diag(mass))
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    first, second = (axis.ravel() for axis in np.indices((count, count)))
    return pd.DataFrame(
        {
            "category": names[first],
            "other": names[second],
            "n_pairs": pairs.ravel(),
            "mass": mass.ravel(),
            "share": (mass / mass.sum()).ravel(),
            "expected_share": (pairs / pairs.sum()).ravel(),
        }
    )


def _pairs(generator: np.random.Generator, n_prototypes: int, count: int = 30) -> Columns:
    prototype = np.arange(count) % n_prototypes
    return {
        "rank": np.arange(count),
        "prototype": prototype,
        "neighbour": (prototype + 1) % n_prototypes,
        "cosine": np.sort(generator.uniform(0.2, 0.9, count))[::-1],
        "n_tokens": generator.integers(30, 900, count),
    }
