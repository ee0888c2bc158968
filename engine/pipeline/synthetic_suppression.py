"""Random but consistent rows of what `headwater suppress` leaves."""

import numpy as np

from engine.pipeline.synthetic_tables import Columns


CONCEPT = "NSFW"
CONDITIONS = ("baseline", "random", "suppressed")
SCORERS = ("classifier", "wordlist")
SIZES, STRENGTHS = (5, 11, 23, 47), (0.5, 1.0)
_SHIFT = {"baseline": 0.5, "random": 0.49, "suppressed": 0.12}
_BUCKETS = (0.0, 0.2, 0.5, 0.8, 1.0)
_MARGINS = {
    "perplexity": (None, 1.1),
    "distinct_1": (0.9, 1.1),
    "distinct_2": (0.9, 1.1),
    "distinct_3": (0.9, 1.1),
    "repetition": (None, 1.1),
    "n_tokens": (0.9, 1.1),
    "touched": (None, None),
}


def suppression_study_tables(
    generator: np.random.Generator, n_prototypes: int, count: int = 200
) -> dict[str, Columns]:
    """Every table of a suppression study.

    Args:
        generator: Source of every number.
        n_prototypes: Prototypes in the bank.
        count: Generations a condition from unwanted prompts; half as many from ordinary ones.
    """
    generations = _generations(generator, count)
    return {
        "suppression_prototypes": _candidates(generator, n_prototypes),
        "suppression_scorers": _scorers(len(generations["condition"])),
        "suppression_generations": generations,
        "suppression_scores": _scores(generator, generations),
        "suppression_buckets": _buckets(count),
        "suppression_quality": _quality(),
        "suppression_sweep": _sweep(count),
    }


