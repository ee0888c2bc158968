"""Options that several commands share."""

from typing import Annotated

import typer


DEMO = "demo"
RunOption = Annotated[
    str,
    typer.Option(
        "--run",
        "-r",
        help="Name of a run (demo: the shipped one), its folder, or a save_pretrained folder.",
    ),
]
NewRunOption = Annotated[
    str | None,
    typer.Option("--run", "-r", help="Name of the new run, a folder in the cache; resumes it."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved settings as JSON and do nothing.")
]
