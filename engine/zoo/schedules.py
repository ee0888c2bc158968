"""How long each kind of model is trained, in one place, so that a zoo can be made smaller."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from engine.zoo.manifest import ModelSpec
from engine.zoo.training import Schedule


_LONG = ("root", "heavy_sft", "continued", "distilled")
"""Trainings whose steps depend on size and tokenizer."""


@dataclass(frozen=True, kw_only=True)
class Schedules:
    """Training of every derivation that trains, and the sizes of those that do not."""

    root: Schedule = field(default_factory=lambda: Schedule(steps=500, learning_rate=4e-3))
    """Roots."""
    mild_sft: Schedule = field(default_factory=lambda: Schedule(steps=60, learning_rate=5e-4))
    """Mild and chained fine-tuning."""
    heavy_sft: Schedule = field(default_factory=lambda: Schedule(steps=250, learning_rate=3e-3))
    """Heavy fine-tuning."""
    lora: Schedule = field(default_factory=lambda: Schedule(steps=80, learning_rate=3e-3))
    """Low-rank updates."""
    instruct: Schedule = field(default_factory=lambda: Schedule(steps=80, learning_rate=5e-4))
    """Questions and answers alone."""
    continued: Schedule = field(default_factory=lambda: Schedule(steps=250, learning_rate=2e-3))
    """Continued pretraining."""
    vocabulary: Schedule = field(default_factory=lambda: Schedule(steps=120, learning_rate=1e-3))
    """Training after the vocabulary has grown."""
    healing: Schedule = field(default_factory=lambda: Schedule(steps=80, learning_rate=1e-3))
    """Training after a layer was dropped or drawn anew."""
    distilled: Schedule = field(default_factory=lambda: Schedule(steps=350, learning_rate=4e-3))
    """Students."""
    pace: dict[str, float] = field(
        default_factory=lambda: {
            "XS": 3.0,
            "S": 2.0,
            "M": 1.4,
            "L": 1.2,
            "characters160": 2.0,
            "bytes259": 2.0,
        }
    )
    """Factor on the steps of long trainings by size and by tokenizer: narrow models and models that
    read few characters a token need more steps for the same facts."""
    rank: int = 4
    """Rank of a low-rank update."""
    noise: float = 0.15
    """Noise added, as a share of a matrix's standard deviation."""
    new_tokens: int = 24
    """Tokens a vocabulary grows by, at most."""
    sampled_texts: int = 1_500
    """Texts a teacher says to a student that reads other tokens."""
    sampled_tokens: int = 40
    """Tokens of such a text at most."""

    def of(self, spec: ModelSpec) -> Schedule | None:
        """Training of a model; None where it is made without."""
        name = {"chained_sft": "mild_sft", "layer_dropped": "healing"}.get(
            spec.derivation, spec.derivation
        )
        if spec.derivation == "perturbed":
            name = "healing" if spec.variant == "layer" else ""
        found = getattr(self, name, None)
        if not isinstance(found, Schedule):
            return None
        pace = self.pace.get(spec.size, 1.0) * self.pace.get(spec.tokenizer, 1.0)
        long = spec.derivation in _LONG
        return replace(found, steps=round(found.steps * pace)) if long else found

    def steps(self, spec: ModelSpec) -> int:
        """Training steps of a model."""
        schedule = self.of(spec)
        return schedule.steps if schedule else 0

    def shortened(self, steps: int) -> "Schedules":
        """The same with at most so many steps of each kind, and as few texts."""
        changed: dict[str, Any] = {
            each.name: replace(value, steps=min(value.steps, steps))
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), Schedule)
        }
        texts = min(self.sampled_texts, 8 * steps)
        return replace(self, **changed, pace={}, sampled_texts=texts)
