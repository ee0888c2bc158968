"""Options made from configuration dataclasses."""

import json
from dataclasses import dataclass, field
from typing import Literal

import pytest
import typer
from typer.testing import CliRunner

from engine.cli.failures import CommandGroup
from engine.cli.options import build_config, field_help, with_config
from engine.config import IndexConfig, RetrofitConfig, TrainConfig
from engine.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Inner:
    gain: float = 0.25
    """How much."""


@dataclass(frozen=True, kw_only=True)
class Outer:
    """Settings of a test."""

    size: int = 7
    """How large,
    in tokens."""
    kind: Literal["round", "square"] = "round"
    """Which shape."""
    fast: bool = False
    """Whether to hurry."""
    limit: int | None = None
    """Where to stop."""
    inner: Inner = field(default_factory=Inner)
    """What is inside."""
    shares: dict[str, float] = field(default_factory=dict)
    """Share by name."""
    counts: dict[str, int] = field(default_factory=dict)
    """Count by name."""


seen: list[Outer] = []
app = typer.Typer(cls=CommandGroup)


@app.callback()
def root():
    """Test."""


@app.command()
@with_config(Outer, "Settings")
def act(*, config: Outer, name: str = "nobody"):
    seen.append(config)
    typer.echo(name)


def run(*arguments):
    seen.clear()
    return CliRunner().invoke(app, ["act", *arguments])


def test_without_options_the_configuration_is_the_default():
    """The dataclass alone holds defaults."""
    assert run().exit_code == 0
    assert seen == [Outer()]


def test_every_kind_of_field_becomes_an_option():
    """Numbers, choices, flags, optional numbers, dataclasses and dictionaries."""
    done = run(
        *("--size", "11", "--kind", "square", "--fast", "--limit", "3"),
        *("--inner-gain", "0.5", "--shares", "a=2", "--shares", "b=0.5", "--name", "me"),
    )
    assert done.output == "me\n"
    inner = Inner(gain=0.5)
    shares = {"a": 2.0, "b": 0.5}
    assert seen == [Outer(size=11, kind="square", fast=True, limit=3, inner=inner, shares=shares)]


def test_typed_options_win_over_a_file_and_the_file_over_defaults(tmp_path):
    """A saved run's settings can be used again with one change."""
    path = tmp_path / "settings.json"
    path.write_text(
        json.dumps({"size": 5, "limit": 2, "inner": {"gain": 0.75}, "shares": {"a": 1}})
    )
    run("--config", str(path), "--size", "13")
    assert seen == [Outer(size=13, limit=2, inner=Inner(gain=0.75), shares={"a": 1})]


@pytest.mark.parametrize("text", ["{", "[1]", '{"unknown": 1}'])
def test_a_settings_file_that_does_not_fit_is_refused_in_one_sentence(tmp_path, text):
    """Nothing is guessed from a file of another command."""
    path = tmp_path / "settings.json"
    path.write_text(text)
    done = run("--config", str(path))
    assert done.exit_code == 2
    assert str(path) in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": "x"}, 'size is "x"; it must be a whole number.'),
        ({"size": True}, "size is true; it must be a whole number."),
        ({"size": 2.5}, "size is 2.5; it must be a whole number."),
        ({"size": None}, "size is null; it must be a whole number."),
        ({"fast": 1}, "fast is 1; it must be true or false."),
        ({"kind": "oval"}, 'kind is "oval"; it must be one of "round", "square".'),
        ({"limit": "3"}, 'limit is "3"; it must be a whole number or null.'),
        ({"inner": {"gain": [1]}}, "inner_gain is [1]; it must be a finite number."),
        ({"inner": {"gain": float("nan")}}, "inner_gain is NaN; it must be a finite number."),
        ({"shares": 5}, "shares is 5; it must be an object that gives each name a finite number."),
        (
            {"shares": {"a": "b"}},
            'shares is {"a": "b"}; it must be an object that gives each name a finite number.',
        ),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_sentence(tmp_path, settings, sentence):
    """It names the setting, the value and the type wanted; nothing is computed first."""
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(settings))
    done = run("--config", str(path))
    assert done.exit_code == 2
    assert done.stderr.strip() == sentence
    assert seen == []


def test_a_whole_number_in_a_file_is_the_same_setting_as_a_number(tmp_path):
    """A run's identity is made of its settings, where 1 and 1.0 would differ."""
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"inner": {"gain": 1}, "shares": {"a": 2}}))
    run("--config", str(path))
    assert isinstance(seen[0].inner.gain, float)
    assert isinstance(seen[0].shares["a"], float)


def test_a_dictionary_of_whole_numbers_takes_whole_numbers_alone():
    """A count typed as 1 is no 1.0; a share typed so is."""
    assert run("--counts", "a=3", "--shares", "b=1").exit_code == 0
    assert seen[0].counts == {"a": 3}
    assert type(seen[0].counts["a"]) is int
    assert type(seen[0].shares["b"]) is float
    assert "gives each name a whole number" in run("--counts", "a=1.5").stderr


@pytest.mark.parametrize("text", ["a", "=2", "a=b"])
def test_a_dictionary_option_without_name_and_number_is_refused(text):
    """The sentence shows how it is written."""
    with pytest.raises(ConfigError, match="name=value"):
        build_config(Outer, {"shares": [text]})


def test_help_is_the_string_under_the_field():
    """One place for meaning, unit included."""
    assert field_help(Outer)["size"] == "How large, in tokens."


@pytest.mark.parametrize("config", [TrainConfig, RetrofitConfig, IndexConfig])
def test_every_setting_of_a_stage_explains_itself(config):
    """A newcomer reads `--help`, not the source."""
    texts = field_help(config)
    assert all(texts.get(name) for name in config.__dataclass_fields__)
