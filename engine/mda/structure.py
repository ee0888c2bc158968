"""Structure of a training sample: repeated spans, and tags such as code, markup or table.

A sample is a window of a document, so it begins and ends anywhere: no rule needs a whole line at
either end. Thresholds are ours, set so that windows of about 128 characters can be told apart.
"""

import heapq
import re
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Int


SHORTEST_SPAN = 12
"""Characters of the shortest span that counts towards the tag `repeat`."""
REPEAT_SHARE = 0.25
"""Share of a text that such spans must cover."""
FEWEST_DISTINCT = 4
"""Different tokens a span must hold; a run of spaces or dashes repeats trivially."""
CODE_SIGNALS = 3
"""Different marks of source code a text must hold."""
FEWEST_TAGS = 2
"""Opening and closing tags of markup, or commands of LaTeX, that a text must hold."""
FEWEST_PAIRS = 3
"""Pairs of a key and a value that a text must hold."""
FEWEST_LINES = 3
"""Lines in a row that must agree in a table, a list or a template."""
LONGEST_FIELD = 32
"""Characters that the fields of a table's line may have on average."""
FEWEST_SYMBOLS = 2
"""Marks or digits that the shape of a template's lines must hold."""
DIGIT_SHARE = 0.25
"""Share of the characters other than spaces that must be digits."""


class Span(NamedTuple):
    """Tokens [start, stop) that stand once more, from `earlier_start` on; the two may overlap."""

    start: int
    stop: int
    earlier_start: int

    @property
    def length(self) -> int:
        """Tokens in the span."""
        return self.stop - self.start

    @property
    def distance(self) -> int:
        """Tokens back to the earlier occurrence."""
        return self.start - self.earlier_start


def repeated_spans(tokens: Int[np.ndarray, " length"], min_length: int) -> list[Span]:
    """Exact repeats of earlier tokens, longest first taken, none overlapping another; by start.

    Each token is in one span at most. Among equally long spans the leftmost is taken, among equal
    earlier occurrences the nearest. Time is quadratic in the length.

    Args:
        tokens: up to some thousands.
        min_length: tokens of the shortest span, 1 or more.
    """
    lengths, distances = _longest_matches(tokens)
    free = np.ones(len(tokens), bool)
    found: list[Span] = []
    heap = [(-int(n), at) for at, n in enumerate(lengths) if n >= min_length]
    heapq.heapify(heap)
    while heap:
        negative, start = heapq.heappop(heap)
        length = -negative
        taken = np.flatnonzero(~free[start : start + length])
        room = int(taken[0]) if len(taken) else length
        if room == length:
            free[start : start + length] = False
            found.append(Span(start, start + length, start - int(distances[start])))
        elif room >= min_length:
            heapq.heappush(heap, (-room, start))
    return sorted(found)


def _longest_matches(
    tokens: Int[np.ndarray, " length"],
) -> tuple[Int[np.ndarray, " length"], Int[np.ndarray, " length"]]:
    """For each position the longest run from it that also starts earlier, and how far back."""
    n = len(tokens)
    lengths, distances = np.zeros(n, np.int64), np.zeros(n, np.int64)
    run = np.zeros(n + 1, np.int64)
    for at in range(n - 1, 0, -1):
        # run[j] becomes the common length of the runs from `at` and from j
        run[:at] = np.where(tokens[:at] == tokens[at], run[1 : at + 1] + 1, 0)
        back = int(np.argmax(run[:at][::-1]))
        lengths[at], distances[at] = run[at - 1 - back], back + 1
    return lengths, distances


# --- tags -------------------------------------------------------------------------------------


def tags(text: str) -> tuple[str, ...]:
    """Structures of a text, in the order of `TAGS`; `prose` where there is none."""
    found = tuple(name for name, shows in _RULES.items() if shows(text))
    return found or (PROSE,)


