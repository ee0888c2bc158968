import itertools
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.errors import EngineError, PromptError, UnsupportedModel
from engine.live import LiveEngine, Sampler, Suppression
from tests.engine import tiny_models
from tests.engine.tiny_models import CONTEXT, N_ACTIVE, N_PROTOTYPES


PROMPT = "the quick brown fox"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LiveEngine:
    return LiveEngine.open(str(tiny_models.save_run(tmp_path_factory.mktemp("runs") / "tiny")))


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> LiveEngine:
    return LiveEngine.open(str(tiny_models.save_dense(tmp_path_factory.mktemp("dense"))))


@pytest.mark.parametrize("backbone", ["llama_config", "gpt2_config", "neox_config"])
def test_slices_other_residual_and_gap_add_up_to_the_emitted_logit(tmp_path: Path, backbone: str):
    """Nothing is obtained by subtraction, so the sum is a real check of every product."""
    folder = tiny_models.save_prism(tmp_path / "model", getattr(tiny_models, backbone)())
    engine = LiveEngine.open(str(folder))
    for position in range(len(engine.tokens(PROMPT))):
        found = engine.decompose(PROMPT, position, n_slices=3)
        terms = found.slices["logit"].sum() + found.other + found.residual + found.bias
        assert terms + found.gap_logit == pytest.approx(found.logit, abs=1e-9)
        assert found.gap < 1e-4
        assert len(found.slices) + found.n_other <= N_ACTIVE


def test_the_logit_is_what_transformers_emits(engine: LiveEngine, tmp_path: Path):
    """The panel must show the model's own number, not one of our making."""
    from transformers import AutoModelForCausalLM

    folder = tiny_models.save_prism(tmp_path)  # the same seed as the run's
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = torch.tensor([[token.token_id for token in engine.tokens(PROMPT)]])
    with torch.no_grad():
        logits = model(ids).logits[0, -1]
    found = engine.decompose(PROMPT)
    assert found.target_id == int(logits.argmax())
    assert found.logit == pytest.approx(float(logits.max()), rel=1e-5)


def test_slices_are_sorted_by_what_they_do_and_carry_labels(engine: LiveEngine):
    """The first row is the one to click on."""
    slices = engine.decompose(PROMPT).slices
    assert slices["logit"].abs().is_monotonic_decreasing
    first = int(slices["prototype"][0])
    assert slices["label"][0] == f"grammar · role {first}"


def test_why_a_and_not_b_is_the_difference_of_two_decompositions(engine: LiveEngine):
    """Each term of the contrast is the target's minus the distractor's."""
    both = [engine.decompose(PROMPT, 2, target=i) for i in (70, 90)]
    found = engine.contrast(PROMPT, 2, 70, 90)
    assert found.logit == pytest.approx(both[0].logit - both[1].logit, abs=1e-5)
    assert found.residual == pytest.approx(both[0].residual - both[1].residual, abs=1e-5)
    by_prototype = [d.slices.set_index("prototype")["logit"].sort_index() for d in both]
    mine = found.slices.set_index("prototype")["logit"].sort_index()
    np.testing.assert_allclose(mine, by_prototype[0] - by_prototype[1], atol=1e-5)
    with pytest.raises(PromptError, match="same token"):
        engine.contrast(PROMPT, 2, 70, 70)


def test_nothing_suppressed_is_the_baseline_bit_for_bit(engine: LiveEngine):
    """An empty set, a strength of 0 and no suppression at all are one thing."""
    frames = [
        engine.next_tokens(PROMPT, suppression=s)
        for s in (None, Suppression(()), Suppression((1, 2, 3), 0.0))
    ]
    for frame in frames:
        assert (frame["logit"] == frame["logit_suppressed"]).all()
        assert frame.equals(frames[0])
    texts = {
        engine.complete(PROMPT, n_tokens=17, seed=4, suppression=s).token_ids
        for s in (None, Suppression(()), Suppression((1, 2, 3), 0.0))
    }
    assert len(texts) == 1


