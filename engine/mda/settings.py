"""Settings of heads, their probes, their curvature and their training; light to import."""

from dataclasses import dataclass

from engine.config import MAX_SEED, require, require_positive, require_within


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Random sequences that a head is measured on."""

    sequences: int = 32
    """Sequences."""
    length: int = 64
    """Tokens a sequence; of a repeated one half of them are drawn and then repeated."""
    seed: int = 1234
    """Seed of the draw."""

    def __post_init__(self) -> None:
        require(self.sequences >= 1, f"sequences is {self.sequences}; it must be 1 or more.")
        require(self.length >= 4, f"length is {self.length}; it must be 4 or more.")
        require_within(self, 0, MAX_SEED, "seed")


@dataclass(frozen=True, kw_only=True)
class EkfacConfig:
    """Settings of the curvature."""

    damping: float = 0.1
    """Share of a block's mean eigenvalue that is added to each."""
    floor: float = 1e-5
    """Smallest denominator."""
    seed: int = 0
    """Seed of the sampled labels."""

    def __post_init__(self) -> None:
        require(self.damping >= 0, f"damping is {self.damping}; it must be 0 or more.")
        require(self.floor > 0, f"floor is {self.floor}; it must be positive.")
        require_within(self, 0, MAX_SEED, "seed")


@dataclass(frozen=True, kw_only=True)
class MixtureConfig:
    """What the rows are made of."""

    domain_weights: dict[str, float]
    """Share of the natural rows by domain of the corpus; domains that are not named get none."""
    repeat_share: float = 0.3
    """Share of rows in which a random segment of frequent tokens repeats."""
    shortest: int = 8
    """Tokens of the shortest segment."""
    longest: int = 60
    """Tokens of the longest segment."""
    context: int = 128
    """Tokens a row predicts."""
    batch_size: int = 32
    """Rows a step."""
    seed: int = 0
    """Seed of the order of everything."""

    def __post_init__(self) -> None:
        require(
            0 <= self.repeat_share <= 1,
            f"repeat_share is {self.repeat_share}; it must lie between 0 and 1.",
        )
        require_within(self, 0, MAX_SEED, "seed")
        require(
            1 <= self.shortest <= self.longest <= self.context // 2,
            f"Segments of {self.shortest} to {self.longest} tokens cannot repeat in rows of "
            f"{self.context}; choose lengths up to half of a row.",
        )


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """The decoder and its optimiser."""

    n_layers: int = 2
    """Layers."""
    d_model: int = 64
    """Hidden size."""
    n_heads: int = 4
    """Attention heads a layer."""
    initializer_range: float = 0.05
    """Standard deviation of the initial weights."""
    learning_rate: float = 3e-3
    """Constant learning rate of AdamW."""
    beta1: float = 0.9
    """First moment."""
    beta2: float = 0.95
    """Second moment."""
    weight_decay: float = 0.0
    """Decoupled weight decay."""
    clip: float = 1.0
    """Largest gradient norm."""
    seed: int = 0
    """Seed of the initialisation."""

    def __post_init__(self) -> None:
        require_positive(self, "n_layers", "d_model", "n_heads", "learning_rate", "clip")
        require_within(self, 0, MAX_SEED, "seed")
        require(
            self.d_model % self.n_heads == 0,
            f"d_model {self.d_model} is not divisible by {self.n_heads} heads.",
        )
