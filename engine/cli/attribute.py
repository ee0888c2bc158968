"""`headwater attribute`: the training texts behind a prediction."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import Reporter, note, say, say_json, say_table
from engine.cli.parameters import DEMO, JsonOption, RunOption
from engine.cli.prompt import DeviceOption
from engine.errors import ConfigError


if TYPE_CHECKING:
    from engine.live import Attribution, LiveEngine

_BEFORE, _AFTER = 12, 12
"""Tokens of a snippet around the one that carries most of the score."""
_LISTED = 3
"""Prototypes named in a line of the table."""


def attribute(
    text: Annotated[str, typer.Argument(help="The text; in quotes.")],
    *,
    run: RunOption = DEMO,
    target: Annotated[
        str | None,
        typer.Option(
            help="Token whose prediction is traced, ' Paris' say; the likeliest if unset."
        ),
    ] = None,
    position: Annotated[
        int, typer.Option(help="Token after which it is predicted; -1 is the last, 0 the first.")
    ] = -1,
    span: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="FIRST LAST",
            help="Trace the tokens FIRST to LAST of the text itself, in place of one prediction.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="cached, or full, ekfac, projected, gradient-dot, knn, tfidf, bm25, random, ..., "
            "which read the pool's texts and are slow."
        ),
    ] = "cached",
    variant: Annotated[
        str | None,
        typer.Option(help="Form of the cached statistics, path+diagonal+unit say."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Training sequences to list.")] = 10,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Rank training texts by how far they lower the loss of a prediction.

    A score is positive where up-weighting the text lowers the loss, -log p, of what is traced; a
    prototype's share is what it adds to the score. `headwater attribution-index` makes the pool of
    texts that is searched.
    """
    if variant is not None and method != "cached":
        raise ConfigError(
            f"--variant is a form of the cached statistics and has no meaning beside --method "
            f"{method}."
        )
    from engine.store import resolve_model

    resolve_model(run)  # an unknown run is said before anything slow is loaded
    from engine.live import AttributionQuery, LiveEngine

    engine = LiveEngine.open(run, device=device)
    query = AttributionQuery(text, target, position, span)
    found = engine.attribution.attribute(query, variant or method, top, Reporter())
    for notice in found.notices:
        note(notice)
    if as_json:
        say_json(attribution_json(engine, found, method))
    else:
        _show(engine, found)


def attribution_json(engine: "LiveEngine", found: "Attribution", method: str) -> dict[str, Any]:
    """The contract of `attribute --json`; `variant` and the parts of the time are added."""
    total = sum(found.seconds.values())
    return {
        "method": method,
        "target": found.scores.target,
        "seconds": total,
        "results": [
            {
                "rank": rank,
                "document": row["doc_id"],
                "position": row["position"],
                "score": row["score"],
                "prototypes": _prototypes(found, rank),
                "snippet": snippet(engine, found, row["sequence"]),
            }
            for rank, row in enumerate(found.results.to_dict("records"), start=1)
        ],
        "variant": found.method,
        "unit": found.scores.unit,
        "seconds_by_stage": dict(found.seconds),
        "pool": {"sequences": found.scores.n_sequences, "tokens": found.scores.n_tokens},
    }


def _prototypes(found: "Attribution", rank: int) -> list[list[Any]]:
    own = found.shares[found.shares["rank"] == rank]
    return [list(pair) for pair in zip(own["prototype"].tolist(), own["share"], strict=True)]


def snippet(engine: "LiveEngine", found: "Attribution", sequence: int) -> str:
    """Text around the token that adds most to a score, or the sequence's beginning."""
    texts = [token.text for token in engine.attribution.texts.tokens(sequence)]
    centre = 0
    if not found.shares.empty:
        tokens = engine.attribution.token_scores(found.query, found.method, [sequence])
        centre = int(tokens["score"].to_numpy().argmax())
    first = max(0, min(centre - _BEFORE, len(texts) - _BEFORE - _AFTER))
    return "".join(texts[first : max(centre, _BEFORE) + _AFTER])


def _show(engine: "LiveEngine", found: "Attribution") -> None:
    scores = found.scores
    say(
        f"{scores.target!r}, loss {scores.loss:.3f} nats, by {found.method} over "
        f"{scores.n_sequences:,} sequences; scores in {scores.unit}, positive lowers the loss"
    )
    rows = []
    for rank, row in enumerate(found.results.to_dict("records"), start=1):
        shares = [f"{i} ({share:+.2g})" for i, share in _prototypes(found, rank)[:_LISTED]]
        text = " ".join(snippet(engine, found, row["sequence"]).split())
        place = f"{row['doc_id']}:{row['position']}"
        rows.append((f"{row['score']:+.4g}", row["domain"], place, text or "–", ", ".join(shares)))
    headings = {
        "score": "right",
        "domain": "left",
        "document:position": "left",
        "text": "left",
        "prototypes": "left",
    }
    say_table(headings, rows)
    parts = ", ".join(f"{name} {value:.3f} s" for name, value in found.seconds.items())
    say(parts)
