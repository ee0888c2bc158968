"""Make a folder of local models, embed it, and record whether relatives come out as nearest.

    python -m scripts.local_models FOLDER --run RUN [--questions 32] [--style texts] [--small-only]

Nine small architectures with two derivatives each, and SmolLM2-135M from its package with seven of
its own. The record `local-models` in `docs/measurements.json` is what the claims ledger reads.
"""

import argparse
from pathlib import Path

from engine.able.model import AttributionSettings
from engine.able.probe_sources import read_probes
from engine.cli.console import Reporter, configure_logging
from engine.lm.packaged import ensure_packaged
from engine.pipeline.measurements import record_measurement
from engine.pipeline.models_catalogue import read_catalogue
from engine.pipeline.models_embed import EmbedStudy, embed_catalogue
from engine.pipeline.models_local import make_local_models, relatives_found
from engine.store import open_run, read_table, resolve_run


RECORD = "local-models"
ORIGIN = "smollm2"
VARIANTS = ("able", "contrast")
"""The embedding, and the variant that development roots of the zoo chose."""


def main() -> None:
    """Make, embed, measure, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", required=True)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--style", choices=("letters", "texts"), default="texts")
    parser.add_argument("--small-only", action="store_true")
    asked = parser.parse_args()
    configure_logging(verbose=False)
    place = None if asked.small_only else ensure_packaged(ORIGIN, Reporter())
    origin = None if asked.small_only else ORIGIN
    catalogue = make_local_models(asked.folder, origin, place, progress=Reporter())
    probes = read_probes(f"facts:{asked.questions}", style=asked.style, sources=None)
    path = resolve_run(asked.run)
    settings = AttributionSettings(dtype="float32", device="cpu")
    embed_catalogue(
        path, read_catalogue(catalogue), probes, EmbedStudy(attribution=settings), Reporter()
    )
    cards = read_table(open_run(path), "model_cards")
    origins = set(cards.loc[cards["relation"] == "root", "model"])
    rounds = [
        {"variant": variant, "family": family, "origin": row["model"] in origins, **row}
        for variant in VARIANTS
        for family, own in cards.groupby("family")
        for row in relatives_found(open_run(path), own["model"].tolist(), variant).to_dict(
            "records"
        )
    ]
    setting = {"models": len(cards), "families": cards["family"].nunique()}
    setting |= {"questions": len(probes), "style": asked.style, "origin": origin or ""}
    record_measurement(RECORD, setting, rounds)
    for row in rounds:
        print(row)


if __name__ == "__main__":
    main()
