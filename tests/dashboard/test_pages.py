"""Every page with a run and without one; the URL round trip; nonsense in the URL."""

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest


PAGES = (
    "overview",
    "prototypes",
    "prompt",
    "attribution",
    "suppression",
    "control",
    "curvature",
    "heads",
    "emergence",
    "models",
    "runs",
)
TIMEOUT = 300


@pytest.fixture(autouse=True)
def _fresh_caches():
    """Cached answers of another test's folders must not be served."""
    st.cache_data.clear()
    st.cache_resource.clear()


def open_page(page: str, **parameters: str) -> AppTest:
    app = AppTest.from_string(
        f"from dashboard.app import main\nmain({page!r})", default_timeout=TIMEOUT
    )
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def words(app: AppTest) -> str:
    """Everything an element of the page says."""
    kinds = ("markdown", "caption", "text", "code", "info", "warning", "success", "error")
    return "\n".join(str(getattr(e, "value", "")) for kind in kinds for e in app.get(kind))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_with_a_run(page: str, synthetic_run: Path):
    """A page shows its worked example without an exception, whatever the run lacks."""
    app = open_page(page)
    assert not app.exception
    assert app.selectbox(key="run").value == synthetic_run.name


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_with_an_empty_house(page: str, house: Path):
    """With no run at all a page says so and gives the command that makes one."""
    assert house.is_dir()
    app = open_page(page)
    assert not app.exception
    assert "no run" in words(app).lower()
    assert any("headwater train" in code.value for code in app.code)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", "../../etc"),
        ("prototype", "many"),
        ("prototype", "999999"),
        ("picked", "1,-2,x"),
        ("picked", "z!!!"),
        ("sort", "nothing"),
        ("document", "-4"),
        ("compare", "<script>alert(1)</script>"),
        ("colour", "rainbow"),
        ("mark", "nan"),
        ("q", "\0<script>"),
        ("rate_from", "inf"),
    ],
)
def test_nonsense_in_the_url_gives_defaults(name: str, value: str, synthetic_run: Path):
    """A link that was cut or edited opens the page with defaults, never a traceback."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", **{name: value})
    assert not app.exception
    assert "Traceback" not in words(app)


def test_a_dropped_parameter_is_said_in_one_sentence(synthetic_run: Path):
    """The reader learns why the link shows something else."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", prototype="many")
    assert len(app.warning) == 1
    assert "many" in app.warning[0].value


def test_the_state_of_the_prototypes_page_survives_a_round_trip(synthetic_run: Path):
    """What a reader chose is in the URL, and the URL alone brings it back.

    The browser, absent here, writes bound widgets to the URL, choices by the words on screen; the
    page writes the rest.
    """
    assert synthetic_run.is_dir()
    link = {"q": "words", "sort": "Firing rate", "score": "0.3", "colour": "Label score"}
    first = open_page("prototypes", **link)
    first.button(key="go_next").click().run()
    kept = {k: v[0] if isinstance(v, list) else v for k, v in first.query_params.items()}
    assert kept["prototype"].isdecimal()
    second = open_page("prototypes", **{**link, **kept})
    assert second.text_input(key="q").value == "words"
    assert second.selectbox(key="sort").value == "firing_rate"
    assert second.selectbox(key="colour").value == "label_score"
    assert second.slider(key="score").value == pytest.approx(0.3)
    assert heading(second) == heading(first)
    assert f"#{kept['prototype']}" in heading(second)


def heading(app: AppTest) -> str:
    return next(m.value for m in app.markdown if m.value.startswith("### #"))


def test_next_and_previous_walk_the_order_of_the_table(synthetic_run: Path):
    """Previous undoes next; the keys press the same buttons."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes")
    before = heading(app)
    app.button(key="go_next").click().run()
    assert heading(app) != before
    app.button(key="go_previous").click().run()
    assert heading(app) == before


def test_filters_say_how_many_they_hide(synthetic_run: Path):
    """A reader never mistakes a filtered list for the whole."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", score="0.95")
    assert any("hidden by" in c.value and "label score" in c.value for c in app.caption)


def test_an_empty_result_names_the_filter_to_drop(synthetic_run: Path):
    """Nothing shown is an answer: the page says which filter to loosen."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", q="zzzzzzzz")
    assert any("without the search" in i.value for i in app.info)
    assert not app.exception


def test_a_lassoed_set_of_the_url_filters_the_table(synthetic_run: Path):
    """The set travels in the link."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", picked="2,3,5,7")
    table = next(d for d in app.dataframe if "firing_rate" in d.value)
    assert set(table.value["prototype"]) <= {2, 3, 5, 7}


def test_a_document_opens_from_the_url(synthetic_run: Path):
    """A link to a document in context opens it, and says what is missing when it has no text."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", prototype="3", document="0", at="2")
    assert not app.exception


def test_two_prototypes_open_side_by_side_from_the_url(synthetic_run: Path):
    """A comparison is a link too."""
    assert synthetic_run.is_dir()
    app = open_page("prototypes", prototype="3", compare="5")
    assert not app.exception
    assert sum(m.value.startswith("#### #") for m in app.markdown) == 2


def test_a_check_of_a_whole_run_says_so(synthetic_run: Path):
    """The button reads every table."""
    assert synthetic_run.is_dir()
    app = open_page("runs")
    app.button(key="check").click().run()
    assert app.success


def test_a_truncated_table_is_one_sentence(synthetic_run: Path):
    """A damaged file is named with what to do; the page keeps its navigation."""
    file = synthetic_run / "prototypes.parquet"
    file.write_bytes(file.read_bytes()[:100])
    app = open_page("prototypes")
    assert not app.exception
    assert "prototypes.parquet" in words(app)


def test_a_broken_run_is_listed_with_its_reason(synthetic_run: Path):
    """A folder that cannot be opened is shown on the Runs page, not hidden."""
    (synthetic_run.parent / "other").mkdir()
    (synthetic_run.parent / "other" / "run.json").write_text('{"schema_version": 99}')
    app = open_page("runs")
    assert not app.exception
    assert any("Reason" in d.value for d in app.dataframe)


def test_pages_that_read_tables_never_load_torch_or_umap(synthetic_run: Path):
    """Opening a page takes milliseconds of imports, not seconds."""
    import os
    import subprocess
    import sys

    script = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "for page in ('overview', 'prototypes', 'control', 'curvature', 'emergence',"
        " 'models', 'pair', 'routing', 'forecast', 'add', 'runs'):\n"
        "    app = AppTest.from_string(f'from dashboard.app import main\\nmain({page!r})',"
        " default_timeout=300).run()\n"
        "    assert not app.exception, app.exception\n"
        "loaded = {'torch', 'umap', 'numba', 'transformers'} & set(sys.modules)\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    assert synthetic_run.is_dir()
    done = subprocess.run(
        [sys.executable, "-c", script], env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_missing_tokenizer_costs_the_signature_alone(synthetic_run: Path):
    """Weights of a package may be absent: the card still opens, with a sentence for the tokens."""
    (synthetic_run / "model" / "tokenizer.json").unlink()
    app = open_page("prototypes", q="words")
    assert not app.exception
    assert "tokenizer.json" in words(app)
    assert heading(app)


def test_a_dense_twin_has_no_prototypes_to_show(synthetic_run: Path):
    """The page says what the run is instead of naming an index command that cannot help."""
    import json

    manifest = json.loads((synthetic_run / "run.json").read_text())
    (synthetic_run / "run.json").write_text(json.dumps({**manifest, "kind": "dense"}))
    app = open_page("prototypes")
    assert not app.exception
    assert "dense twin" in words(app)
