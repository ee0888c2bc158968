"""What is fetched from a hub, and whether that hub answers; asked before slow things load."""

import re
import threading
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.utils import get_session

from engine.errors import CacheMissing


PATIENCE = 5.0
"""Seconds a hub has to answer; it sends a few kilobytes."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_hub_id(source: str) -> bool:
    """Whether a source is to be fetched: OWNER/NAME, and no folder here."""
    return bool(_HUB_ID.fullmatch(source)) and not Path(source).exists()


def require_hub(source: str) -> None:
    """Refuse to fetch from a hub that does not answer; any answer will do.

    Args:
        source: Model that is to be fetched, for the sentence.

    Raises:
        CacheMissing: The hub does not answer.
    """
    failures: list[str] = []

    def ask() -> None:
        if constants.is_offline_mode():
            failures.append("HF_HUB_OFFLINE is set")
            return
        try:
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
        except Exception as error:  # noqa: BLE001  # every failure is said below
            failures.append(str(error).strip().split("\n")[0] or type(error).__name__)

    # Looking up an address obeys no time limit of the client, so the thread is left behind.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    if asking.is_alive():
        failures.append(f"no answer in {PATIENCE:g} s")
    if failures:
        raise CacheMissing(
            f"{source} would be fetched from {constants.ENDPOINT}, which cannot be reached "
            f"({failures[0]}); check the connection, or give a folder that holds the model."
        )
