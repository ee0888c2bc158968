"""Kronfluence and Bergson against gradients by hand; and what is said where they are missing."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from engine.errors import PackageMissing
from engine.influence.decoder import block_linears
from engine.influence.ekfac import Ekfac, EkfacSettings, score_ekfac
from engine.influence.frame import Sequences
from engine.influence.projected import ProjectedIndex, score_projected
from engine.prism.model import PrismForCausalLM
from tests.engine.influence.test_references import row_loss


peers = pytest.mark.skipif(
    not (find_spec("kronfluence") and find_spec("bergson")), reason="needs `make bench-peers`"
)


@pytest.fixture(scope="module")
def products(small_model, pool, queries) -> np.ndarray:
    """Inner products of the gradients of the block linears, by backward()."""
    names = {f"{name}.weight" for name in block_linears(small_model.backbone)}

    def gradient(sequences: Sequences, row: int) -> np.ndarray:
        small_model.zero_grad()
        row_loss(small_model, sequences, row).backward()
        named = small_model.backbone.named_parameters()
        return np.concatenate([p.grad.flatten().numpy() for name, p in named if name in names])

    sides = [np.stack([gradient(s, i) for i in range(len(s))]) for s in (queries, pool)]
    return sides[0] @ sides[1].T


@pytest.mark.parametrize(
    ("package", "score"), [("kronfluence", score_ekfac), ("bergson", score_projected)]
)
def test_a_missing_package_is_said(small_model, pool, queries, monkeypatch, package, score):
    """One sentence with the command that installs it, whether or not it is here."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PackageMissing, match=f"{package}.*make bench-peers"):
        score(small_model, pool, queries)


@peers
@pytest.mark.slow
def test_ekfac_under_heavy_damping_is_the_gradient_product(
    small_model, pool, queries, products, tmp_path
):
    """(H + c)^-1 is 1/c where c is large: masks, padding and sign are those of the frame."""
    settings = EkfacSettings(damping=1e9, batch_size=5, query_batch=3)
    found = score_ekfac(small_model, pool, queries, settings=settings, folder=tmp_path)
    np.testing.assert_allclose(found * 1e9, products, rtol=1e-2, atol=1e-3 * np.abs(products).max())


@peers
@pytest.mark.slow
def test_ekfac_goes_on_from_what_is_there(small_model, pool, queries, tmp_path, monkeypatch):
    """Killed after two steps, the third is fitted and the scores are those of an unbroken run."""
    settings = EkfacSettings(batch_size=5)
    whole = score_ekfac(small_model, pool, queries, settings=settings, folder=tmp_path / "whole")
    broken = Ekfac(small_model, pool, settings, tmp_path / "broken")
    steps: list[str] = []

    def fit(self: Ekfac, step: str, original=Ekfac._fit_step) -> None:
        steps.append(step)
        if steps.count("lambda") == 1 and step == "lambda":
            raise KeyboardInterrupt
        original(self, step)

    monkeypatch.setattr(Ekfac, "_fit_step", fit)
    with pytest.raises(KeyboardInterrupt):
        broken.fit()
    again = score_ekfac(small_model, pool, queries, settings=settings, folder=tmp_path / "broken")
    assert steps == ["covariance", "eigendecomposition", "lambda", "lambda"]
    np.testing.assert_array_equal(again, whole)
    seeded = EkfacSettings(batch_size=5, label_seed=1)
    other = score_ekfac(small_model, pool, queries, settings=seeded, folder=tmp_path / "whole")
    assert not np.allclose(other, whole)


@peers
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Bergson's imports warn
def test_an_index_without_projection_holds_the_gradients(
    small_model, pool, queries, products, tmp_path
):
    """With dimensions 0 nothing is projected, so the products are exact; built once."""
    found = score_projected(
        small_model, pool, queries, dimensions=0, unit=False, folder=tmp_path / "whole"
    )
    np.testing.assert_allclose(found, products, rtol=1e-3, atol=1e-4 * np.abs(products).max())
    index = ProjectedIndex(small_model, pool, dimensions=8, folder=tmp_path / "small")
    index.build()
    assert index.bytes_a_sequence == 4 * index.numbers_a_sequence == 4 * 14 * 8 * 8
    cosine = index.open().search(index.query_gradients(queries))
    assert np.abs(cosine).max() <= 1 + 1e-5


def test_the_model_is_left_as_it_was(small_model: PrismForCausalLM):
    """The adapters wrap and freeze copies."""
    assert all(p.requires_grad for p in small_model.parameters())
    assert all(type(m) is not torch.nn.Module for m in small_model.modules())
    assert not any("original_module" in name for name, _ in small_model.named_modules())
