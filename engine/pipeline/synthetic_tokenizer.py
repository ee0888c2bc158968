"""The tokenizer of a synthetic run."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def write_tokenizer(folder: Path) -> None:
    """A tokenizer of single bytes, so that token ids have texts."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(["<|endoftext|>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
