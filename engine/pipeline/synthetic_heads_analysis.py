"""What an analysis would make of a synthetic study: effects, tails, overlaps, tags and motifs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd


Head = tuple[int, int]
_MEASURES = {
    "score": 1.0,
    "final_score": 0.8,
    "same_kind": 0.5,
    "other_kind": 0.06,
    "copy_loss": -3.0,
    "icl": -0.5,
    "loss": 0.002,
    "delay": -60.0,
}
_STRENGTHS = {
    "augment_random": 0.004,
    "augment_top": 0.12,
    "delete_random": -0.003,
    "delete_top": -0.2,
    "replace_random": -0.15,
    "replace_top": -0.03,
    "synthetic": 0.1,
    "synthetic_control": 0.01,
}
_MOTIFS = {
    "key_value": {"delimiter": ": ", "keys": 6, "value_tokens": [1, 4]},
    "nested_tags": {"depth": 3, "names": 8},
    "repeat": {"distance": [8, 24], "segment": [4, 12], "classes": ["word", "digit"]},
}
_MIXTURES = (0.0, 0.05, 0.1, 0.3)


def analysis_tables(
    generator: np.random.Generator,
    influence: pd.DataFrame,
    heads: Sequence[Head],
    chosen: Mapping[str, Head],
    tags: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """The tables that are computed from a study.

    Args:
        generator: Source of every random number.
        influence: Its `head_influence`.
        heads: Every head, in the order of the influence.
        chosen: The head of each kind.
        tags: Structures of texts.
    """
    return {
        "head_effects": pd.DataFrame(list(_effects(generator, sorted(chosen)))),
        "head_tails": pd.DataFrame(list(_tails(influence, heads))),
        "head_overlaps": pd.DataFrame(list(_overlaps(influence, heads))),
        "head_tags": pd.DataFrame(list(_tags(generator, sorted(chosen), tags))),
        "head_motifs": pd.DataFrame(list(_motifs(generator, sorted(chosen)))),
        "head_mixtures": pd.concat(list(_mixtures(generator))),
    }


def _effects(generator: np.random.Generator, units: Sequence[str]) -> Iterator[dict[str, Any]]:
    for arm, strength in _STRENGTHS.items():
        for unit in units:
            for measure in sorted(_MEASURES):
                scale = _MEASURES[measure]
                effect = scale * strength * float(generator.uniform(0.9, 1.1))
                half = abs(scale) * 0.03
                yield {
                    "arm": arm,
                    "unit": unit,
                    "measure": measure,
                    "n_seeds": 2,
                    "effect": effect,
                    "low": effect - half,
                    "high": effect + half,
                }


def _tails(influence: pd.DataFrame, heads: Sequence[Head]) -> Iterator[dict[str, Any]]:
    for (seed, unit), rows in influence.groupby(["seed", "unit"]):
        values = np.stack(rows["influence"].to_list()).astype(float)
        for place, (layer, head) in enumerate(heads):
            for sign, side in (("negative", -values[:, place]), ("positive", values[:, place])):
                found = _tail(np.sort(side[side > 0])[::-1])
                key = {"seed": seed, "unit": unit, "layer": layer, "head": head, "sign": sign}
                yield key | found


def _tail(ordered: np.ndarray) -> dict[str, float]:
    """Share, Gini coefficient and Hill exponent of one side, largest first."""
    n = len(ordered)
    n_tail = max(5, n // 8)
    xmin = float(ordered[n_tail - 1])
    exponent = 1 + n_tail / float(np.log(ordered[:n_tail] / xmin).sum())
    error = 1.96 * (exponent - 1) / np.sqrt(n_tail)
    share = np.arange(n, 0, -1)
    gini = 2 * float((share * ordered).sum()) / (n * float(ordered.sum())) - (n + 1) / n
    return {
        "n": n,
        "top10_share": float(ordered[: max(1, n // 10)].sum() / ordered.sum()),
        "gini": gini,
        "exponent": exponent,
        "low": exponent - error,
        "high": exponent + error,
        "xmin": xmin,
        "n_tail": n_tail,
        "ks": 0.06,
        "lognormal_ratio": -0.4,
        "lognormal_p": 0.5,
    }


def _overlaps(influence: pd.DataFrame, heads: Sequence[Head]) -> Iterator[dict[str, Any]]:
    for (seed, unit), rows in influence.groupby(["seed", "unit"]):
        values = np.stack(rows["influence"].to_list()).astype(float)
        count = len(values) // 10
        tops = [set(np.argsort(-column)[:count]) for column in values.T]
        ranks = np.atleast_2d(np.corrcoef(values.argsort(0).argsort(0).T))
        for a, (layer, head) in enumerate(heads):
            for b, (other_layer, other_head) in enumerate(heads):
                yield {
                    "seed": seed,
                    "unit": unit,
                    "layer": layer,
                    "head": head,
                    "other_layer": other_layer,
                    "other_head": other_head,
                    "overlap": len(tops[a] & tops[b]) / count,
                    "spearman": float(ranks[a, b]),
                }


def _tags(
    generator: np.random.Generator, units: Sequence[str], tags: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for unit in units:
        for tag in sorted([*tags, "domain:code", "domain:planted"]):
            for sign in ("negative", "positive"):
                base = float(generator.uniform(0.05, 0.35))
                high = sign == "positive" and tag in ("repeat", "domain:planted")
                ratio = float(generator.uniform(1.9, 2.6) if high else generator.uniform(0.5, 1.3))
                yield {
                    "unit": unit,
                    "tag": tag,
                    "sign": sign,
                    "n_seeds": 2,
                    "share": base * ratio,
                    "base": base,
                    "enrichment": ratio,
                    "low": ratio - 0.2,
                    "high": ratio + 0.25,
                }


def _motifs(generator: np.random.Generator, units: Sequence[str]) -> Iterator[dict[str, Any]]:
    for unit in units:
        for motif in sorted(_MOTIFS):
            count = int(generator.integers(3, 25))
            parameters = json.dumps(_MOTIFS[motif], sort_keys=True)
            row = {"unit": unit, "motif": motif, "n_samples": count, "share": count / 32}
            yield row | {"parameters": parameters}


def _mixtures(generator: np.random.Generator) -> Iterator[pd.DataFrame]:
    steps = np.arange(20, 401, 20)
    for repeat_share in _MIXTURES:
        for seed in (0, 1):
            rise = 1 / (1 + np.exp(-(steps - 260 + 500 * repeat_share) / 14))
            level = rise * min(1.0, repeat_share / 0.08)
            noise = generator.uniform(0, 0.03, (2, len(steps)))
            yield pd.DataFrame(
                {
                    "mixture": f"source code, {repeat_share:.0%} repeats",
                    "repeat_share": repeat_share,
                    "domains": json.dumps({"code": 1.0}),
                    "seed": seed,
                    "step": steps,
                    "tokens_seen": steps * 4096,
                    "prefix_matching": 0.05 + 0.7 * level + noise[0],
                    "previous_token": 0.1 + 0.5 * rise + noise[1],
                    "copy_loss": 4.6 - 4.2 * level,
                    "loss": 1.6 + 3 * np.exp(-steps / 120),
                }
            )
