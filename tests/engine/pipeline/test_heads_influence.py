"""Samples traced to the heads of a given model: every score, stopped and resumed, refused."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load

from engine.cli.heads_influence import influence_json
from engine.corpus.build import open_corpus
from engine.devices import resolve_device
from engine.errors import CacheStale, ConfigError, CorpusError, UnsupportedModel
from engine.mda.blocks import head_layout
from engine.mda.ekfac import sequence_loss
from engine.mda.influence import score_samples
from engine.mda.settings import ProbeConfig
from engine.mda.structure import tags
from engine.mda.subspaces import subspaces
from engine.pipeline import heads_influence, heads_scoring, heads_top_samples
from engine.pipeline.heads_influence import trace_heads
from engine.pipeline.heads_influence_settings import InfluenceConfig
from engine.pipeline.heads_models import HeadSource, find_source, load_decoder
from engine.pipeline.heads_motifs import write_motifs
from engine.pipeline.heads_samples import sample_order
from engine.pipeline.heads_top_samples import SampleReader
from engine.store import Run, check_run, open_run, read_table


CONFIG = InfluenceConfig(
    order="corpus",
    context=13,
    rows_a_step=5,
    steps="3:14",
    fit_samples=20,
    shard_samples=15,
    batch_size=4,
    top=3,
    probe=ProbeConfig(sequences=3, length=12),
    device="cpu",
)
N = 11 * 5
TABLES = (
    "documents",
    "head_samples",
    "head_influence",
    "head_tokens",
    "head_tags",
    "head_tails",
)


@pytest.fixture
def source(foreign_models: Path) -> HeadSource:
    return find_source(str(foreign_models), ["100"])


def traced(source: HeadSource, corpus: str, folder: Path, **changes: Any) -> Run:
    settings: dict[str, Any] = {"head": (1, 0), "every": False, "config": CONFIG, **changes}
    config = settings.pop("config")
    return trace_heads(source, config, corpus=corpus, run=str(folder), **settings)


def scores_of(run: Run, unit: str = "induction") -> np.ndarray:
    column = read_table(run, "head_influence", where={"unit": unit})["influence"]
    return np.stack([np.asarray(values, np.float64) for values in column])


def test_every_sample_has_its_score_place_loss_and_tags(
    source: HeadSource, heads_corpus: str, tmp_path: Path
):
    """Against the sample's own text, loss and a pass of its own."""
    run = traced(source, heads_corpus, tmp_path / "found")
    assert check_run(run) == []
    samples = read_table(run, "head_samples")
    documents = read_table(run, "documents")
    corpus = open_corpus(heads_corpus)
    assert len(samples) == N
    assert scores_of(run).shape == (N, 1)
    assert samples["step"].tolist() == [step for step in range(3, 14) for _ in range(5)]
    model = load_decoder(source, source.checkpoints[0], resolve_device("cpu"))
    tokenizer = source.tokenizer()
    laid: list[int] = []
    for document in corpus.documents["document"][corpus.documents["split"] == "train"]:
        ids = tokenizer.encode(corpus.text(int(document)), add_special_tokens=False).ids
        laid += [0, *ids]
    for number in (0, 23, N - 1):
        sample = samples.iloc[number]
        start = (3 * 5 + number) * 13
        row = torch.tensor([laid[start : start + 14]])
        loss = sequence_loss(model(input_ids=row[:, :-1]).logits, row[:, 1:])
        assert sample["loss"] == pytest.approx(float(loss), rel=1e-4)
        assert sample["tags"] == " ".join(tags(tokenizer.decode(row[0].tolist())))
        doc_id = documents["doc_id"][sample["document"]]
        own = tokenizer.encode(corpus.text(corpus.position_of(doc_id)), add_special_tokens=False)
        first = int(row[0, 0])
        assert first == (own.ids[sample["position"]] if first else 0)
    (folder,) = (run.path / "influence").glob("*/induction-*/*/")
    kept = load((folder / "directions.safetensors").read_bytes())
    directions = [kept[name] for name in sorted(kept)]
    spaces = subspaces(head_layout(model), [(1, 0)])
    slow = next(iter(score_samples(model, spaces, directions, [row]))).scores.sum()
    assert scores_of(run)[-1, 0] == pytest.approx(float(slow), rel=1e-4)


