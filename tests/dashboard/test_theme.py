"""Number formats and colours, tested as data."""

import math
import tomllib
from pathlib import Path

import pytest

from dashboard import theme


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567.0, "1,234,567"),
        (12.3456, "12.3"),
        (0.012345, "0.0123"),
        (-0.5, "-0.500"),
        (999.9, "1,000"),
        (1e-7, "1.00e-07"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_three_significant_digits(value: float | None, text: str):
    """Tables of numbers line up and none pretends to more than is known."""
    assert theme.number(value) == text


def test_a_signed_number_always_shows_its_sign():
    """Sign is never colour alone."""
    assert theme.signed(0.25) == "+0.250"
    assert theme.signed(-0.25) == "−0.250"


def test_durations_and_sizes_are_words():
    """Units stand with the number."""
    assert theme.seconds_text(4000) == "1 h 06 min"
    assert theme.seconds_text(125) == "2 min 05 s"
    assert theme.bytes_text(1234) == "1.23 kB"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
@pytest.mark.parametrize("name", ["text", "muted", "accent"])
def test_words_pass_wcag_aa_on_both_backgrounds(colours: theme.Palette, name: str):
    """4.5 to 1 for text, on the page and on panels."""
    for ground in (colours.background, colours.panel):
        assert contrast(getattr(colours, name), ground) >= 4.5


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
@pytest.mark.parametrize("name", ["raises", "lowers", "rest"])
def test_marks_pass_wcag_aa_for_graphics(colours: theme.Palette, name: str):
    """3 to 1 for marks of a chart."""
    assert contrast(getattr(colours, name), colours.background) >= 3


def test_the_theme_of_the_settings_is_the_theme_of_the_figures():
    """Figures are drawn on the page's own background."""
    root = Path(__file__).resolve().parents[2]
    settings = tomllib.loads((root / ".streamlit" / "config.toml").read_text())["theme"]
    for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
        assert settings[name]["backgroundColor"] == colours.background
        assert settings[name]["secondaryBackgroundColor"] == colours.panel
        assert settings[name]["textColor"] == colours.text
        assert settings[name]["primaryColor"] == colours.accent


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
def test_categories_are_seen_on_their_ground(colours: theme.Palette):
    """No group of a map drowns in the background; orange and yellow on white come nearest to it."""
    shades = theme.category_colours([str(i) for i in range(12)], colours).values()
    assert min(contrast(shade, colours.background) for shade in shades) >= 2


def test_a_thirteenth_category_is_grey():
    """More colours than twelve cannot be told apart."""
    shades = theme.category_colours([str(i) for i in range(14)], theme.LIGHT)
    assert list(shades.values())[12:] == [theme.LIGHT.rest] * 2
    assert len(set(list(shades.values())[:12])) == 12
