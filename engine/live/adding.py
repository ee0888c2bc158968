"""Whether a model can join a map, and what that takes, before anything is written."""

import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from transformers import AutoConfig

from engine.able.estimate import Estimate, check_room, estimate, free_memory
from engine.able.files import EMBEDDED
from engine.able.hub import hub_sizes
from engine.able.loading import (
    adapter_base,
    configured_context,
    load_tokenizer,
    refuse_configuration,
)
from engine.able.model import AttributionSettings, embed_model
from engine.able.probes import Probe, ProbeSet
from engine.able.reach import is_hub_id
from engine.able.rows import encode_probes
from engine.config import require
from engine.errors import EngineError, UnsupportedModel
from engine.lm.packaged import PACKAGED, packaged_path, require_packaged
from engine.store import Run, open_run, read_table


Item = TypeVar("Item")
State = Literal["passed", "failed", "later"]
TRIED_BYTES = 400_000_000
"""Weights up to which a model that is here is loaded and asked some probes before it is added."""
TRIED_PROBES = 8


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    name: what.
    state: passed, failed, or later: seen when the model is loaded.
    said: the finding in a sentence.
    """

    name: str
    state: State
    said: str


@dataclass(frozen=True)
class Prospect:
    """What adding a model would take.

    name: what it would be called.
    place: folder, hub id or packaged model.
    checks: in the order they were made; those behind a failed one may be missing.
    disk: bytes fetched and removed again; None where it is not known.
    memory: bytes held at once; None likewise.
    free_disk, free_memory: bytes free here.
    seconds: about how long it would take, from a trial; None where none was made.
    n_probes: questions it would be asked.
    """

    name: str
    place: str
    checks: tuple[Check, ...]
    disk: int | None
    memory: int | None
    free_disk: int
    free_memory: int
    seconds: float | None
    n_probes: int

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against adding it."""
        return all(check.state != "failed" for check in self.checks)


def prospect(run: str | Path, place: str, name: str = "") -> Prospect:
    """Check a model and estimate what adding it takes; nothing of the run changes.

    Args:
        run: The map.
        place: Folder, hub id or packaged model.
        name: What to call it; the folder's name or the hub id unless given.

    Raises:
        ConfigError: Nothing is named.
        CacheMissing: The run holds no map.
    """
    place = place.strip()
    require(bool(place) and "\0" not in place, "Name a folder or a hub id, such as OWNER/NAME.")
    opened = open_run(run)
    probes = probes_of(opened)
    settings = settings_of(opened)
    called = name.strip() or default_name(place)
    work = _Prospecting(opened, place, called, probes, settings)
    checks = tuple(work.checks())
    device, _ = settings.resolve()
    needed = work.needed
    return Prospect(
        name=called,
        place=place,
        checks=checks,
        disk=None if needed is None else needed.disk,
        memory=None if needed is None else needed.memory,
        free_disk=shutil.disk_usage(opened.path).free,
        free_memory=free_memory(device),
        seconds=work.seconds,
        n_probes=len(probes),
    )


def settings_of(run: Run) -> AttributionSettings:
    """How the models of a map were attributed, on this machine's device."""
    known = run.manifest.get("attribution", {})
    return AttributionSettings(
        dtype=str(known.get("dtype", "auto")), hook=str(known.get("hook", "auto"))
    )


def default_name(place: str) -> str:
    """What a model is called unless said otherwise: its hub id, or its folder's name."""
    known = place in PACKAGED or is_hub_id(place)
    return place if known else Path(place).expanduser().resolve().name


def probes_of(run: Run) -> ProbeSet:
    """The probes of a map, in order.

    Raises:
        CacheMissing: The run holds none.
    """
    rows = read_table(run, "model_probes", order_by="probe").to_dict("records")
    listed = [Probe(r["source"], r["prompt"], tuple(r["options"]), int(r["answer"])) for r in rows]
    said = run.manifest.get("probes", {})
    style = "texts" if said.get("style") == "texts" else "letters"
    return ProbeSet(str(said.get("name", run.name)), tuple(listed), style)


