"""Labels: planted patterns are found, said in words and scored; noise scores one half."""

import numpy as np
import pytest

from engine.prism.labels import words
from engine.prism.labels.choose import predicate_value
from engine.prism.labels.contexts import (
    STRUCTURES,
    Contexts,
    FeatureSpace,
    TokenMarks,
    window_contexts,
)
from engine.prism.labels.label import LabelExamples, held_out, label_prototypes
from engine.prism.labels.predicates import GeneralPart, TokenPart, balanced_accuracy, holds
from engine.prism.labels.vocabulary import Vocabulary, piece_text
from engine.prism.labels.wording import MASKED, UNLABELLED, category_and_role, token_name


TEXTS = (
    [
        "<|endoftext|>",
        " the",
        " of",
        " kettle",
        "ing",
        "7",
        " 7",
        ".",
        "\n",
        " <",
        ">",
        ' "',
        '"',
        " Mr",
    ]
    + [" she", " return", "(", ")", " walk", "ed", "://", "https", "www", " foul", "\n\n", "    "]
    + [f" word{chr(97 + i)}" for i in range(11)]
)


@pytest.fixture
def vocabulary():
    return Vocabulary.of(TEXTS)


@pytest.fixture
def space(vocabulary):
    return FeatureSpace(vocabulary, ("fiction", "law", "unwanted"))


def token(text):
    return TEXTS.index(text)


def ids(*texts):
    return np.array([token(text) for text in texts], np.int64)


def one_window(vocabulary, texts, predicted=None):
    """Contexts of a single window of the first document."""
    tokens = ids(*texts)
    n = len(tokens)
    zeros = np.zeros(n, np.int64)
    guesses = zeros if predicted is None else ids(*predicted)
    return window_contexts(
        vocabulary,
        TokenMarks.of(vocabulary),
        tokens,
        guesses,
        zeros,
        np.arange(n),
        zeros,
        zeros,
    )


def structure(contexts, phrase):
    """Where a structural feature holds."""
    return contexts.structure[:, [p for p, _ in STRUCTURES].index(phrase)].tolist()


def attribute(space, slot, phrase):
    """The feature with this slot and phrase."""
    return next(i for i in range(len(space)) if space.describe(i)[:2] == (slot, phrase))


def test_byte_level_pieces_are_decoded():
    """Labels show text, not the alphabet of a byte-level vocabulary."""
    assert piece_text("Ġthe") == " the"
    assert piece_text("Ċ") == "\n"
    assert piece_text("▁the") == " the"


def test_attributes_tell_words_from_pieces(vocabulary):
    """A function word needs its blank: the piece "ing" is no word, " the" is an article."""
    names = [a.phrase for a in vocabulary.attributes]

    def has(text, phrase):
        return bool(vocabulary.has[token(text), names.index(phrase)])

    assert has(" the", "an article")
    assert has(" of", "a preposition")
    assert has("ing", "a word piece")
    assert has("ing", "the ending -ing")
    assert has("7", "a digit")
    assert has(" 7", "a digit")
    assert has(" Mr", "a title")
    assert has("\n\n", "a blank line")
    assert not has("\n", "a blank line")
    assert not has(" kettle", "an article")


