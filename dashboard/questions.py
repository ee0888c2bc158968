"""Text of multiple-choice questions, read from the installed package when it is looked at."""

import streamlit as st

from engine.errors import EngineError
from engine.snippets import Question, questions_by_id


@st.cache_resource(max_entries=8, show_spinner="Reading the questions …")
def _texts(reference: str) -> dict[str, Question]:
    """Questions of a set by id; a missing package raises, which is not cached."""
    return questions_by_id(reference)


def texts(reference: str) -> tuple[dict[str, Question], str]:
    """Questions of a set by id, and why there are none where they cannot be read here.

    Args:
        reference: The set as the control tables name it.
    """
    try:
        return _texts(reference), ""
    except EngineError as error:
        return {}, str(error).replace("`", "")


def full_text(question: Question) -> str:
    """The passage a question is about, if any, and the question."""
    return f"{question.passage}\n\n{question.question}" if question.passage else question.question
