"""Live work on a loaded run: the only door between the dashboard and the models."""

from engine.live.attribution_results import (
    Attribution,
    AttributionPool,
    AttributionQuery,
    AttributionScores,
)
from engine.live.engine import LiveEngine
from engine.live.results import (
    Decomposition,
    Generation,
    GenerationStep,
    PromptActivations,
    Sampler,
    Scores,
    Shift,
    SideEffects,
    Suppression,
    Token,
)


__all__ = [
    "Attribution",
    "AttributionPool",
    "AttributionQuery",
    "AttributionScores",
    "Decomposition",
    "Generation",
    "GenerationStep",
    "LiveEngine",
    "PromptActivations",
    "Sampler",
    "Scores",
    "Shift",
    "SideEffects",
    "Suppression",
    "Token",
]
