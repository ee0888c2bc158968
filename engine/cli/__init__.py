"""The command line: `headwater`, one short file a group of commands."""

from engine.cli.app import main


__all__ = ["main"]
