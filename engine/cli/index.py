"""`headwater index`: what each prototype of a run stands for."""

from engine.cli.console import Reporter, say, say_json
from engine.cli.options import with_config
from engine.cli.parameters import DEMO, DryRunOption, JsonOption, RunOption
from engine.config import IndexConfig


@with_config(IndexConfig, "Settings of the index")
def index(
    *,
    config: IndexConfig,
    run: RunOption = DEMO,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Index a run: examples, histograms, signatures, labels and the map of its prototypes.

    One pass over the run's corpus, resumed shard by shard when it was stopped.
    """
    if dry_run:
        say_json(config)
        return
    from engine.store import open_run

    open_run(run)  # before what is slow to load
    from engine.pipeline.index import index_run

    done = index_run(run, config, Reporter())
    if as_json:
        say_json({"run": done.name, "path": str(done.path), "tables": done.tables})
        return
    say(f"Browse it with: headwater dashboard --run {done.name}")
    say(str(done.path))
