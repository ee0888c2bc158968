"""Say a predicate in words, without printing what should not be printed."""

import re
from collections import Counter
from collections.abc import Sequence, Set as AbstractSet

from engine.prism.labels import words
from engine.prism.labels.contexts import FeatureSpace
from engine.prism.labels.predicates import GeneralPart, Part, Predicate, TokenPart, slot_of


UNLABELLED = "no pattern found"
MASKED = "unwanted content (masked)"
_MASK = "•••"
_END = re.compile(r"<\|.*\|>|</?s>|<eos>")
N_RAISED = 3
"""Tokens of the signature that a role names."""
_BLANKS = {"\n": "a line break", " ": "a space", "\t": "a tab"}


def category_and_role(
    predicate: Predicate,
    space: FeatureSpace,
    *,
    masked_tokens: AbstractSet[int] = frozenset(),
    unwanted: bool = False,
    raised: Sequence[int] = (),
) -> tuple[str, str]:
    """Category and role of a label.

    A role that names no predicted token ends with those the prototype raises most, which tells
    apart prototypes that are active in the same contexts.

    Args:
        predicate: What the label claims.
        space: Names of its features.
        masked_tokens: Tokens whose text is not shown.
        unwanted: The prototype stands for unwanted content, which the role says first.
        raised: Tokens the prototype raises most, the most first.
    """
    if not predicate and not unwanted:
        return words.CATEGORY_NONE, UNLABELLED
    role = role_text(predicate, space, masked_tokens)
    named = any(isinstance(part, TokenPart) and part.slot == "predicted" for part in predicate)
    if role and not named and len(raised):
        role += f"; raises {', '.join(_names(raised, space, masked_tokens)[:N_RAISED])}"
    if unwanted:
        return words.CATEGORY_UNWANTED, f"{MASKED}: {role}" if role else MASKED
    return part_category(predicate[0], space), role


def part_category(part: Part, space: FeatureSpace) -> str:
    """Broad category a part belongs to."""
    if isinstance(part, TokenPart):
        kinds = Counter(space.vocabulary.category(token) for token in part.tokens)
        return kinds.most_common(1)[0][0]
    return space.describe(part.feature)[2]


def role_text(
    predicate: Predicate, space: FeatureSpace, masked_tokens: AbstractSet[int] = frozenset()
) -> str:
    """The predicate as a phrase: predicts “the” after a preposition, in law texts."""
    by_slot = {slot_of(part, space): part for part in predicate}

    def phrase(slot: str) -> str | None:
        part = by_slot.get(slot)
        return None if part is None else part_phrase(part, space, masked_tokens)

    pieces = []
    if (predicted := phrase("predicted")) is not None:
        pieces.append(f"predicts {predicted}")
    if (after := _after(by_slot, phrase("previous"), phrase("current"), space)) is not None:
        pieces.append(after)
    role = " ".join(pieces)
    if (structure := phrase("structure")) is not None:
        role = f"{role}, {structure}" if role else structure
    if (domain := phrase("domain")) is not None:
        place = "in unwanted texts" if domain == "unwanted" else f"in {domain} texts"
        role = f"{role}, {place}" if role else place
    return role


def _after(
    by_slot: dict[str, Part], previous: str | None, current: str | None, space: FeatureSpace
) -> str | None:
    """What stands before the predicted token."""
    if previous is None:
        return None if current is None else f"after {current}"
    if current is None:
        return f"one token after {previous}"
    pair = by_slot["previous"], by_slot["current"]
    if all(isinstance(part, TokenPart) and len(part.tokens) == 1 for part in pair):
        joined = "".join(
            space.vocabulary.texts[part.tokens[0]] for part in pair if isinstance(part, TokenPart)
        )
        if "•" not in previous + current and joined.strip().isprintable():
            return f"after “{joined.strip()}”"
    return f"after {previous}, then {current}"


def part_phrase(part: Part, space: FeatureSpace, masked_tokens: AbstractSet[int]) -> str:
    """A part as a noun phrase."""
    if isinstance(part, GeneralPart):
        return space.describe(part.feature)[1]
    shown = _names(part.tokens, space, masked_tokens)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _names(
    tokens: Sequence[int], space: FeatureSpace, masked_tokens: AbstractSet[int]
) -> list[str]:
    """Names of tokens, each once; a masked one is not shown."""
    shown = [
        _MASK if token in masked_tokens else token_name(space.vocabulary.texts[token])
        for token in tokens
    ]
    return list(dict.fromkeys(shown))


def token_name(text: str) -> str:
    """A token in quotation marks, or the name of what cannot be seen.

    Letters that go on with a word get a hyphen in front.
    """
    if _END.fullmatch(text):
        return "the end of the text"
    if not text:
        return "an unused token"
    if not text.strip():
        kind = "\n" if "\n" in text else text[:1]
        many = text.strip(" ") == "" and len(text) > 1
        return "spaces" if many else _BLANKS.get(kind, "a blank")
    if not text.strip().isprintable() or "�" in text:
        return "part of a character"
    if text[0].isalpha() and text[0].islower():
        return f"“-{text.strip()}”"
    return f"“{text.strip()}”"
