"""Text: documents from packages, folders and datasets; tokenizer, token shards, batches."""
