"""Keep a router for questions that are typed: an encoder and ten heads, each without a tenth."""

import numpy as np

from engine.atlas.factorisation import HeadSettings, train_head
from engine.atlas.question_encoder import QuestionEncoder
from engine.atlas.routers import RoutingData
from engine.corpus.documents import Progress, no_progress
from engine.store import RunWriter, write_array_atomic


ARRAYS = "routing"


def keep_router(
    writer: RunWriter,
    data: RoutingData,
    settings: HeadSettings,
    progress: Progress = no_progress,
) -> None:
    """Train and write the router; `engine.live.routing` reads it.

    The encoder is fitted on all questions. Head g is trained on all but those of fold g, so that
    how far the heads disagree says how sure they are.

    Args:
        writer: Writes the run, within a stage.
        data: Who answers what.
        settings: Training, with a number of epochs that validation questions chose.
        progress: Wraps the heads.
    """
    encoder = QuestionEncoder.fit(data.texts)
    encoded = encoder.encode(data.texts)
    heads = []
    for fold in progress(range(data.n_folds), label="Router to keep", total=data.n_folds):
        kept = data.fold != fold
        heads.append(
            train_head(encoded[kept], data.correct[:, kept], settings, embeddings=data.embeddings)
        )
    standard = heads[0].standard
    assert standard is not None
    arrays = {
        **encoder.arrays,
        "heads": np.stack([head.bilinear() for head in heads]),
        "centre": standard.centre,
        "scale": np.array([standard.scale]),
    }
    writer.array_folder(ARRAYS).mkdir(exist_ok=True)
    for name, array in arrays.items():
        write_array_atomic(writer.array_folder(ARRAYS) / f"{name}.npy", array)
    writer.register_arrays(ARRAYS, arrays)
