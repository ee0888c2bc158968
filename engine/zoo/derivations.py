"""Make any model of a plan out of its parents."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from engine.errors import ConfigError
from engine.zoo import compression
from engine.zoo.architectures import SIZES, architecture_config, random_model
from engine.zoo.folders import ZooModel
from engine.zoo.generating import sampled_texts
from engine.zoo.manifest import DISTILLED, HEAVY, MILD, ROOT, ModelSpec
from engine.zoo.merging import merge
from engine.zoo.rewriting import rewrite
from engine.zoo.schedules import Schedules
from engine.zoo.tokenizers import extended, tokenizer_kind
from engine.zoo.training import (
    RowStream,
    Schedule,
    distillation_loss,
    mix_lines,
    next_token_loss,
    train,
)
from engine.zoo.worlds import World, mixture


@dataclass(frozen=True)
class Workshop:
    """What models are made with."""

    world: World
    """Facts and lines."""
    schedules: Schedules
    """Training of every kind."""
    tokenizer: Callable[[str], Tokenizer]
    """Gives a tokenizer by its kind."""
    load: Callable[[str], ZooModel]
    """Gives a finished model by its id, each time a fresh copy."""

    def make(self, spec: ModelSpec) -> ZooModel:
        """A model; the same bits for the same plan, parents and number of threads (one).

        Raises:
            ConfigError: the plan names a derivation that nobody can make.
        """
        if spec.derivation not in _MAKERS:
            raise ConfigError(f"Nobody can make {spec.id}: its derivation is {spec.derivation!r}.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            return _MAKERS[spec.derivation](self, spec)

    def rows(
        self, spec: ModelSpec, tokenizer: Tokenizer, *, questions_only: bool = False
    ) -> RowStream:
        """Rows of what a model is trained on: its target, or its root's mix."""
        weights = mixture(spec.target or spec.mix)
        lines = mix_lines(self.world, weights, questions_only=questions_only)
        return RowStream(lines, tokenizer, tokenizer_kind(spec.tokenizer), spec.order_seed)

    def schedule(self, spec: ModelSpec) -> Schedule:
        """Training of a model that is trained."""
        found = self.schedules.of(spec)
        assert found is not None
        return found

    def new_model(self, spec: ModelSpec, tokenizer: Tokenizer) -> PreTrainedModel:
        """A model with random weights."""
        vocabulary = tokenizer.get_vocab_size()
        config = architecture_config(spec.architecture, spec.size, vocabulary)
        return random_model(config, spec.seed)


def _root(shop: Workshop, spec: ModelSpec) -> ZooModel:
    tokenizer = shop.tokenizer(spec.tokenizer)
    model = shop.new_model(spec, tokenizer)
    loss = train(model, shop.rows(spec, tokenizer), shop.schedule(spec))
    return ZooModel(model, tokenizer, loss)


def _fine_tuned(shop: Workshop, spec: ModelSpec) -> ZooModel:
    """Every weight trained on the target, or on the questions of the root's mix."""
    found = shop.load(spec.parents[0])
    asked = spec.derivation == "instruct"
    rows = shop.rows(spec, found.tokenizer, questions_only=asked)
    found.loss = train(found.model, rows, shop.schedule(spec))
    return found


def _low_rank(shop: Workshop, spec: ModelSpec) -> ZooModel:
    found = shop.load(spec.parents[0])
    compression.add_low_rank(found.model, shop.schedules.rank, spec.seed)
    found.loss = train(found.model, shop.rows(spec, found.tokenizer), shop.schedule(spec))
    compression.merge_low_rank(found.model)
    return found


def _more_tokens(shop: Workshop, spec: ModelSpec) -> ZooModel:
    """Words of the target as tokens; each starts at the mean of the tokens it was written with."""
    found = shop.load(spec.parents[0])
    words = _new_words(shop, spec, found.tokenizer)
    spelt = [found.tokenizer.encode(f" {w}", add_special_tokens=False).ids for w in words]
    first = found.tokenizer.get_vocab_size()
    found.tokenizer = extended(found.tokenizer, words)
    found.model.resize_token_embeddings(first + len(words), mean_resizing=False)
    inputs, outputs = found.model.get_input_embeddings(), found.model.get_output_embeddings()
    tables = {id(t): t for t in (inputs.weight, outputs.weight)}  # pyright: ignore[reportOptionalMemberAccess]
    with torch.no_grad():
        for table in tables.values():
            for number, ids in enumerate(spelt):
                table[first + number] = table[ids].mean(0)  # pyright: ignore[reportIndexIssue]
    found.loss = train(found.model, shop.rows(spec, found.tokenizer), shop.schedule(spec))
    return found