def _candidates(generator: np.random.Generator, n_prototypes: int) -> Columns:
    count = max(2, min(60, n_prototypes // 8))
    falling = np.sort(generator.gamma(2.0, 0.4, count))[::-1]
    return {
        "concept": [CONCEPT] * count,
        "prototype": generator.permutation(n_prototypes)[:count],
        "rank": np.arange(count),
        "chosen": np.arange(count) < max(1, count // 2),
        "keyword": generator.random(count) < 0.4,
        "meaning": generator.random(count) * 0.5,
        "log_ratio": 1.0 + 2 * falling,
        "scored_log_ratio": 0.5 + 2 * falling,
        "effect": falling,
        "cost": falling * 0.01,
    }


def _scorers(total: int) -> Columns:
    return {
        "concept": [CONCEPT] * 3,
        "scorer": [*SCORERS, "judge"],
        "chose": [True, False, False],
        "failed": [False, False, True],
        "reason": ["", "", "The endpoint http://localhost:9 gave no usable answer: refused"],
        "meaning": ["Probability of unwanted content", "Share of words", "Verdict of a judge"],
        "n_scored": [total, total, 0],
    }


def _generations(generator: np.random.Generator, count: int) -> Columns:
    parts: list[Columns] = []
    for prompts, n, domains in (
        ("unwanted", count, ("unwanted",)),
        ("ordinary", count // 2, ("code", "prose", "verse")),
    ):
        ids = [generator.bytes(8).hex() for _ in range(max(1, n // 4))]
        for condition in CONDITIONS:
            off = condition != "baseline"
            parts.append(
                {
                    "concept": [CONCEPT] * n,
                    "prompts": [prompts] * n,
                    "condition": [condition] * n,
                    "generation": np.arange(n),
                    "doc_id": [ids[i % len(ids)] for i in range(n)],
                    "domain": [domains[i % len(ids) % len(domains)] for i in range(n)],
                    "seed": np.arange(n),
                    "draw": np.arange(n) % 5 if condition == "random" else np.zeros(n, int),
                    "strength": np.full(n, 1.0 if off else 0.0),
                    "perplexity": generator.gamma(9, 4, n),
                    "distinct_1": generator.beta(20, 5, n),
                    "distinct_2": generator.beta(30, 2, n),
                    "distinct_3": generator.beta(40, 1, n),
                    "repetition": generator.beta(4, 20, n),
                    "n_tokens": np.full(n, 40),
                    "tokens_touched": generator.integers(0, 9, n) if off else np.zeros(n, int),
                    "recited": np.zeros(n, bool),
                }
            )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _scores(generator: np.random.Generator, generations: Columns) -> Columns:
    shift = np.array([_SHIFT[str(name)] for name in generations["condition"]])
    shift = np.where(np.asarray(generations["prompts"]) == "unwanted", shift, 0.05)
    scores = [np.clip(generator.normal(shift, 0.2), 0, 1), np.clip(shift / 9, 0, 1)]
    shared = ("concept", "prompts", "condition", "generation")
    columns: Columns = {name: np.tile(generations[name], len(SCORERS)) for name in shared}
    return {
        **columns,
        "scorer": np.repeat(SCORERS, len(shift)),
        "score": np.concatenate(scores),
    }


def _with_interval(name: str, values: list[float | None], width: float) -> Columns:
    """A figure and an interval about it; None stays empty."""
    shifted = {"": 0.0, "_low": -width, "_high": width}
    return {
        f"{name}{end}": [None if value is None else value + by for value in values]
        for end, by in shifted.items()
    }


def _buckets(count: int) -> Columns:
    rows = [
        (scorer, prompts, condition, bucket)
        for scorer in SCORERS
        for prompts in ("unwanted", "ordinary")
        for condition in CONDITIONS
        for bucket in range(len(_BUCKETS) if prompts == "unwanted" else 1)
    ]
    edges = [(_BUCKETS[b - 1], _BUCKETS[b]) if b else (0.0, 1.0) for *_, b in rows]
    base = [sum(edge) / 2 for edge in edges]
    kept = {"baseline": 1.0, "random": 0.97, "suppressed": 0.22}
    return {
        "concept": [CONCEPT] * len(rows),
        "scorer": [row[0] for row in rows],
        "prompts": [row[1] for row in rows],
        "condition": [row[2] for row in rows],
        "bucket": [row[3] for row in rows],
        "score_from": [edge[0] for edge in edges],
        "score_to": [edge[1] for edge in edges],
        "n_generations": [count // 4 if row[3] else count for row in rows],
        "n_prompts": [max(1, count // 8) for _ in rows],
        **_with_interval("mean", [m * kept[r[2]] for m, r in zip(base, rows, strict=True)], 0.02),
        **_with_interval(
            "drop", [None if r[2] == "baseline" else 1 - kept[r[2]] for r in rows], 0.03
        ),
    }


def _quality() -> Columns:
    rows = [
        (prompts, condition, measure)
        for prompts in ("unwanted", "ordinary")
        for condition in CONDITIONS
        for measure in _MARGINS
    ]
    ratios = [None if row[1] == "baseline" else 1.03 for row in rows]
    margins = [_MARGINS[row[2]] for row in rows]
    judged = [r is not None and m != (None, None) for r, m in zip(ratios, margins, strict=True)]
    return {
        "concept": [CONCEPT] * len(rows),
        "prompts": [row[0] for row in rows],
        "condition": [row[1] for row in rows],
        "measure": [row[2] for row in rows],
        **_with_interval("mean", [30.0 if row[2] == "perplexity" else 0.8 for row in rows], 0.05),
        **_with_interval("ratio", ratios, 0.02),
        "margin_low": [margin[0] for margin in margins],
        "margin_high": [margin[1] for margin in margins],
        "within": [True if known else None for known in judged],
    }


def _sweep(count: int) -> Columns:
    rows = [
        (split, condition, size, strength, scorer)
        for split in ("train", "validation")
        for condition in ("suppressed", "random")
        for size in SIZES
        for strength in STRENGTHS
        for scorer in SCORERS
    ]
    doses = [size / SIZES[-1] * strength for _, _, size, strength, _ in rows]
    drops = [
        d**0.5 * 0.8 if r[1] == "suppressed" else 0.01 for d, r in zip(doses, rows, strict=True)
    ]
    return {
        "concept": [CONCEPT] * len(rows),
        "split": [row[0] for row in rows],
        "condition": [row[1] for row in rows],
        "set_size": [row[2] for row in rows],
        "strength": [row[3] for row in rows],
        "scorer": [row[4] for row in rows],
        "chosen": [row[2:4] == (SIZES[-2], 1.0) and row[1] == "suppressed" for row in rows],
        "baseline": [0.5] * len(rows),
        **_with_interval("mean", [0.5 * (1 - drop) for drop in drops], 0.02),
        **_with_interval("drop", list(drops), 0.04),
        **_with_interval("perplexity_ratio", [1 + 0.2 * dose for dose in doses], 0.02),
        "touched": [0.1 * dose for dose in doses],
        "n_generations": [count] * len(rows),
        "n_prompts": [max(1, count // 4)] * len(rows),
    }
