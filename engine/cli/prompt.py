"""`headwater decompose` and `headwater generate`: ask a run about a text of your own."""

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import digits, note, say, say_json, say_table
from engine.cli.parameters import DEMO, JsonOption, RunOption
from engine.errors import PromptError


if TYPE_CHECKING:
    import pandas as pd

    from engine.live import Decomposition, LiveEngine, Sampler, Suppression

_SHOWN = 12
_ID_DIGITS = 9
_SHOWN_TYPED = 60
_SLICE = ("prototype", "label", "activation", "logit")
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]


def decompose(
    text: Annotated[str, typer.Argument(help="The text; in quotes.")],
    *,
    run: RunOption = DEMO,
    position: Annotated[
        int, typer.Option(help="Token after which to look; -1 is the last, 0 the first.")
    ] = -1,
    target: Annotated[
        str | None,
        typer.Option(help="Token whose logit is explained, ' Paris' say; the likeliest if unset."),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Split the logit of a next token into what each prototype and the residual give it.

    Positive slices raise the target, negative ones lower it. Slices and residual are computed
    independently of the logit; the gap is what rounding leaves, over the sum of absolute terms.
    """
    from engine.store import resolve_model

    resolve_model(run)  # an unknown run is said before anything slow is loaded
    from engine.live import LiveEngine

    found = LiveEngine.open(run, device=device).decompose(text, position, target)
    if found.notice:
        note(found.notice)
    if as_json:
        say_json(decomposition_json(found))
    else:
        _show_decomposition(found)


def decomposition_json(found: "Decomposition") -> dict[str, Any]:
    """The contract of `decompose --json`; `bias` is added for models whose head has one."""
    shape: dict[str, Any] = {
        "tokens": [token.text for token in found.tokens],
        "position": found.position,
        "target": found.target,
        "logit": found.logit,
        "slices": _records(found.slices),
        "residual": found.residual,
        "gap": found.gap,
    }
    return shape | ({"bias": found.bias} if found.bias else {})


def _records(slices: "pd.DataFrame") -> list[dict[str, Any]]:
    columns = [slices[name].tolist() for name in _SLICE]
    return [dict(zip(_SLICE, values, strict=True)) for values in zip(*columns, strict=True)]


def _show_decomposition(found: "Decomposition") -> None:
    after = found.tokens[found.position].text
    say(f"{found.target!r} after {after!r} (position {found.position}): logit {found.logit:.4f}")
    slices = _records(found.slices)
    rows = [
        (f"{s['logit']:+.4f}", f"{s['activation']:.3f}", str(s["prototype"]), s["label"] or "–")
        for s in slices[:_SHOWN]
    ]
    hidden = slices[_SHOWN:]
    if hidden:
        other = sum(s["logit"] for s in hidden)
        rows.append((f"{other:+.4f}", "", "", f"{len(hidden)} more prototypes"))
    rows.append(
        (f"{found.residual:+.4f}", "", "", f"residual ({found.residual_share:.0%} of ||z||²)")
    )
    if found.bias:
        rows.append((f"{found.bias:+.4f}", "", "", "bias of the head"))
    headings = {"logit": "right", "activation": "right", "prototype": "right", "label": "left"}
    say_table(headings, rows)
    say(f"gap {found.gap:.1e} of the sum of absolute terms")


def generate(
    prompt: Annotated[str, typer.Argument(help="The text to go on from; in quotes.")],
    *,
    run: RunOption = DEMO,
    suppress: Annotated[
        str | None, typer.Option(help="Prototypes to switch off: 1,2,3.", metavar="IDS")
    ] = None,
    concept: Annotated[
        str | None, typer.Option(help="A saved concept of the run to switch off, NSFW say.")
    ] = None,
    strength: Annotated[
        float, typer.Option(help="0 leaves all as it is, 1 removes the prototypes.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the sampler, shared by both texts.")] = 0,
    tokens: Annotated[int, typer.Option(help="Tokens to generate.", min=1, max=4096)] = 60,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.8,
    top_p: Annotated[float, typer.Option(help="Share of probability drawn from.")] = 0.95,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Continue a prompt twice, as the model is and with prototypes switched off.

    Both share the seed and the sampler, so that what differs comes from the suppression. Scores
    are the probability of unwanted content by an offline classifier.
    """
    from engine.store import resolve_model

    off = _typed_prototypes(suppress)
    if off and concept is not None:
        raise PromptError("Both --suppress and --concept are given; name one of them.")
    resolve_model(run)  # an unknown run is said before anything slow is loaded
    from engine.live import LiveEngine, Sampler, Suppression

    engine = LiveEngine.open(run, device=device)
    chosen = Suppression(engine.concept(concept) if concept is not None else off, strength)
    sampler = Sampler(temperature=temperature, top_p=top_p)
    result = _generate_both(engine, prompt, chosen, sampler, seed=seed, tokens=tokens)
    if as_json:
        say_json(result)
    else:
        _show_generations(result, suppressed=chosen.active)


def _typed_prototypes(typed: str | None) -> tuple[int, ...]:
    """Prototypes of `1,2,3`."""
    parts = [part.strip() for part in (typed or "").split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) <= _ID_DIGITS for part in parts):
        shown = textwrap.shorten(typed or "", _SHOWN_TYPED, placeholder="…")
        raise PromptError(
            f"--suppress {shown!r} is not a list of prototypes; write --suppress 1,2,3."
        )
    return tuple(int(part) for part in parts)


def _generate_both(
    engine: "LiveEngine",
    prompt: str,
    suppression: "Suppression",
    sampler: "Sampler",
    *,
    seed: int,
    tokens: int,
) -> dict[str, Any]:
    """The contract of `generate --json`."""
    baseline = engine.complete(prompt, n_tokens=tokens, seed=seed, sampler=sampler)
    suppressed = baseline
    if suppression.prototypes:
        suppressed = engine.complete(
            prompt, n_tokens=tokens, seed=seed, sampler=sampler, suppression=suppression
        )
    if baseline.notice:
        note(baseline.notice)
    scores = engine.score([baseline.text, suppressed.text])
    if scores.classifier is None:
        for sentence in scores.missing:
            note(sentence)
    before, after = scores.classifier or (None, None)
    return {
        "baseline": baseline.text,
        "suppressed": suppressed.text,
        "baseline_score": before,
        "suppressed_score": after,
        "tokens_touched": suppressed.tokens_touched if suppression.prototypes else 0,
    }


def _show_generations(result: dict[str, Any], *, suppressed: bool) -> None:
    say(f"As it is (score {digits(result['baseline_score'])}):")
    say(result["baseline"])
    if suppressed:
        say()
        say(
            f"Suppressed (score {digits(result['suppressed_score'])}, "
            f"{result['tokens_touched']} tokens touched):"
        )
        say(result["suppressed"])
