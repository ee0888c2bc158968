"""Panels of the Overview page."""

import pandas as pd
import streamlit as st

from dashboard import data, documents, text, text_attribution, theme
from dashboard.components.doors import door
from dashboard.components.facts import Fact, facts
from dashboard.components.panel import attempt
from engine import schema, store
from engine.store.pools import has_pool


POOL_TABLES = ("attribution_sequences", "attribution_prototypes")
"""Tables of an attribution pool, which may lie in the cache beside a shipped run."""


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
    kept_note = f"{theme.count(kept)} kept" if kept else ""
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
            Fact("Tokens indexed", theme.count(tokens), kept_note, text.KEPT),
            Fact("Made", str(manifest.get("created", ""))[:10]),
        ]
    )


def doors(ways: tuple[tuple[str, str, str, str], ...] = text.DOORS) -> None:
    """Ways in, side by side."""
    columns = st.columns(len(ways))
    for column, (path, title, sentence, icon) in zip(columns, ways, strict=True):
        with column, st.container(border=True, height="stretch"):
            name, _, question = title.partition(": ")
            door(path, f"**{name}**", icon)
            st.markdown(f"{question[:1].upper()}{question[1:]}")
            st.caption(sentence)


def numbers(ref: data.RunRef) -> None:
    """The numbers that matter: coverage, loss against the twin, dead prototypes, label score."""
    found = [*_coverage(ref), *_loss(ref), *_labels(ref), *_study(ref)]
    if not found:
        st.caption("None of them has been measured on this run; what is missing is listed below.")
        return
    facts(found)


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


def _study(ref: data.RunRef) -> list[Fact]:
    """How well attribution predicted retraining, where this run holds the study of it."""
    if not data.has(ref, "attribution_validity"):
        return []
    rows = data.table(ref, "attribution_validity", where=(("scope", "all"),))
    chosen = rows[rows["is_default"]]
    if chosen.empty:
        return []
    row = chosen.iloc[0]
    best = rows.nlargest(1, "lds").iloc[0]
    n = f"{int(row['n_subsets']):,} subsets, {int(row['n_seeds']):,} seeds"
    return [
        Fact(f"LDS of {row['method']}", f"{row['lds']:.2f}", n, text_attribution.LDS_HELP),
        Fact("Best of all methods", f"{best['lds']:.2f}", str(best["method"])),
    ]


def missing_rows(run: store.Run) -> list[tuple[str, str]]:
    """What a run lacks and may have: one row a command, with the meaning of its tables."""
    found: dict[str, list[str]] = {}
    optional = text.OPTIONAL_TABLES.get(run.kind, ())
    if run.kind == "heads" and "study" not in run.manifest.get("stages", {}):
        optional = tuple(schema.TABLES)  # a model that was monitored or traced changes nothing
    if not run.has(POOL_TABLES[0]) and has_pool(run):
        optional = (*optional, *POOL_TABLES)  # a pool built here of a shipped run lies beside it
    for name, spec in schema.TABLES.items():
        if not run.has(name) and name not in optional:
            found.setdefault(run.command_for(name), []).append(spec.meaning)
    return [
        (meanings[0] + (f", and {len(meanings) - 1} more" if meanings[1:] else ""), command)
        for command, meanings in found.items()
    ]


def missing(ref: data.RunRef) -> None:
    """What this run lacks, and the command that makes each."""
    run = data.run_of(ref)
    rows = missing_rows(run)
    _, problem = attempt(documents.corpus_ready, ref.path)
    if problem and run.kind != "models":
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
