"""What the page Pair looks at, and how alike the two models are; all of it in the URL."""

from dataclasses import dataclass

import streamlit as st

from dashboard import service_pair as service, state, text_pair as text, theme
from dashboard.components.doors import door
from dashboard.components.facts import Fact, facts
from dashboard.data import RunRef
from dashboard.model_words import UNPROJECTED
from engine.atlas.verdicts import CAVEAT


ICON = ":material/compare:"
WANTED = "pair_wanted"
"""State in which a click below the choices names the second model."""


@dataclass(frozen=True)
class PairView:
    """What is looked at."""

    a: str
    b: str
    variant: str

    @property
    def names(self) -> tuple[str, str]:
        """Both models."""
        return self.a, self.b

    @property
    def kept(self) -> str:
        """The way of embedding whose long vectors follow from the words that are kept."""
        return self.variant if self.variant in UNPROJECTED else "able"


def pair_door(a: str, b: str, label: str = "Compare question by question") -> None:
    """A link to two models side by side.

    Args:
        a: First model.
        b: Second model.
        label: Words of the link.
    """
    door("pair", label, ICON, a=a, b=b)


def forget() -> None:
    """Take out of the link what belongs to another pair."""
    state.write(**dict.fromkeys(text.DEPENDENT))


def _swap() -> None:
    first, second = st.session_state["a"], st.session_state["b"]
    st.session_state["a"], st.session_state["b"] = second, first


def controls(ref: RunRef, known: tuple[str, ...]) -> PairView:
    """Draw both choices with the button that swaps them.

    Args:
        ref: Run.
        known: Embedded models, two at least.
    """
    wanted = st.session_state.pop(WANTED, None)
    if wanted in known:
        st.session_state["b"] = wanted
        forget()
    opening = service.opening_pair(ref)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        a = _model("First model", "a", known, opening[0])
        st.button("Swap", key="swap", icon=":material/swap_horiz:", on_click=_swap, type="tertiary")
        b = _model("Second model", "b", known, _other(known, a, opening))
        variant = _variant(service.variants(ref))
    return PairView(a, b, variant)


def _other(known: tuple[str, ...], a: str, opening: tuple[str, str]) -> str:
    """The second model where none is named: the other of the opening pair, or any other."""
    if a in opening:
        return opening[1 - opening.index(a)]
    return next(name for name in known if name != a)


def _model(label: str, key: str, known: tuple[str, ...], default: str) -> str:
    state.read_choice(key, known, default)
    chosen = st.selectbox(
        label, known, known.index(default), key=key, bind="query-params", width=290,
        on_change=forget,
    )  # fmt: skip
    return str(chosen or default)


def _variant(known: tuple[str, ...]) -> str:
    default = "able" if "able" in known else known[0]
    state.read_choice("variant", known, default)
    chosen = st.selectbox(
        "Embedding",
        known,
        known.index(default),
        key="variant",
        bind="query-params",
        help=text.variant_help(known),
        width=150,
    )
    return str(chosen or default)


def relation_facts(ref: RunRef, view: PairView) -> None:
    """Cosine, percentile, verdict, what is documented, tokenizers; the caveat below."""
    found = service.relation(ref, view.a, view.b, view.variant)
    shares = service.shares(ref, view.a, view.b, view.kept)
    whole = f"{_cosine(float(shares['product'].sum()))} unprojected" if len(shares) else ""
    percentile = "–" if found.percentile is None else f"{found.percentile:.1f}"
    note = text.NO_PERCENTILE if found.percentile is None else "of unrelated pairs are less alike"
    facts(
        [
            Fact("Cosine", _cosine(found.cosine), whole, text.COSINE),
            Fact("Percentile", percentile, note, text.PERCENTILE),
            Fact("Verdict", found.verdict, "", text.VERDICT),
            Fact("Documented", found.known or "not documented", "", text.KNOWN),
            *_likeness(ref, view),
            *_answers(ref, view),
        ]
    )
    st.caption(CAVEAT)


def _cosine(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _likeness(ref: RunRef, view: PairView) -> list[Fact]:
    """Whether tokenizer and architecture are the same, where the cards say."""
    first, second = (service.card_of(ref, name) for name in view.names)
    items = []
    for column, title, help_text in (
        ("tokenizer", "Tokenizer", text.TOKENIZER),
        ("architecture", "Architecture", ""),
    ):
        own, other = str(first.get(column) or ""), str(second.get(column) or "")
        if not own or not other:
            items.append(Fact(title, "not known", "", help_text))
        elif own == other:
            items.append(Fact(title, "same", own, help_text))
        else:
            items.append(Fact(title, "differs", f"{own} | {other}", help_text))
    return items


def _answers(ref: RunRef, view: PairView) -> list[Fact]:
    """Right answers of each, and how often both choose the same."""
    first, second = (service.options_of(ref, name) for name in view.names)
    both = first.index.intersection(second.index)
    same = (first.loc[both, "choice"] == second.loc[both, "choice"]).mean() if len(both) else None
    right = " | ".join(theme.percent(float(rows["correct"].mean())) for rows in (first, second))
    return [
        Fact("Right", right, "", text.RIGHT),
        Fact(
            "Same answer",
            theme.percent(None if same is None else float(same)),
            f"of {len(both):,} questions",
            text.ANSWERS,
        ),
    ]
