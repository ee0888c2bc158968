"""A sparse autoencoder of last states: trained with SAELens, read without it.

    h_t = k largest of ReLU(E z_t + b),    z_t ~ D' h_t + b_D

E and D are the encoder and decoder, a row a feature; a decoder row has length 1 in the space of
training, so an activation carries the size.
"""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor
from torch.nn import functional

from engine.control.features import Dictionary
from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheStale, ConfigError, PackageMissing
from engine.prism.activation import reconstruct
from engine.store.files import atomic_file


INSTALL = 'pip install -c constraints.txt -e ".[sae]"'
"""Command that installs the trainer."""
_HELD_OUT_SHARE = 20
"""One state in so many is held out of training, to measure the autoencoder on."""
_DEAD_STEPS = 100
"""Steps without an activation after which a feature counts as dead in training."""
_ROWS = 4096


@dataclass(frozen=True)
class SparseAutoencoder:
    """Weights of a trained autoencoder in the units of the states themselves."""

    encoder: Float[Tensor, "features d_model"]
    encoder_bias: Float[Tensor, " features"]
    decoder: Float[Tensor, "features d_model"]
    decoder_bias: Float[Tensor, " d_model"]
    n_active: int
    """Most features active in one state."""

    def encode(
        self, states: Float[Tensor, "tokens d_model"]
    ) -> tuple[Float[Tensor, "tokens k"], Int[Tensor, "tokens k"]]:
        """Activations h of the active features of each state, falling, and which they are."""
        found = functional.linear(states, self.encoder, self.encoder_bias)
        largest = found.topk(self.n_active, dim=-1)
        return largest.values.relu(), largest.indices

    def reconstruct(
        self, states: Float[Tensor, "tokens d_model"]
    ) -> Float[Tensor, "tokens d_model"]:
        """States as the active features and the decoder's bias give them."""
        return reconstruct(*self.encode(states), self.decoder) + self.decoder_bias

    def dictionary(self) -> Dictionary:
        """The features as a controller reads them."""
        return Dictionary(self.encode, self.decoder)

    def save(self, path: Path) -> None:
        """Write the weights."""
        tensors = {
            field.name: getattr(self, field.name).cpu().contiguous()
            for field in fields(self)
            if field.name != "n_active"
        }
        with atomic_file(path) as file:
            file.write(save({**tensors, "n_active": torch.tensor(self.n_active)}))

    @classmethod
    def load(cls, path: Path, device: torch.device | str = "cpu") -> "SparseAutoencoder":
        """Read weights that `save` wrote.

        Raises:
            CacheStale: The file is damaged.
        """
        try:
            tensors = load_file(path, device=str(device))
            return cls(**{**tensors, "n_active": int(tensors["n_active"])})
        except (SafetensorError, KeyError, TypeError) as error:
            raise CacheStale(
                f"{path} holds no autoencoder that can be read ({error}); delete it and run "
                "`headwater control` again."
            ) from error


@dataclass(frozen=True, kw_only=True)
class SaeSettings:
    """How an autoencoder is trained."""

    width: int
    """Features; the bank's K."""
    n_active: int
    """Active features a state; the bank's k."""
    samples: int
    """States shown in all, repetitions counted."""
    batch: int = 1024
    """States a step."""
    learning_rate: float = 1e-3
    """Peak of Adam's learning rate, which falls to a tenth over the last third."""
    seed: int = 0
    """Seed of weights and order."""


@dataclass(frozen=True, kw_only=True)
class SaeReport:
    """An autoencoder on states it was not trained on."""

    residual_share: float
    """Mean squared residual over mean squared state; 0 is perfect. The bank's measure."""
    variance_explained: float
    """1 - squared residual over squared distance from the mean state; 1 is perfect."""
    dead_share: float
    """Share of features that no held-out state activates."""
    held_out_states: int
    training_states: int
    samples: int
    """States shown, repetitions counted."""

    def as_dict(self) -> dict[str, float | int]:
        """Figures by name."""
        return asdict(self)


