"""Names of the Hessian's terms, as tables and pages know them."""

from engine.config import LossWeights


COUSAGE, RECONSTRUCTION, CLUSTERING = "cousage", "reconstruction", "clustering"
BANK, BANK_COMMON, CROSS_ENTROPY = "bank", "bank-common", "cross-entropy"
TERMS = (COUSAGE, RECONSTRUCTION, CLUSTERING, BANK, BANK_COMMON, CROSS_ENTROPY)
"""Names of the terms, in the order in which they are reported."""

COMMON_WEIGHTS = LossWeights(reconstruction=1.0, prototype_to_token=1.0, token_to_prototype=1.0)
"""Weights of `bank-common`, the same for every bank: under its own weights a bank with a stronger
clustering loss has a heavier diagonal by arithmetic alone."""
