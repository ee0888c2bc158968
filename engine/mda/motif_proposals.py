"""Motifs refined by an OpenAI-compatible model: it invents texts, the parameters are read here.

The model sees some top samples and the motifs that were found, and answers with invented texts
that show one structure each. Of an answer only those texts are used, and only through the same
extraction as samples: nothing of it is run, and a structure counts only where the samples
themselves show it.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.endpoint import Endpoint, EndpointError
from engine.mda.motif_extraction import text_structure
from engine.mda.motifs import Motif


logger = logging.getLogger(__name__)

SHOWN_SAMPLES = 12
"""Top samples that are sent."""
LONGEST_SAMPLE = 400
"""Characters of each."""
FEWEST_EXAMPLES = 2
"""Invented texts that must show a structure before it is taken over."""
MOST_EXAMPLES = 50
_LONGEST_EXAMPLE = 2000

_PROMPT = (
    "Below are windows of training text that taught a language model to copy, and the structures "
    "found in them with their shares. For each structure, and only for these, invent short texts "
    "that show it as purely and as variedly as the windows do: same delimiters, key-value "
    "conventions, nesting, prefixes or line shapes, but other words. Never copy the windows. "
    'Answer as JSON: {"motifs": [{"motif": "name of the structure", "examples": ["text", ...]}]} '
    f"with 5 to {MOST_EXAMPLES} examples each, line ends included."
)


def refine(
    endpoint: Endpoint, motifs: Sequence[Motif], texts: Sequence[str], *, seed: int = 0
) -> list[Motif]:
    """The motifs, the structure of those that are written as text as the endpoint puts it.

    Motifs of which the endpoint gives no usable examples, repeats, and all of them when it fails,
    stay as they are. Counts and shares stay those of the samples.

    Args:
        endpoint: where to ask; the samples shown are sent there.
        motifs: as they were extracted.
        texts: the samples' texts, of which a few are drawn.
        seed: seed of that draw.
    """
    textual = [motif for motif in motifs if motif.name != "repeat"]
    if not textual:
        return list(motifs)
    try:
        answer = endpoint.ask(_PROMPT, _question(textual, texts, seed))
    except EndpointError as error:
        logger.warning("%s The motifs stay as they were extracted.", error)
        return list(motifs)
    examples = _examples(answer)
    return [_refined(motif, examples.get(motif.name, []), endpoint.model) for motif in motifs]


def _question(motifs: Sequence[Motif], texts: Sequence[str], seed: int) -> str:
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(len(texts))[:SHOWN_SAMPLES]
    return json.dumps(
        {
            "structures": {motif.name: round(motif.share, 3) for motif in motifs},
            "windows": [texts[i][:LONGEST_SAMPLE] for i in sorted(chosen)],
        },
        ensure_ascii=False,
    )


def _examples(answer: dict[str, Any]) -> dict[str, list[str]]:
    """Texts by name of motif; whatever else the answer holds is left out."""
    found: dict[str, list[str]] = {}
    entries = answer.get("motifs")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("examples"), list):
            continue
        texts = [text[:_LONGEST_EXAMPLE] for text in entry["examples"] if isinstance(text, str)]
        found.setdefault(str(entry.get("motif")), []).extend(texts[:MOST_EXAMPLES])
    return found


def _refined(motif: Motif, examples: list[str], model: str) -> Motif:
    if motif.name == "repeat":
        return motif
    structure = text_structure(motif.name, examples, FEWEST_EXAMPLES)
    if structure is None:
        logger.info("%s gave no usable examples of %s; it stays as extracted", model, motif.name)
        return motif
    return replace(motif, structure=structure, origin=model)
