"""Run the benchmarks that are named, print them, and keep them in `docs/measurements.json`."""

import argparse
import logging

from engine.errors import EngineError
from scripts.bench.indexing import measure_indexing
from scripts.bench.pages import measure_pages
from scripts.bench.training import SHAPES, measure_training


KINDS = ("training", "indexing", "pages")


def main() -> None:
    """Parse, measure, report."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all")
    parser.add_argument("--device", default="cpu", help="cpu or cuda, for training")
    parser.add_argument("--shape", default="demo", choices=SHAPES, help="of the trained model")
    parser.add_argument("--rounds", type=int, default=8, help="interleaved repetitions")
    parser.add_argument("--run", default="demo", help="run that is indexed")
    parser.add_argument("--tokens", type=int, default=10_000_000, help="of the synthetic cache")
    parser.add_argument("--prototypes", type=int, default=16_384, help="of the synthetic cache")
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
    except EngineError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
