"""Child process of `engine.scoring.classifier`: texts in, probabilities out, one JSON line each.

It is run as a file, apart from the engine, because the package it imports unpickles its weights;
the parent has checked their hashes before it starts this.
"""

import json
import sys


def main() -> None:
    """Answer until the parent closes the pipe."""
    try:
        import numpy as np
        from profanity_check import predict_prob
    except Exception as error:  # noqa: BLE001 - whatever fails is told to the parent
        _say({"error": f"{type(error).__name__}: {error}"})
        return
    _say({"ready": True})
    for line in sys.stdin:
        texts = json.loads(line)
        _say({"scores": np.asarray(predict_prob(texts), dtype=float).tolist()})


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