def has_repeat(text: str) -> bool:
    """Whether exact repeats of `SHORTEST_SPAN` characters or more cover `REPEAT_SHARE` of it."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    return covers(nontrivial_spans(points, SHORTEST_SPAN), len(points))


def covers(spans: list[Span], length: int) -> bool:
    """Whether spans cover `REPEAT_SHARE` of so many tokens."""
    return sum(span.length for span in spans) >= max(1, REPEAT_SHARE * length)


def nontrivial_spans(tokens: Int[np.ndarray, " length"], min_length: int) -> list[Span]:
    """Repeated spans that hold `FEWEST_DISTINCT` different tokens or more."""
    spans = repeated_spans(tokens, min_length)
    return [s for s in spans if len(np.unique(tokens[s.start : s.stop])) >= FEWEST_DISTINCT]


_SIGNALS = (
    r"\b(?:def|function|func|fn|class|struct|void|sub) +\w+ *[({:]",
    r"\b(?:if|for|while|switch|elif|foreach|catch) ?\(.|^ *(?:if|elif|for|while|with) .*: *$",
    r"\b(?:return|raise|throw|import|yield|await|assert|require|include)\b[ (][\w\"'({\[<]",
    r"\b(?:const|let|var|int|char|bool|double|float|static|public|private) +[\w*]+ *[=;(\[]",
    r"[;{}] *$",
    r"[\w\])] ?(?:==|!=|<=|>=|\+=|-=|\*=|&&|\|\||:=|\*\*) ?[\w(\"'-]|->\w|=> *[{(\w]|::\w",
    r"^ *[A-Za-z_][\w.\[\]\"']* = \S",
    r"\b[A-Za-z_]\w*\((?:[\w\"'&*.]|\))",
    r"\b[A-Za-z_]\w*\.[A-Za-z_]\w*[(\[.]",
    r"\w\[[\w\"':-]+\]",
    r"^ *(?:#|//|/\*|\*/|\"\"\"|#include|>>>|@\w)",
    r"\b[a-z]+(?:_[a-z0-9]+)+\b|\b[a-z]+[A-Z]\w*\b",
)
_CODE = tuple(re.compile(pattern, re.MULTILINE) for pattern in _SIGNALS)


def has_code(text: str) -> bool:
    """Whether it holds `CODE_SIGNALS` different marks of source code, of any language."""
    return sum(pattern.search(text) is not None for pattern in _CODE) >= CODE_SIGNALS


MARKUP_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)(/?)>")
"""A tag of XML or HTML: slash, name, attributes, closing slash."""


def has_markup(text: str) -> bool:
    """Whether it holds `FEWEST_TAGS` tags of XML or HTML, of which one closes."""
    found = MARKUP_TAG.findall(text)
    return len(found) >= FEWEST_TAGS and any(slash or empty for slash, _, _, empty in found)


LATEX_COMMAND = re.compile(r"\\([A-Za-z]{2,})\*?(?=[\s{\[\\^_$&(|}]|$)")
"""A command of LaTeX; its name."""


def has_latex(text: str) -> bool:
    """Whether it holds `FEWEST_TAGS` commands of LaTeX, and a brace or a dollar."""
    commands = LATEX_COMMAND.findall(text)
    return len(commands) >= FEWEST_TAGS and any(mark in text for mark in "{}$")


PAIR = re.compile(
    r"""(?:^[ \t]*|[{,]\s*)["']?[A-Za-z_][\w.-]*["']?[ \t]*:[ \t]+(?=[^\s])"""  # key: value, JSON
    r"""|["'][^"'\n]{1,40}["']\s*:\s*(?=\S)"""  # "key":value
    r"""|\b[A-Za-z_][\w.:-]*=(?=["'\w./-])"""  # key=value, attributes
    r"""|^[ \t]*[A-Za-z_][\w.-]*[ \t]*=[ \t]+(?=(?:["'][^"'\n]*["']|[\w.+-]+)[ \t]*$)""",
    re.MULTILINE,
)
"""A key with its separator, before a value."""
_VALUE_START = 6
"""Characters of a value by which pairs with one key are told apart."""


def has_pairs(text: str) -> bool:
    """Whether it holds `FEWEST_PAIRS` different pairs: JSON, settings, attributes, headers."""
    found = {text[m.start() : m.end() + _VALUE_START] for m in PAIR.finditer(text)}
    return len(found) >= FEWEST_PAIRS


DELIMITERS = {"\t": 2, "|": 2, ",": 3, ";": 3, "  ": 3}
"""Delimiters of table rows, with the fewest fields of a row; two spaces stand for aligned ones."""


def fields(line: str, delimiter: str) -> list[str]:
    """The fields of a line; aligned columns are parted by two spaces or more."""
    return re.split(r" {2,}", line.strip()) if delimiter == "  " else line.split(delimiter)


def table_delimiter(text: str) -> str | None:
    """The delimiter by which most lines in a row have equally many fields, if there is one.

    The first and the last line may be cut off, so they may have fewer.
    """
    lines = different_lines(text)
    best, longest = None, FEWEST_LINES - 1
    for delimiter, fewest in DELIMITERS.items():
        counts = [_n_fields(line, delimiter) for line in lines]
        run = _longest_run(counts, fewest)
        if run > longest:
            best, longest = delimiter, run
    return best


def different_lines(text: str) -> list[str]:
    """The lines of a text, without those that repeat the one above.

    A cut first or last line that is a piece of its neighbour is left out too, so a row in which
    one line is copied again and again has that line alone.
    """
    lines = [line for line, _ in groupby(text.split("\n"))]
    if len(lines) > 1 and lines[1].endswith(lines[0]):
        lines = lines[1:]
    return lines[:-1] if len(lines) > 1 and lines[-2].startswith(lines[-1]) else lines


def _n_fields(line: str, delimiter: str) -> int:
    """Fields of a line; 0 where it is empty, or has the long fields of sentences."""
    found = fields(line, delimiter)
    return len(found) if line.strip() and len(line) <= LONGEST_FIELD * len(found) else 0


def _longest_run(counts: list[int], fewest: int) -> int:
    """Most neighbouring lines with the same number of fields, `fewest` or more."""
    longest = run = 0
    last = len(counts) - 1
    for at, count in enumerate(counts):
        same = run > 0 and count == counts[at - 1]
        opened = at == 1 and counts[0] and counts[0] <= count
        run = (run + 1 if same else 1 + bool(opened)) if count >= fewest else 0
        cut = at + 1 == last and run > 0 and 0 < counts[last] < count
        longest = max(longest, run + bool(cut))
    return longest


def has_table(text: str) -> bool:
    """Whether `FEWEST_LINES` neighbouring lines have equally many delimited fields."""
    return table_delimiter(text) is not None


NUMBER = re.compile(r"\d+")
"""A run of digits."""
WORD = re.compile(r"[^\W\d_]+")
"""A run of letters."""
_MARKER = re.compile(r"[ \t]*([-*+>#•]+|\(?\w{1,3}[.)]|[^\s\w]{0,2}\w+[^\s\w]{0,2})(?=\s+\S)")


def line_prefix(line: str) -> str | None:
    """The bullet, number or first word of a line that goes on; numbers count as equal."""
    found = _MARKER.match(line)
    return NUMBER.sub("0", found.group(1)) if found else None


def list_prefix(text: str) -> str | None:
    """The first prefix that `FEWEST_LINES` lines in a row share, if there is one."""
    prefixes = [line_prefix(line) for line in different_lines(text) if line.strip()]
    for at in range(len(prefixes) - FEWEST_LINES + 1):
        if prefixes[at] and len(set(prefixes[at : at + FEWEST_LINES])) == 1:
            return prefixes[at]
    return None


def has_list(text: str) -> bool:
    """Whether `FEWEST_LINES` lines in a row begin alike."""
    return list_prefix(text) is not None


def line_shape(line: str) -> str:
    """A line with its words as `a`, its numbers as `0` and its spaces as one; marks stay."""
    return re.sub(r"\s+", " ", WORD.sub("a", NUMBER.sub("0", line.strip())))


def template_shape(text: str) -> str | None:
    """The shape of most lines, if `FEWEST_LINES` different lines have it.

    Shapes of words alone do not count: verse is no template.
    """
    lines = {line.strip() for line in text.split("\n") if line.strip()}
    shapes = Counter(line_shape(line) for line in sorted(lines))
    for shape, count in shapes.most_common(3):
        symbols = len(re.sub(r"[a\s]", "", shape))
        if count >= FEWEST_LINES and symbols >= FEWEST_SYMBOLS and re.search(r"[a0]", shape):
            return shape
    return None


def has_template(text: str) -> bool:
    """Whether `FEWEST_LINES` different lines have one shape."""
    return template_shape(text) is not None


def has_numbers(text: str) -> bool:
    """Whether `DIGIT_SHARE` of the characters other than spaces are digits."""
    solid = [c for c in text if not c.isspace()]
    return bool(solid) and sum(c.isdigit() for c in solid) >= DIGIT_SHARE * len(solid)


_URL = re.compile(r"\b(?:https?|ftp)://[^\s/]|\bwww\.\w+\.\w")


def has_url(text: str) -> bool:
    """Whether it holds an address of the web."""
    return _URL.search(text) is not None


PROSE = "prose"
"""The tag of a text that has no other."""

_RULES: dict[str, Callable[[str], bool]] = {
    "repeat": has_repeat,
    "code": has_code,
    "markup": has_markup,
    "latex": has_latex,
    "table": has_table,
    "list": has_list,
    "key_value": has_pairs,
    "template": has_template,
    "numbers": has_numbers,
    "url": has_url,
}

TAGS = (*_RULES, PROSE)
"""Every tag."""
