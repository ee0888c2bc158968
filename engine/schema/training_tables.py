"""What training leaves behind: its log, held-out loss and the coverage of the bank."""

from engine.schema.columns import (
    DOMAIN,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


TRAINING_LOG = TableSpec(
    "training_log",
    "What each optimiser step saw",
    "one row per step",
    ("step",),
    (
        identifier("step", "Optimiser step, counted from 1"),
        real(
            "cross_entropy",
            "nats",
            "L_CE on the full logits; empty in a retrofit, which has none",
            True,
        ),
        real(
            "reconstruction",
            "number",
            "L_REC, mean squared residual share; empty before the bank",
            True,
        ),
        real(
            "prototype_to_token",
            "number",
            "L_R1, mean over prototypes of 1 - cosine to the nearest token of the batch",
            True,
        ),
        real(
            "token_to_prototype",
            "number",
            "L_R2, mean over tokens of 1 - cosine to the nearest prototype",
            True,
        ),
        real("weight_scale", "share", "Ramp of the bank's loss weights"),
        real("learning_rate", "number", "Learning rate of the backbone"),
        real("gradient_norm", "number", "Gradient norm before clipping; empty in a retrofit", True),
        count("tokens_seen", "Tokens trained on so far"),
        real("seconds", "seconds", "Wall time of the step"),
    ),
)

EVALUATIONS = TableSpec(
    "evaluations",
    "Loss and coverage on held-out rows on the way of training",
    "one row per step evaluated",
    ("step",),
    (
        identifier("step", "Optimiser step"),
        real("validation_loss", "nats", "Mean held-out cross-entropy over domains' rows"),
        real(
            "coverage_r1",
            "cosine",
            "R1-bar: mean over prototypes of the largest cosine with a scanned token",
            True,
        ),
        real(
            "coverage_r2",
            "cosine",
            "R2: mean over tokens of the largest cosine with a prototype",
            True,
        ),
        real("residual_share", "number", "Mean squared residual share", True),
        real("pair_cosine", "cosine", "Mean cosine of random pairs of token states"),
        real("participation_ratio", "number", "Participation ratio of the states' covariance"),
        real("dead_share", "share", "Share of prototypes that no scanned token activates", True),
        count("tokens_scanned", "Held-out tokens of this evaluation"),
    ),
)

VALIDATION_LOSS = TableSpec(
    "validation_loss",
    "Held-out loss by domain, of the model and of its dense twin",
    "one row per model and domain",
    ("model", "domain"),
    (
        text("model", "prism or dense"),
        DOMAIN,
        real("loss", "nats", "Mean held-out cross-entropy"),
        count("n_tokens", "Held-out tokens"),
    ),
)

COVERAGE = TableSpec(
    "coverage",
    "Grounding of the bank on held-out tokens, beside a random and a k-means bank of the same K",
    "one row per bank",
    ("bank",),
    (
        text("bank", "trained, kmeans, random, or dense-kmeans (k-means on the twin's states)"),
        real(
            "coverage_r1",
            "cosine",
            "R1-bar: mean over prototypes of the largest cosine with a scanned token",
        ),
        real(
            "coverage_r2", "cosine", "R2: mean over tokens of the largest cosine with a prototype"
        ),
        real("residual_share", "number", "Mean squared residual share"),
        real("pair_cosine", "cosine", "Mean cosine of random pairs of token states"),
        real("participation_ratio", "number", "Participation ratio of the states' covariance"),
        real("dead_share", "share", "Share of prototypes that no scanned token activates"),
        count("tokens_scanned", "Held-out tokens scanned"),
    ),
)

TRADEOFF = TableSpec(
    "tradeoff",
    "Loss against coverage over loss weights, every arm from the same starting point",
    "one row per arm",
    ("arm",),
    (
        text("arm", "Name of the arm"),
        real("reconstruction_weight", "number", "Weight of L_REC"),
        real("prototype_to_token_weight", "number", "Weight of L_R1"),
        real("token_to_prototype_weight", "number", "Weight of L_R2"),
        real("validation_loss", "nats", "Held-out cross-entropy"),
        real("dense_loss", "nats", "Held-out cross-entropy of the dense arm after the same steps"),
        real("coverage_r1", "cosine", "R1-bar"),
        real("coverage_r2", "cosine", "R2"),
        real("residual_share", "number", "Mean squared residual share"),
        real("pair_cosine", "cosine", "Mean cosine of random pairs of token states"),
        real("participation_ratio", "number", "Participation ratio of the states"),
        real(
            "dense_participation_ratio", "number", "Participation ratio of the dense arm's states"
        ),
        real("dead_share", "share", "Share of prototypes that no scanned token activates"),
        count("tokens_scanned", "Held-out tokens scanned"),
    ),
)
