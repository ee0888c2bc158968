"""`headwater heads influence`: the training samples that formed a head."""

from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import Reporter, digits, note, say, say_json, say_table
from engine.cli.options import with_config
from engine.cli.parameters import JsonOption, NewRunOption
from engine.errors import ConfigError
from engine.pipeline.heads_influence_settings import InfluenceConfig


if TYPE_CHECKING:
    from engine.store import Run

SIGN = "positive raises the head's score"
_SHOWN = 5
"""Samples of each end that a table lists."""
_AROUND = 8
"""Tokens shown on either side of the one that carries most of a sample."""


@with_config(InfluenceConfig, "Settings of the tracing")
def influence(
    *,
    config: InfluenceConfig,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="A run, a save_pretrained folder, a package of weights or a hub id.",
        ),
    ],
    corpus: Annotated[str, typer.Option(help="Corpus that the samples come from.")],
    head: Annotated[
        str | None,
        typer.Option(
            metavar="LAYER.HEAD", help="The head; with --all, the strongest unless given."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Score every head of the model in the same pass.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Checkpoint to look at, by name or step; the last one."),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Revision on a hub to look at: step1000, say.")
    ] = None,
    run: NewRunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score every training sample by how far it raised, or lowered, the score of a head.

    Samples come in training order, by step and row. Of a run of ours the order is that of its own
    training; of any other model it is not known, and --order corpus takes the documents in their
    own order. Every sample's score is kept, not only the ends; a stopped call goes on where it
    stopped.
    """
    if head is None and not every:
        raise ConfigError("No head is named; write --head LAYER.HEAD, 1.3 for example, or --all.")
    from engine.corpus.build import open_corpus

    open_corpus(corpus)  # a missing corpus is said before anything slow is loaded
    from engine.mda.blocks import parse_head
    from engine.pipeline.heads_influence import trace_heads
    from engine.pipeline.heads_models import find_source

    source = find_source(
        model,
        [checkpoint] if checkpoint else (),
        [revision] if revision else (),
    )
    chosen = parse_head(head) if head else None
    done = trace_heads(
        source, config, head=chosen, every=every, corpus=corpus, run=run, progress=Reporter()
    )
    _report(done, config, corpus, chosen, as_json)


def _report(
    done: "Run", config: InfluenceConfig, corpus: str, head: tuple[int, int] | None, as_json: bool
) -> None:
    """Say what was found of the head asked for, or of every head."""
    found = influence_json(done, config.unit, head, config.top)
    if as_json:
        say_json(found[0] if head else found)
        return
    for one in found if head else found[:_SHOWN]:
        _show(one, _texts(done, corpus, config.unit, one["head"]))
    if len(found) > _SHOWN:
        note(f"{len(found)} heads were scored; --json lists them all.")
    say(str(done.path))


def influence_json(
    run: "Run", unit: str, head: tuple[int, int] | None, top: int
) -> list[dict[str, Any]]:
    """The contract of `influence --json`, one object a head; the head asked for alone if named."""
    import numpy as np

    from engine.store import read_table

    where = {"seed": 0, "unit": unit}
    choice = read_table(run, "head_choices", where=where).iloc[0]
    scores = np.stack(read_table(run, "head_influence", where=where)["influence"].to_list())
    samples = read_table(run, "head_samples", where={"seed": 0})
    ids = read_table(run, "documents", columns=["document", "doc_id"])
    samples = samples.merge(ids, on="document", how="left", validate="many_to_one")
    tails = read_table(run, "head_tails", where=where)
    found = []
    for place, name in enumerate(choice["heads"]):
        layer, number = (int(part) for part in name.split("."))
        if head in (None, (layer, number)):
            side = tails[(tails["layer"] == layer) & (tails["head"] == number)]
            found.append(_one(name, scores[:, place].astype(float), samples, side, top))
    return found


def _one(name: str, scores: Any, samples: Any, tails: Any, top: int) -> dict[str, Any]:
    """What is said of one head: both ends of its samples, and the tail of the positive side."""
    import numpy as np

    finite = np.flatnonzero(np.isfinite(scores))
    order = finite[np.argsort(-scores[finite], kind="stable")]
    positive = tails[tails["sign"] == "positive"].to_dict("records")
    tail = positive[0] if positive else dict.fromkeys(("top10_share", "exponent", "low", "high"))
    return {
        "head": name,
        "sign": SIGN,
        "n": len(finite),
        "top": _rows(samples, scores, order[:top]),
        "bottom": _rows(samples, scores, order[::-1][:top]),
        "tail": {
            "top10_share": tail["top10_share"],
            "exponent": tail["exponent"],
            "interval": [tail["low"], tail["high"]],
        },
    }


def _rows(samples: Any, scores: Any, chosen: Any) -> list[dict[str, Any]]:
    picked = samples.iloc[chosen]
    columns = zip(
        picked["doc_id"],
        picked["step"],
        scores[chosen],
        picked["loss"],
        picked["tags"],
        strict=True,
    )
    return [
        {"document": document, "step": step, "score": score, "loss": loss, "tags": tags.split()}
        for document, step, score, loss, tags in columns
    ]


def _texts(run: "Run", corpus: str, unit: str, head: str) -> dict[str, list[str]]:
    """Text around the token that carries most of each sample, by sign; empty where none is kept."""
    from engine.snippets import SnippetReader
    from engine.store import read_table

    layer, number = (int(part) for part in head.split("."))
    where = {"seed": 0, "unit": unit, "layer": layer, "head": number}
    ends = read_table(run, "head_tokens", where=where)
    samples = read_table(run, "head_samples", columns=["step", "row", "document", "position"])
    ids = read_table(run, "documents", columns=["document", "doc_id"])
    ends = ends.merge(samples, on=["step", "row"]).merge(ids, on="document")
    reader = SnippetReader(corpus, run.model_path)
    texts: dict[str, list[str]] = {}
    for sign, side in ends.sort_values("rank").groupby("sign"):
        columns = zip(side["doc_id"], side["position"], side["influence"], strict=True)
        texts[str(sign)] = [_around(reader.tokens(d), p, i) for d, p, i in columns]
    return texts


def _around(tokens: Any, position: int, influence: Any) -> str:
    """The token that carries most of a sample, with its neighbours, in its document.

    A sample may go on into the next document, whose text is not shown.
    """
    import numpy as np

    at = position + int(np.abs(influence).argmax())
    if at >= len(tokens):
        return ""
    before = "".join(token.text for token in tokens[max(0, at - _AROUND) : at])
    after = "".join(token.text for token in tokens[at + 1 : at + 1 + _AROUND])
    return f"{before}[{tokens[at].text}]{after}".replace("\n", "⏎")


def _show(found: dict[str, Any], texts: dict[str, list[str]]) -> None:
    """The ends of one head's samples, with the token that carries most, and its tail."""
    tail = found["tail"]
    interval = " to ".join(digits(value) for value in tail["interval"])
    say(
        f"Head {found['head']}: {found['n']:,} samples, {SIGN}; the top 10 % carry "
        f"{digits(tail['top10_share'])} of the positive influence, exponent "
        f"{digits(tail['exponent'])} ({interval})"
    )
    headings = {"score": "right", "step": "right", "document": "left", "loss": "right"}
    sides = (("top", "positive", 1), ("bottom", "negative", -1))
    listed = [
        pair
        for end, sign, turn in sides
        for pair in list(zip_longest(found[end][:_SHOWN], texts.get(sign, [])[:_SHOWN]))[::turn]
        if pair[0] is not None
    ]
    say_table(
        {**headings, "tags": "left", "text": "left"},
        [
            (
                f"{row['score']:+.4g}",
                digits(row["step"]),
                row["document"],
                digits(row["loss"]),
                " ".join(row["tags"]),
                text or "–",
            )
            for row, text in listed
        ],
    )
