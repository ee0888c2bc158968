"""Removal: train without the sequences a method ranks first, and look at the queries they are for.

One training takes the sequences of several domains at once: of each domain studied, the k that rank
first (or last) among its own sequences by the summed scores of the domain's held-out queries. So
every removal, the random ones too, takes equally many sequences of each domain, and only which they
are differs.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing
from engine.pipeline.retraining import Study
from engine.pipeline.retraining_fit import sequence_losses
from engine.pipeline.retraining_outcomes import Outcome, Retraining, retrain
from engine.pipeline.retraining_pool import HELD_OUT, PLANTED, StudyData
from engine.pipeline.retraining_scores import ScoreFolder
from engine.pipeline.retraining_settings import RetrainConfig
from engine.provenance import fingerprint_bytes


REFERENCES = ("ekfac", "tfidf", "knn")
"""Methods whose removals are retrained beside the default's."""
TOP, BOTTOM, RANDOM = "top", "bottom", "random"
"""Parts of a ranking, and the control."""
RANDOM_DRAWS = 2
"""Random removals; each is trained with every seed."""
_DOMAIN_DRAW, _RANDOM_DRAW = 15_485_863, 32_452_843

Removed = dict[tuple[str, str, int], Outcome]
"""Outcomes by method, part and seed."""


def studied_domains(data: StudyData, config: RetrainConfig) -> list[str]:
    """Domains whose sequences are removed: so many of those that pool and queries share.

    Args:
        data: Pool and queries.
        config: Number of domains and seed.
    """
    asked = set(data.queries.domain[data.kind == HELD_OUT])
    shared = sorted(asked & set(data.pool.domain) - {PLANTED})
    order = np.random.default_rng((config.seed, _DOMAIN_DRAW)).permutation(len(shared))
    return sorted(shared[i] for i in order[: config.removal_domains])


