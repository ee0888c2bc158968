"""Tokens and numbers as chart text: whitespace as glyphs, nothing a chart would read as markup."""

_GLYPHS = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍", "\0": "␀", "\u200b": "∅"}
_LENGTH = 24


def glyphs(token: str) -> str:
    """A token on one line, its whitespace and control characters drawn; long ones are cut."""
    shown = "".join(_GLYPHS.get(c, c if c >= " " and c != "\x7f" else "␦") for c in token)
    return shown if len(shown) <= _LENGTH else shown[: _LENGTH - 1] + "…"


def veil(token: str) -> str:
    """A token that is not written out: its leading space and first letter, then dots."""
    bare = token.lstrip()
    return glyphs(token[: len(token) - len(bare)]) + bare[:1] + "•••"


def shortened(label: str, length: int = 40) -> str:
    """A label cut to `length` characters, with an ellipsis where it was cut."""
    return label if len(label) <= length else label[: length - 1] + "…"


def escaped(text: str) -> str:
    """Text that Plotly draws as it is: it reads a small HTML dialect in labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def logit_text(value: float) -> str:
    """A logit or a difference of logits with its sign and two decimals."""
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def probability_text(probability: float) -> str:
    """A probability as per cent, short enough to stand beside a bar."""
    if probability >= 0.001:
        return f"{probability:.1%}" if probability >= 0.1 else f"{probability:.2%}"
    return f"{probability:.3%}" if probability >= 1e-5 else "< 0.001%"
