"""Closed classes of English words, code keywords and endings that labels may name."""

CATEGORY_GRAMMAR = "Grammar"
CATEGORY_MORPHOLOGY = "Morphology"
CATEGORY_NUMBERS = "Numbers and time"
CATEGORY_PUNCTUATION = "Punctuation"
CATEGORY_LAYOUT = "Layout"
CATEGORY_MARKUP = "Markup and links"
CATEGORY_CODE = "Code"
CATEGORY_NAMES = "Names and capitals"
CATEGORY_PEOPLE = "People and society"
CATEGORY_NATURE = "Nature and science"
CATEGORY_VOCABULARY = "Words and phrases"
CATEGORY_REPETITION = "Repetition"
CATEGORY_UNWANTED = "Unwanted content"
CATEGORY_NONE = "Unlabelled"


def topic_category(domain: str) -> str:
    """Category of a label whose leading part is a domain of text."""
    return f"Topic: {domain}"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


WORD_CLASSES: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("an article", CATEGORY_GRAMMAR, _set("a an the")),
    (
        "a preposition",
        CATEGORY_GRAMMAR,
        _set(
            "of in to for on at by with from into about over under between through during before "
            "after against among upon within without toward towards above below across behind "
            "beside beyond near per via unto onto off since until"
        ),
    ),
    ("a subject pronoun", CATEGORY_GRAMMAR, _set("i you he she it we they who ye thou")),
    ("an object pronoun", CATEGORY_GRAMMAR, _set("me him them us whom thee")),
    (
        "a possessive",
        CATEGORY_GRAMMAR,
        _set("my your his her its our their whose thy mine yours hers ours theirs"),
    ),
    ("a demonstrative", CATEGORY_GRAMMAR, _set("this that these those such")),
    (
        "a quantifier",
        CATEGORY_GRAMMAR,
        _set("all any some each every no many much few more most several both either neither"),
    ),
    ("a conjunction", CATEGORY_GRAMMAR, _set("and or but nor yet so")),
    (
        "a subordinating word",
        CATEGORY_GRAMMAR,
        _set("if because although though while unless whether when where that as than once lest"),
    ),
    ("a question or relative word", CATEGORY_GRAMMAR, _set("who which what whom whose why how")),
    ("a form of “be”", CATEGORY_GRAMMAR, _set("is are was were be been being am art")),
    ("a form of “have”", CATEGORY_GRAMMAR, _set("have has had having hath")),
    ("a form of “do”", CATEGORY_GRAMMAR, _set("do does did done doing doth")),
    (
        "a modal verb",
        CATEGORY_GRAMMAR,
        _set("can could may might must shall should will would cannot ought wilt shalt"),
    ),
    ("a negation", CATEGORY_GRAMMAR, _set("not no never nor none nothing neither without")),
    (
        "an adverb of time or degree",
        CATEGORY_GRAMMAR,
        _set(
            "very too quite rather then now still again already always often soon here there "
            "only also just even ever almost more most less"
        ),
    ),
    (
        "a number word",
        CATEGORY_NUMBERS,
        _set(
            "one two three four five six seven eight nine ten eleven twelve twenty thirty forty "
            "fifty hundred thousand million first second third fourth fifth half"
        ),
    ),
    (
        "a month or weekday",
        CATEGORY_NUMBERS,
        _set(
            "january february march april june july august september october november december "
            "monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug "
            "sep sept oct nov dec mon tue wed thu fri sat sun"
        ),
    ),
    (
        "a word for time",
        CATEGORY_NUMBERS,
        _set(
            "time times day days year years hour hours minute minutes second seconds week weeks "
            "month months night morning evening century moment today yesterday tomorrow age"
        ),
    ),
    (
        "a unit of measure",
        CATEGORY_NUMBERS,
        _set(
            "miles mile feet foot inches inch pounds pound metres meters km kg cm mm bytes byte "
            "bits bit mb kb gb percent degrees degree dollars cents acres tons"
        ),
    ),
    (
        "a title",
        CATEGORY_NAMES,
        _set(
            "mr mrs ms miss dr sir lord lady king queen prince captain judge justice president "
            "saint st mister professor colonel general duke count"
        ),
    ),
    (
        "a word for kin or person",
        CATEGORY_PEOPLE,
        _set(
            "man men woman women child children boy girl father mother brother sister son daughter "
            "husband wife friend people person uncle aunt king queen"
        ),
    ),
    (
        "a verb of speech",
        CATEGORY_PEOPLE,
        _set(
            "said says say saying asked ask replied reply answered answer cried told tell spoke "
            "speak exclaimed whispered shouted thought"
        ),
    ),
    (
        "a word of law or state",
        CATEGORY_PEOPLE,
        _set(
            "court law laws state states united government congress act section rights right "
            "citizen citizens party judge jury public nation national legal license copyright "
            "agreement contract constitution senate house shall"
        ),
    ),
    (
        "a part of the body",
        CATEGORY_NATURE,
        _set(
            "hand hands head eye eyes face heart body arm arms foot feet hair mouth voice blood "
            "skin bone brain leg legs back lips"
        ),
    ),
    (
        "a word of nature",
        CATEGORY_NATURE,
        _set(
            "water sea river sun moon sky wind earth land tree trees fire light air stone mountain "
            "animal animals bird birds fish dog horse flower flowers plant plants rain snow"
        ),
    ),
    (
        "a word of science or mathematics",
        CATEGORY_NATURE,
        _set(
            "function functions set sets value values number numbers matrix vector model data "
            "theorem proof equation energy cell cells temperature species test method theory "
            "line lines point points group"
        ),
    ),
    (
        "a colour",
        CATEGORY_NATURE,
        _set("red white black blue green yellow brown grey gray golden dark"),
    ),
)
"""Name, category and lower-case words of each class."""

CODE_ONLY = _set(
    "def elif isinstance kwargs args len None True False lambda var const undefined void struct "
    "enum endif ifdef typedef typeof async await str bool dict impl mut pub fn self"
)
"""Keywords and built-in names of program text that are no English words, in their own case."""

SUFFIXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("-ing", ("ing",)),
    ("-ed", ("ed",)),
    ("-s", ("s",)),
    ("-ly", ("ly",)),
    ("-tion or -sion", ("tion", "sion", "tions", "sions", "ation")),
    ("-ment or -ness", ("ment", "ness", "ments")),
    ("-ity or -ty", ("ity", "ty", "ities")),
    ("-er or -or", ("er", "or", "ers", "ors")),
    ("-al or -ial", ("al", "ial", "ical")),
    ("-ive or -ous", ("ive", "ous", "ious")),
    ("-able or -ible", ("able", "ible")),
    ("-ence or -ance", ("ence", "ance", "ent", "ant")),
    ("-est or -ist", ("est", "ist", "ism")),
)
"""Name and letters of each ending."""
