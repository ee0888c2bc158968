"""The causal order against a slow one that recomputes every distribution from the states."""

import numpy as np
import pytest
import torch

from engine.live import LiveEngine, Sampler
from engine.live.generation import Request, continue_batch
from engine.pipeline.suppression_ranking import Drawn, Positions, Ranking, read_positions
from engine.pipeline.suppression_weights import TokenEffects
from tests.engine import tiny_models


SAMPLER = Sampler(temperature=0.7, top_p=0.9)
PRICE = 0.3


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LiveEngine:
    return LiveEngine.open(str(tiny_models.save_run(tmp_path_factory.mktemp("ranking") / "tiny")))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> LiveEngine:
    folder = tiny_models.save_dense(tmp_path_factory.mktemp("judge") / "dense")
    return LiveEngine.open(str(folder))


@pytest.fixture(scope="module")
def drawn(engine: LiveEngine) -> list[Drawn]:
    prompts = torch.tensor([[7, 9, 40], [3, 250, 8], [90, 91, 92], [5, 5, 5], [61, 2, 13]])
    rows = continue_batch(engine.model, Request(prompts, range(5), SAMPLER), 7)
    lengths = (7, 4, 6, 1, 7)  # texts end where they like
    found = zip(prompts.tolist(), rows, lengths, strict=True)
    return [Drawn(tuple(prompt), tuple(row.token_ids[:n])) for prompt, row, n in found]


@pytest.fixture
def positions(engine: LiveEngine, judge: LiveEngine, drawn: list[Drawn]) -> Positions:
    return read_positions(engine.model, judge.model, drawn, SAMPLER.temperature)


@pytest.fixture(scope="module")
def effects(drawn: list[Drawn]) -> TokenEffects:
    """Words of one to three tokens, every fifth token between words."""
    n = sum(len(row.tokens) for row in drawn)
    word, number = [], -1
    for place in range(n):
        if place % 5 == 4:
            word.append(-1)
            continue
        number += place % 5 in (0, 3)
        word.append(number)
    return TokenEffects(np.array(word), np.random.default_rng(3).normal(0.1, 0.3, number + 1))


def test_positions_are_those_of_each_continuation_read_alone(
    engine: LiveEngine, judge: LiveEngine, drawn: list[Drawn], positions: Positions
):
    """Padding behind a short text changes nothing."""
    logits, judged = [], []
    for row in drawn:
        ids = torch.tensor([[*row.prompt, *row.tokens]])
        with torch.inference_mode():
            own = engine.model.logits(engine.model.run(ids[:, :-1]).states)[0]
            other = judge.model.logits(judge.model.run(ids[:, :-1]).states)[0]
        logits.append(own[len(row.prompt) - 1 :] / SAMPLER.temperature)
        judged.append(-other[len(row.prompt) - 1 :].log_softmax(-1))
    torch.testing.assert_close(positions.logits, torch.cat(logits), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(positions.judged.float(), torch.cat(judged), atol=0.02, rtol=0.01)
    assert positions.drawn.tolist() == [token for row in drawn for token in row.tokens]


def slow_value(
    engine: LiveEngine, positions: Positions, effects: TokenEffects, chosen: list[int]
) -> tuple[float, float]:
    """Effect and cost of a set by the formula, one position at a time."""
    prototypes = engine.model.prototypes
    share = effects.share
    weights = np.zeros(tiny_models.VOCAB)
    for token in range(tiny_models.VOCAB):
        own = share[positions.drawn.numpy() == token]
        weights[token] = own.sum() / (len(own) + 2.0)
    effect = cost = 0.0
    ratios = {}
    for t, token in enumerate(positions.drawn.tolist()):
        before = positions.logits[t].double()
        state = torch.zeros(prototypes.shape[1])
        for activation, index in zip(positions.activations[t], positions.indices[t], strict=True):
            if int(index) in chosen:
                state += activation * prototypes[index]
        after = before - engine.model.logits(state[None])[0].double() / SAMPLER.temperature
        p, q = before.softmax(-1).numpy(), after.softmax(-1).numpy()
        judged = positions.judged[t].double().numpy()
        ratio = q[token] / p[token] if q[q > q[token]].sum() < SAMPLER.top_p else 0.0
        effect += float(((p - q) * weights).sum()) - (1 - min(ratio, 4.0)) * weights[token]
        cost += float(((q - p) * judged).sum())
        word = int(effects.word[t])
        if word >= 0:
            ratios[word] = ratios.get(word, 1.0) * ratio
    effect += sum(effects.effect[w] * (1 - min(r, 4.0)) for w, r in ratios.items())
    return float(effect), cost


def test_effects_and_costs_are_those_of_the_formula(
    engine: LiveEngine, positions: Positions, effects: TokenEffects
):
    """The sums over the order are what the whole set does."""
    ranking = Ranking(engine.model, positions, effects, sampler=SAMPLER)
    ranked = ranking.rank(range(tiny_models.N_PROTOTYPES), 6, PRICE)
    assert len(ranked) >= 3
    n = ranking.n_positions
    for size in range(1, len(ranked) + 1):
        chosen = [row.prototype for row in ranked[:size]]
        effect, cost = slow_value(engine, positions, effects, chosen)
        assert sum(row.effect for row in ranked[:size]) * n / 1000 == pytest.approx(
            effect, abs=2e-3
        )
        assert sum(row.cost for row in ranked[:size]) * n == pytest.approx(cost, abs=2e-2)


def test_the_first_is_the_best_alone_and_none_that_does_harm_joins(
    engine: LiveEngine, positions: Positions, effects: TokenEffects
):
    """Against every candidate looked at by itself."""
    ranking = Ranking(engine.model, positions, effects, sampler=SAMPLER)
    values = {}
    for number in range(tiny_models.N_PROTOTYPES):
        effect, cost = slow_value(engine, positions, effects, [number])
        values[number] = effect - PRICE * cost
    ranked = ranking.rank(range(tiny_models.N_PROTOTYPES), tiny_models.N_PROTOTYPES, PRICE)
    assert values[ranked[0].prototype] == pytest.approx(max(values.values()), abs=2e-3)
    assert all(row.effect - PRICE * row.cost * 1000 > 0 for row in ranked)
    assert len(ranked) < tiny_models.N_PROTOTYPES


def test_first_order_is_the_slope_of_the_formula(
    engine: LiveEngine, positions: Positions, effects: TokenEffects
):
    """A hundredth of a slice moves both by a hundredth of the slope."""
    effect, cost = Ranking(
        engine.model, positions, effects, sampler=Sampler(temperature=0.7, top_p=1.0)
    ).first_order()
    for number in np.argsort(-np.abs(effect))[:5]:
        small = Ranking(
            engine.model,
            positions,
            effects,
            sampler=Sampler(temperature=0.7, top_p=1.0),
            strength=0.01,
        )
        (row,) = small.rank([int(number)], 1, 0.0) if effect[number] > 0 else [None]
        if row is not None:
            n = small.n_positions
            assert row.effect * n / 1000 == pytest.approx(0.01 * effect[number], rel=0.1)
            assert row.cost * n == pytest.approx(0.01 * cost[number], rel=0.1, abs=2e-3)
