"""Panels of the Overview page."""

import pandas as pd
import streamlit as st

from dashboard import data, documents, text, theme
from dashboard.components.chart import chart
from dashboard.components.doors import door
from dashboard.components.facts import Fact, facts
from dashboard.components.panel import attempt
from dashboard.figures import quality, training
from engine import schema, store


def holds(run: store.Run) -> None:
    """What this run is made of, in one line of numbers."""
    manifest = run.manifest
    corpus = manifest.get("corpus", {})
    domains = corpus.get("domains", {})
    model = manifest.get("model", {})
    tables = run.tables
    n_documents = sum(d["n_documents"] for d in domains.values())
    n_prototypes = tables.get("prototypes", {}).get("rows")
    n_bytes = sum(d["n_bytes"] for d in domains.values())
    kept = tables.get("token_residuals", {}).get("rows")
    tokens = manifest.get("stages", {}).get("index", {}).get("tokens_scanned") or kept
    facts(
        [
            Fact("Run", run.name, text.KINDS.get(run.kind, run.kind)),
            Fact("Parameters", theme.count(model.get("n_parameters") or None)),
            Fact("Prototypes", theme.count(n_prototypes), "", text.BANK),
            Fact(
                "Corpus", str(corpus.get("name", "–")), f"{len(domains)} domains" if domains else ""
            ),
            Fact("Documents", theme.count(n_documents or None)),
            Fact("Text", theme.bytes_text(n_bytes) if n_bytes else "–"),
            Fact("Tokens indexed", theme.count(tokens), f"{theme.count(kept)} kept", text.KEPT),
            Fact("Made", str(manifest.get("created", ""))[:10]),
        ]
    )


def doors() -> None:
    """Three ways in."""
    for column, (path, title, sentence, icon) in zip(st.columns(3), text.DOORS, strict=True):
        with column, st.container(border=True, height="stretch"):
            door(path, f"**{title}**", icon)
            st.caption(sentence)


def numbers(ref: data.RunRef) -> None:
    """The numbers that matter: coverage, loss against the twin, dead prototypes, label score."""
    facts([*_coverage(ref), *_loss(ref), *_labels(ref)])


def _coverage(ref: data.RunRef) -> list[Fact]:
    if not data.has(ref, "coverage"):
        return []
    banks = data.table(ref, "coverage").set_index("bank")
    if "trained" not in banks.index:
        return []
    ours = {str(name): float(value) for name, value in banks.to_dict("index")["trained"].items()}
    others = [name for name in ("kmeans", "random") if name in banks.index]
    beside_r1 = ", ".join(f"{name} {banks.loc[name, 'coverage_r1']:.2f}" for name in others)
    beside_r2 = ", ".join(f"{name} {banks.loc[name, 'coverage_r2']:.2f}" for name in others)
    return [
        Fact("Coverage R̄1", theme.number(ours["coverage_r1"]), beside_r1, text.R1),
        Fact("Coverage R2", theme.number(ours["coverage_r2"]), beside_r2, text.R2),
        Fact("Residual share", theme.number(ours["residual_share"]), "squared", text.RESIDUAL),
        Fact("Dead", theme.percent(ours["dead_share"]), "of prototypes", text.DEAD),
        Fact("Pair cosine", theme.number(ours["pair_cosine"]), "", text.PAIR),
    ]


def _loss(ref: data.RunRef) -> list[Fact]:
    if not data.has(ref, "validation_loss"):
        return []
    rows = data.table(ref, "validation_loss")
    means = rows.groupby("model")[["loss", "n_tokens"]].apply(
        lambda g: float((g["loss"] * g["n_tokens"]).sum() / max(1, g["n_tokens"].sum()))
    )
    found = {str(k): float(v) for k, v in means.items()}
    if "prism" not in found:
        return []
    note = "nats per token"
    if found.get("dense"):
        note = f"dense twin {found['dense']:.3f} ({found['prism'] / found['dense'] - 1:+.1%})"
    return [Fact("Held-out loss", f"{found['prism']:.3f}", note, text.LOSS)]


def _labels(ref: data.RunRef) -> list[Fact]:
    if not data.has(ref, "prototypes"):
        return []
    rows = data.prototypes(ref)
    if rows["label_score"].isna().all():
        return []
    note = f"random labels {theme.number(float(rows['random_label_score'].mean()))}"
    mean = theme.number(float(rows["label_score"].mean()))
    return [Fact("Label score", mean, note, text.LABEL_SCORE)]


