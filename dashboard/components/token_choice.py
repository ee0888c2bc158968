"""Choose one token of the vocabulary: from the likeliest ones, or typed."""

import pandas as pd
import streamlit as st

from dashboard import service, state
from dashboard.data import RunRef
from dashboard.figures.tokens import glyphs, probability_text
from engine.errors import PromptError


def token_choice(
    ref: RunRef,
    likely: pd.DataFrame,
    parameter: str,
    label: str,
    *,
    default: int | None,
    scope: str,
    help_text: str,
) -> int | None:
    """A list of likely tokens that also takes a typed one; the choice is a URL parameter.

    Args:
        ref: Run.
        likely: token_id, token, probability of the tokens offered, most likely first.
        parameter: Name of the URL parameter (a token id).
        label: Label of the list.
        default: Token when the link names none; None leaves the list empty.
        scope: What the choice belongs to; another scope starts afresh.
        help_text: What the choice does.
    """
    names = _names(ref, likely)
    key = f"{parameter}:{scope}"
    current = _current(ref, names, parameter, key, default)
    options = list(names)

    def choose() -> None:
        chosen = st.session_state[key]
        try:
            token = typed_token(ref, chosen) if isinstance(chosen, str) else chosen
        except PromptError as error:
            st.session_state[f"{key}:problem"] = str(error)
            return
        st.session_state.pop(f"{key}:problem", None)
        state.write(**{parameter: token})

    if st.session_state.get(key) != current:
        st.session_state[key] = current
    st.selectbox(
        label,
        options,
        index=None,
        format_func=lambda token: names.get(token, str(token)),
        key=key,
        on_change=choose,
        accept_new_options=True,
        placeholder="Choose or type a token",
        help=help_text,
    )
    problem = st.session_state.get(f"{key}:problem")
    if problem:
        st.caption(f":material/error: {problem}")
    return current


def _current(
    ref: RunRef, names: dict[int, str], parameter: str, key: str, default: int | None
) -> int | None:
    """The token of the link, named if it is not among the likely; else why not, and the default."""
    current = state.read_int(parameter, default)
    if current is None or current in names:
        return current
    try:
        engine = service.engine(ref)
        names[current] = glyphs(engine.token_text(engine.token_id(current)))
    except PromptError as error:  # a link to a token of another run
        st.session_state[f"{key}:problem"] = str(error)
        state.write(**{parameter: None})
        return default
    return current


def _names(ref: RunRef, likely: pd.DataFrame) -> dict[int, str]:
    """What the list calls each token it offers: its text and its probability."""
    shown = service.veiled(ref, tuple(likely["token"]))
    rows = zip(likely["token_id"], shown, likely["probability"], strict=True)
    return {int(token): f"{text}   {probability_text(share)}" for token, text, share in rows}


def typed_token(ref: RunRef, typed: str) -> int:
    """The token a reader typed: as it stands, with · read as a space, or with a space before it.

    Raises:
        PromptError: it is none of these; the sentence is about what was typed.
    """
    engine = service.engine(ref)
    plain = typed.replace("·", " ")
    try:
        return engine.token_id(plain)
    except PromptError:
        if plain.startswith(" "):
            raise
        try:
            return engine.token_id(" " + plain)
        except PromptError:
            pass
        raise
