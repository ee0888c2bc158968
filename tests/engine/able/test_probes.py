"""Probes: the paper's prompt, the public format, other layouts, and sets without repetition."""

import json

import pytest

from engine.able.facts import fact_probes
from engine.able.paper_sources import (
    SOURCES,
    drawn_rows,
    paper_order,
    paper_probes,
)
from engine.able.probe_sources import probe_of_row, public_row, read_lines, read_probes
from engine.able.probes import letter_probe, paper_prompt, probe_of, probe_set, text_probe
from engine.errors import ConfigError
from engine.questions.question import MalformedRowError, question_of


PUBLIC_ROW = {
    "index": 0,
    "split": "validation",
    "original_idx": 11,
    "resource": "planted",
    "question": (
        "Given the following question and three candidate choices, choose the best one. Your "
        "response should end with one of A, B or C.\nQuestion: What do bees make?\nChoices:\n"
        "A. milk\nB. honey\nC. wool\nAnswer:"
    ),
    "choices": ["A", "B", "C"],
    "ans_idx": 1,
    "full_index": 3,
}


def test_the_prompt_is_the_papers_to_the_letter():
    """A row of the published set, made again from its parts."""
    made = letter_probe("planted", "What do bees make?", ["milk", "honey", "wool"], 1)
    assert made.prompt == PUBLIC_ROW["question"] + "\n"
    assert made.options == ("A", "B", "C")
    assert "two candidate" in paper_prompt("?", ["x", "y"])
    assert "one of A or B." in paper_prompt("?", ["x", "y"])


def test_a_row_of_the_public_format_is_read_and_written_as_it_was():
    """The set that the authors publish is read without change."""
    probe = probe_of_row("file", PUBLIC_ROW)
    assert probe == letter_probe("planted", "What do bees make?", ["milk", "honey", "wool"], 1)
    kept = {key: PUBLIC_ROW[key] for key in ("index", "resource", "question", "choices", "ans_idx")}
    assert public_row(0, probe) == kept


def test_a_row_of_other_layouts_becomes_the_papers_prompt():
    """Answered sets in packages have layouts of their own."""
    row = {"question": "What do bees make?", "options": "A. milk\nB. honey\nC. wool", "answer": "B"}
    assert probe_of_row("planted", row) == probe_of_row("planted", PUBLIC_ROW)
    with_passage = probe_of(question_of("s", {**row, "passage": "Bees fly."}))
    assert "Question: Bees fly.\nWhat do bees make?\n" in with_passage.prompt


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"question": " "}, "no question"),
        ({"choices": ["A"]}, "two or more"),
        ({"choices": ["A", ""]}, "two or more"),
        ({"ans_idx": 3}, "no place"),
        ({"ans_idx": True}, "no place"),
    ],
)
def test_a_malformed_public_row_says_what_is_wrong(change, reason):
    """The reason goes into the sentence about the file."""
    with pytest.raises(MalformedRowError, match=reason):
        probe_of_row("file", PUBLIC_ROW | change)


