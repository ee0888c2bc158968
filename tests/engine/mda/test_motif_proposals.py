"""What an endpoint may change of motifs: their structure, through invented texts alone."""

import json
from typing import Any

import pytest

from engine.endpoint import Endpoint, EndpointError
from engine.mda.motif_proposals import LONGEST_SAMPLE, SHOWN_SAMPLES, refine
from engine.mda.synthetic import generate
from tests.engine.mda.test_motifs import TEXTS, motif_of
from tests.engine.mda.test_synthetic import repeats


INVENTED = ["x1|y2|z3\nx4|y5|z6\nx7|y8|z9\n", "p|q|r\ns|t|u\nv|w|x\n"]


class Answering(Endpoint):
    """An endpoint with an answer of its own; it keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://x/v1", "inventor")
        object.__setattr__(self, "answer", answer)
        object.__setattr__(self, "asked", [])

    def ask(self, prompt: str, text: str) -> dict[str, Any]:
        self.asked.append((prompt, text))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def examples(name: str, texts: Any) -> dict[str, Any]:
    return {"motifs": [{"motif": name, "examples": texts}]}


def test_invented_texts_give_the_structure_and_samples_the_counts():
    """The delimiter is the endpoint's; share, count and words are those of the samples."""
    local = motif_of("table")
    (motif,) = refine(Answering(examples("table", INVENTED)), [local], ["a"])
    assert motif.structure.delimiters.values == ("|",)
    assert (motif.share, motif.n_samples) == (local.share, local.n_samples)
    assert motif.vocabulary == local.vocabulary
    assert (motif.origin, local.origin) == ("inventor", "local")
    row = generate([motif], 1, 90, 0, lambda text: list(text.encode()))[0]
    assert bytes(row.tolist()).count(b"|") > 5


@pytest.mark.parametrize(
    "answer",
    [
        examples("table", ["The ferry left late."] * 9),
        examples("table", INVENTED[:1]),
        examples("table", "a|b\nc|d\ne|f"),
        examples("ballad", INVENTED),
        examples("table", [{"text": INVENTED[0]}, 3, None]),
        {"motifs": [INVENTED, 3, {"examples": INVENTED}]},
        {"motifs": "table"},
        {},
        EndpointError("The endpoint gave no usable answer."),
    ],
)
def test_an_answer_that_cannot_be_used_changes_nothing(answer: Any):
    """Too few texts that show the structure, other types, other names, no answer."""
    motifs = [motif_of("table"), motif_of("list")]
    assert refine(Answering(answer), motifs, ["a"]) == motifs


def test_repeats_are_never_asked_about():
    """They are of tokens; nothing is sent for them alone."""
    silent = Answering(examples("repeat", [TEXTS["list"]] * 3))
    motifs = repeats(11, 23, 17)
    assert refine(silent, motifs, ["a"]) == motifs
    assert silent.asked == []
    both = [*motifs, motif_of("table")]
    assert refine(silent, both, ["a"]) == both
    assert "repeat" not in json.loads(silent.asked[0][1])["structures"]


def test_few_samples_are_sent_and_cut():
    """The same draw for the same seed."""
    texts = [f"{i}" + "x" * 1000 for i in range(100)]
    sent = []
    for seed in (3, 3, 4):
        endpoint = Answering({})
        refine(endpoint, [motif_of("table")], texts, seed=seed)
        sent.append(json.loads(endpoint.asked[0][1])["windows"])
    assert len(sent[0]) == SHOWN_SAMPLES
    assert all(len(text) == LONGEST_SAMPLE for text in sent[0])
    assert sent[0] == sent[1] != sent[2]