def test_structure_is_read_from_the_window_up_to_the_position(vocabulary):
    """Quotation, brackets, tags and links open and close; nothing looks ahead."""
    contexts = one_window(
        vocabulary, [" she", ' "', " kettle", '"', "(", " the", ")", " <", " of", ">"]
    )
    assert structure(contexts, "inside quotation marks") == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert structure(contexts, "inside brackets") == [0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert structure(contexts, "inside a tag") == [0, 0, 0, 0, 0, 0, 0, 1, 1, 0]
    link = one_window(vocabulary, [" the", "https", "://", "www", ".", " kettle"])
    assert structure(link, "inside a link or path") == [0, 1, 1, 1, 1, 0]
    lines = one_window(vocabulary, [" she", ".", "\n", "    ", " return", "\n", " the"])
    assert structure(lines, "at the start of a line") == [0, 0, 1, 0, 0, 1, 0]
    assert structure(lines, "in an indented line") == [0, 0, 0, 1, 1, 0, 0]
    assert structure(lines, "at the end of a sentence") == [0, 1, 0, 0, 0, 0, 0]


def test_repetition_is_found_within_the_window_alone(vocabulary):
    """A pair counts as repeated only after its first time, and only in its own window."""
    tokens = ids(" the", " kettle", ".", " the", " kettle", " the", " kettle")
    predicted = ids(".", ".", " she", " kettle", ".", " kettle", " foul")
    window = np.array([0, 0, 0, 0, 0, 1, 1])
    zeros = np.zeros(7, np.int64)
    contexts = window_contexts(
        vocabulary, TokenMarks.of(vocabulary), tokens, predicted, zeros, np.arange(7), zeros, window
    )
    assert structure(contexts, "on a repeated pair of tokens") == [0, 0, 0, 0, 1, 0, 0]
    assert structure(contexts, "predicting what followed before") == [0, 0, 0, 0, 1, 0, 0]
    assert structure(contexts, "predicting a token seen before") == [0, 0, 0, 1, 1, 0, 0]
    assert contexts.previous.tolist() == [-1, *tokens[:4], -1, tokens[5]]


def random_contexts(n, seed=0, n_documents=97):
    """Contexts without any pattern."""
    generator = np.random.default_rng(seed)
    return Contexts(
        generator.integers(n_documents, size=n),
        generator.integers(40, size=n),
        generator.integers(1, len(TEXTS), n),
        generator.integers(1, len(TEXTS), n),
        generator.integers(1, len(TEXTS), n),
        generator.integers(2, size=n),
        generator.random((n, len(STRUCTURES))) < 0.2,
    )


def planted(space, rules, n=6000, per_prototype=120):
    """Examples in which prototype i is active exactly where rule i holds (None: anywhere)."""
    contexts = random_contexts(n)
    matrix = space.matrix(contexts)
    generator = np.random.default_rng(1)
    active = np.full((n, len(rules)), -1)
    rows = []
    for number, rule in enumerate(rules):
        true = generator.random(n) < 0.05 if rule is None else holds(rule, contexts, matrix)
        active[true, number] = number
        rows.append(np.flatnonzero(true)[:per_prototype])
    return LabelExamples(
        contexts.take(np.concatenate(rows)),
        np.concatenate([[0], np.cumsum([len(r) for r in rows])]),
        contexts,
        active,
    )


def test_planted_predicates_come_back_with_a_high_score(space):
    """A prototype that follows a rule exactly gets a label that predicts it almost exactly."""
    rules = [
        (TokenPart("current", (token(" kettle"),)),),
        (GeneralPart(attribute(space, "predicted", "an article")),),
        (
            TokenPart("current", (token(" of"), token(" she"))),
            GeneralPart(attribute(space, "domain", "law")),
        ),
        (GeneralPart(attribute(space, "structure", "inside brackets")),),
        None,
    ]
    labels = label_prototypes(space, planted(space, rules))
    assert [round(label.score, 2) for label in labels[:4] if label.score] == [1.0] * 4
    assert labels[0].role == "after “kettle”"
    assert labels[1].role == "predicts an article" or labels[1].role == "predicts “the”"
    assert labels[1].category == words.CATEGORY_GRAMMAR
    assert labels[2].role in (
        "after “of” or “she”, in law texts",
        "after “she” or “of”, in law texts",
    )
    assert labels[3].role == "inside brackets"
    noise = labels[4]
    assert noise.score is None or abs(noise.score - 0.5) < 0.1


def test_labels_of_other_prototypes_score_one_half(space):
    """The control: a predicate that has nothing to do with the prototype."""
    rules = [(TokenPart("current", (t,)),) for t in range(1, 24)]
    labels = label_prototypes(space, planted(space, rules))
    assert np.mean([label.random_score for label in labels]) == pytest.approx(0.5, abs=0.03)
    assert np.mean([label.score for label in labels]) > 0.97


def test_a_prototype_without_examples_has_no_label_and_no_score(space):
    """A failed label reads so; it never shows a number."""
    label = label_prototypes(space, planted(space, [(), None], per_prototype=3))[0]
    assert (label.category, label.role) == (words.CATEGORY_NONE, UNLABELLED)
    assert label.score is None
    assert label.random_score is None


def test_a_document_is_never_on_both_sides():
    """Contexts of one text resemble each other, so halves are halves of the documents."""
    documents = np.random.default_rng(0).integers(50, size=400)
    out = held_out(documents, 0)
    for document in range(50):
        assert len(set(out[documents == document])) <= 1
    assert 0.3 < held_out(np.arange(1000), 0).mean() < 0.7


def test_a_specific_predicate_beats_a_broad_one_of_equal_accuracy():
    """Half the active and 1 % of the others tells more than 90 % against 41 %."""
    specific, broad = predicate_value(np.array([0.5, 0.9]), np.array([0.01, 0.41]))
    assert specific > broad
    assert predicate_value(np.array([0.1]), np.array([0.3]))[0] < 0


def test_balanced_accuracy_by_hand():
    """Active: 3 of 4 called active; inactive: 4 of 5 called inactive; (0.75 + 0.8) / 2."""
    on_active = np.array([True, True, True, False])
    on_inactive = np.array([True, False, False, False, False])
    assert balanced_accuracy(on_active, on_inactive) == pytest.approx(0.775)


def test_roles_mask_what_is_typical_of_unwanted_texts(space):
    """The word is never printed, wherever it stands; the category says what it is about."""
    predicate = (TokenPart("current", (token(" foul"), token(" kettle"))),)
    category, role = category_and_role(
        predicate, space, masked_tokens={token(" foul")}, unwanted=True
    )
    assert category == words.CATEGORY_UNWANTED
    assert role == f"{MASKED}: after ••• or “kettle”"
    pair = (TokenPart("current", (token(" foul"),)), TokenPart("previous", (token(" the"),)))
    _, role = category_and_role(pair, space, masked_tokens={token(" foul")})
    assert "foul" not in role


def test_roles_read_like_sentences(space):
    """Parts are put together by what they speak of."""
    predicate = (
        TokenPart("predicted", (token("ing"),)),
        TokenPart("previous", (token(" the"),)),
        TokenPart("current", (token(" walk"),)),
    )
    assert category_and_role(predicate, space) == (
        words.CATEGORY_MORPHOLOGY,
        "predicts “-ing” after “the walk”",
    )
    _, role = category_and_role(predicate[2:], space, raised=[token(" foul"), token(" she"), 0])
    assert role == "after “walk”; raises “foul”, “she”, the end of the text"
    assert token_name("\n") == "a line break"
    assert token_name("    ") == "spaces"
    assert token_name("\x00") == "part of a character"
