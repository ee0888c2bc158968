"""Byte-level BPE tokenizers: train one on a corpus, save it as transformers reads it, load any."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from engine import store
from engine.corpus.build import Corpus
from engine.corpus.documents import unit_hash
from engine.errors import CorpusError
from engine.provenance import fingerprint


END_OF_TEXT = "<|endoftext|>"
"""Separates documents; id 0 of a tokenizer trained here."""
TOKENIZER_FILE = "tokenizer.json"
_SAMPLE_BYTES = 24_000_000
_SEPARATORS = (END_OF_TEXT, "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>")


def train_tokenizer(corpus: Corpus, vocab_size: int, seed: int) -> Tokenizer:
    """Train a byte-level BPE on the training split.

    Digits are single tokens, so that the vocabulary is not spent on numbers. Every byte has a
    token: any text can be encoded and comes back exactly.

    Args:
        corpus: Its training documents are read; of a corpus above 24 MB, a sample.
        vocab_size: Tokens in all, the 256 bytes and the separator included.
        seed: Seed of the sample.
    """
    if vocab_size < 257:
        raise CorpusError(f"vocab_size is {vocab_size}; a byte-level tokenizer needs at least 257.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_texts(corpus, seed), trainer)
    return tokenizer


def _training_texts(corpus: Corpus, seed: int) -> Iterator[str]:
    """Texts of the training split, thinned by a hash of their id to the sample's size."""
    frame = corpus.documents
    train = np.flatnonzero(frame["split"].to_numpy() == "train")
    share = _SAMPLE_BYTES / max(int(frame["n_bytes"].to_numpy()[train].sum()), 1)
    doc_ids = frame["doc_id"].to_numpy()
    for document in train:
        if share >= 1 or unit_hash(f"tokenizer {seed}", doc_ids[document]) < share:
            yield corpus.text(int(document))


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int = 1_000_000) -> Path:
    """Write `tokenizer.json` and the settings with which `AutoTokenizer` reads the folder."""
    separator = tokenizer.id_to_token(separator_id(tokenizer))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "bos_token": separator,
        "eos_token": separator,
        "unk_token": separator,
        "clean_up_tokenization_spaces": False,
    }
    folder.mkdir(parents=True, exist_ok=True)
    store.write_json_atomic(folder / "tokenizer_config.json", settings)
    store.write_bytes_atomic(folder / TOKENIZER_FILE, tokenizer.to_str().encode())
    return folder / TOKENIZER_FILE


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a `tokenizer.json`, or that of a folder."""
    path = path / TOKENIZER_FILE if path.is_dir() else path
    if not path.is_file():
        raise CorpusError(f"There is no tokenizer at {path}; train one or name a model's folder.")
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:
        raise CorpusError(f"{path} is not a tokenizer that can be read ({error}).") from error


def plain_encoder(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that encodes documents: whole, and a special token quoted in a text as text."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = True
    return copy


def corpus_tokenizer(corpus: Corpus, vocab_size: int, seed: int = 0) -> Path:
    """The `tokenizer.json` trained on a corpus, from its folder when it was trained before."""
    folder = corpus.path / f"tokenizer-{vocab_size}-{seed}"
    stamp = folder / "trained_on.json"
    wanted = {"corpus": corpus.fingerprint, "vocab_size": vocab_size, "seed": seed}
    current = stamp.is_file() and store.read_json(stamp) == wanted
    if not (current and (folder / TOKENIZER_FILE).is_file()):
        stamp.unlink(missing_ok=True)
        save_tokenizer(train_tokenizer(corpus, vocab_size, seed), folder)
        store.write_json_atomic(stamp, wanted)
    return folder / TOKENIZER_FILE


def separator_id(tokenizer: Tokenizer) -> int:
    """Id of the token that stands between documents."""
    for token in _SEPARATORS:
        if (token_id := tokenizer.token_to_id(token)) is not None:
            return token_id
    raise CorpusError(
        f"The tokenizer has none of the end-of-text tokens {', '.join(_SEPARATORS)}; "
        "name the separator's id."
    )


def tokenizer_fingerprint(tokenizer: Tokenizer) -> str:
    """16 hexadecimal digits of what the tokenizer does; padding and truncation do not count."""
    content = json.loads(tokenizer.to_str())
    return fingerprint({k: v for k, v in content.items() if k not in {"padding", "truncation"}})
