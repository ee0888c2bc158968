"""`headwater models stability`: how far embeddings move when something is done otherwise."""

from typing import Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.models_map import MapRunOption
from engine.cli.parameters import JsonOption


WorkersOption = Annotated[int, typer.Option(help="Processes, each with one thread.")]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Spread models over a Ray cluster that shares the run's folder: auto, local or "
        "HOST:PORT; needs the extra `ray`.",
    ),
]
_TABLE = "model_stability"


def stability(
    *,
    run: MapRunOption,
    sample: Annotated[int, typer.Option(help="Models that are read again.")] = 24,
    probes: Annotated[int, typer.Option(help="Probes that these are asked.")] = 104,
    seed: Annotated[int, typer.Option(help="Seed of the sample, of orders and noise.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "cpu",
    workers: WorkersOption = 1,
    ray: RayOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how firm a map's embeddings are.

    Over all models: fewer probes, two disjoint sets of probes, fewer dimensions, other seeds, the
    rule for spaces. Over a sample, read again: number formats, batches, options in another order,
    prompts in other words, the hook point, copies, rewrites of the same function, growing noise.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.jobs import fan_of
    from engine.pipeline.models_stability import StabilityStudy, measure_stability

    study = StabilityStudy(sample=sample, n_probes=probes, seed=seed, device=device)
    done = measure_stability(
        run, study, fan=fan_of(workers, ray, device.startswith("cuda")), progress=Reporter()
    )
    rows = read_table(done, _TABLE).to_dict("records")
    if as_json:
        say_json({"run": done.name, "facts": done.manifest["stages"]["stability"], "rows": rows})
        return
    names = ("value", "low", "high", "n")
    headings = {"study": "left", "setting": "left", "measure": "left"}
    say_table(
        headings | dict.fromkeys(names, "right"),
        [
            (r["study"], r["setting"], r["measure"], *(digits(float(r[name])) for name in names))
            for r in rows
        ],
    )
    say(str(done.path))
