"""Attention heads: how they form, which samples formed them, and what changing these did."""

import pyarrow as pa

from engine.schema.columns import (
    ColumnSpec,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


_SEED = identifier("seed", "Seed: an initialisation and a data order of its own", pa.int16())
_ARM = text(
    "arm",
    "baseline, delete_top, augment_top, delete_random, augment_random, replace_top, "
    "replace_random, synthetic, synthetic_control",
)
_UNIT = text(
    "unit", "Kind of head whose samples the arm changes: induction, ...; empty where it has none"
)
_PROBED = text("unit", "Kind of head whose probe was asked: induction, previous_token, ...")
_STEP = identifier("step", "Optimiser step; in a monitored model the step of the checkpoint")
_LAYER = identifier("layer", "Layer, counted from 0", pa.int16())
_HEAD = identifier("head", "Head within its layer, counted from 0", pa.int16())
_ROW = identifier("row", "Row of the step's batch, counted from 0", pa.int16())
_LOW = real("low", "number", "Lower end of the 95 % interval", nullable=True)
_HIGH = real("high", "number", "Upper end of the 95 % interval", nullable=True)
_N_SEEDS = count("n_seeds", "Seeds that the mean and its t-interval are taken over")

HEAD_SCORES = TableSpec(
    "head_scores",
    "How much each head attends where a head of a known kind should, along training",
    "one row per seed, arm, unit, step and head",
    ("seed", "arm", "unit", "step", "layer", "head"),
    (
        _SEED,
        _ARM,
        _UNIT,
        _STEP,
        _LAYER,
        _HEAD,
        real(
            "prefix_matching",
            "share",
            "Attention from a repeated token to the one after its first occurrence",
        ),
        real("previous_token", "share", "Attention to the token before"),
        real("duplicate_token", "share", "Attention to earlier occurrences of the same token"),
    ),
)

HEAD_LOSSES = TableSpec(
    "head_losses",
    "Losses along training, by arm",
    "one row per seed, arm, unit and step",
    ("seed", "arm", "unit", "step"),
    (
        _SEED,
        _ARM,
        _UNIT,
        _STEP,
        text("checkpoint", "Name of the checkpoint; empty in a study's own run"),
        count("tokens_seen", "Tokens of the stream up to this step, inserted rows not counted"),
        real("loss", "nats", "Mean held-out loss on natural rows", nullable=True),
        real("copy_loss", "nats", "Mean loss over the second copy of repeated random sequences"),
        real(
            "icl",
            "number",
            "Mean loss of the last tokens of held-out rows minus that of the first, in nats; more "
            "negative is more in-context learning",
            nullable=True,
        ),
    ),
)

HEAD_ARMS = TableSpec(
    "head_arms",
    "What each arm of a study changed",
    "one row per seed, arm and unit",
    ("seed", "arm", "unit"),
    (
        _SEED,
        _ARM,
        _UNIT,
        identifier("branch_step", "Step at which the arm leaves the baseline; the window begins"),
        identifier("end_step", "Step at which the window ends"),
        count("n_deleted", "Samples whose gradient was masked"),
        count("n_inserted", "Rows added"),
        count("n_planted", "Generated rows among those changed"),
    ),
)

HEAD_SAMPLES = TableSpec(
    "head_samples",
    "Training samples that were scored",
    "one row per seed, step and row",
    ("seed", "step", "row"),
    (
        _SEED,
        _STEP,
        _ROW,
        text("domain", "Domain of the text; planted where the row was generated"),
        ColumnSpec(
            "document", pa.int32(), "number", "Row of `documents`; -1 if the sample was generated"
        ),
        ColumnSpec(
            "position", pa.int32(), "number", "First token in the document; -1 if generated"
        ),
        count("segment", "Tokens of the segment that repeats in a generated row; 0 in others"),
        real("loss", "number", "Summed loss of the sample, in nats; NaN if skipped", nullable=True),
        text("tags", "Structures of the text, separated by spaces: repeat, code, markup, ..."),
    ),
)

HEAD_INFLUENCE = TableSpec(
    "head_influence",
    "Influence of each sample on each head",
    "one row per seed, unit, step and row",
    ("seed", "unit", "step", "row"),
    (
        _SEED,
        _PROBED,
        _STEP,
        _ROW,
        ColumnSpec(
            "influence",
            pa.list_(pa.float32()),
            "number",
            "By head, in the order of `head_choices.heads`. Positive: training more on the sample "
            "raises the head's score; negative: lowers it; NaN: the gradient was no finite number",
        ),
    ),
)

HEAD_CHOICES = TableSpec(
    "head_choices",
    "The head of each kind that a seed's arms are about, and the run of its influence",
    "one row per seed and unit",
    ("seed", "unit"),
    (
        _SEED,
        _PROBED,
        _LAYER,
        _HEAD,
        identifier("checkpoint_step", "Step whose weights the influence was computed with"),
        ColumnSpec(
            "heads",
            pa.list_(pa.string()),
            "text",
            "Heads that were scored, as LAYER.HEAD, in the order of `influence`",
        ),
        count("n_selected", "Samples that the arms delete or copy"),
        count("n_samples", "Samples that were scored in the window"),
        count("n_planted_selected", "Generated rows among the selected"),
        count("n_planted", "Generated rows among all"),
        count("n_skipped", "Samples left out for a gradient that was no finite number"),
        real("seconds", "seconds", "Time of curvature and scoring together"),
    ),
)

HEAD_EFFECTS = TableSpec(
    "head_effects",
    "What an arm did: its mean over the window minus the baseline's, over seeds",
    "one row per arm, unit and measure",
    ("arm", "unit", "measure"),
    (
        _ARM,
        text("unit", "Kind of head that the measure is about and, in top arms, that was changed"),
        text(
            "measure",
            "score (chosen head), same_kind and other_kind (other heads), copy_loss, icl, loss: "
            "mean difference over the window; final_score: difference at its end; delay: steps "
            "later that the chosen head reaches half of the baseline's final score",
        ),
        _N_SEEDS,
        real("effect", "number", "Mean over seeds"),
        _LOW,
        _HIGH,
    ),
)

HEAD_TAILS = TableSpec(
    "head_tails",
    "How heavy the tail of a head's influence is",
    "one row per seed, unit, head and sign",
    ("seed", "unit", "layer", "head", "sign"),
    (
        _SEED,
        _PROBED,
        _LAYER,
        _HEAD,
        text("sign", "positive or negative: the side of the influence"),
        count("n", "Samples of this sign"),
        real("top10_share", "share", "Share of the side's sum carried by its largest 10 %"),
        real("gini", "share", "Gini coefficient of the side"),
        real(
            "exponent",
            "number",
            "Power-law exponent alpha of the tail, by maximum likelihood; empty, as what follows, "
            "where the side has too few samples for a fit",
            nullable=True,
        ),
        _LOW,
        _HIGH,
        real("xmin", "number", "Influence at which the fitted tail begins", nullable=True),
        count("n_tail", "Samples in the fitted tail; 0 where there is none"),
        real("ks", "number", "Kolmogorov-Smirnov distance of the fit", nullable=True),
        real(
            "lognormal_ratio",
            "number",
            "Log-likelihood ratio of power law to log-normal on the tail; negative prefers the "
            "log-normal",
            nullable=True,
        ),
        real("lognormal_p", "share", "p-value of that ratio being 0", nullable=True),
    ),
)

HEAD_OVERLAPS = TableSpec(
    "head_overlaps",
    "How far two heads share their most influential samples",
    "one row per seed, unit and pair of heads",
    ("seed", "unit", "layer", "head", "other_layer", "other_head"),
    (
        _SEED,
        _PROBED,
        _LAYER,
        _HEAD,
        identifier("other_layer", "Layer of the other head", pa.int16()),
        identifier("other_head", "Other head within its layer", pa.int16()),
        real("overlap", "share", "Share of the top samples of one that are top of the other"),
        real("spearman", "number", "Rank correlation of the influence over all samples"),
    ),
)

HEAD_TAGS = TableSpec(
    "head_tags",
    "Structures among a head's most influential samples, against all samples",
    "one row per unit, tag and sign",
    ("unit", "tag", "sign"),
    (
        _PROBED,
        text("tag", "Structure, or domain:NAME"),
        text("sign", "positive or negative: the side of the influence"),
        _N_SEEDS,
        real("share", "share", "Share of the top samples of the chosen heads that have the tag"),
        real("base", "share", "Share of all samples that have it"),
        real("enrichment", "number", "share divided by base"),
        _LOW,
        _HIGH,
    ),
)

HEAD_MOTIFS = TableSpec(
    "head_motifs",
    "Structural motifs of a head's top samples, from which synthetic samples are made",
    "one row per unit and motif",
    ("unit", "motif"),
    (
        _PROBED,
        text("motif", "Name of the motif"),
        count("n_samples", "Top samples that show it"),
        real("share", "share", "Share of the top samples that show it"),
        text("parameters", "What its generator needs, as JSON"),
    ),
)

HEAD_MIXTURES = TableSpec(
    "head_mixtures",
    "Whether heads form, by what the training rows are made of",
    "one row per mixture, seed and step",
    ("mixture", "seed", "step"),
    (
        text("mixture", "What the rows are made of, in words"),
        real("repeat_share", "share", "Share of rows in which a random segment repeats"),
        text("domains", "Domains of the natural rows with their shares, as JSON"),
        _SEED,
        _STEP,
        count("tokens_seen", "Tokens up to this step"),
        real("prefix_matching", "share", "Largest prefix matching of any head"),
        real("previous_token", "share", "Largest previous-token score of any head"),
        real("copy_loss", "nats", "Mean loss over the second copy of repeated random sequences"),
        real("loss", "nats", "Mean held-out loss on natural rows"),
    ),
)

HEAD_TABLES = (
    HEAD_SCORES,
    HEAD_LOSSES,
    HEAD_ARMS,
    HEAD_SAMPLES,
    HEAD_INFLUENCE,
    HEAD_CHOICES,
    HEAD_EFFECTS,
    HEAD_TAILS,
    HEAD_OVERLAPS,
    HEAD_TAGS,
    HEAD_MOTIFS,
    HEAD_MIXTURES,
)
"""Tables of runs of the kind `heads`."""
