"""Run the benchmarks that are named, print them, and keep them in `docs/measurements.json`."""

import argparse
import importlib.util
import logging

import torch

from engine.errors import EngineError
from scripts.bench.attribution import AttributionBench, measure_attribution
from scripts.bench.heads import HeadsBench, measure_all_heads, measure_cost
from scripts.bench.heads_peers import measure_kronfluence
from scripts.bench.indexing import measure_indexing
from scripts.bench.models import measure_models
from scripts.bench.pages import measure_pages
from scripts.bench.search import measure_search
from scripts.bench.training import SHAPES, measure_training


KINDS = ("training", "indexing", "pages", "attribution", "search", "heads", "models")
ATTRIBUTION = ("cached", "projected", "ekfac", "full")
"""What the attribution benchmark compares; the second and third need `make bench-peers`."""


def main() -> None:
    """Parse, measure, report."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all")
    parser.add_argument("--device", default="cpu", help="cpu or cuda, for training and heads")
    parser.add_argument("--shape", default="demo", choices=SHAPES, help="of the trained model")
    parser.add_argument("--rounds", type=int, default=8, help="interleaved repetitions")
    parser.add_argument("--run", default="demo", help="run that is indexed or attributed with")
    parser.add_argument("--tokens", type=int, default=10_000_000, help="of the synthetic cache")
    parser.add_argument("--prototypes", type=int, default=16_384, help="of the synthetic cache")
    parser.add_argument("--pools", default="3000,30000,all", help="sizes, for attribution")
    parser.add_argument(
        "--slow-pools", default="3000", help="of them with EK-FAC and exact gradient"
    )
    parser.add_argument("--methods", default=",".join(ATTRIBUTION), help="for attribution")
    parser.add_argument("--samples", type=int, default=64, help="of a pass over heads")
    parser.add_argument("--probes", type=int, default=100, help="generated ones, for models")
    given = parser.parse_args()
    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; use {', '.join(KINDS)}")
    logging.disable(logging.WARNING)
    kinds = given.kinds or KINDS
    try:
        if "training" in kinds:
            measure_training(given.shape, given.device, given.rounds)
        if "indexing" in kinds:
            measure_indexing(given.run, given.rounds)
        if "pages" in kinds:
            measure_pages(given.prototypes, given.tokens)
        if "attribution" in kinds:
            methods = tuple(given.methods.split(","))
            measure_attribution(AttributionBench(given.run, given.pools, given.slow_pools, methods))
        if "search" in kinds:
            measure_search(given.tokens, given.rounds)
        if "heads" in kinds:
            measure_heads(HeadsBench(given.device, given.rounds, given.samples))
        if "models" in kinds:
            measure_models(given.rounds, given.probes)
    except EngineError as error:
        raise SystemExit(str(error)) from None


def measure_heads(bench: HeadsBench) -> None:
    """All heads against one, cost by size, and Kronfluence where it is installed; one thread."""
    torch.set_num_threads(1)
    measure_all_heads(bench)
    measure_cost(bench)
    if importlib.util.find_spec("kronfluence") is None:
        print("heads: Kronfluence is not installed; `make bench-peers` installs it.")
    else:
        measure_kronfluence(bench)


if __name__ == "__main__":
    main()
