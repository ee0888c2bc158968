"""Suppressing a behaviour in batch: find a set on training texts, measure it on held-out prompts.

Every condition continues the same held-out prompts with the same seeds and sampler: nothing
suppressed, the chosen set, and random sets of as many prototypes, matched on firing rate. Set,
size and strength are chosen on prompts from training texts; held-out prompts are met once, after
that, and had no part in it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from engine.corpus.documents import Progress, no_progress
from engine.errors import ConfigError
from engine.live.engine import LiveEngine
from engine.live.model import LiveModel
from engine.live.opening import open_model
from engine.live.records import run_corpus
from engine.live.results import Sampler, Suppression
from engine.pipeline.suppression_choice import (
    Dose,
    Setting,
    choose,
    sizes_of,
    sweep,
    tried,
)
from engine.pipeline.suppression_figures import Condition
from engine.pipeline.suppression_finding import Found, find_candidates
from engine.pipeline.suppression_generating import Bench, Notes, Rows, ScorerPool
from engine.pipeline.suppression_prompts import (
    RECITED_TOKENS,
    Prompt,
    PromptSource,
    training_spans,
)
from engine.pipeline.suppression_ranking import Ranked
from engine.pipeline.suppression_rows import CONDITIONS, Shape, measured_rows
from engine.pipeline.suppression_settings import SuppressionStudy
from engine.provenance import fingerprint
from engine.schema import SUPPRESSION_TABLES
from engine.scoring import Scorer, open_scorer, scorer_name
from engine.store import Run, RunWriter, open_run, read_table


STAGE = "suppression"
NOTES = "suppression.partial"
"""Folder of what a study has found so far, while it runs."""
_EVIDENCE = ("keyword", "meaning", "log_ratio", "scored_log_ratio")


def suppress(
    run_name: str, study: SuppressionStudy, progress: Progress = no_progress
) -> dict[str, Any]:
    """Find a concept's set, measure it, and write the `suppression_*` tables of a run.

    A study that was stopped goes on after the last batch it finished; one that is done with the
    same settings and model is not repeated, unless a scorer failed in it. Rows of other concepts
    are kept.

    Args:
        run_name: An indexed run whose corpus is built.
        study: Settings.
        progress: Wraps the batches of each condition.

    Returns:
        What the manifest says of the concept: the choice, mean scores, failed scorers.

    Raises:
        PackageMissing: The scorer that takes part in the choice is not here.
        CorpusError: The corpus has no texts of the concept's domain.
        PromptError: No prototype matches the concept's words.
    """
    started = time.perf_counter()
    run = open_run(run_name)
    model = run.manifest.get("model", {}).get("fingerprint")
    identity = fingerprint([asdict(study), model, _twin_fingerprint(study.dense_run)])
    known = run.manifest["stages"].get(STAGE, {}).get("concepts", {}).get(study.concept, {})
    done = known.get("identity") == identity and not known.get("failed")
    if done and all(run.has(table.name) for table in SUPPRESSION_TABLES):
        return known
    work = _Work.prepare(run_name, study, identity, progress)
    tables, facts = work.tables()
    facts |= {"identity": identity, "seconds": time.perf_counter() - started}
    _publish(run, study.concept, tables, facts)
    work.bench.notes.remove()
    return facts


@dataclass(frozen=True)
class _Work:
    """A study under way."""

    engine: LiveEngine
    run: Run
    study: SuppressionStudy
    source: PromptSource
    bench: Bench

    @classmethod
    def prepare(
        cls, run_name: str, study: SuppressionStudy, identity: str, progress: Progress
    ) -> "_Work":
        """Load models and texts; what is missing is said before anything is generated."""
        engine = LiveEngine.open(run_name)
        run = open_run(run_name)
        scorers = ScorerPool({scorer_name(spec): _opener(spec, study) for spec in study.scorers})
        corpus = run_corpus(run, engine.name)
        source = PromptSource(corpus, engine.codec, study.domain, study.prompt_tokens, study.seed)
        source.unwanted("validation", 1)
        bench = Bench(
            model=engine.model,
            codec=engine.codec,
            judge=_judge(engine, study.dense_run),
            scorers=scorers,
            sampler=Sampler(temperature=study.temperature, top_p=study.top_p),
            tokens=study.tokens,
            batch_size=study.batch_size,
            notes=Notes(run.path / NOTES, identity),
            progress=progress,
            spans=training_spans(source.texts("train")),
        )
        return cls(engine, run, study, source, bench)

    def tables(self) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        """Every table of the concept, and the facts."""
        found = self._found()
        rows, setting, known = self._chosen(found)
        chosen = found.first(setting.price, setting.size)
        controls = [
            self.engine.matched_random(chosen, self.study.seed + number)
            for number in range(self.study.random_sets)
        ]
        prompts = {
            "unwanted": self.source.unwanted("validation", self.study.generations),
            "ordinary": self.source.ordinary("validation", self.study.ordinary_generations),
        }
        figures = {
            kind: self._conditions(kind, own, Suppression(chosen, setting.strength), controls)
            for kind, own in prompts.items()
        }
        rows += self._held_out_sweep(
            self._doses(found, setting.price),
            prompts["unwanted"],
            figures["unwanted"]["baseline"],
        )
        for row in rows:
            row["chosen"] = row["condition"] == "suppressed" and (
                row["set_size"],
                row["strength"],
            ) == (setting.size, setting.strength)
        tables = {
            "suppression_prototypes": found.rows(setting.price, setting.size),
            "suppression_sweep": rows,
            **measured_rows(prompts, figures, self.bench.scorers, self._shape(setting)),
        }
        frames = {name: _frame(self.study.concept, rows) for name, rows in tables.items()}
        return frames, self._facts(found, setting, controls, figures) | {"tried": known}

    def _found(self) -> Found:
        def make() -> dict[str, Any]:
            found = find_candidates(self.bench, self.study, self.run, self.source)
            orders = [
                (price, [(row.prototype, row.effect, row.cost) for row in order])
                for price, order in found.orders.items()
            ]
            evidence = {name: getattr(found, name).tolist() for name in _EVIDENCE}
            facts = {"words": found.words, "n_positions": found.n_positions}
            return {"orders": orders, **facts, **evidence}

        known = self.bench.notes.remember("ranking", make)
        arrays = {name: np.asarray(known[name]) for name in _EVIDENCE}
        orders = {price: [Ranked(*row) for row in order] for price, order in known["orders"]}
        return Found(orders, **arrays, words=known["words"], n_positions=known["n_positions"])

    def _chosen(self, found: Found) -> tuple[list[dict[str, Any]], Setting, list[dict[str, Any]]]:
        """Rows of the sweep on training prompts, the setting its rule takes, all those tried.

        First an order, from every size of each at full strength; then size and strength in it.
        """
        prompts = self.source.unwanted("choice", self.study.choice_generations)
        documents = [prompt.doc_id for prompt in prompts]
        figures = self.bench.measured("sweep-train-baseline", prompts, Suppression())
        base = Condition.of(documents, figures)
        full = max(self.study.strengths)
        first = self.study.scorers[0]
        known: list[Setting] = []
        for price in found.orders:
            doses = [
                Dose("suppressed", size, full, found.first(price, size))
                for size in sizes_of(self.study, found, price)
            ]
            known += tried(sweep(self.bench, "train", prompts, base, doses), price, first)
        price = choose(known, self.study).price
        doses = [one for one in self._doses(found, price) if one.condition == "suppressed"]
        rows = sweep(self.bench, "train", prompts, base, doses)
        setting = choose(tried(rows, price, first), self.study)
        return rows, setting, [asdict(one) for one in known]

    def _held_out_sweep(
        self, doses: Sequence[Dose], prompts: Sequence[Prompt], baseline: Rows
    ) -> list[dict[str, Any]]:
        """The same on held-out prompts, after the choice: the first of the main generations."""
        count = min(self.study.sweep_generations, len(prompts))
        documents = [prompt.doc_id for prompt in prompts]
        base = Condition.of(documents, baseline).first(count)
        return sweep(self.bench, "validation", prompts[:count], base, doses)

    def _doses(self, found: Found, price: float) -> list[Dose]:
        """Sizes and strengths in an order, and at full strength a random set of each size."""
        full = max(self.study.strengths)
        doses = []
        for size in sizes_of(self.study, found, price):
            own = found.first(price, size)
            doses += [Dose("suppressed", size, s, own) for s in sorted(set(self.study.strengths))]
            control = self.engine.matched_random(own, self.study.seed)
            doses.append(Dose("random", size, full, control))
        return doses

    def _conditions(
        self,
        kind: str,
        prompts: Sequence[Prompt],
        suppression: Suppression,
        controls: Sequence[tuple[int, ...]],
    ) -> dict[str, Rows]:
        """Figures of every condition; the random one goes from set to set."""
        measured = partial(self.bench.measured, prompts=prompts)
        found = {
            "baseline": measured(f"{kind}-baseline", suppression=Suppression()),
            "suppressed": measured(f"{kind}-suppressed", suppression=suppression),
        }
        random: Rows = {}
        for number, control in enumerate(controls):
            places = range(number, len(prompts), len(controls))
            rows = self.bench.measured(
                f"{kind}-random-{number}",
                [prompts[place] for place in places],
                Suppression(control, suppression.strength),
            )
            for name, values in rows.items():
                column = random.setdefault(name, [None] * len(prompts))
                for place, value in zip(places, values, strict=True):
                    column[place] = value
        return {**found, "random": random}

    def _shape(self, setting: Setting) -> Shape:
        return Shape(setting.strength, self.study.random_sets, self.study.margin)

    def _facts(
        self,
        found: Found,
        setting: Setting,
        controls: list[tuple[int, ...]],
        figures: dict[str, dict[str, Rows]],
    ) -> dict[str, Any]:
        """What the manifest keeps."""
        unwanted = figures["unwanted"]
        failed = self.bench.scorers.failed
        return {
            "settings": asdict(self.study),
            "chosen": {
                "size": setting.size,
                "strength": setting.strength,
                "price": setting.price,
                "rule": setting.rule,
                "train_drop": setting.drop,
                "train_perplexity_ratio": setting.ratio,
            },
            "bank": self.bench.model.n_prototypes,
            "n_words": len(found.words),
            "ranked_on_tokens": found.n_positions,
            "controls": [list(control) for control in controls],
            "failed": dict(failed),
            "mean_scores": {
                name: {
                    condition: float(np.mean(unwanted[condition][f"score:{name}"]))
                    for condition in CONDITIONS
                }
                for name in self.bench.scorers.names
                if name not in failed
            },
            "recited_tokens": RECITED_TOKENS,
            "recited_share": {
                condition: float(np.mean(unwanted[condition]["recited"]))
                for condition in CONDITIONS
            },
        }


def _opener(spec: str, study: SuppressionStudy) -> Callable[[], Scorer]:
    return partial(open_scorer, spec, endpoint=study.judge_endpoint, model=study.judge_model)


def _judge(engine: LiveEngine, dense_run: str | None) -> LiveModel:
    """The decoder that judges quality: a dense twin, or the run's own with nothing suppressed.

    Raises:
        ConfigError: The twin has another tokenizer, so its perplexity is of other tokens.
    """
    if dense_run is None:
        return engine.model
    twin = open_model(dense_run)
    if twin.codec.tokenizer.get_vocab() != engine.codec.tokenizer.get_vocab():
        raise ConfigError(
            f"{dense_run} has another vocabulary than {engine.name}, so it cannot judge its "
            "tokens; name the dense twin that was trained with the same tokenizer."
        )
    return twin.model


def _twin_fingerprint(dense_run: str | None) -> str | None:
    if dense_run is None:
        return None
    return open_run(dense_run).manifest.get("model", {}).get("fingerprint")


def _frame(concept: str, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([{"concept": concept, **row} for row in rows])


def _publish(
    run: Run, concept: str, tables: dict[str, pd.DataFrame], facts: dict[str, Any]
) -> None:
    """Write the tables, the rows of other concepts included, and the facts of each concept."""
    concepts = {**run.manifest["stages"].get(STAGE, {}).get("concepts", {}), concept: facts}
    whole: dict[str, pd.DataFrame] = {}
    for table in (spec.name for spec in SUPPRESSION_TABLES):
        frame = tables[table]
        if run.has(table):
            names = set(read_table(run, table, columns=["concept"])["concept"]) - {concept}
            others = read_table(run, table, where={"concept": sorted(names)})
            frame = pd.concat([others, frame], ignore_index=True) if len(others) else frame
        whole[table] = frame
    writer = RunWriter.resume(run.path)
    writer.begin_stage(STAGE, {name: known["identity"] for name, known in concepts.items()})
    for table, frame in whole.items():
        writer.write_table(table, frame)
    writer.finish_stage(STAGE, {"seconds": facts["seconds"], "concepts": concepts})