def test_suppressing_a_prototype_takes_its_slice_out_of_every_logit(engine: LiveEngine):
    """logits' = logits - strength a_i W p_i."""
    slices = engine.decompose(PROMPT, n_slices=None).slices
    prototype = int(slices["prototype"][0])
    frame = engine.next_tokens(PROMPT, n=5, suppression=Suppression((prototype,), 0.7))
    row = frame.iloc[1]
    mine = engine.decompose(PROMPT, target=int(row["token_id"])).slices.set_index("prototype")
    expected = row["logit"] - 0.7 * float(mine["logit"].loc[prototype])
    assert row["logit_suppressed"] == pytest.approx(expected, abs=1e-4)
    shift = engine.shift(PROMPT, -1, Suppression((prototype,), 0.7))
    assert shift.touched == (prototype,)
    assert shift.kl > 0


def test_probabilities_are_of_the_whole_vocabulary(engine: LiveEngine):
    """The frame lists the top of each side; asked for everything, it sums to one."""
    frame = engine.next_tokens(PROMPT, n=10_000, suppression=Suppression((0, 5, 9)))
    assert frame["probability"].sum() == pytest.approx(1)
    assert frame["probability_suppressed"].sum() == pytest.approx(1)
    assert frame["probability"].is_monotonic_decreasing


def test_generation_is_a_function_of_its_arguments(engine: LiveEngine):
    """The same request twice gives the same tokens; another seed gives others."""
    first = engine.complete(PROMPT, n_tokens=13, seed=1)
    assert first == engine.complete(PROMPT, n_tokens=13, seed=1)
    assert first.token_ids != engine.complete(PROMPT, n_tokens=13, seed=2).token_ids
    assert first.n_tokens == 13
    assert first.ending == "length"


def test_greedy_generation_equals_that_of_transformers(tmp_path: Path, engine: LiveEngine):
    """Our loop with a cache is the library's, but for the noise it shares."""
    from engine.prism.model import PrismForCausalLM

    model = PrismForCausalLM.from_pretrained(tiny_models.save_prism(tmp_path)).eval()
    ids = torch.tensor([[token.token_id for token in engine.tokens(PROMPT)]])
    length = CONTEXT - ids.shape[1]
    settings = {"max_new_tokens": length, "do_sample": False, "pad_token_id": 0}
    expected = getattr(model, "generate")(ids, **settings)  # noqa: B009 - its stub binds no model
    greedy = engine.complete(PROMPT, n_tokens=length, sampler=Sampler(temperature=0))
    assert list(greedy.token_ids) == expected[0, ids.shape[1] :].tolist()


def test_generation_goes_on_past_the_context(engine: LiveEngine):
    """It reads the last half of the context anew instead of failing."""
    long = engine.complete(PROMPT, n_tokens=3 * CONTEXT, seed=8)
    assert long.n_tokens == 3 * CONTEXT
    assert long.token_ids[:5] == engine.complete(PROMPT, n_tokens=5, seed=8).token_ids


def test_touched_tokens_are_those_where_a_suppressed_prototype_is_active(engine: LiveEngine):
    """With the whole bank off every token is touched, with none no token is."""
    everything = Suppression(tuple(range(N_PROTOTYPES)))
    assert engine.complete(PROMPT, n_tokens=7, suppression=everything).tokens_touched == 7
    assert engine.complete(PROMPT, n_tokens=7).tokens_touched == 0


