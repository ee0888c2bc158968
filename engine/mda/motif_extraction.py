"""Read motifs from samples: each kind counts the parts of its own structure."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from engine.config import require
from engine.mda.motifs import (
    Distribution,
    Listing,
    Motif,
    Nesting,
    Pairs,
    Repeat,
    Structure,
    Table,
    Template,
    vocabulary,
)
from engine.mda.structure import (
    DELIMITERS,
    LATEX_COMMAND,
    MARKUP_TAG,
    NUMBER,
    PAIR,
    WORD,
    Span,
    covers,
    fields,
    has_latex,
    has_list,
    has_markup,
    has_pairs,
    has_table,
    has_template,
    line_prefix,
    line_shape,
    list_prefix,
    nontrivial_spans,
    table_delimiter,
    template_shape,
)


MOTIFS_VERSION = 1
"""Counts changes in what is extracted; motifs of another version are extracted again."""
SHORTEST_COPY = 8
"""Tokens of the shortest repeat that a motif is made of."""
FEWEST_SAMPLES = 3
"""Samples that must show a motif."""
LOWEST_SHARE = 0.01
"""Share of all samples that must show it."""
_LONGEST_VALUE = 40

Row = Int[np.ndarray, " _"]
"""Token ids of a sample; samples may differ in length."""


def extract(rows: Sequence[Row], texts: Sequence[str] | None = None) -> list[Motif]:
    """The motifs of samples, the most frequent first.

    Args:
        rows: token ids of each sample.
        texts: the text of each; without them repeats alone are found.
    """
    count = len(rows if texts is None else texts)
    require(len(rows) == count, f"{len(rows)} rows have {count} texts; give one each.")
    spans = [nontrivial_spans(row, SHORTEST_COPY) for row in rows]
    found = [_repeats(rows, texts, spans)]
    if texts is not None:
        other = [i for i, row in enumerate(rows) if not _is_one_repeat(spans[i], len(row))]
        found += [_of_texts(name, rows, texts, other) for name in _TEXT_KINDS]
    enough = max(FEWEST_SAMPLES, LOWEST_SHARE * len(rows))
    kept = [motif for motif in found if motif is not None and motif.n_samples >= enough]
    return sorted(kept, key=lambda motif: (-motif.share, motif.name))


def _is_one_repeat(spans: list[Span], length: int) -> bool:
    """Whether one span is most of a sample: whatever else it shows, it shows by copying."""
    return any(span.length > length / 2 for span in spans)


def _repeats(
    rows: Sequence[Row], texts: Sequence[str] | None, spans: Sequence[list[Span]]
) -> Motif | None:
    shown = [i for i, row in enumerate(rows) if covers(spans[i], len(row))]
    if not shown:
        return None
    copies = [copy for i in shown for copy in _copies(spans[i], len(rows[i]))]
    tokens = [int(t) for i in shown for t in _fresh(rows[i], spans[i])]
    every = [span for i in shown for span in spans[i]]
    structure = Repeat(
        Distribution.of(copies),
        Distribution.of(span.distance for span in every),
        Distribution.of(min(span.distance, span.length) for span in every),
    )
    own = [texts[i] for i in shown] if texts is not None else []
    return Motif("repeat", len(shown), len(shown) / len(rows), structure, vocabulary(own, tokens))


def _copies(spans: list[Span], length: int) -> Iterator[tuple[int, int, int]]:
    """Tokens since the last copy, distance back and length of each; 0 of one that does not end."""
    done = 0
    for span in spans:
        yield span.start - done, span.distance, 0 if span.stop == length else span.length
        done = span.stop


def _fresh(row: Row, spans: list[Span]) -> Int[np.ndarray, " fresh"]:
    """The tokens that no span covers."""
    free = np.ones(len(row), bool)
    for span in spans:
        free[span.start : span.stop] = False
    return row[free]


def _of_texts(
    name: str, rows: Sequence[Row], texts: Sequence[str], among: Sequence[int]
) -> Motif | None:
    shows, build = _TEXT_KINDS[name]
    shown = [i for i in among if shows(texts[i])]
    if not shown:
        return None
    own = [texts[i] for i in shown]
    tokens = (int(t) for i in shown for t in rows[i])
    return Motif(name, len(shown), len(shown) / len(rows), build(own), vocabulary(own, tokens))


def text_structure(name: str, texts: Sequence[str], fewest: int = 1) -> Structure | None:
    """The structure of a kind in those texts that show it; None if fewer than `fewest` do."""
    shows, build = _TEXT_KINDS[name]
    own = [text for text in texts if shows(text)]
    return build(own) if len(own) >= max(1, fewest) else None


# --- kinds ------------------------------------------------------------------------------------


def _table(texts: Sequence[str]) -> Table:
    delimiters, counts, shapes, same = [], [], [], []
    for text in texts:
        delimiter = str(table_delimiter(text))
        lines = [fields(line, delimiter) for line in text.split("\n")]
        wide = [len(line) for line in lines if len(line) >= DELIMITERS[delimiter]]
        n_fields = Counter(wide).most_common(1)[0][0]
        whole = [line for line in lines if len(line) == n_fields]
        delimiters.append(delimiter)
        counts.append(n_fields)
        shapes += [line_shape(cell) for line in whole for cell in line]
        above = [
            pair for upper, lower in pairwise(whole) for pair in zip(upper, lower, strict=True)
        ]
        same += [left.strip() == right.strip() for left, right in above]
    return Table(
        Distribution.of(delimiters), Distribution.of(counts), Distribution.of(shapes), _share(same)
    )


def _pairs(texts: Sequence[str]) -> Pairs:
    openings, values, ends, known = [], [], [], []
    for text in texts:
        found = list(PAIR.finditer(text))
        keys = [_names(match.group()) for match in found]
        known += [key in keys[:at] for at, key in enumerate(keys)]
        openings += [_shape_inside(match.group().lstrip()) for match in found]
        for match, following in pairwise(found):
            between = text[match.end() : following.start()]
            between += following.group()[: -len(following.group().lstrip())]
            value = re.match(r"[\"'][^\"'\n]*[\"']|[^\n,;&}>]*", between)
            assert value is not None
            values.append(line_shape(value.group()[:_LONGEST_VALUE]))
            ends.append(_shape_inside(between[value.end() :][:_LONGEST_VALUE]))
    return Pairs(
        Distribution.of(openings), Distribution.of(values), Distribution.of(ends), _share(known)
    )


def _markup(texts: Sequence[str]) -> Nesting:
    return _nesting("markup", texts, _markup_tags)


def _latex(texts: Sequence[str]) -> Nesting:
    return _nesting("latex", texts, _latex_tags)


_Tag = tuple[int, str, bool | None, str]
"""Change of depth, name, whether it has attributes (None: it cannot), and content."""


def _nesting(style: str, texts: Sequence[str], tags_of: Callable[[str], Iterator[_Tag]]) -> Nesting:
    depths, contents, known, alone, attributes = [], [], [], [], []
    for text in texts:
        depth, names = 0, []
        for change, name, has_attributes, content in tags_of(text):
            if change < 0:
                depth = max(0, depth - 1)
                continue
            depths.append(depth + 1)
            known.append(name in names)
            names.append(name)
            alone.append(change == 0)
            if has_attributes is not None:
                attributes.append(has_attributes)
            contents.append(len(WORD.findall(content)))
            depth += change
    return Nesting(
        style,
        Distribution.of(depths),
        Distribution.of(contents),
        _share(known),
        _share(alone),
        _share(attributes),
    )


def _markup_tags(text: str) -> Iterator[_Tag]:
    for match in MARKUP_TAG.finditer(text):
        closing, name, attributes, empty = match.groups()
        content = text[match.end() :].partition("<")[0]
        yield -1 if closing else 0 if empty else 1, name, bool(attributes.strip()), content


def _latex_tags(text: str) -> Iterator[_Tag]:
    for match in LATEX_COMMAND.finditer(text):
        name, rest = match.group(1), text[match.end() :]
        inside = re.match(r"\s*[{\[]([^}\]\\]*)", rest)
        change = {"begin": 1, "end": -1}.get(name, 0)
        named = inside.group(1) if change and inside else name
        content = rest.partition("\\")[0] if change or not inside else inside.group(1)
        yield change, named, None if change else bool(inside), content


def _list(texts: Sequence[str]) -> Listing:
    prefixes, words = [], []
    for text in texts:
        prefix = str(list_prefix(text))
        prefixes.append(WORD.sub("a", prefix))
        own = [line for line in text.split("\n") if line_prefix(line) == prefix]
        words += [max(1, len(line.split()) - 1) for line in own]
    return Listing(Distribution.of(prefixes), Distribution.of(words))


def _template(texts: Sequence[str]) -> Template:
    shapes, same = [], []
    for text in texts:
        shape = str(template_shape(text))
        shapes.append(shape)
        own = [line for line in text.split("\n") if line_shape(line) == shape]
        slots = [re.findall(rf"{NUMBER.pattern}|{WORD.pattern}", line) for line in own]
        for upper, lower in pairwise(slots):
            same += [left == right for left, right in zip(upper, lower, strict=True)]
    return Template(Distribution.of(shapes), _share(same))


def _shape_inside(text: str) -> str:
    """The shape of a text with its spaces."""
    return WORD.sub("a", NUMBER.sub("0", text))


def _names(text: str) -> str:
    return " ".join(WORD.findall(text))


def _share(found: list[bool]) -> float:
    return sum(found) / len(found) if found else 0.0


_TEXT_KINDS: dict[str, tuple[Callable[[str], bool], Callable[[Sequence[str]], Structure]]] = {
    "table": (has_table, _table),
    "key_value": (has_pairs, _pairs),
    "markup": (has_markup, _markup),
    "latex": (has_latex, _latex),
    "list": (has_list, _list),
    "template": (has_template, _template),
}
