"""Measurements that no table of a run holds: speeds, and checks over several models.

Each is a record of raw rounds, appended to `docs/measurements.json` by the command that took it.
The claims ledger computes its figures from the latest record of a name.
"""

import os
import platform
from pathlib import Path
from typing import Any

from engine.config import PROJECT_ROOT
from engine.errors import CacheMissing, CacheStale
from engine.provenance import engine_version, now_iso
from engine.store import read_json, write_json_atomic


MEASUREMENTS = PROJECT_ROOT / "docs" / "measurements.json"


def record_measurement(
    name: str,
    setting: dict[str, Any],
    rounds: list[dict[str, Any]],
    path: Path | None = None,
) -> dict[str, Any]:
    """Append a record and return it.

    Args:
        name: What was measured.
        setting: Sizes, seeds, device: all that a reader needs to judge the figures.
        rounds: One object a repetition, raw.
        path: The file; the project's own where unset.
    """
    path = path or MEASUREMENTS
    record = {
        "name": name,
        "taken": now_iso(),
        "engine_version": engine_version(),
        "machine": machine(),
        "setting": setting,
        "rounds": rounds,
    }
    earlier = read_json(path) if path.is_file() else []
    write_json_atomic(path, [*earlier, record])
    return record


def latest_measurement(name: str, path: Path | None = None) -> dict[str, Any]:
    """The latest record of a name.

    Raises:
        CacheMissing: Nothing of that name was measured.
        CacheStale: The file is not a list of records.
    """
    path = path or MEASUREMENTS
    records = read_json(path) if path.is_file() else []
    if not isinstance(records, list):
        raise CacheStale(f"{path} is no list of measurements; restore it from the repository.")
    found = [record for record in records if record["name"] == name]
    if not found:
        raise CacheMissing(f"{name} has not been measured; run `make bench`.")
    return found[-1]


def machine() -> str:
    """The machine in words: processor, cores, memory."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{_processor()}, {os.cpu_count()} cores, {gigabytes:.0f} GB"


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