def test_sessions_with_different_sets_never_mix(engine: LiveEngine):
    """Interleaved streams in several threads give what each gives alone."""
    sets = [None, Suppression((1, 4, 8)), Suppression(tuple(range(20)), 0.5), Suppression((30,))]
    alone = [engine.complete(PROMPT, n_tokens=19, seed=3, suppression=s).token_ids for s in sets]
    together: dict[int, tuple[int, ...]] = {}

    def session(number: int) -> None:
        steps = engine.generate(PROMPT, n_tokens=19, seed=3, suppression=sets[number % len(sets)])
        together[number] = tuple(step.token_id for step in steps)

    threads = [threading.Thread(target=session, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[i] for i in range(12)] == [alone[i % len(sets)] for i in range(12)]
    streams = [engine.generate(PROMPT, n_tokens=19, seed=3, suppression=s) for s in sets]
    mixed = list(zip(*streams, strict=True))
    assert [tuple(s[i].token_id for s in mixed) for i in range(len(sets))] == alone


def test_activations_list_what_is_active_at_each_position(engine: LiveEngine):
    """Falling, positive, at most k a token; with the residual share of each."""
    found = engine.activations(PROMPT)
    assert (found.frame["activation"] > 0).all()
    assert found.frame.groupby("position").size().max() <= N_ACTIVE
    assert (found.frame.groupby("position")["activation"].diff().dropna() <= 0).all()
    assert found.residuals["position"].tolist() == list(range(len(found.tokens)))
    last = engine.decompose(PROMPT)
    assert found.residuals["residual_share"].iloc[-1] == pytest.approx(last.residual_share)


def test_what_fires_is_the_strongest_token_of_each_prototype(engine: LiveEngine):
    """The search lists a prototype once, with its best position."""
    frame = engine.activations(PROMPT).frame
    firing = engine.firing(PROMPT)
    assert firing["prototype"].is_unique
    expected = frame.groupby("prototype")["activation"].max()
    np.testing.assert_array_equal(
        firing.set_index("prototype")["activation"].sort_index(), expected
    )
    assert firing["n_tokens"].sum() == len(frame)


def test_a_strip_shows_one_prototype_over_a_text(engine: LiveEngine):
    """Activation is the similarity where it is among the k largest, else 0."""
    prototype = int(engine.firing(PROMPT)["prototype"][0])
    frame = engine.strip(PROMPT, prototype)
    assert "".join(frame["token"]) == PROMPT
    fired = frame[frame["activation"] > 0]
    assert len(fired) > 0
    np.testing.assert_allclose(fired["activation"], fired["similarity"], atol=1e-6)
    assert engine.strip(frame["token_id"].tolist(), prototype).equals(frame)


def test_side_effects_of_nothing_are_none(engine: LiveEngine):
    """The meter rests at zero, exactly."""
    found = engine.side_effects(Suppression(()), tiny_models.TEXTS)
    assert (found.kl, found.tokens_touched_share) == (0.0, 0.0)
    assert found.perplexity_before == found.perplexity_after


def test_side_effects_equal_a_plain_computation(engine: LiveEngine):
    """Only touched positions are computed anew; that must not change the sum."""
    suppression = Suppression((2, 11, 30), 0.8)
    text = tiny_models.TEXTS[0]
    kl, before, after, touched = 0.0, 0.0, 0.0, 0
    tokens = engine.tokens(text)[:CONTEXT]
    for token, following in itertools.pairwise(tokens):
        frame = engine.next_tokens(
            "".join(t.text for t in tokens[:-1]), token.position, 10_000, suppression
        )
        p, q = frame["probability"], frame["probability_suppressed"]
        kl += float((p * np.log(p / q)).sum())
        row = frame.set_index("token_id").loc[following.token_id]
        before -= np.log(row["probability"])
        after -= np.log(row["probability_suppressed"])
        touched += bool(engine.shift(text, token.position, suppression).touched)
    n = len(tokens) - 1
    found = engine.side_effects(suppression, [text])
    assert found.n_tokens == n
    assert found.kl == pytest.approx(kl / n, rel=1e-4)
    assert found.perplexity_before == pytest.approx(np.exp(before / n), rel=1e-4)
    assert found.perplexity_after == pytest.approx(np.exp(after / n), rel=1e-4)
    assert found.tokens_touched_share == pytest.approx(touched / n)


def test_a_concept_and_its_random_control(engine: LiveEngine):
    """The control has as many prototypes, others, at about the same rates."""
    concept = engine.concept("NSFW")
    assert concept == (2, 11, 30)
    control = engine.matched_random(concept, seed=6)
    assert len(control) == 3
    assert not set(control) & set(concept)
    assert control == engine.matched_random(concept, seed=6)
    rates = tiny_models.prototypes_frame()["firing_rate"]
    ratio = np.exp(np.abs(np.log(rates[list(control)].mean() / rates[list(concept)].mean())))
    assert ratio < 3
    with pytest.raises(PromptError, match="it has NSFW"):
        engine.concept("unknown")


def test_a_dense_model_predicts_and_generates_and_says_what_it_cannot(dense: LiveEngine):
    """Everything that needs a bank gives one sentence."""
    assert dense.kind == "dense"
    assert len(dense.next_tokens(PROMPT, n=4)) == 4
    assert dense.complete(PROMPT, n_tokens=3).n_tokens == 3
    for call in (
        lambda: dense.decompose(PROMPT),
        lambda: dense.activations(PROMPT),
        lambda: dense.strip(PROMPT, 0),
        lambda: dense.next_tokens(PROMPT, suppression=Suppression((1,))),
        lambda: dense.complete(PROMPT, suppression=Suppression((1,))),
    ):
        with pytest.raises(UnsupportedModel, match="without prototypes"):
            call()


def test_a_bare_folder_has_no_labels(tmp_path: Path):
    """A model saved by `save_pretrained` is enough to decompose."""
    engine = LiveEngine.open(str(tiny_models.save_prism(tmp_path)))
    assert engine.labels == {}
    assert (engine.decompose(PROMPT).slices["label"] == "").all()
    assert engine.concepts() == {}
    with pytest.raises(EngineError, match="no table of prototypes"):
        engine.matched_random((1,))
    with pytest.raises(EngineError, match="names no corpus"):
        engine.side_effects(Suppression((1,)))


LONG = "word " * 10_000


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda e: e.decompose(""), "prompt is empty"),
        (lambda e: e.decompose("a\x00b"), "NUL byte at character 1"),
        (lambda e: e.decompose("a\ud800"), "U\\+D800"),
        (lambda e: e.decompose(PROMPT, 99), "Position 99 lies outside"),
        (lambda e: e.decompose(PROMPT, -99), "Position -99 lies outside"),
        (lambda e: e.decompose(PROMPT, target="fox jumps"), "it splits into"),
        (lambda e: e.decompose(PROMPT, target=10**9), "ids run from 0"),
        (lambda e: e.decompose(PROMPT, target=""), "target is empty"),
        (lambda e: e.decompose(LONG, 0), "lies before the last"),
        (lambda e: e.strip(PROMPT, N_PROTOTYPES), "Prototype 37 does not exist"),
        (lambda e: e.strip([], 1), "no tokens"),
        (lambda e: e.strip([10**6], 1), "not in the vocabulary"),
        (lambda e: e.generate(PROMPT, n_tokens=0), "0 tokens were asked for"),
        (lambda e: e.generate(PROMPT, suppression=Suppression((-1,))), "Prototype -1"),
        (lambda e: e.next_tokens(PROMPT, n=0), "choose 1 or more"),
        (lambda e: Suppression((1,), 1.5), "Strength is 1.5"),
        (lambda e: Suppression((1,), float("nan")), "Strength is nan"),
        (lambda e: Sampler(temperature=-1), "Temperature is -1"),
        (lambda e: Sampler(top_p=0), "top_p is 0"),
        (lambda e: Sampler(top_k=-1), "top_k is -1"),
        (lambda e: e.matched_random(range(30)), "at most half"),
        (lambda e: e.side_effects(Suppression((1,)), ["a"]), "no two tokens"),
    ],
)
def test_bad_input_gives_one_sentence(engine: LiveEngine, call, sentence: str):
    """What was wrong, the offending value, what to do; before any work is done."""
    with pytest.raises(PromptError, match=sentence) as caught:
        call(engine)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "prompt", ["x", "🌊🌊", "שלום עולם", "<script>alert(1)</script>", "\n\t ", "é́", LONG]
)
def test_odd_prompts_are_read(engine: LiveEngine, prompt: str):
    """One token, emoji, right-to-left text, markup, white space and ten thousand tokens."""
    assert "".join(token.text for token in engine.tokens(prompt)) == prompt
    assert engine.decompose(prompt).gap < 1e-4
    assert engine.complete(prompt, n_tokens=2).n_tokens == 2
    assert (engine.notice(prompt) is not None) == (len(engine.tokens(prompt)) > CONTEXT)
