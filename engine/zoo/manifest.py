"""The plan of a zoo: which models there are, and what each is made of. Nothing is built here."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from engine.errors import ConfigError


ROOT, DISTILLED = "root", "distilled"
DERIVATIONS: dict[str, tuple[int, str]] = {
    "mild_sft": (36, "Trained for a little on one more domain"),
    "heavy_sft": (20, "Trained for half a root's steps on one small domain, at a high rate"),
    "chained_sft": (14, "Trained mildly on a second further domain"),
    "lora": (20, "Low-rank update trained on one domain and merged into the weights"),
    "instruct": (16, "Trained on questions with their answers alone"),
    "continued": (16, "Trained on, for half a root's steps, on another data mix"),
    "vocabulary": (6, "Given further tokens, then trained"),
    "pruned": (12, "Smallest weights of every matrix set to zero"),
    "layer_dropped": (6, "A layer taken out, then healed"),
    "quantised": (18, "Weights rounded to the nearest of 256 or 16 levels"),
    "merged": (12, "Mean, or spherical mean, of two siblings"),
    "task_merged": (4, "Differences of a child and a grandchild to their root, added (TIES, DARE)"),
    "rewritten": (3, "Other weights that compute the same function"),
    DISTILLED: (12, "Trained from random weights on what a teacher says"),
    "perturbed": (8, "Noise added, or the last layer drawn anew and healed"),
}
"""Count and meaning of every derivation of the full plan; with 36 roots 239 models."""
MILD, HEAVY = "mild_sft", "heavy_sft"


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One model of the plan."""

    id: str
    """Name, also that of its folder."""
    derivation: str
    """`root` or a key of `DERIVATIONS`."""
    parents: tuple[str, ...] = ()
    """Models it is made of, at most two; the teacher of a distilled one."""
    roots: tuple[str, ...]
    """Roots whose weights it carries; itself for roots and distilled models."""
    architecture: str
    """Model type."""
    tokenizer: str
    """Kind of tokenizer."""
    mix: str
    """Letter of the data mix of its root, or of the teacher's root."""
    size: str
    """Name of its size."""
    seed: int
    """Seed of its random weights and of what is drawn when it is derived."""
    order_seed: int
    """Seed of the order of its training rows."""
    family: str
    """Label by which its makers would publish it; not lineage."""
    variant: str = ""
    """Which of several ways: bits, share, kind of merge."""
    target: str = ""
    """Domain or mix that it is trained on; empty where it is not, or on its root's mix."""
    groups: tuple[str, ...] = ()
    """Groups of hard negatives it belongs to, `kind:members`."""

    @property
    def is_root(self) -> bool:
        """Whether it is trained from random weights without a teacher."""
        return self.derivation == ROOT

    @property
    def copies_weights(self) -> bool:
        """Whether its edges to its parents are lineage of weights."""
        return self.derivation not in (ROOT, DISTILLED)


@dataclass(frozen=True)
class Plan:
    """Models in an order in which parents stand before their children."""

    models: tuple[ModelSpec, ...]
    """The models."""
    name: str = "full"
    """full, slice, or what a test calls its own."""

    def __post_init__(self) -> None:
        known: set[str] = set()
        for spec in self.models:
            missing = [parent for parent in spec.parents if parent not in known]
            if missing or spec.id in known:
                why = f"stands before its parent {missing[0]}" if missing else "is there twice"
                raise ConfigError(f"The plan of the zoo is not in order: {spec.id} {why}.")
            known.add(spec.id)

    @cached_property
    def by_id(self) -> dict[str, ModelSpec]:
        """Models by name."""
        return {spec.id: spec for spec in self.models}

    @property
    def roots(self) -> tuple[ModelSpec, ...]:
        """The roots."""
        return tuple(spec for spec in self.models if spec.is_root)

    def of(self, derivation: str) -> tuple[ModelSpec, ...]:
        """Models of one derivation."""
        return tuple(spec for spec in self.models if spec.derivation == derivation)

    def closed(self, names: Iterable[str]) -> set[str]:
        """The named models with all that they are made of."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self.by_id[name].parents + self.by_id[name].roots
        return found

    def part(self, names: Iterable[str], name: str) -> "Plan":
        """A plan of the named models and all that they are made of."""
        kept = self.closed(names)
        return Plan(tuple(spec for spec in self.models if spec.id in kept), name)
