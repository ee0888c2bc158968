"""Which domains a preset holds."""

import pytest

from engine.corpus.presets import EXTRA_DOMAINS, MB, UNWANTED, domains_of
from engine.errors import CorpusError


def test_full_is_about_forty_megabytes_over_twelve_domains() -> None:
    """The caps are what keeps the mix balanced."""
    domains = domains_of("full")
    assert len(domains) == 12
    assert 36 * MB < sum(domain.caps["full"] for domain in domains) < 42 * MB
    assert max(domain.caps["full"] for domain in domains) <= 6 * MB


def test_small_has_the_domains_of_full() -> None:
    """What is tried on `small` must carry over."""
    small, full = domains_of("small"), domains_of("full")
    assert [d.name for d in small] == [d.name for d in full]
    assert 8 * MB < sum(domain.caps["small"] for domain in small) < 11 * MB


def test_three_tenths_of_the_unwanted_texts_are_held_out() -> None:
    """Suppression is measured on prompts that training never saw."""
    unwanted = next(domain for domain in domains_of("full") if domain.name == UNWANTED)
    assert unwanted.validation_share == 0.3


def test_optional_domains_come_by_name_alone() -> None:
    """They need npm, which a Python user may lack."""
    assert not {d.name for d in domains_of("full")} & set(EXTRA_DOMAINS)
    assert [d.name for d in domains_of("small", "email, dictionary")][-2:] == [
        "dictionary",
        "email",
    ]


@pytest.mark.parametrize(
    ("preset", "extra", "message"),
    [
        ("huge", "", "No preset is called 'huge'"),
        ("full", "weather", "No optional domain is called weather"),
        ("tiny", "email", "small and full"),
    ],
)
def test_unknown_names_are_refused_with_those_there_are(preset, extra, message) -> None:
    """The sentence lists what may be typed."""
    with pytest.raises(CorpusError, match=message):
        domains_of(preset, extra)
