"""The stability suite on a few tiny models: what must not move does not, what must does."""

import csv

import numpy as np
import pandas as pd
import pytest

from engine.able.model import AttributionSettings
from engine.able.probes import letter_probe, probe_set
from engine.errors import CacheMissing, ConfigError
from engine.pipeline.models_catalogue import read_catalogue
from engine.pipeline.models_embed import MODELS, EmbedStudy, embed_catalogue
from engine.pipeline.models_stability import StabilityStudy, choose_sample, measure_stability
from engine.pipeline.models_stability_passes import FOLDER, Suite, columns_of, part_of
from engine.pipeline.models_stability_rows import finds_itself, tokenizer_gap
from engine.store import check_run, open_run, read_table
from tests.engine.able.tiny_causal import save_tiny


QUESTIONS = ("Is 2 more than 1?", "Peru or Cuba?", "Is a cow hot?", "An owl?")
PROBES = probe_set(
    "few", [letter_probe("t", q, ["yes", "no"], n % 2) for n, q in enumerate(QUESTIONS)], "texts"
)
STUDY = EmbedStudy(attribution=AttributionSettings(device="cpu", dtype="float32"), n_dimensions=71)
SMALL = StabilityStudy(sample=3, n_probes=2, noise=(0.003, 0.03, 0.3))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A map of three tiny models, measured; read it, never change it."""
    folder = tmp_path_factory.mktemp("models")
    with (folder / "all.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "root", "tokenizer"])
        for family, seed, tokenizer in (("llama", 3, "t"), ("llama", 5, "t"), ("bloom", 3, "u")):
            save_tiny(folder / f"{family}-{seed}", family, seed=seed)
            writer.writerow([f"{family}-{seed}", f"{family}-{seed}", tokenizer])
    run = folder / "map"
    embed_catalogue(run, read_catalogue(folder / "all.csv"), PROBES, STUDY)
    measure_stability(str(run), SMALL)
    return run


@pytest.fixture
def rows(made):
    return read_table(open_run(made), "model_stability")


def value(rows, study, setting, measure, column="value"):
    own = rows[(rows["study"] == study) & (rows["setting"] == setting)]
    return float(own[own["measure"] == measure][column].iloc[0])


@pytest.mark.slow
def test_copies_batches_orders_and_rewrites_move_nothing_but_rounding(rows):
    """The first not even that."""
    assert value(rows, "copy", "loaded again", "distance", "high") == 0
    for study, setting in (("batch", "one row at a time"), ("option_order", "shuffled")):
        assert value(rows, study, setting, "distance", "high") < 1e-4
        assert value(rows, study, setting, "finds_itself") == 1
    assert value(rows, "dtype", "bfloat16", "cosine") > 0.9


@pytest.mark.slow
def test_noise_moves_embeddings_the_more_the_more_there_is(rows):
    """And a little noise little: per unit of it about as far."""
    noise = rows[(rows["study"] == "noise") & (rows["measure"] == "distance")].sort_values("x")
    distances = noise["value"].to_numpy()
    assert distances[0] < 0.1
    assert (np.diff(distances) > 0).all()
    assert noise["setting"].tolist() == ["0.003", "0.03", "0.3"]
    quotient = value(rows, "noise", "0.003", "quotient")
    assert quotient == pytest.approx(value(rows, "noise", "0.003", "distance") / 0.003, rel=1e-4)


@pytest.mark.slow
def test_the_norm_s_models_alone_are_tried_at_the_embedding(rows):
    """A model with a norm on its embedding has nothing but rounding there."""
    assert int(value(rows, "hook", "embedding", "cosine", "n")) == 1
    assert value(rows, "hook", "norm", "homogeneity") < 1e-4


@pytest.mark.slow
def test_every_study_is_in_the_table_and_the_run_is_whole(made, rows):
    """Sample, probes and what models did not allow stand beside."""
    assert set(rows["study"]) == {
        *("probe_count", "dimension", "projector_seed", "dtype", "batch", "option_order"),
        *("template", "hook", "space_rule", "copy", "noise"),
    } | ({"rewrite"} & set(rows["study"])) | ({"convergence"} & set(rows["study"]))  # fmt: skip
    facts = open_run(made).manifest["stages"]["stability"]
    assert sorted(facts["sample"]) == ["bloom-3", "llama-3", "llama-5"]
    assert facts["n_probes"] == 2
    assert facts["left_out"]["hook: embedding"] == 2
    assert not (made / FOLDER).exists()
    assert check_run(open_run(made)) == []


def test_the_sample_takes_architectures_in_turns_and_leaves_out_the_slow(tmp_path):
    """One model that takes ten times as long would take most of the suite's time."""
    kinds = ["a"] * 5 + ["b"] * 2 + ["c"]
    for number in range(8):
        (tmp_path / f"m{number}").mkdir()
    catalogue = pd.DataFrame(
        {
            "model": [f"m{n}" for n in range(8)],
            "place": [str(tmp_path / f"m{n}") for n in range(8)],
            "architecture": kinds,
            "seconds": [1.0] * 7 + [10.0],
        }
    )
    chosen = [name for name, _ in choose_sample(catalogue, StabilityStudy(sample=4))]
    found = [kinds[int(name[1:])] for name in chosen]
    assert sorted(found) == ["a", "a", "b", "b"]
    assert chosen == [name for name, _ in choose_sample(catalogue, StabilityStudy(sample=4))]
    (tmp_path / "m7").rmdir()
    gone = catalogue.assign(place="nowhere")
    with pytest.raises(CacheMissing, match="0 of the map's models"):
        choose_sample(gone, StabilityStudy(sample=4))


