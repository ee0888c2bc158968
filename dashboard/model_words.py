"""Attributions of words of two models: what moves the distance between them, and sums; pure.

    u = v / ‖v‖;   ‖u_a − u_b‖² = 2 − 2 cos = Σ over probes of ‖(u_a − u_b) of the probe‖²

so every probe, and every domain, has its own share of the squared difference.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from engine.errors import CacheStale


LEVELS = 127
"""Levels of a stored root to either side of 0."""
UNPROJECTED = ("able", "square_root", "per_probe", "correct_only", "contrast")
"""Ways of embedding whose long vectors follow from the words that are kept."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class ModelWords:
    """What the answers of one model depend on."""

    blocks: Mapping[int, np.ndarray]
    """Attribution in nats [options, words] by probe."""
    slots: Mapping[int, np.ndarray]
    """Attribution of tokens that span no character, in nats [options], by probe."""
    rounding: Mapping[int, float]
    """Most that storing may have moved a word of the probe, in nats."""


def prompt_words(prompt: str) -> tuple[str, ...]:
    """Words of a prompt: runs without spaces."""
    return tuple(_WORD.findall(prompt))


def expand(scale: float, values: np.ndarray) -> np.ndarray:
    """Attributions in nats: sign(v) (v / 127)² scale."""
    roots = np.asarray(values, np.float64) / LEVELS
    return np.sign(roots) * roots * roots * scale


def largest_rounding(scale: float) -> float:
    """Most that a stored word may be off, in nats: half a level of the root, at the largest word.

    A root r is off by at most 1/254, so its square is off by less than 2 r / 254 with r ≤ 1.
    """
    return scale * 2 * (0.5 / LEVELS)


def model_words(rows: pd.DataFrame, probes: pd.DataFrame) -> ModelWords:
    """The words of one model by probe.

    Args:
        rows: Rows of `model_words` of the model.
        probes: probe and options of `model_probes`, and `words`, the words of each prompt.

    Raises:
        CacheStale: A probe has another number of words than its prompt.
    """
    shapes = {
        int(probe): (len(options), len(words))
        for probe, options, words in zip(
            probes["probe"], probes["options"], probes["words"], strict=True
        )
    }
    blocks, slots, rounding = {}, {}, {}
    for row in rows.to_dict("records"):
        probe, scale = int(row["probe"]), float(row["scale"])
        shape = shapes.get(probe, (0, 0))
        values = np.ma.filled(np.ma.asarray(row["values"], dtype=np.float64), 0.0)
        if values.size != shape[0] * shape[1]:
            raise CacheStale(
                f"Probe {probe} of {row['model']} holds {values.size} words of options and its "
                f"prompt {shape[0] * shape[1]}; embed the model again."
            )
        blocks[probe] = expand(scale, values).reshape(shape)
        slots[probe] = np.ma.filled(np.ma.asarray(row["slot"], dtype=np.float64), 0.0)
        rounding[probe] = largest_rounding(scale)
    return ModelWords(blocks, slots, rounding)


def entries(words: ModelWords, probe: int, variant: str, answer: int) -> np.ndarray:
    """Entries of the long vector that belong to a probe, before its length is taken away.

    Args:
        words: Of the model.
        probe: The probe; one it did not read has no entry.
        variant: One of `UNPROJECTED`.
        answer: Right option.
    """
    block = words.blocks.get(probe)
    if block is None:
        return np.zeros(0)
    if variant == "contrast":
        block = block - block.mean(0)
    if variant in ("square_root", "contrast"):
        block = np.sign(block) * np.sqrt(np.abs(block))
    if variant == "correct_only":
        block = block[answer : answer + 1]
    if variant == "per_probe":
        block = block / max(float(np.linalg.norm(block)), 1e-300)
    return block.ravel()


def probe_shares(a: ModelWords, b: ModelWords, probes: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Share of each probe in the squared difference of two models' unit vectors.

    Args:
        a: First model.
        b: Second model.
        probes: probe, source and answer of `model_probes`.
        variant: One of `UNPROJECTED`.

    Returns:
        probe and source; difference, its part of 2 − 2 cos; share, the same as a share of all;
        length_a and length_b, its parts of both squared lengths of 1; product, its part of the
        cosine; cosine within the probe, NaN where a model has nothing there. Probes whose words
        are kept of neither model are left out, as if they had not been asked.
    """
    rows = []
    for probe, source, answer in zip(
        probes["probe"], probes["source"], probes["answer"], strict=True
    ):
        if int(probe) not in a.blocks and int(probe) not in b.blocks:
            continue
        u, v = (entries(words, int(probe), variant, int(answer)) for words in (a, b))
        u, v = _filled(u, v)
        rows.append((int(probe), str(source), float(u @ u), float(v @ v), float(u @ v)))
    columns = ["probe", "source", "length_a", "length_b", "product"]
    found = pd.DataFrame(rows, columns=columns)
    lengths = [max(float(found[name].sum()), 1e-300) for name in ("length_a", "length_b")]
    found["length_a"] /= lengths[0]
    found["length_b"] /= lengths[1]
    found["product"] /= np.sqrt(lengths[0] * lengths[1])
    return _with_shares(found)


def domain_shares(shares: pd.DataFrame) -> pd.DataFrame:
    """The same by domain, with the number of probes `n`; the largest share first.

    Args:
        shares: What `probe_shares` gives.
    """
    groups = shares.groupby("source", sort=False)
    sums = groups[["length_a", "length_b", "product"]].sum()
    found = _with_shares(sums.assign(n=groups.size()).reset_index())
    return found.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def _with_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Difference, share and cosine from lengths and products."""
    found = rows.copy()
    found["difference"] = (rows["length_a"] + rows["length_b"] - 2 * rows["product"]).clip(lower=0)
    found["share"] = found["difference"] / max(float(found["difference"].sum()), 1e-300)
    squares = rows["length_a"] * rows["length_b"]
    found["cosine"] = rows["product"] / np.sqrt(squares.where(squares > 0))
    return found


def _filled(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with the same number of entries: a probe that one did not read is 0 there."""
    if not len(first):
        first = np.zeros_like(second)
    if not len(second):
        second = np.zeros_like(first)
    return first, second


def against_others(values: np.ndarray) -> np.ndarray:
    """Attributions less their mean over the options, the first axis."""
    return values - values.mean(0, keepdims=True) if len(values) else values


def totals(block: np.ndarray, slot: np.ndarray) -> pd.DataFrame:
    """Sums of each option: raises + lowers = words; words + slot = total, all in nats.

    Args:
        block: Attribution of words [options, words].
        slot: That of tokens that span no character [options].
    """
    raises, lowers = np.maximum(block, 0).sum(1), np.minimum(block, 0).sum(1)
    return pd.DataFrame(
        {
            "raises": raises,
            "lowers": lowers,
            "words": raises + lowers,
            "slot": slot,
            "total": block.sum(1) + slot,
        }
    )
