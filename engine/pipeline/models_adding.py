"""A model on its way into a map: its name and place, and the settings it shares with the others."""

from dataclasses import dataclass
from pathlib import Path

from engine.able.files import EMBEDDED, folder_name, read_facts
from engine.able.model import AttributionSettings
from engine.able.probes import Probe, ProbeSet
from engine.able.reach import is_hub_id
from engine.errors import CacheStale, ConfigError
from engine.lm.packaged import PACKAGED
from engine.pipeline.models_catalogue import CatalogueEntry
from engine.pipeline.models_embed import KIND, MODELS, EmbedJob, EmbedStudy, weights_mark
from engine.provenance import fingerprint
from engine.store import Run, open_run, read_table


@dataclass(frozen=True)
class Adding:
    """A model on its way into a map."""

    path: Path
    """Folder of the map."""
    entry: CatalogueEntry
    """The model."""
    job: EmbedJob
    """Embeds it as the map's other models were."""

    @property
    def folder(self) -> Path:
        """Folder of what is attributed."""
        return self.job.folder(self.entry)

    @property
    def part(self) -> str:
        """Names the files of its rows."""
        facts = read_facts(self.folder) or {}
        return f"{folder_name(self.entry.name)}-{str(facts.get('weights') or 'hub')[:8]}"


def open_map_run(name: str) -> Run:
    """Open the run of a map.

    Raises:
        ConfigError: It holds none.
    """
    run = open_run(name)
    if run.kind != KIND or not run.has("model_embeddings"):
        raise ConfigError(
            f"Run {run.name} holds no map of models; make one with "
            "`headwater models embed --catalogue FILE`."
        )
    return run


def open_adding(
    run: Run, source: str, model: str | None, *, allow_code: bool, device: str
) -> Adding:
    """A model that is to be added, with the settings of the map.

    Raises:
        ConfigError: No model is named.
        CacheStale: The map's probes are not its own.
    """
    source = source.strip()
    if not source:
        raise ConfigError("No model was named; give a folder, a hub id or a packaged model.")
    known = source in PACKAGED or is_hub_id(source)
    place = source if known else str(Path(source).expanduser().resolve())
    called = model or (source if known else Path(place).name)
    probes = map_probes(run)
    settings = run.manifest["attribution"]
    embedding = run.manifest["embedding"]
    study = EmbedStudy(
        attribution=AttributionSettings(
            dtype=settings["dtype"], hook=settings["hook"], device=device
        ),
        n_dimensions=embedding["n_dimensions"],
        seed=embedding["seed"],
        allow_code=(place,) if allow_code else (),
    )
    job = EmbedJob(run.path, probes, study, fingerprint(study.identity(probes)))
    (run.path / MODELS).mkdir(exist_ok=True)
    return Adding(run.path, CatalogueEntry(called, place), job)


def map_probes(run: Run) -> ProbeSet:
    """The probes of a map, from its table.

    Raises:
        CacheStale: They are not those that its models were embedded over.
    """
    rows = read_table(run, "model_probes", order_by="probe").to_dict("records")
    listed = [Probe(r["source"], r["prompt"], tuple(r["options"]), int(r["answer"])) for r in rows]
    said = run.manifest["probes"]
    probes = ProbeSet(said["name"], tuple(listed), said["style"])
    if probes.fingerprint != said["fingerprint"]:
        raise CacheStale(
            f"The probes of run {run.name} are not those its models were embedded over; check it "
            f"with `headwater check --run {run.name}`."
        )
    return probes


def refuse_taken(run: Run, adding: Adding) -> None:
    """Refuse a name that another model of the map has; the same model may be named again.

    Raises:
        ConfigError: It is taken.
    """
    name = adding.entry.name
    rows = read_table(run, "model_catalogue", where={"model": name})
    if rows.empty:
        return
    row = rows.iloc[0]
    if row["status"] != EMBEDDED:
        raise ConfigError(
            f"{name} is in the catalogue of run {run.name} and failed: {row['reason']} Mend it and "
            "embed the catalogue again, or choose another name with --name."
        )
    facts = read_facts(adding.folder) or {}
    known = facts.get("weights") if facts.get("place") == adding.entry.source else None
    mark = weights_mark(adding.entry.source)
    if row["place"] != adding.entry.source or (known and mark and known != mark):
        raise ConfigError(
            f"Run {run.name} has a model called {name} already, of other weights; choose another "
            "name with --name."
        )
