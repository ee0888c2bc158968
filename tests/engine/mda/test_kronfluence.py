"""Every head's influence against Kronfluence's, on a decoder whose heads are taken apart."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("kronfluence"), reason="needs `make bench-peers`")
def test_scores_are_those_of_kronfluence():
    """Same blocks, labels, damping and probe: the same numbers, sign included."""
    from scripts.bench.heads import HeadsBench, Work
    from scripts.bench.heads_peers import compare, split_heads

    work = Work.make((2, 64), HeadsBench("cpu", rounds=1, samples=32))
    split, names = split_heads(work.model, work.layout)
    assert len(names) == 4
    with torch.no_grad():
        expected = work.model(input_ids=work.rows[0]).logits
        torch.testing.assert_close(split(input_ids=work.rows[0]).logits, expected)
    ours, theirs, _ = compare(work, "cpu")
    assert ours.shape == (32, 4)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())
