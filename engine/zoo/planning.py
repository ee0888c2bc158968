"""The derivatives of a zoo: which root gets which, so that every kind meets every difficulty."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from engine.zoo.architectures import SIZES
from engine.zoo.facts import DOMAINS
from engine.zoo.manifest import DERIVATIONS, DISTILLED, HEAVY, MILD, ROOT, ModelSpec, Plan
from engine.zoo.roots import make_roots, twin_groups
from engine.zoo.worlds import MIXES


SLICE_ROOTS, SLICE_SIZE = 4, 24
"""Roots and models of the slice that slow tests build."""
_SLOW = ("mamba",)
"""Architectures whose steps take ten times as long: these get cheap derivatives only."""
_REWRITABLE = ("llama", "mistral")
_CONVERGENCE = ("geography", "animals", "objects", "kinship", "calendar")
"""Domains on which roots of different origin are trained heavily, so that they become alike."""
_SIBLINGS = ("lora", "instruct", "continued", HEAVY)
_OTHERS = {
    "gpt2": "gpt_neo", "llama": "gpt_neox", "gpt_neox": "llama", "olmo2": "mistral",
    "opt": "gpt2", "mistral": "phi", "qwen3": "stablelm", "gemma3_text": "llama",
}  # fmt: skip
"""Architecture of a student that differs from its teacher's."""
_OTHER_TOKENIZER = {"bpe2048": "wordpiece1024", "bpe512": "fallback1024"}
Choice = Callable[[ModelSpec], bool]


def make_plan(seed: int = 0) -> Plan:
    """The 239 models."""
    plan = _Planner(seed)
    for derivation in DERIVATIONS:
        getattr(plan, f"plan_{derivation}")(DERIVATIONS[derivation][0])
    return Plan(tuple(plan.models))


def make_slice(plan: Plan) -> Plan:
    """Four roots, two of them twins, with five derivatives each: as many kinds as they have."""
    each = SLICE_SIZE // SLICE_ROOTS
    roots = _slice_roots(plan)
    chosen: set[str] = {root.id for root in roots}
    kinds: Counter[str] = Counter()
    for root in roots:
        own = [spec for spec in plan.models if origin(plan, spec) == root.id and not spec.is_root]
        room = each - 1
        while room > 0:
            new = {s.id: plan.closed([s.id]) - chosen for s in own if s.id not in chosen}
            fitting = [s for s in own if s.id in new and len(new[s.id]) <= room]
            best = min(fitting, key=lambda s: (kinds[s.derivation], len(new[s.id])))
            chosen |= new[best.id]
            kinds.update(plan.by_id[name].derivation for name in new[best.id])
            room -= len(new[best.id])
    return plan.part(chosen, "slice")


def origin(plan: Plan, spec: ModelSpec) -> str:
    """Root that a model goes back to, by weights or through its teacher."""
    if spec.derivation == DISTILLED:
        return origin(plan, plan.by_id[spec.parents[0]])
    return spec.roots[0]


def _slice_roots(plan: Plan) -> list[ModelSpec]:
    """A pair of twins and the two roots that add most kinds of derivatives, none of them slow."""

    def kinds(root: ModelSpec) -> set[str]:
        return {s.derivation for s in plan.models if origin(plan, s) == root.id}

    fit = [r for r in plan.roots if r.architecture not in _SLOW and r.size != "L"]
    pairs = [group[:2] for group in twin_groups(fit) if group[0].size in ("XS", "S")]
    chosen = max(pairs, key=lambda pair: len(kinds(pair[0]) | kinds(pair[1])))
    while len(chosen) < SLICE_ROOTS:
        have = set[str]().union(*(kinds(root) for root in chosen))
        rest = [root for root in fit if root not in chosen]
        chosen = [*chosen, max(rest, key=lambda root: len(kinds(root) - have))]
    return chosen