class _Prospecting:
    """The checks one after the other; a failed one ends them."""

    def __init__(
        self,
        run: Run,
        place: str,
        name: str,
        probes: ProbeSet,
        settings: AttributionSettings,
    ) -> None:
        self._run, self._name, self._probes, self._settings = run, name, probes, settings
        self._hub = is_hub_id(place)
        self.place = (
            place if self._hub or place in PACKAGED else str(Path(place).expanduser().resolve())
        )
        self.needed: Estimate | None = None
        self.seconds: float | None = None

    def checks(self) -> Iterator[Check]:
        """Every check until one fails."""
        steps = (
            ("Place", self._found),
            ("Name", self._named),
            ("Kind", self._kind),
            ("Tokenizer", self._tokenizer),
            ("Memory and disk", self._room),
            ("Gradients", self._trial),
        )
        for name, step in steps:
            try:
                state, said = step()
            except EngineError as error:
                yield Check(name, "failed", str(error))
                return
            yield Check(name, state, said)

    def _found(self) -> tuple[State, str]:
        if self.place in PACKAGED:
            return "passed", f"Packaged model in {require_packaged(self.place)}."
        if self._hub:
            size = hub_sizes(self.place).weight_bytes
            return "passed", f"On the hub, {size / 1e9:.2f} GB; fetched, read and removed again."
        require(
            Path(self.place).is_dir(),
            f"{self.place} is no folder here and no hub id (OWNER/NAME); check how it is written.",
        )
        return "passed", "Folder on this machine."

    def _named(self) -> tuple[State, str]:
        rows = read_table(self._run, "model_catalogue", where={"model": self._name})
        if rows.empty:
            return "passed", f"It will be called {self._name}."
        place = str(rows["place"].iloc[0])
        if place == self.place and rows["status"].iloc[0] == EMBEDDED:
            return "passed", f"{self._name} is in the map already; adding it again changes nothing."
        raise UnsupportedModel(
            f"The map's catalogue has a model called {self._name}, from {place}; give this one "
            "another name."
        )

    def _kind(self) -> tuple[State, str]:
        if self._hub:
            return "later", "Seen when its configuration has been fetched."
        base = self._base()
        require(
            is_hub_id(base) or (Path(base) / "config.json").is_file(),
            f"{base} holds no config.json, so it is no model that transformers saved.",
        )
        refuse_configuration(base)
        if adapter_base(self.place) is not None:
            return "passed", f"Adapter on {base}."
        return "passed", "Causal language model without code of its own."

    def _tokenizer(self) -> tuple[State, str]:
        own = adapter_base(self.place) is None or (Path(self.place) / "tokenizer.json").is_file()
        named = self.place if own and self.place not in PACKAGED else self._base()
        tokenizer = load_tokenizer(named, self._name)
        context = self._context()
        encoded = encode_probes(self._probes, tokenizer, context, self._name)
        longest = max(len(row.tokens) for row in encoded.rows)
        said = f"Gives offsets; the longest question has {longest} tokens"
        if context is not None:
            said += f" of a context of {context:,}"
        if encoded.skipped:
            said += f"; {len(encoded.skipped)} questions are longer and will be left out"
        return "passed", f"{said}."

    def _base(self) -> str:
        named = adapter_base(self.place) or self.place
        return str(packaged_path(named)) if named in PACKAGED else named

    def _context(self) -> int | None:
        try:
            config = AutoConfig.from_pretrained(self._base())
        except (OSError, ValueError, KeyError) as error:
            raise UnsupportedModel(
                f"The configuration of {self._name} cannot be read ({str(error).splitlines()[0]})."
            ) from error
        return configured_context(config)

    def _room(self) -> tuple[State, str]:
        device, dtype = self._settings.resolve()
        self.needed = estimate(self.place, dtype, self._settings.resolved_batch_tokens)
        check_room(self._name, self.needed, device, self._run.path)
        return "passed", f"It fits on {device.type} in {str(dtype).removeprefix('torch.')}."

    def _trial(self) -> tuple[State, str]:
        weights = self.needed.weights if self.needed else 0
        if self._hub or weights > TRIED_BYTES:
            return "later", "Seen when the model is loaded; one without them ends in a sentence."
        few = ProbeSet("trial", self._probes.probes[:TRIED_PROBES], self._probes.style)
        started, clock = time.perf_counter(), _Clock()
        found = embed_model(self.place, few, self._settings, name=self._name, progress=clock)
        whole = time.perf_counter() - started
        self.seconds = whole + clock.seconds * (len(self._probes) / len(few) - 1)
        hook = found.facts.get("hook", "embedding")
        return "passed", f"Attributed at the {hook} over {len(few)} questions as a trial."


class _Clock:
    """Progress that takes the time of the batches, without what comes before them."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(
        self, items: Iterable[Item], *, label: str = "", total: int | None = None
    ) -> Iterable[Item]:
        """The items, with the clock running."""
        del label, total
        started = time.perf_counter()
        yield from items
        self.seconds += time.perf_counter() - started