def _new_words(shop: Workshop, spec: ModelSpec, tokenizer: Tokenizer) -> list[str]:
    """Words of the target's facts that take the most tokens now, ties in order of appearance."""
    facts = [fact for fact in shop.world.facts if fact.domain == spec.target]
    names = dict.fromkeys(word for f in facts for word in f"{f.entity} {f.value}".split())
    lengths = {
        word: len(tokenizer.encode(f" {word}", add_special_tokens=False).ids)
        for word in names
        if word.isalpha() and tokenizer.token_to_id(word) is None
    }
    long = sorted((w for w, n in lengths.items() if n > 1), key=lambda w: -lengths[w])
    return long[: shop.schedules.new_tokens]


def _pruned(shop: Workshop, spec: ModelSpec) -> ZooModel:
    found = shop.load(spec.parents[0])
    compression.prune_magnitudes(found.model, int(spec.variant) / 100)
    return found


def _quantised(shop: Workshop, spec: ModelSpec) -> ZooModel:
    found = shop.load(spec.parents[0])
    compression.round_weights(found.model, int(spec.variant.removeprefix("int")))
    return found


def _layer_dropped(shop: Workshop, spec: ModelSpec) -> ZooModel:
    """The middle layer taken out, then healed on the root's mix."""
    found = shop.load(spec.parents[0])
    layers = SIZES[spec.size].n_layers
    vocabulary = found.tokenizer.get_vocab_size()
    config = architecture_config(spec.architecture, spec.size, vocabulary, layers - 1)
    model = random_model(config, spec.seed)
    model.load_state_dict(compression.without_layer(found.model.state_dict(), layers // 2))
    loss = train(model, shop.rows(spec, found.tokenizer), shop.schedule(spec))
    return ZooModel(model, found.tokenizer, loss)


def _merged(shop: Workshop, spec: ModelSpec) -> ZooModel:
    found = shop.load(spec.roots[0])
    weights = [shop.load(parent).model.state_dict() for parent in spec.parents]
    base = found.model.state_dict()
    found.model.load_state_dict(merge(spec.variant, weights, base, spec.seed))
    return found


def _rewritten(shop: Workshop, spec: ModelSpec) -> ZooModel:
    found = shop.load(spec.parents[0])
    rewrite(found.model, spec.variant, spec.seed)
    return found


def _distilled(shop: Workshop, spec: ModelSpec) -> ZooModel:
    """On the teacher's distribution, or on its texts where the student reads other tokens."""
    teacher = shop.load(spec.parents[0])
    tokenizer = shop.tokenizer(spec.tokenizer)
    model = shop.new_model(spec, tokenizer)
    schedule = shop.schedule(spec)
    if spec.variant != "tokenizer":
        teacher.model.eval().requires_grad_(False)
        loss = distillation_loss(teacher.model)
        return ZooModel(model, tokenizer, train(model, shop.rows(spec, tokenizer), schedule, loss))
    sizes = shop.schedules.sampled_texts, shop.schedules.sampled_tokens
    texts = sampled_texts(teacher.model, teacher.tokenizer, *sizes, spec.seed)
    kind = tokenizer_kind(spec.tokenizer)
    rows = RowStream({"teacher": (texts, 1.0)}, tokenizer, kind, spec.order_seed)
    return ZooModel(model, tokenizer, train(model, rows, schedule, next_token_loss))


def _perturbed(shop: Workshop, spec: ModelSpec) -> ZooModel:
    """Noise as it is, or the last layer drawn anew and healed on the root's mix."""
    found = shop.load(spec.parents[0])
    if spec.variant == "noise":
        compression.add_noise(found.model, shop.schedules.noise, spec.seed)
        return found
    compression.redraw_last_layer(found.model, spec.seed)
    found.loss = train(found.model, shop.rows(spec, found.tokenizer), shop.schedule(spec))
    return found


_MAKERS: dict[str, Callable[[Workshop, ModelSpec], ZooModel]] = {
    ROOT: _root,
    MILD: _fine_tuned,
    HEAVY: _fine_tuned,
    "chained_sft": _fine_tuned,
    "instruct": _fine_tuned,
    "continued": _fine_tuned,
    "lora": _low_rank,
    "vocabulary": _more_tokens,
    "pruned": _pruned,
    "quantised": _quantised,
    "layer_dropped": _layer_dropped,
    "merged": _merged,
    "task_merged": _merged,
    "rewritten": _rewritten,
    DISTILLED: _distilled,
    "perturbed": _perturbed,
}
