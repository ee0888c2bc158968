"""Scorers that a user names: a judge, a model of transformers, and what cannot be one."""

import json

import pytest
import torch

from engine.endpoint import Endpoint, EndpointError
from engine.errors import ConfigError, ScorerFailed
from engine.scoring import open_scorer
from engine.scoring.huggingface import HuggingFaceScorer
from engine.scoring.judge import Judge
from tests.engine import tiny_models


class Asked(Endpoint):
    """Answers without a network: the grade a text asks for."""

    questions: list = []  # noqa: RUF012

    def ask(self, prompt: str, text: str):
        self.questions.append((prompt, text))
        return json.loads(text)


@pytest.fixture
def judge() -> Judge:
    Asked.questions = []
    return Judge(Asked("http://nowhere", "m"))


def test_grades_are_halved_and_equal_texts_asked_once(judge: Judge):
    """0, 1 and 2 become 0, 0.5 and 1; the instruction is ours and the text stands apart."""
    texts = ['{"grade": 2}', '{"grade": 0}', '{"grade": 1}', '{"grade": 2}']
    assert judge.score(texts) == [1.0, 0.0, 0.5, 1.0]
    assert [text for _, text in Asked.questions] == texts[:3]
    assert all(
        "The text is data" in " ".join(prompt.split()) or "text is data" in prompt
        for prompt, _ in Asked.questions
    )


@pytest.mark.parametrize("answer", ['{"grade": 3}', '{"grade": "2"}', '{"grade": true}', "{}"])
def test_another_answer_is_a_failure_and_no_number(judge: Judge, answer: str):
    """A grade nobody gave must not count as harmless."""
    with pytest.raises(ScorerFailed, match="where 0, 1 or 2 was asked for"):
        judge.score(['{"grade": 0}', answer])


def test_a_silent_endpoint_is_a_failure(judge: Judge, monkeypatch: pytest.MonkeyPatch):
    """The reason is the endpoint's."""

    def refuse(*_):
        raise EndpointError("The endpoint gave no usable answer: refused")

    monkeypatch.setattr(Asked, "ask", refuse)
    with pytest.raises(ScorerFailed, match="refused"):
        judge.score(["a"])


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random classifier of texts, saved as safetensors with its tokenizer."""
    from transformers import (
        DistilBertConfig,
        DistilBertForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    folder = tmp_path_factory.mktemp("classifier")
    torch.manual_seed(1)
    config = DistilBertConfig(
        vocab_size=tiny_models.VOCAB,
        dim=12,
        hidden_dim=20,
        n_layers=1,
        n_heads=2,
        max_position_embeddings=23,
        id2label={0: "fine", 1: "Toxic!"},
        label2id={"fine": 0, "Toxic!": 1},
    )
    DistilBertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = tiny_models.tiny_tokenizer()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", model_max_length=23
    ).save_pretrained(folder)
    return str(folder)


def test_a_classifier_of_transformers_scores_its_unwanted_label(classifier: str):
    """As a forward pass of the model says; a text longer than it reads is cut."""
    from transformers import AutoModelForSequenceClassification

    texts = ["the dog", "the fox and the river " * 9, "one"]
    scorer = HuggingFaceScorer(classifier)
    model = AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    expected = []
    for text in texts:
        ids = tiny_models.tiny_tokenizer().encode(text).ids[:23]
        with torch.inference_mode():
            expected.append(float(model(torch.tensor([ids])).logits[0].softmax(-1)[1]))
    assert scorer.score(texts) == pytest.approx(expected, abs=1e-5)
    assert scorer.label == "Toxic!"
    assert scorer.score([]) == []
    named = HuggingFaceScorer(f"{classifier}#fine")
    assert named.score(["one"]) == pytest.approx([1 - expected[2]], abs=1e-5)


def test_a_label_that_is_not_there_is_named(classifier: str):
    """With those there are."""
    with pytest.raises(ScorerFailed, match="has no label 'rude'; it has fine, Toxic!"):
        HuggingFaceScorer(f"{classifier}#rude")


def test_a_folder_that_is_no_classifier_is_one_sentence(tmp_path):
    """Nothing is guessed and nothing is run."""
    with pytest.raises(ScorerFailed, match="cannot be loaded"):
        HuggingFaceScorer(str(tmp_path))


def test_unpickled_weights_are_not_opened(classifier: str, tmp_path):
    """A model whose weights are only in a pickle is refused."""
    import shutil

    folder = shutil.copytree(classifier, tmp_path / "copy")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ScorerFailed, match="safetensors"):
        HuggingFaceScorer(str(folder))


@pytest.mark.parametrize("spec", ["", "hf:", "profanity", "hf"])
def test_what_no_scorer_is_called_is_refused(spec: str):
    """With what may be written."""
    with pytest.raises(ConfigError, match="write classifier, wordlist, judge, or hf:MODEL"):
        open_scorer(spec)


def test_a_judge_needs_an_address():
    """Nothing is sent anywhere by default."""
    with pytest.raises(ConfigError, match="--judge-endpoint"):
        open_scorer("judge")
