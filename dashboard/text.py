"""Every explanation, unit and empty-state sentence of the dashboard."""

import re


_COMMAND = re.compile(r"`((?:headwater|make|pip|python)\b[^`]*)`")

NO_RUNS_TITLE = "No runs yet"
NO_RUNS = (
    "There is no run to show yet. A run appears here once a model has been trained and indexed; "
    "the commands below make a small one on two cores."
)
NO_RUNS_COMMAND = (
    "headwater corpus build --preset small\n"
    "headwater train --corpus small --run first\n"
    "headwater index --run first"
)


def split_command(message: str) -> tuple[str, str | None]:
    """A sentence and the first command it names between backticks, ready to be copied."""
    found = _COMMAND.search(message)
    return message.replace("`", ""), found.group(1) if found else None