def pictures(ref: data.RunRef) -> None:
    """Training curve, coverage on the way, trade-off, loss by domain, banks: what there is."""
    drawn = [draw for table, draw in _PICTURES if data.has(ref, table)]
    for start in range(0, len(drawn), 2):
        for column, draw in zip(st.columns(2, gap="large"), drawn[start : start + 2], strict=False):
            with column:
                draw(ref)


def _training(ref: data.RunRef) -> None:
    log = data.table(ref, "training_log")
    if log["cross_entropy"].isna().all():
        chart(
            training.bank_loss_curve(log, dark=theme.is_dark()),
            key="loss_curve",
            alt=f"Losses of the bank over {len(log):,} fitting steps.",
            file_name=f"{ref.name}-fitting-loss",
        )
        return
    met = data.table(ref, "evaluations") if data.has(ref, "evaluations") else pd.DataFrame()
    last = float(log["cross_entropy"].iloc[-1])
    chart(
        training.loss_curve(log, met, dark=theme.is_dark()),
        key="loss_curve",
        alt=f"Loss over {len(log):,} training steps, ending at {last:.2f} nats per token.",
        file_name=f"{ref.name}-training-loss",
    )


def _coverage_way(ref: data.RunRef) -> None:
    rows = data.table(ref, "evaluations")
    chart(
        training.coverage_curve(rows, dark=theme.is_dark()),
        key="coverage_curve",
        alt=f"Coverage and signs of collapse at {len(rows)} evaluations while training.",
        file_name=f"{ref.name}-training-coverage",
    )


def _tradeoff(ref: data.RunRef) -> None:
    rows = data.table(ref, "tradeoff")
    chart(
        quality.tradeoff(rows, dark=theme.is_dark()),
        key="tradeoff",
        alt=f"Loss above the dense twin against mean coverage for {len(rows)} loss weightings.",
        file_name=f"{ref.name}-tradeoff",
    )


def _by_domain(ref: data.RunRef) -> None:
    rows = data.table(ref, "validation_loss")
    chart(
        quality.loss_by_domain(rows, dark=theme.is_dark()),
        key="loss_by_domain",
        alt=f"Held-out loss of model and dense twin in {rows['domain'].nunique()} domains.",
        file_name=f"{ref.name}-loss-by-domain",
    )


def _banks(ref: data.RunRef) -> None:
    rows = data.table(ref, "coverage")
    chart(
        quality.coverage_banks(rows, dark=theme.is_dark()),
        key="coverage_banks",
        alt=f"Coverage and residual share of {len(rows)} banks of the same size.",
        file_name=f"{ref.name}-banks",
    )


def _label_scores(ref: data.RunRef) -> None:
    rows = data.prototypes(ref)
    chart(
        quality.label_scores(rows, dark=theme.is_dark()),
        key="label_scores",
        alt=f"Label scores of {len(rows):,} prototypes beside those of random labels.",
        file_name=f"{ref.name}-label-scores",
    )


_PICTURES = (
    ("training_log", _training),
    ("evaluations", _coverage_way),
    ("tradeoff", _tradeoff),
    ("coverage", _banks),
    ("validation_loss", _by_domain),
    ("prototypes", _label_scores),
)


def missing(ref: data.RunRef) -> None:
    """What this run lacks, and the command that makes each."""
    run = data.run_of(ref)
    rows = [
        (schema.TABLES[name].meaning, run.command_for(name))
        for name in schema.TABLES
        if not run.has(name) and name not in text.OPTIONAL_TABLES.get(run.kind, ())
    ]
    _, problem = attempt(documents.corpus_ready, ref.path)
    if problem:
        rows.insert(
            0, (f"Text of the training neighbours. {problem}", text.corpus_command(run.manifest))
        )
    if not rows:
        st.caption(
            "Nothing is missing: every table of this run is there, and its text can be read."
        )
        return
    st.dataframe(
        pd.DataFrame(rows, columns=["Missing", "Command that makes it"]),
        key="missing",
        hide_index=True,
        height=theme.table_height(len(rows), 260),
        alt="What this run lacks and the command that makes it.",
    )
