"""Routers that multiply: EmbedLLM's factorisation, and the same head over frozen embeddings.

    logits(m, q) = W (p_m ∘ (A (q + noise) + a)) + w        (EmbedLLM, arXiv 2410.02223)

p_m is learned for every model (EmbedLLM), or p_m = B e_m + b of a frozen embedding e_m (ABLE, arXiv
2606.07524, which names the baseline and not its own head; so this is our reading of it). Whether
model m answers question q right is told by the logits' softmax.

As published: 232 dimensions, noise 0.05, Adam with weight decay 1e-5, batches of 2,048 pairs, 50
epochs, learning rate 1e-4. That rate is for 3 million pairs; over some hundred thousand it barely
leaves the start, so callers choose it on validation questions, for both routers alike, and the
epoch with the least validation loss is kept. Pairs are shuffled; noise is drawn once a step and
question and not for every pair of it, which saves time.
"""

import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from scipy.special import expit
from torch import Tensor, nn
from torch.nn import functional

from engine.config import require, require_positive, require_within


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """How a head is trained; the published settings, the patience apart."""

    n_dimensions: int = 232
    """Width of the product."""
    noise: float = 0.05
    """Standard deviation of the noise on every entry of a question."""
    learning_rate: float = 1e-4
    """Rate of Adam."""
    weight_decay: float = 1e-5
    """Weight decay of Adam."""
    batch: int = 2048
    """Pairs of a step."""
    epochs: int = 50
    """Epochs at most."""
    patience: int = 5
    """Epochs without a lower validation loss after which training ends."""
    seed: int = 0
    """Seed of weights, order and noise."""

    def __post_init__(self) -> None:
        require_positive(self, "n_dimensions", "learning_rate", "batch", "epochs", "patience")
        require_within(self, 0.0, 100.0, "noise", "weight_decay")


@dataclass(frozen=True)
class Standard:
    """Centre and scale that embeddings are brought to before a head; of the models trained on."""

    centre: Float[np.ndarray, " dimensions"]
    scale: float

    @classmethod
    def of(cls, embeddings: Float[np.ndarray, "models dimensions"]) -> "Standard":
        """Centre of the embeddings, and the root mean square of what is left."""
        centre = embeddings.mean(0, dtype=np.float64)
        scale = float(np.sqrt(np.mean((embeddings - centre) ** 2)))
        return cls(centre, scale if scale > 0 else 1.0)

    def apply(
        self, embeddings: Float[np.ndarray, "models dimensions"]
    ) -> Float32[np.ndarray, "models dimensions"]:
        """Embeddings in that scale."""
        return ((embeddings - self.centre) / self.scale).astype(np.float32)


@dataclass(frozen=True)
class TrainedHead:
    """A trained head as arrays."""

    vectors: Float32[np.ndarray, "models width"]
    """p_m of the models it was trained on."""
    question_map: Float32[np.ndarray, "dimensions width"]
    """A, transposed."""
    question_bias: Float32[np.ndarray, " width"]
    """a."""
    weights: Float32[np.ndarray, " width"]
    """Row of W for right less its row for wrong."""
    bias: float
    """The same of w."""
    standard: Standard | None = None
    """Scale of embeddings; None where vectors were learned."""
    embedding_map: Float32[np.ndarray, "embedded width"] | None = None
    """B, transposed."""
    embedding_bias: Float32[np.ndarray, " width"] | None = None
    """b."""
    epoch: int = 0
    """Epochs behind the weights that were kept."""
    loss: float = field(default=float("nan"))
    """Validation loss there, in nats a pair."""

    def place(
        self, embeddings: Float[np.ndarray, "models embedded"]
    ) -> Float32[np.ndarray, "models width"]:
        """p_m of any models by their embeddings alone; nothing is trained."""
        assert self.standard is not None
        assert self.embedding_map is not None
        return self.standard.apply(embeddings) @ self.embedding_map + self.embedding_bias

    def features(
        self, questions: Float[np.ndarray, "questions dimensions"]
    ) -> Float[np.ndarray, "questions width"]:
        """What a model's vector is multiplied with: logit = features · p_m + bias."""
        return (questions @ self.question_map + self.question_bias) * self.weights

    def predict(
        self,
        questions: Float[np.ndarray, "questions dimensions"],
        vectors: Float[np.ndarray, "models width"] | None = None,
    ) -> Float[np.ndarray, "models questions"]:
        """Probability that each model answers each question right."""
        own = self.vectors if vectors is None else vectors
        return expit(own @ self.features(questions).T + self.bias)

    def bilinear(self) -> Float32[np.ndarray, "questions_and_1 embeddings_and_1"]:
        """The whole head as one matrix C: logit = [q, 1] C [e, 1] of a standardised embedding e."""
        assert self.embedding_map is not None
        assert self.embedding_bias is not None
        left = np.vstack([self.question_map, self.question_bias]) * self.weights
        right = np.vstack([self.embedding_map, self.embedding_bias])
        whole = left @ right.T
        whole[-1, -1] += self.bias
        return whole.astype(np.float32)