def test_a_file_with_bad_lines_is_read_and_they_are_counted(tmp_path):
    """One bad line among a thousand must not cost the run."""
    path = tmp_path / "mine.jsonl"
    path.write_text(f"{json.dumps(PUBLIC_ROW)}\n{{broken\n\n{json.dumps({'question': 'x'})}\n")
    found, malformed = read_lines(path)
    assert [probe.source for probe in found] == ["planted"]
    assert malformed == 2
    assert read_probes(str(path)).n_left_out == 2
    path.write_text("{broken\n")
    with pytest.raises(ConfigError, match="holds no question among its 1 lines"):
        read_lines(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_lines(tmp_path / "missing.jsonl")


def test_texts_are_scored_after_the_question_alone():
    """The choices leave the prompt, or the model could copy them."""
    probe = text_probe(probe_of_row("file", PUBLIC_ROW))
    assert probe.prompt == "Question: What do bees make?\nAnswer: "
    assert probe.options == ("milk", "honey", "wool")
    assert probe.answer == 1
    two_lines = letter_probe("s", "B. or\nC.?", ["x\ny", "z"], 0)
    assert text_probe(two_lines).options == ("x\ny", "z")
    with pytest.raises(ConfigError, match="--style letters"):
        text_probe(probe_of_row("file", PUBLIC_ROW | {"question": "Bees?"}))


def test_a_set_holds_no_probe_twice_and_none_with_equal_options():
    """Columns are named after their probe, so a probe may stand in a set once."""
    first, second = fact_probes(2)
    equal = letter_probe("s", "?", ["x", "x"], 0)
    found = probe_set("mine", [first, second, first])
    assert found.probes == (first, second)
    assert found.n_left_out == 1
    assert probe_set("mine", [first, equal], "texts").n_left_out == 1
    assert found.fingerprint != probe_set("mine", [second, first]).fingerprint
    with pytest.raises(ConfigError, match="holds no question"):
        probe_set("mine", [])


def test_ids_and_words_depend_on_the_text_alone():
    """The id names columns; its value is part of every stored embedding."""
    probe = probe_of_row("file", PUBLIC_ROW)
    assert probe.id == probe_of_row("other", PUBLIC_ROW).id == "ea894c8abbdf3184"
    assert probe.words[:3] == ("Given", "the", "following")
    assert probe.words[-1] == "Answer:"
    assert probe.n_words == len(probe.prompt.split())


def test_facts_are_true_and_fewer_are_the_first_of_more():
    """A generated question whose answer is wrong would punish good models."""
    found = fact_probes(97)
    assert found[:41] == fact_probes(41)
    assert len({probe.id for probe in found}) == 97
    for probe in found:
        right = text_probe(probe).options[probe.answer]
        asked = probe.prompt.split("Question: ")[1].split("\n")[0]
        if asked.startswith("What is") and asked[8].isdigit():
            sum_ = asked[8:-1].replace("times", "*")
            assert eval(sum_) == int(right)
        if asked.startswith("Which number is"):
            numbers = [int(option) for option in text_probe(probe).options]
            assert int(right) == (max if "largest" in asked else min)(numbers)
    assert {probe.answer for probe in found} == {0, 1, 2, 3}


def test_parts_are_joined_and_counted():
    """`NAME:COUNT` parts with commas between them."""
    found = read_probes("facts:7")
    assert len(found) == 7
    assert found.sources == ("facts",)
    assert len(read_probes("facts:7,facts:11")) == 11
    for text, words in (
        ("unknown", "no probes called"),
        ("facts:0", "asks for none"),
        ("", "no q"),
    ):
        with pytest.raises(ConfigError, match=words):
            read_probes(text)


def test_the_papers_rows_are_drawn_again():
    """Rows and places of the published set (its first records, and its manifest of GPQA)."""
    sizes = (1172, 1267, 14042, 10042, 448, 1221)
    published = [
        ("commonsense_qa", 41),
        ("gpqa", 66),
        ("hellaswag", 9737),
        ("commonsense_qa", 432),
        ("gpqa", 266),
        ("gpqa", 435),
        ("winogrande", 1225),
        ("hellaswag", 7476),
        ("mmlu", 4615),
        ("hellaswag", 9478),
        ("hellaswag", 6325),
        ("gpqa", 87),
        ("gpqa", 254),
        ("commonsense_qa", 1049),
        ("ai2_arc", 978),
    ]
    drawn = [drawn_rows(size) for size in sizes]
    made = [(SOURCES[number].name, drawn[number][place]) for number, place in paper_order()]
    assert made[: len(published)] == published


ROWS = {
    "allenai/ai2_arc": (
        {
            "question": "q{}?",
            "choices": {"text": ["x", "y"], "label": ["1", "2"]},
            "answerKey": "2",
        },
        "ARC-Challenge",
        "test",
    ),
    "allenai/winogrande": (
        {"sentence": "a _ {}", "option1": "x", "option2": "y", "answer": "1"},
        "winogrande_xl",
        "validation",
    ),
    "cais/mmlu": ({"question": "m{}?", "choices": ["x", "y"], "answer": 1}, "all", "test"),
    "Rowan/hellaswag": (
        {"activity_label": "Act", "ctx": "he {}", "endings": ["x", "y"], "label": "0"},
        "default",
        "validation",
    ),
    "tau/commonsense_qa": (
        {
            "question": "c{}?",
            "choices": {"text": ["x", "y"], "label": ["A", "B"]},
            "answerKey": "A",
        },
        "default",
        "validation",
    ),
}


@pytest.fixture
def copies(tmp_path):
    """Folders as one clones them from the hub, eleven rows each."""
    for place, (row, config, split) in ROWS.items():
        folder = tmp_path / place
        folder.mkdir(parents=True)
        lines = [json.dumps(row).replace("{}", str(number)) for number in range(11)]
        (folder / "rows.jsonl").write_text("\n".join(lines))
        (folder / "README.md").write_text(
            f"---\nconfigs:\n- config_name: {config}\n  data_files:\n  - split: {split}\n"
            "    path: rows.jsonl\n---\n"
        )
    return tmp_path


def test_the_public_sources_are_read_from_copies(copies, monkeypatch, tmp_path):
    """The code that would ask the hub, on folders of the same layout."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    found = paper_probes(sources=copies, count=7)
    assert len(found) == 35
    order = [SOURCES[number].name for number, _ in paper_order(7) if number != 4]
    assert [probe.source for probe in found] == order
    arc = next(probe for probe in found if probe.source == "ai2_arc")
    first = next(place for number, place in paper_order(7) if number == 0)
    assert f"Question: q{drawn_rows(11, 7)[first]}?\n" in arc.prompt
    assert arc.answer == 1
    texts = {p.source: p.prompt.split("Question: ")[1].split("\n")[0] for p in found}
    assert texts["winogrande"].startswith("Which one is best to put in the blank: a _ ")
    assert texts["hellaswag"].startswith("Act: he ")
    with pytest.raises(ConfigError, match="has 11 rows, and 200 are drawn"):
        read_probes("public", sources=copies)
    with pytest.raises(ConfigError, match="hf auth login"):
        paper_probes(gated=True, sources=copies, count=7)


def test_lines_that_no_reader_survives_are_left_out(tmp_path, caplog):
    """Nested too deeply, or half of a character: the rest goes on."""
    good = '{"question": "Is it?", "choices": ["no", "yes"], "ans_idx": 1}'
    lines = (good, "[" * 100_000, good.replace("Is it", r"\ud800"))
    (tmp_path / "odd.jsonl").write_text("\n".join(lines))
    found, left_out = read_lines(tmp_path / "odd.jsonl")
    assert len(found) == 1
    assert "Is it?" in found[0].prompt
    assert left_out == 2
    assert "2 lines are no question" in caplog.text