def test_a_killed_call_resumes_to_the_same_tables(
    source: HeadSource, heads_corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Killed in the third shard of four: two are kept, and the curvature is not fitted again."""
    whole = traced(source, heads_corpus, tmp_path / "whole")
    calls = {"score": 0, "fit": 0}
    score, fit = heads_scoring.score_samples, heads_scoring.directions_of

    def scoring(*arguments: Any) -> Any:
        calls["score"] += 1
        if calls["score"] == 3:
            raise KeyboardInterrupt
        return score(*arguments)

    def fitting(*arguments: Any) -> Any:
        calls["fit"] += 1
        return fit(*arguments)

    monkeypatch.setattr(heads_scoring, "score_samples", scoring)
    monkeypatch.setattr(heads_scoring, "directions_of", fitting)
    with pytest.raises(KeyboardInterrupt):
        traced(source, heads_corpus, tmp_path / "killed")
    resumed = traced(source, heads_corpus, tmp_path / "killed")
    assert calls == {"score": 5, "fit": 1}
    for name in TABLES:
        pd.testing.assert_frame_equal(read_table(whole, name), read_table(resumed, name))
    again = traced(source, heads_corpus, tmp_path / "killed")
    assert calls == {"score": 5, "fit": 1}
    assert again.stamp == resumed.stamp


def test_all_heads_in_one_pass_hold_each_single_one(
    source: HeadSource, heads_corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """To 1e-5; one of them alone is then not scored again, and other kinds stay."""
    alone = traced(source, heads_corpus, tmp_path / "alone")
    run = traced(source, heads_corpus, tmp_path / "all", every=True, head=None)
    choice = read_table(run, "head_choices").iloc[0]
    assert choice["heads"].tolist() == ["0.0", "0.1", "1.0", "1.1"]
    together = scores_of(run)[:, 2]
    scale = np.abs(together).max()
    np.testing.assert_allclose(scores_of(alone)[:, 0], together, rtol=1e-5, atol=1e-5 * scale)
    by_token = dataclasses.replace(CONFIG, unit="previous_token")
    run = traced(source, heads_corpus, tmp_path / "all", config=by_token)
    assert read_table(run, "head_choices")["unit"].tolist() == ["induction", "previous_token"]
    monkeypatch.setattr(heads_scoring, "score_samples", None)
    run = traced(source, heads_corpus, tmp_path / "all", head=(0, 1))
    choice = read_table(run, "head_choices", where={"unit": "induction"}).iloc[0]
    assert (choice["layer"], choice["head"], len(choice["heads"])) == (0, 1, 4)
    assert scores_of(run, "previous_token").shape == (N, 1)


def test_what_the_command_says_is_both_ends_of_all_scores(
    source: HeadSource, heads_corpus: str, tmp_path: Path
):
    """The contract of --json, with the ids of documents that the corpus holds."""
    run = traced(source, heads_corpus, tmp_path / "found")
    (found,) = influence_json(run, "induction", (1, 0), 4)
    assert list(found) == ["head", "sign", "n", "top", "bottom", "tail"]
    assert found["head"] == "1.0"
    assert found["sign"] == "positive raises the head's score"
    assert found["n"] == N
    scores = np.sort(scores_of(run)[:, 0])
    assert [row["score"] for row in found["top"]] == pytest.approx(scores[::-1][:4])
    assert [row["score"] for row in found["bottom"]] == pytest.approx(scores[:4])
    corpus = open_corpus(heads_corpus)
    for row in [*found["top"], *found["bottom"]]:
        assert set(row) == {"document", "step", "score", "loss", "tags"}
        assert corpus.position_of(row["document"]) is not None
        assert 3 <= row["step"] < 14
        assert isinstance(row["tags"], list)
    assert set(found["tail"]) == {"top10_share", "exponent", "interval"}
    assert 0.1 <= found["tail"]["top10_share"] <= 1


def test_the_tokens_of_a_sample_carry_its_whole_influence(
    source: HeadSource, heads_corpus: str, tmp_path: Path
):
    """At both ends of the list of the head that was asked for, among all that were scored."""
    config = dataclasses.replace(CONFIG, top=4)
    run = traced(source, heads_corpus, tmp_path / "found", every=True, config=config)
    tokens = read_table(run, "head_tokens")
    assert set(zip(tokens["layer"], tokens["head"], strict=True)) == {(1, 0)}
    scores = np.sort(scores_of(run)[:, 2])
    for sign, ends in (("positive", scores[::-1]), ("negative", scores)):
        side = tokens[tokens["sign"] == sign].sort_values("rank")
        wanted = [value for value in ends[:4] if (value > 0) == (sign == "positive")]
        sums = [float(np.sum(values)) for values in side["influence"]]
        assert sums == pytest.approx(wanted, rel=1e-3)
        assert {len(values) for values in side["influence"]} <= {13}
    assert len(tokens) > 4


def test_samples_of_a_run_of_ours_come_in_its_own_order(
    heads_run: Path, heads_corpus: str, tmp_path: Path
):
    """All up to its last step, six rows each."""
    config = InfluenceConfig(fit_samples=12, shard_samples=18, top=3, device="cpu")
    run = traced(find_source(str(heads_run)), heads_corpus, tmp_path / "found", config=config)
    samples = read_table(run, "head_samples")
    assert len(samples) == 11 * 6
    assert read_table(run, "head_choices")["checkpoint_step"].tolist() == [11]
    assert set(read_table(run, "documents")["split"]) == {"train"}


@pytest.mark.parametrize("own_order", [True, False])
def test_the_top_samples_can_be_read_back_as_they_were_scored(
    own_order: bool,
    source: HeadSource,
    heads_run: Path,
    heads_corpus: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """The part of each row that lies in its first document, in both orders of samples."""
    config = InfluenceConfig(fit_samples=12, top=3, device="cpu") if own_order else CONFIG
    model = find_source(str(heads_run)) if own_order else source
    run = traced(model, heads_corpus, tmp_path / "found", config=config)
    monkeypatch.setattr(heads_top_samples, "open_corpus", lambda _: open_corpus(heads_corpus))
    reader = SampleReader(run)
    order = sample_order(model, reader.shards, config)
    top = reader.top("induction")
    assert len(top.samples) == round((66 if own_order else N) / 10)
    for (_, step, row), found, text in zip(top.samples, top.rows, top.texts, strict=True):
        tokens = order.rows(step)[row]
        own = tokens[1:] if tokens[0] == 0 else tokens  # without the separator
        assert len(found) > 0
        np.testing.assert_array_equal(found, own[: len(found)])
        assert len(found) >= len(own) - 1 or own[len(found)] == 0  # to the end of the document
        assert text == reader.tokenizer.decode(found.tolist())
    assert write_motifs(str(run.path)).has("head_motifs")


# --- what goes wrong --------------------------------------------------------------------------


def broken(model: Any, tokens: list[int]) -> Any:
    """The model, with embeddings of some tokens that are no numbers."""
    with torch.no_grad():
        model.get_input_embeddings().weight[tokens] = float("nan")
    return model


def test_samples_without_finite_gradients_are_named_left_out_and_counted(
    source: HeadSource,
    heads_corpus: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    """Their neighbours keep their scores."""
    real, separator = heads_influence.load_decoder, 0  # in no probe, at the start of documents
    monkeypatch.setattr(heads_influence, "load_decoder", lambda *a: broken(real(*a), [separator]))
    with caplog.at_level("WARNING"):
        run = traced(source, heads_corpus, tmp_path / "found")
    scores = scores_of(run)[:, 0]
    skipped = ~np.isfinite(scores)
    assert 0 < skipped.sum() < N
    assert read_table(run, "head_choices")["n_skipped"].tolist() == [skipped.sum()]
    assert (read_table(run, "head_samples")["loss"].isna() == skipped).all()
    place = read_table(run, "head_samples")[skipped].iloc[0]
    assert f"The sample at step {place['step']}, row {place['row']} (document" in caplog.text
    (found,) = influence_json(run, "induction", (1, 0), 4)
    assert found["n"] == N - skipped.sum()


def test_a_model_without_any_finite_gradient_is_refused(
    source: HeadSource, heads_corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """There is nothing to rank."""
    real = heads_influence.load_decoder
    every = list(range(source.tokenizer().get_vocab_size()))
    monkeypatch.setattr(heads_influence, "load_decoder", lambda *a: broken(real(*a), every))
    with pytest.raises(ConfigError, match="no sequence with finite gradients"):
        traced(source, heads_corpus, tmp_path / "found")
    probed = source.tokenizer().encode("\n", add_special_tokens=False).ids
    monkeypatch.setattr(heads_influence, "load_decoder", lambda *a: broken(real(*a), probed))
    with pytest.raises(UnsupportedModel, match="probe of induction heads has no finite gradient"):
        traced(source, heads_corpus, tmp_path / "found")
    monkeypatch.setattr(heads_influence, "load_decoder", real)
    traced(source, heads_corpus, tmp_path / "found")
    for part in (tmp_path / "found").rglob("part-*.npy"):
        np.save(part, np.full_like(np.load(part), np.nan))
    for facts in (tmp_path / "found").rglob("facts.json"):
        facts.unlink()
    with pytest.raises(UnsupportedModel, match=f"None of the {N} samples"):
        traced(source, heads_corpus, tmp_path / "found")


def test_a_full_memory_halves_the_batch_and_changes_no_score(
    source: HeadSource,
    heads_corpus: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    """Both while fitting and while scoring."""
    whole = traced(source, heads_corpus, tmp_path / "whole")
    real = heads_influence.load_decoder

    def small(*arguments: Any) -> Any:
        model = real(*arguments)
        forward = model.forward

        def limited(input_ids: torch.Tensor, **others: Any) -> Any:
            if len(input_ids) > 3 and "output_attentions" not in others:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return forward(input_ids=input_ids, **others)

        model.forward = limited
        return model

    monkeypatch.setattr(heads_influence, "load_decoder", small)
    with caplog.at_level("WARNING"):
        run = traced(source, heads_corpus, tmp_path / "small")
    assert "full with 4 samples at once; going on with 2" in caplog.text
    scale = float(np.abs(scores_of(whole)).max())
    np.testing.assert_allclose(scores_of(run), scores_of(whole), rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"head": (2, 0)}, ConfigError, r"no head 2\.0; this model has layers 0 to 1 with heads"),
        ({"head": (0, 7)}, ConfigError, r"no head 0\.7; .* with heads 0 to 1"),
        ({"config": InfluenceConfig(device="cpu")}, CorpusError, "--order corpus takes"),
        (
            {"config": InfluenceConfig(order="corpus", device="cpu")},
            ConfigError,
            "takes 29 tokens and the samples have 512; give --context 29 or less",
        ),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_scored(
    changes: dict[str, Any],
    error: type,
    words: str,
    source: HeadSource,
    heads_corpus: str,
    tmp_path: Path,
):
    """No folder is left behind."""
    with pytest.raises(error, match=words):
        traced(source, heads_corpus, tmp_path / "found", **changes)
    assert not (tmp_path / "found").exists()


def test_influence_of_other_samples_is_not_written_over(
    source: HeadSource, heads_corpus: str, tmp_path: Path
):
    """Hours of scores are never lost to another window."""
    traced(source, heads_corpus, tmp_path / "found")
    other = dataclasses.replace(CONFIG, steps="3:15")
    with pytest.raises(CacheStale, match="of other samples or in other weights; choose another"):
        traced(source, heads_corpus, tmp_path / "found", config=other)
    assert len(scores_of(open_run(tmp_path / "found"))) == N
