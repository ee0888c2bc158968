"""Half precision and CUDA: the model computes there, the algebra stays in float32."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from engine.mda.influence import score_samples
from engine.mda.patterns import head_scores
from engine.mda.settings import ProbeConfig
from engine.mda.tracing import directions_of
from engine.mda.units import UNITS, TracedHeads
from tests.engine.tiny_decoders import VOCAB, decoder


WORDS = np.arange(3, VOCAB)
PROBE = ProbeConfig(sequences=11, length=16)


def scores(unit: str, device: str, dtype: torch.dtype) -> np.ndarray:
    """Influence of 41 samples on every head of one decoder: [samples, heads]."""
    torch.manual_seed(0)
    model: Any = decoder("llama", num_key_value_heads=1, initializer_range=0.3)
    model = model.to(device=device, dtype=dtype)
    rows = torch.randint(3, VOCAB, (41, 14), generator=torch.Generator().manual_seed(5))
    traced = TracedHeads(UNITS[unit], WORDS, PROBE)
    spaces, directions = directions_of(model, traced, lambda: rows.split(17))
    assert {direction.dtype for direction in directions} == {torch.float32}
    found = list(score_samples(model, spaces, directions, rows.split(17)))
    assert {batch.scores.dtype for batch in found} == {torch.float32}
    assert all(bool(batch.finite.all()) for batch in found)
    return torch.cat([batch.scores for batch in found]).sum(2).numpy()


@pytest.mark.parametrize("unit", ["induction", "previous_token"])
def test_samples_rank_alike_in_bfloat16(unit: str):
    """Eight bits of mantissa move scores, and hardly their order."""
    half, single = (scores(unit, "cpu", t) for t in (torch.bfloat16, torch.float32))
    ranks = [spearmanr(half[:, i], single[:, i]).statistic for i in range(6)]
    assert min(ranks) > 0.9


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is visible")
def test_samples_rank_alike_on_cuda_in_bfloat16():
    """The uniform numbers behind the labels are drawn on the CPU, the same for both."""
    there = scores("induction", "cuda", torch.bfloat16)
    here = scores("induction", "cpu", torch.float32)
    ranks = [spearmanr(there[:, i], here[:, i]).statistic for i in range(6)]
    assert min(ranks) > 0.9
    torch.manual_seed(0)
    model = decoder("gpt_neox")
    for name, on_cpu in head_scores(model, WORDS, PROBE).items():
        on_cuda = head_scores(model.cuda(), WORDS, PROBE)[name]
        torch.testing.assert_close(on_cuda, on_cpu, rtol=0, atol=1e-5)
        model.cpu()