def train_autoencoder(
    states: Float[Tensor, "states d_model"],
    settings: SaeSettings,
    device: torch.device | str = "cpu",
    progress: Progress = no_progress,
) -> tuple[SparseAutoencoder, SaeReport]:
    """Train a TopK autoencoder with SAELens and measure it on states held out.

    States are centred and scaled to a mean squared length of d_model for the training, since a
    dictionary that must first learn a large mean leaves most features dead; both are folded into
    the weights.

    Raises:
        PackageMissing: SAELens is not installed.
        ConfigError: There are too few states.
    """
    held_out = states[::_HELD_OUT_SHARE]
    kept = torch.ones(len(states), dtype=torch.bool)
    kept[::_HELD_OUT_SHARE] = False
    training = states[kept]
    if len(training) < settings.batch:
        raise ConfigError(
            f"{len(states)} states are too few for steps of {settings.batch}; read more tokens."
        )
    mean = training.mean(0)
    scale = (states.shape[1] / (training - mean).square().sum(1).mean()).sqrt().item()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        trainer = _trainer(states.shape[1], settings, torch.device(device))
        steps = range(trainer.cfg.total_training_steps)
        batches = _batches(training, settings)
        for _ in progress(steps, label="Training autoencoder", total=len(steps)):
            trainer.step((next(batches) - mean) * scale)
            trainer.n_training_steps += 1
    found = _folded(trainer.sae, mean.to(device), scale, settings.n_active)
    return found, measure(found, held_out.to(device), len(training), trainer.n_training_samples)


def _trainer(width: int, settings: SaeSettings, device: torch.device) -> Any:
    """SAELens' trainer of a TopK autoencoder; it is stepped here, so it is given no data."""
    try:
        library = import_module("sae_lens")
        training = import_module("sae_lens.training.sae_trainer")
    except ImportError as error:
        raise PackageMissing(
            f"Training an autoencoder needs SAELens, which is not installed ({error}); run "
            f"`{INSTALL}`, or leave it out with --features prototypes."
        ) from error
    model = library.TopKTrainingSAE(
        library.TopKTrainingSAEConfig(
            d_in=width,
            d_sae=settings.width,
            k=settings.n_active,
            device=str(device),
        )
    )
    steps = settings.samples // settings.batch
    config = training.SAETrainerConfig(
        total_training_samples=steps * settings.batch,
        train_batch_size_samples=settings.batch,
        lr=settings.learning_rate,
        lr_end=settings.learning_rate / 10,
        lr_decay_steps=steps // 3,
        device=str(device),
        dead_feature_window=_DEAD_STEPS,
    )
    return training.SAETrainer(config, model, iter(()))


def _batches(states: Float[Tensor, "states d_model"], settings: SaeSettings) -> Iterator[Tensor]:
    """Batches without end; every epoch in an order of its own."""
    for epoch in itertools.count():
        generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + epoch)
        order = torch.randperm(len(states), generator=generator)
        for start in range(0, len(states) - settings.batch + 1, settings.batch):
            yield states[order[start : start + settings.batch]]


@torch.no_grad()
def _folded(
    trained: Any, mean: Float[Tensor, " d_model"], scale: float, n_active: int
) -> SparseAutoencoder:
    """Weights of SAELens' autoencoder with decoder rows of length 1, mean and scale taken in."""
    norm = trained.W_dec.norm(dim=-1)
    encoder = (trained.W_enc * norm).T
    bias = trained.b_enc * norm - encoder @ (trained.b_dec + scale * mean)
    return SparseAutoencoder(
        encoder=(encoder * scale).contiguous(),
        encoder_bias=bias,
        decoder=trained.W_dec / norm[:, None] / scale,
        decoder_bias=trained.b_dec / scale + mean,
        n_active=n_active,
    )


@torch.inference_mode()
def measure(
    found: SparseAutoencoder, states: Float[Tensor, "states d_model"], n_training: int, samples: int
) -> SaeReport:
    """Figures of an autoencoder on states it has not seen."""
    mean = states.mean(0)
    residual = square = distance = 0.0
    alive = torch.zeros(len(found.decoder), dtype=torch.bool, device=states.device)
    for rows in states.split(_ROWS):
        activations, indices = found.encode(rows)
        alive[indices[activations > 0]] = True
        rebuilt = reconstruct(activations, indices, found.decoder) + found.decoder_bias
        residual += float((rows - rebuilt).square().sum())
        square += float(rows.square().sum())
        distance += float((rows - mean).square().sum())
    return SaeReport(
        residual_share=residual / square,
        variance_explained=1 - residual / distance,
        dead_share=1 - float(alive.float().mean()),
        held_out_states=len(states),
        training_states=n_training,
        samples=samples,
    )
