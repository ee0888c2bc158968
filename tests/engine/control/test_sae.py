"""The autoencoder: folding against the trainer's own formula, files, measures, and a training."""

import types

import pytest
import torch

from engine.control import sae
from engine.control.sae import SaeSettings, SparseAutoencoder, measure, train_autoencoder
from engine.errors import CacheStale, ConfigError, PackageMissing


WIDTH, FEATURES, ACTIVE = 11, 29, 3


def _weights() -> types.SimpleNamespace:
    """Parameters as the trainer names them."""
    return types.SimpleNamespace(
        W_enc=torch.randn(WIDTH, FEATURES),
        b_enc=torch.randn(FEATURES),
        W_dec=torch.randn(FEATURES, WIDTH),
        b_dec=torch.randn(WIDTH),
    )


def _reference(w, states, mean, scale):
    """SAELens' forward pass, written plainly, on standardised states; then back again."""
    norm = w.W_dec.norm(dim=1)
    hidden = (((states - mean) * scale - w.b_dec) @ w.W_enc + w.b_enc) * norm
    top = hidden.topk(ACTIVE, dim=1)
    dense = torch.zeros_like(hidden).scatter(1, top.indices, top.values.relu())
    return dense, (dense / norm @ w.W_dec + w.b_dec) / scale + mean


def test_folded_weights_encode_and_reconstruct_as_the_trainer_does():
    """Mean, scale, decoder norms and biases are taken into the weights without a trace."""
    weights, states, mean = _weights(), torch.randn(17, WIDTH) * 3, torch.randn(WIDTH)
    found = sae._folded(weights, mean, 0.37, ACTIVE)
    dense, rebuilt = _reference(weights, states, mean, 0.37)
    activations, indices = found.encode(states)
    ours = torch.zeros(17, FEATURES).scatter(1, indices, activations)
    torch.testing.assert_close(ours, dense, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.reconstruct(states), rebuilt, atol=1e-4, rtol=1e-4)


def test_weights_come_back_from_their_file_and_a_damaged_file_is_refused(tmp_path):
    """The file is the cache of ten minutes' work."""
    found = sae._folded(_weights(), torch.zeros(WIDTH), 1.0, ACTIVE)
    path = tmp_path / "sae.safetensors"
    found.save(path)
    again = SparseAutoencoder.load(path)
    assert again.n_active == ACTIVE
    torch.testing.assert_close(again.decoder, found.decoder)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CacheStale, match="delete it"):
        SparseAutoencoder.load(path)


def test_a_dictionary_of_the_axes_explains_states_on_them():
    """Figures of a case whose answer is known."""
    axes = torch.eye(5)
    found = SparseAutoencoder(axes, torch.zeros(5), axes, torch.zeros(5), 1)
    states = torch.tensor([[2.0, 0, 0, 0, 0], [0, 3.0, 0, 0, 0], [0, 0, 1.0, 0, 0]])
    report = measure(found, states, 7, 13)
    assert report.residual_share == pytest.approx(0.0)
    assert report.variance_explained == pytest.approx(1.0)
    assert report.dead_share == pytest.approx(0.4)
    assert (report.held_out_states, report.training_states, report.samples) == (3, 7, 13)


def test_without_the_trainer_the_command_that_installs_it_is_named(monkeypatch):
    """It is an extra; prototypes need none of it."""

    def absent(_name):
        raise ImportError("No module named 'sae_lens'")

    monkeypatch.setattr(sae, "import_module", absent)
    settings = SaeSettings(width=FEATURES, n_active=ACTIVE, samples=64, batch=16)
    with pytest.raises(PackageMissing, match=r"-e \"\.\[sae\]\""):
        train_autoencoder(torch.randn(101, WIDTH), settings)


def test_too_few_states_are_refused():
    """A step needs a batch."""
    settings = SaeSettings(width=FEATURES, n_active=ACTIVE, samples=64, batch=16)
    with pytest.raises(ConfigError, match="13 states are too few"):
        train_autoencoder(torch.randn(13, WIDTH), settings)


@pytest.mark.slow
def test_a_trained_autoencoder_finds_sparse_structure_and_is_the_same_twice():
    """SAELens itself, on states that are sparse sums of directions."""
    pytest.importorskip("sae_lens")
    directions = torch.nn.functional.normalize(torch.randn(FEATURES, WIDTH), dim=1)
    chosen = torch.rand(3_001, FEATURES).topk(2, dim=1).indices
    states = (directions[chosen] * (1 + torch.rand(3_001, 2, 1))).sum(1) + 5
    settings = SaeSettings(
        width=FEATURES, n_active=ACTIVE, samples=256 * 400, batch=256, learning_rate=3e-3
    )
    found, report = train_autoencoder(states, settings)
    again, _ = train_autoencoder(states, settings)
    assert report.variance_explained > 0.7
    torch.testing.assert_close(found.encoder, again.encoder, rtol=0, atol=0)