class _Head(nn.Module):
    """The head as torch trains it."""

    def __init__(
        self, n_models: int, n_question: int, width: int, embeddings: Tensor | None
    ) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.learned = nn.Embedding(n_models, width) if embeddings is None else None
        self.placed = nn.Linear(embeddings.shape[1], width) if embeddings is not None else None
        self.questions = nn.Linear(n_question, width)
        self.classifier = nn.Linear(width, 2)

    def vectors(self) -> Float[Tensor, "models width"]:
        """p_m of every model."""
        if self.placed is not None:
            return self.placed(self.embeddings)
        assert self.learned is not None
        return self.learned.weight

    def forward(
        self,
        questions: Float[Tensor, "questions dimensions"],
        model: Int[Tensor, " pairs"],
        question: Int[Tensor, " pairs"],
    ) -> Float[Tensor, "pairs 2"]:
        """Logits of wrong and right."""
        own, asked = self.vectors(), self.questions(questions)
        pairs = functional.embedding(model, own) * functional.embedding(question, asked)
        return self.classifier(pairs)


def train_head(
    questions: Float[np.ndarray, "questions dimensions"],
    correct: Bool[np.ndarray, "models questions"],
    settings: HeadSettings,
    *,
    embeddings: Float[np.ndarray, "models embedded"] | None = None,
    validation: Int[np.ndarray, " held_out"] | None = None,
) -> TrainedHead:
    """Train a head on who answers what.

    Args:
        questions: Encoded questions.
        correct: Whether each model answers each question right.
        settings: How it is trained.
        embeddings: Frozen embeddings of the models; learned vectors without them.
        validation: Places of questions that are not trained on and end the training early; without
            them it runs all its epochs.

    Raises:
        ConfigError: No question is left to train on.
    """
    held = np.zeros(len(questions), dtype=bool)
    held[validation if validation is not None else []] = True
    require(not held.all(), "A router cannot be trained on no questions; leave some to it.")
    standard = None if embeddings is None else Standard.of(embeddings)
    scaled = None if standard is None else torch.from_numpy(standard.apply(embeddings))  # pyright: ignore[reportArgumentType]
    width = settings.n_dimensions
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        head = _Head(len(correct), questions.shape[1], width, scaled)
        known, right = torch.from_numpy(questions).float(), torch.from_numpy(correct).long()
        epoch, loss = _train(head, known, right, torch.from_numpy(held), settings)
    return _arrays(head, standard, epoch, loss)


def _train(
    head: _Head,
    questions: Float[Tensor, "questions dimensions"],
    right: Int[Tensor, "models questions"],
    held: Bool[Tensor, " questions"],
    settings: HeadSettings,
) -> tuple[int, float]:
    """Train in place; the weights of the best epoch stay.

    Returns:
        That epoch, counted from 1, and its validation loss.
    """
    optimiser = torch.optim.Adam(
        head.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    places = torch.arange(right.numel()).view_as(right)
    training, checked = places[:, ~held].flatten(), places[:, held].flatten()
    best, kept, at = float("inf"), copy.deepcopy(head.state_dict()), 0
    for epoch in range(1, settings.epochs + 1):
        for pairs in training[torch.randperm(len(training))].split(settings.batch):
            noisy = questions + settings.noise * torch.randn_like(questions)
            optimiser.zero_grad()
            _loss(head, noisy, right, pairs).backward()
            optimiser.step()
        if len(checked) == 0:
            continue
        with torch.no_grad():
            loss = float(_loss(head, questions, right, checked))
        if loss < best:
            best, kept, at = loss, copy.deepcopy(head.state_dict()), epoch
        elif epoch - at >= settings.patience:
            break
    if len(checked) == 0:
        return settings.epochs, float("nan")
    head.load_state_dict(kept)
    return at, best


def _loss(
    head: _Head,
    questions: Float[Tensor, "questions dimensions"],
    right: Int[Tensor, "models questions"],
    pairs: Int[Tensor, " pairs"],
) -> Float[Tensor, ""]:
    model, question = pairs // right.shape[1], pairs % right.shape[1]
    return functional.cross_entropy(head(questions, model, question), right.flatten()[pairs])


def _arrays(head: _Head, standard: Standard | None, epoch: int, loss: float) -> TrainedHead:
    with torch.no_grad():
        weight, bias, placed = head.classifier.weight, head.classifier.bias, head.placed
        return TrainedHead(
            vectors=head.vectors().numpy().copy(),
            question_map=head.questions.weight.T.numpy().copy(),
            question_bias=head.questions.bias.numpy().copy(),
            weights=(weight[1] - weight[0]).numpy().copy(),
            bias=float(bias[1] - bias[0]),
            standard=standard,
            embedding_map=placed.weight.T.numpy().copy() if placed else None,
            embedding_bias=placed.bias.numpy().copy() if placed else None,
            epoch=epoch,
            loss=loss,
        )