def removed_per_domain(data: StudyData, config: RetrainConfig) -> int:
    """Sequences a removal takes of each domain: a share of the pool, half a domain at most."""
    own = [(data.pool.domain == name).sum() for name in studied_domains(data, config)]
    return max(1, min(round(config.removed_share * len(data.pool)), min(own) // 2))


def without(
    data: StudyData,
    config: RetrainConfig,
    ranking: Float[np.ndarray, "domains pool"],
) -> Bool[np.ndarray, " pool"]:
    """What is left of the pool without the first k of each domain studied.

    Args:
        data: Pool and queries.
        config: Domains and share.
        ranking: For each domain studied, a value of every sequence; the largest go.
    """
    left = np.ones(len(data.pool), bool)
    k = removed_per_domain(data, config)
    for name, values in zip(studied_domains(data, config), ranking, strict=True):
        own = np.flatnonzero(data.pool.domain == name)
        left[own[np.argsort(-values[own], kind="stable")[:k]]] = False
    return left


def group_scores(
    scores: Float[np.ndarray, "queries pool"], data: StudyData, config: RetrainConfig
) -> Float[np.ndarray, "domains pool"]:
    """Summed scores of the held-out queries of each domain studied."""
    return np.stack([scores[_group(data, name)].sum(0) for name in studied_domains(data, config)])


def _group(data: StudyData, domain: str) -> Int[np.ndarray, " group"]:
    """Held-out queries of a domain."""
    return np.flatnonzero((data.kind == HELD_OUT) & (data.queries.domain == domain))


def planned_removals(study: Study, default: str | None) -> dict[tuple[str, str, int], Retraining]:
    """The trainings of the study of removal, by method, part and seed; seeds side by side.

    Args:
        study: With scores.
        default: The cached variant that was chosen.
    """
    data, config, folder = study.data, study.config, ScoreFolder(study)
    if not config.removal_domains:
        return {}
    names = [name for name in (default, *REFERENCES) if name is not None and folder.has(name)]
    jobs = {}
    for (method, part), members in _removals(data, config, folder, names):
        digits = fingerprint_bytes(np.packbits(members).tobytes())[:8]
        for seed in range(config.seed, config.seed + config.seeds):
            name = f"removal-{method}-{part}-{digits}".replace(" ", "-")
            jobs[method, part, seed] = Retraining(name, members, seed)
    return jobs


def _removals(
    data: StudyData, config: RetrainConfig, folder: ScoreFolder, names: list[str]
) -> Iterator[tuple[tuple[str, str], Bool[np.ndarray, " pool"]]]:
    """Random removals first, then what each method ranks first, then what it ranks last."""
    shape = (len(studied_domains(data, config)), len(data.pool))
    for draw in range(RANDOM_DRAWS):
        generator = np.random.default_rng((config.seed, _RANDOM_DRAW, draw))
        yield (f"random {draw + 1}", RANDOM), without(data, config, generator.random(shape))
    for part, sign in ((TOP, 1), (BOTTOM, -1)):
        for name in names:
            ranking = group_scores(folder.read(name), data, config)
            yield (name, part), without(data, config, sign * ranking)


def retrain_removals(study: Study, default: str | None, progress: Progress = no_progress) -> None:
    """Do the trainings of the study of removal that are not done, the whole pool's among them."""
    jobs = list(planned_removals(study, default).values())
    if jobs:
        jobs += _whole_pool(study)
    retrain(
        jobs,
        study.data,
        study.config,
        study.outcomes,
        separator=study.shards.separator,
        progress=progress,
    )


def _whole_pool(study: Study) -> list[Retraining]:
    """Trainings on the whole pool with the seeds that the study's own model does not have."""
    everything = np.ones(len(study.data.pool), bool)
    config = study.config
    seeds = range(config.seed + 1, config.seed + config.seeds)
    return [Retraining("whole-pool", everything, seed) for seed in seeds]


def whole_pool_loss(study: Study, seed: int) -> Float[np.ndarray, " queries"]:
    """Summed loss of every query after training on the whole pool.

    Raises:
        CacheMissing: The pool has not been trained on with this seed.
    """
    if seed == study.config.seed:
        return sequence_losses(study.open_model(), study.data.queries)
    job = next(job for job in _whole_pool(study) if job.seed == seed)
    if not study.outcomes.has(job):
        raise CacheMissing(
            f"The whole pool has not been trained on with seed {seed}; run "
            "`headwater retrain-check --stage removal`."
        )
    return np.array(study.outcomes.read(job).losses)


def removal_outcomes(study: Study, default: str | None) -> Removed:
    """Outcomes of the removals that every seed has finished; empty while the control is not."""
    jobs = planned_removals(study, default)
    whole = all(study.outcomes.has(job) for job in _whole_pool(study))
    done = {key: job for key, job in jobs.items() if study.outcomes.has(job)}
    seeds = range(study.config.seed, study.config.seed + study.config.seeds)
    complete = {
        (method, part)
        for method, part, _ in done
        if all((method, part, seed) in done for seed in seeds)
    }
    if not whole or not any(part == RANDOM for _, part in complete):
        return {}
    return {
        (method, part, seed): study.outcomes.read(job)
        for (method, part, seed), job in done.items()
        if (method, part) in complete
    }


def removal_table(study: Study, removed: Removed) -> pd.DataFrame:
    """Rows of the `retraining_removal` table."""
    data, config = study.data, study.config
    k = removed_per_domain(data, config)
    whole = {seed: whole_pool_loss(study, seed) for seed in {seed for *_, seed in removed}}
    rows = []
    for domain in studied_domains(data, config):
        group = _group(data, domain)
        for (method, part, seed), outcome in removed.items():
            rows.append(
                {
                    "domain": domain,
                    "method": method,
                    "part": part,
                    "seed": seed,
                    "n_removed": k,
                    "n_queries": len(group),
                    "loss": float(np.array(outcome.losses)[group].mean()),
                    "full_loss": float(whole[seed][group].mean()),
                }
            )
    return pd.DataFrame(rows)
