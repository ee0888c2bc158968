"""The `headwater` command: every group of commands, in the order in which one needs them."""

from typing import Annotated

import typer

from engine import __version__
from engine.cli import (
    attribute,
    attribution_index,
    claims,
    control,
    corpus,
    curvature,
    demo,
    heads,
    index,
    models,
    prompt,
    publish,
    retrain_check,
    runs,
    study,
    suppress,
    train,
)
from engine.cli.console import configure_logging, say
from engine.cli.failures import CommandGroup


app = typer.Typer(
    name="headwater",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> bool:
    if value:
        say(__version__)
        raise typer.Exit
    return value


@app.callback()
def headwater(
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log details as well as stages.")
    ] = False,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Trace a language model upstream: from a prediction to the training text behind it.

    New here? `headwater demo` opens the shipped model in the browser. To make your own:
    `corpus fetch`, `corpus build`, `train`, `index`, then `dashboard`.

    Every command stops safely with Ctrl-C and resumes when it is run again. Results are kept in
    the folder that HEADWATER_CACHE names (cache/ of the project unless set).
    """
    configure_logging(verbose=verbose)


_START, _MAKE, _ASK, _KEEP = "Start here", "Make a run", "Ask a run", "Look after runs"
app.command(rich_help_panel=_START)(demo.demo)
app.command(rich_help_panel=_START)(demo.dashboard)
app.add_typer(corpus.app, name="corpus", rich_help_panel=_MAKE)
app.command(rich_help_panel=_MAKE)(train.train)
app.command(rich_help_panel=_MAKE)(train.retrofit)
app.command(rich_help_panel=_MAKE)(index.index)
app.command(rich_help_panel=_MAKE)(attribution_index.attribution_index)
study.app.command()(control.downstream)
app.add_typer(study.app, name="study", rich_help_panel=_MAKE)
app.command(rich_help_panel=_MAKE)(curvature.curvature)
app.command(rich_help_panel=_MAKE)(control.control)
app.command(rich_help_panel=_MAKE)(retrain_check.retrain_check)
app.add_typer(heads.app, name="heads", rich_help_panel=_MAKE)
app.add_typer(models.app, name="models", rich_help_panel=_MAKE)
app.command(rich_help_panel=_ASK)(prompt.decompose)
app.command(rich_help_panel=_ASK)(prompt.generate)
app.command(rich_help_panel=_ASK)(attribute.attribute)
app.command(rich_help_panel=_ASK)(suppress.suppress)
app.command(rich_help_panel=_KEEP)(runs.info)
app.command(rich_help_panel=_KEEP)(runs.check)
app.command(rich_help_panel=_KEEP)(publish.publish)
app.command(rich_help_panel=_KEEP)(claims.claims)


def main() -> None:
    """Entry point of the installed command."""
    app(prog_name="headwater")
