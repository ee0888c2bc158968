"""PhyloLM: how alike the texts are that models write behind the same beginnings.

    S(a, b) = Σ_{g,x} P_a(x|g) P_b(x|g) / sqrt(Σ P_a(x|g)² Σ P_b(x|g)²)

Nei's similarity over genes g (beginnings of text) and alleles x (what is written behind them).
Source: Yax, Oudeyer and Palminteri, PhyloLM (arXiv 2404.04671); 128 genes, 32 samples each, an
allele is the first 4 characters of 4 tokens. Beginnings are cut from the probes of the map here.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import csr_array

from engine.able.loading import LoadedModel
from engine.able.probes import Probe
from engine.config import MAX_SEED, require_positive, require_within
from engine.errors import UnsupportedModel


Alleles = list[dict[str, int]]
"""How often each allele was written, by gene."""
Prefix = tuple[int, ...]
_SHORTEST = 3
_BATCH_TOKENS = 8192


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How many texts are drawn, and what of them is compared."""

    n_genes: int = 128
    """Beginnings (paper: G)."""
    n_samples: int = 32
    """Samples of each (paper: N)."""
    n_tokens: int = 4
    """Tokens that are written."""
    n_characters: int = 4
    """Characters of an allele."""
    seed: int = 0
    """Seed of beginnings and samples."""

    def __post_init__(self) -> None:
        require_positive(self, "n_genes", "n_samples", "n_tokens", "n_characters")
        require_within(self, 0, MAX_SEED, "seed")


def genes(probes: Sequence[Probe], settings: SamplingSettings) -> tuple[str, ...]:
    """Beginnings of text: prompts of probes cut behind a random word, all different.

    Fewer than `n_genes` where the probes have no more.
    """
    generator = np.random.default_rng([settings.seed, 7])
    found: dict[str, None] = {}
    for _ in range(4):
        for place in generator.permutation(len(probes)):
            ends = [end for _, end in probes[place].word_spans]
            least = min(_SHORTEST, len(ends))
            end = ends[int(generator.integers(least, len(ends) + 1)) - 1]
            found.setdefault(probes[place].prompt[:end])
            if len(found) == settings.n_genes:
                return tuple(found)
    return tuple(found)


@torch.inference_mode()
def sample_alleles(
    loaded: LoadedModel, beginnings: Sequence[str], settings: SamplingSettings
) -> Alleles:
    """What a model writes behind each beginning, at temperature 1.

    Samples that agree so far are continued together: of a prefix written k times, the next tokens
    are k draws of one multinomial, which is the same as k single draws.

    Raises:
        UnsupportedModel: A beginning has no token, or the model's numbers are not finite.
    """
    generator = np.random.default_rng([settings.seed, 8])
    starts = [tuple(loaded.tokenizer(text)["input_ids"]) for text in beginnings]
    if any(len(start) == 0 for start in starts):
        raise UnsupportedModel(f"The tokenizer of {loaded.name} makes no token of a beginning.")
    counts: Counter[tuple[int, Prefix]] = Counter(
        {(gene, ()): settings.n_samples for gene in range(len(starts))}
    )
    for _ in range(settings.n_tokens):
        written = sorted(counts)
        chances = _next_tokens(loaded, [starts[gene] + tokens for gene, tokens in written])
        following: Counter[tuple[int, Prefix]] = Counter()
        for (gene, tokens), chance in zip(written, chances, strict=True):
            drawn = generator.multinomial(counts[gene, tokens], chance)
            for token in np.flatnonzero(drawn):
                following[gene, (*tokens, int(token))] += int(drawn[token])
        counts = following
    return _alleles(loaded, starts, counts, settings.n_characters)


def _next_tokens(loaded: LoadedModel, rows: list[Prefix]) -> list[Float[np.ndarray, " vocab"]]:
    """Probabilities of the token behind each row; rows of about one length are asked together."""
    found: dict[int, np.ndarray] = {}
    order = sorted(range(len(rows)), key=lambda k: len(rows[k]), reverse=True)
    while order:
        size = max(1, _BATCH_TOKENS // len(rows[order[0]]))
        batch, order = order[:size], order[size:]
        longest = len(rows[batch[0]])
        ids = torch.tensor([[*rows[k], *[0] * (longest - len(rows[k]))] for k in batch])
        logits = loaded.model(input_ids=ids.to(loaded.device), use_cache=False).logits
        ends = torch.tensor([len(rows[k]) - 1 for k in batch], device=logits.device)
        last = logits[torch.arange(len(batch), device=logits.device), ends].double()
        if not bool(torch.isfinite(last).all()):
            raise UnsupportedModel(f"{loaded.name} gives logits that are no finite number.")
        chances = last.softmax(-1).cpu().numpy()
        found |= dict(zip(batch, chances / chances.sum(1, keepdims=True), strict=True))
    return [found[k] for k in range(len(rows))]


def _alleles(
    loaded: LoadedModel,
    starts: list[Prefix],
    counts: Counter[tuple[int, Prefix]],
    n_characters: int,
) -> Alleles:
    """First characters of what was written: the whole decoded, less its decoded beginning."""

    def decoded(tokens: Prefix) -> str:
        return loaded.tokenizer.decode(
            list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    begun = [len(decoded(start)) for start in starts]
    found: Alleles = [{} for _ in starts]
    for (gene, tokens), count in sorted(counts.items()):
        allele = decoded(starts[gene] + tokens)[begun[gene] :][:n_characters]
        found[gene][allele] = found[gene].get(allele, 0) + count
    return found


def nei_similarity(models: Sequence[Alleles]) -> Float[np.ndarray, "models models"]:
    """Nei's similarity of all models, in [0, 1]: the cosine of their counts."""
    columns: dict[tuple[int, str], int] = {}
    rows: list[int] = []
    places: list[int] = []
    values: list[float] = []
    for row, alleles in enumerate(models):
        for gene, counts in enumerate(alleles):
            for allele, count in counts.items():
                rows.append(row)
                places.append(columns.setdefault((gene, allele), len(columns)))
                values.append(float(count))
    shape = (len(models), max(1, len(columns)))
    table = csr_array((values, (rows, places)), shape=shape)
    lengths = np.sqrt(table.multiply(table).sum(1))
    products = (table @ table.T).toarray()
    return np.clip(products / np.maximum(lengths[:, None] * lengths[None], 1e-300), 0, 1)
