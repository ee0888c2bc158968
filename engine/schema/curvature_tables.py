"""Curvature of the losses in prototype space, of a run and of arms over clustering strength."""

import pyarrow as pa

from engine.schema.columns import (
    PROTOTYPE,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


_ARM = text("arm", "Run that was measured: this one, or an arm")
_TERM = text(
    "term",
    "cousage (C / N), reconstruction, clustering (both at weight 1), bank (at the weights trained "
    "with), bank-common (all weights 1), cross-entropy (residual held fixed)",
)

CURVATURE_ARMS = TableSpec(
    "curvature_arms",
    "Whose curvature was measured, over how many tokens, and whether its states collapsed",
    "one row per run or arm",
    ("arm",),
    (
        _ARM,
        text("role", "run: the run that holds the table; arm: one of a series"),
        identifier("seed", "Seed of its training", pa.int64()),
        real("reconstruction_weight", "number", "Weight of L_REC"),
        real("prototype_to_token_weight", "number", "Weight of L_R1"),
        real("token_to_prototype_weight", "number", "Weight of L_R2"),
        count("n_prototypes", "Prototypes in the bank (K)"),
        count("n_active_most", "Prototypes active at a token at most (k)"),
        count("d_model", "Width of a state"),
        count("tokens", "Training tokens the Hessian was summed over (N)"),
        count("batch_tokens", "Tokens of a batch, in which L_R1 looks for the nearest"),
        real("validation_loss", "nats", "Held-out cross-entropy, mean over domains", True),
        real("dense_loss", "nats", "The same of the dense run beside it", True),
        real("coverage_r1", "cosine", "R1-bar on held-out tokens", True),
        real("coverage_r2", "cosine", "R2 on held-out tokens", True),
        real("residual_share", "number", "Mean squared residual share on held-out tokens", True),
        real("pair_cosine", "cosine", "Mean cosine of random pairs of held-out states", True),
        real("participation_ratio", "number", "Participation ratio of held-out states", True),
        real("dense_participation_ratio", "number", "The same of the dense run beside it", True),
        real("dead_share", "share", "Share of prototypes that no held-out token activates", True),
        count("tokens_scanned", "Held-out tokens the figures of collapse rest on; 0: none"),
    ),
)

CURVATURE = TableSpec(
    "curvature",
    "Coupling and conditioning of the Hessian in prototype space, reduced to K x K",
    "one row per run or arm and term",
    ("arm", "term"),
    (
        _ARM,
        _TERM,
        real("mean_eigenvalue", "number", "Trace ÷ K: the unit of the eigenvalues"),
        real("coupling", "share", "Off-diagonal share of the absolute mass; 0: independent"),
        real(
            "coupling_normalised",
            "share",
            "The same of M_ij ÷ √(M_ii M_jj), over prototypes with M_ii > 0",
        ),
        real("local_share", "number", "Share of the diagonal that clustering makes", True),
        real(
            "block_diagonal_share",
            "share",
            "Squared Frobenius norm of the block diagonal over that of the Kd x Kd Hessian",
            True,
        ),
        real(
            "isotropic_share",
            "share",
            "Share of that norm which the K x K matrix keeps; 1: the reduction is exact",
            True,
        ),
        real("participation", "number", "(Σ λ)² ÷ Σ λ² of the eigenvalues, in [1, K]"),
        real("largest", "number", "Largest eigenvalue"),
        real("smallest", "number", "Smallest eigenvalue"),
        count("n_zero", "Eigenvalues that are 0 within rounding"),
        real("damping", "number", "Added to every eigenvalue for the condition numbers"),
        real("condition_number", "number", "(largest + damping) ÷ (smallest + damping)", True),
        real("condition_scaled", "number", "The same after dividing by √(M_ii M_jj)", True),
        real(
            "condition_effective", "number", "Largest ÷ smallest eigenvalue above 0, undamped", True
        ),
    ),
)

CURVATURE_SPECTRUM = TableSpec(
    "curvature_spectrum",
    "Eigenvalues of the K x K matrices at ranks spaced evenly in their logarithm",
    "one row per run or arm, term and rank",
    ("arm", "term", "rank"),
    (
        _ARM,
        _TERM,
        identifier("rank", "Rank, 0 the largest"),
        real("eigenvalue", "number", "Eigenvalue"),
    ),
)

CURVATURE_COUSAGE = TableSpec(
    "curvature_cousage",
    "Co-usage of different prototypes by the broad category of their labels",
    "one row per pair of categories",
    ("category", "other"),
    (
        text("category", "Category of the first prototype"),
        text("other", "Category of the second prototype"),
        count("n_pairs", "Ordered pairs of different prototypes"),
        real("mass", "number", "Sum over tokens and pairs of a_ti a_tj"),
        real("share", "share", "Share of the mass of all pairs"),
        real(
            "expected_share",
            "share",
            "The share if every prototype met every other in proportion to their activations",
        ),
    ),
)

CURVATURE_PAIRS = TableSpec(
    "curvature_pairs",
    "Prototypes that are used together most, for how often each is used",
    "one row per rank",
    ("rank",),
    (
        identifier("rank", "Rank, 0 the strongest"),
        PROTOTYPE,
        identifier("neighbour", "The other prototype"),
        real("cosine", "cosine", "C_ij ÷ √(C_ii C_jj)"),
        count("n_tokens", "Tokens at which both are active"),
    ),
)

CURVATURE_TABLES = (
    CURVATURE_ARMS,
    CURVATURE,
    CURVATURE_SPECTRUM,
    CURVATURE_COUSAGE,
    CURVATURE_PAIRS,
)
"""Tables of the stage `curvature`."""