def test_part_of_a_set_is_spread_over_it_with_its_columns():
    """The columns of a part are those of its probes in the whole."""
    part, places = part_of(PROBES, 2)
    assert places == [0, 2]
    assert [p.id for p in part.probes] == [PROBES.probes[place].id for place in places]
    n_words = [probe.n_words for probe in PROBES.probes]
    starts = np.cumsum([0, *(2 * n for n in n_words)])
    expected = [*range(2 * n_words[0]), *range(starts[2], starts[3])]
    assert columns_of(PROBES, places).tolist() == expected
    assert part_of(PROBES, 99)[1] == [0, 1, 2, 3]


def test_passes_of_a_lettered_map_have_no_letters_to_try():
    """Its usual prompt is the lettered one."""
    lettered = probe_set("few", [letter_probe("t", QUESTIONS[0], ["yes", "no"], 0)])
    names = {(p.study, p.setting) for p in Suite(probes=lettered).passes}
    assert ("template", "texts") in names
    assert ("template", "letters") not in names
    assert ("option_order", "lettered, shuffled") not in names


def test_finding_itself_and_the_tokenizers_gap_by_hand():
    """A tie with one's own vector counts; the gap is a difference of two means."""
    pool = np.eye(3)
    own = np.array([[1.0, 0, 0], [0, 0.6, 0.8]])
    assert finds_itself(own, pool, ("a", "b"), ("a", "b", "c")).tolist() == [1, 0]
    twice = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1, 0]])
    assert finds_itself(own[:1], twice, ("b",), ("a", "b", "c")).tolist() == [1]
    square = np.array([[1, 0.9, 0.5, 0.1], [0.9, 1, 0.3, 0.2], [0.5, 0.3, 1, 0], [0.1, 0.2, 0, 1]])
    related = np.zeros((4, 4), bool)
    related[0, 1] = related[1, 0] = True
    gap = tokenizer_gap(square, related, ("t", "t", "t", "u"))
    assert gap == pytest.approx((0.5 + 0.3) / 2 - (0.1 + 0.2 + 0.0) / 3)
    assert tokenizer_gap(square, related, ("t",) * 4) is None


@pytest.mark.slow
def test_what_the_suite_cannot_measure_is_said(made, tmp_path, synthetic_run):
    """No map, no attributions in full, too small a sample."""
    with pytest.raises(ConfigError, match="no map of models"):
        measure_stability("synthetic", SMALL)
    with pytest.raises(ConfigError, match="--sample is 2"):
        StabilityStudy(sample=2)
    import shutil

    compact = shutil.copytree(made, tmp_path / "compact")
    shutil.rmtree(compact / MODELS)
    with pytest.raises(CacheMissing, match="full attributions of 0 models"):
        measure_stability(str(compact), SMALL)