class _Planner:
    """Deals derivations to roots, the least loaded first, ties in an order drawn from the seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.roots = make_roots(1_000 * (seed + 1))
        self.models = list(self.roots)
        self.load: Counter[str] = Counter()

    def deal(self, count: int, fits: Choice = lambda _: True) -> list[ModelSpec]:
        """So many roots, each once before any comes twice."""
        eligible = [root for root in self.roots if fits(root)]
        places = self.rng.permutation(len(eligible))
        order = {root.id: int(place) for root, place in zip(eligible, places, strict=True)}
        times: Counter[str] = Counter()
        dealt: list[ModelSpec] = []
        for _ in range(count):
            chosen = min(eligible, key=lambda r: (times[r.id], self.load[r.id], order[r.id]))
            times[chosen.id] += 1
            self.load[chosen.id] += 1
            dealt.append(chosen)
        return dealt

    def child(
        self, parents: Sequence[ModelSpec], derivation: str, label: str, **changes: object
    ) -> ModelSpec:
        """A model made of the first parent; its name is its root's with a label."""
        first = parents[0]
        root = next(r for r in self.roots if r.id == first.roots[0])
        name, number = f"{root.id}_{label}", 2
        while any(spec.id == name for spec in self.models):
            name, number = f"{root.id}_{label}-{number}", number + 1
        serial = 100_000 + 10 * len(self.models)
        fresh = {"variant": "", "target": "", "groups": ()}
        spec = dataclasses.replace(
            first,
            **{
                **fresh,
                "id": name,
                "derivation": derivation,
                "parents": tuple(parent.id for parent in parents),
                "seed": serial,
                "order_seed": serial + 5,
                **changes,
            },
        )
        self.models.append(spec)
        return spec

    def children(self, root: ModelSpec, *derivations: str) -> list[ModelSpec]:
        """Models of one root of the given kinds."""
        return [s for s in self.models if s.roots == (root.id,) and s.derivation in derivations]

    def new_domain(self, root: ModelSpec, *without: str) -> str:
        """A domain that the root never read."""
        rest = [d for d in DOMAINS if d not in MIXES[root.mix] and d not in without]
        return rest[int(self.rng.integers(len(rest)))]

    def plan_mild_sft(self, count: int) -> None:
        for root in self.deal(count):
            domain = self.new_domain(root)
            self.child([root], MILD, f"sft-{domain}", target=domain)

    def plan_heavy_sft(self, count: int) -> None:
        """Four roots a domain, two of them twins: different origin, alike behaviour."""
        pairs = [group[:2] for group in twin_groups(self.roots)]
        size = count // len(_CONVERGENCE)
        for domain, pair in zip(_CONVERGENCE, pairs, strict=False):
            taken = {s.roots[0] for s in self.models if s.derivation == HEAVY}
            taken |= {root.id for root in pair}
            free = [r.id for r in self.roots if r.id not in taken and _quick(r)]
            others = self.deal(size - len(pair), lambda r, free=free: r.id in free)
            for root in (*pair, *others):
                self.load[root.id] += root in pair
                group = (f"convergence:{domain}",)
                self.child([root], HEAVY, f"heavy-{domain}", target=domain, groups=group)

    def plan_chained_sft(self, count: int) -> None:
        for root in self.deal(count, _quick):
            parent = self.children(root, MILD)[0]
            domain = self.new_domain(root, parent.target)
            label = f"sft-{parent.target}-{domain}"
            self.child([parent], "chained_sft", label, target=domain)

    def plan_lora(self, count: int) -> None:
        for root in self.deal(count, _quick):
            domain = self.new_domain(root)
            self.child([root], "lora", f"lora-{domain}", target=domain)

    def plan_instruct(self, count: int) -> None:
        for root in self.deal(count, _quick):
            self.child([root], "instruct", "instruct")

    def plan_continued(self, count: int) -> None:
        for root in self.deal(count, _quick):
            others = [mix for mix in MIXES if mix != root.mix]
            mix = others[int(self.rng.integers(len(others)))]
            self.child([root], "continued", f"continued-{mix.lower()}", target=mix)

    def plan_vocabulary(self, count: int) -> None:
        for root in self.deal(count, lambda r: _quick(r) and r.tokenizer != "wordpiece1024"):
            domain = self.new_domain(root)
            self.child([root], "vocabulary", f"vocabulary-{domain}", target=domain)

    def plan_pruned(self, count: int) -> None:
        self._compress(count, "pruned", ("30", "50"))

    def plan_layer_dropped(self, count: int) -> None:
        for root in self.deal(count, lambda r: SIZES[r.size].n_layers > 2 and _quick(r)):
            self.child([root], "layer_dropped", "layer-dropped")

    def plan_quantised(self, count: int) -> None:
        self._compress(count, "quantised", ("int8", "int4"))

    def _compress(self, count: int, derivation: str, variants: tuple[str, str]) -> None:
        """Both variants, of roots and of trained children in turn."""
        for number, root in enumerate(self.deal(count)):
            trained = self.children(root, MILD, "lora", HEAVY)
            parent = root if number // 2 % 2 == 0 else trained[number % len(trained)]
            variant = variants[number % 2]
            stem = parent.id.removeprefix(f"{root.id}_")
            label = f"{derivation}-{variant}" if parent.is_root else f"{stem}_{variant}"
            self.child([parent], derivation, label, variant=variant)

    def plan_merged(self, count: int) -> None:
        for number, root in enumerate(self.deal(count, lambda r: bool(self._siblings(r)))):
            siblings = [self.children(root, MILD)[0], self._siblings(root)[0]]
            variant = ("linear", "slerp")[number % 2]
            self.child(siblings, "merged", f"merged-{variant}", variant=variant)

    def _siblings(self, root: ModelSpec) -> list[ModelSpec]:
        return self.children(root, *_SIBLINGS)

    def plan_task_merged(self, count: int) -> None:
        """A child and a grandchild of one root: models at different depths."""
        fits = [r for r in self.roots if self.children(r, "chained_sft") and self._siblings(r)]
        for number, root in enumerate(self.deal(count, lambda r: r in fits)):
            pair = [self._siblings(root)[0], self.children(root, "chained_sft")[0]]
            variant = ("ties", "dare")[number % 2]
            self.child(pair, "task_merged", f"merged-{variant}", variant=variant)

    def plan_rewritten(self, count: int) -> None:
        ways = ("neurons", "heads", "norms")
        dealt = self.deal(count, lambda r: r.architecture in _REWRITABLE)
        for way, root in zip(ways, dealt, strict=True):
            self.child([root], "rewritten", f"rewritten-{way}", variant=way)

    def plan_distilled(self, count: int) -> None:
        """Half of the teacher's own architecture; of the others a third reads other tokens."""
        half = count // 2
        for teacher in self.deal(half, _quick):
            self._student(teacher, "same")
        for teacher in self.deal(half - half // 3, lambda r: r.architecture in _OTHERS):
            self._student(teacher, "architecture", architecture=_OTHERS[teacher.architecture])
        fits = [r.id for r in self.roots if r.tokenizer in _OTHER_TOKENIZER and r.size == "S"]
        for teacher in self.deal(half // 3, lambda r: r.id in fits):
            self._student(teacher, "tokenizer", tokenizer=_OTHER_TOKENIZER[teacher.tokenizer])

    def _student(self, teacher: ModelSpec, variant: str, **changes: str) -> None:
        group = (f"distilled:{teacher.family}",)
        spec = self.child(
            [teacher], DISTILLED, f"student-{variant}", variant=variant, groups=group, **changes
        )
        own = dataclasses.replace(spec, roots=(spec.id,), family=f"student-of-{teacher.family}")
        self.models[-1] = own

    def plan_perturbed(self, count: int) -> None:
        for number, root in enumerate(self.deal(count, _quick)):
            variant = ("noise", "layer")[number % 2]
            self.child([root], "perturbed", f"perturbed-{variant}", variant=variant)


def _quick(root: ModelSpec) -> bool:
    return root.derivation == ROOT and root.architecture not in _SLOW
