"""The exceptions of the engine: each message is one plain sentence that says what to do."""


class EngineError(Exception):
    """Base of every error a user can cause; its text is shown as it is, without a traceback."""


class ConfigError(EngineError):
    """A setting has a value that is not allowed."""


class PromptError(EngineError):
    """A prompt, target or selection cannot be used as typed."""


class CorpusError(EngineError):
    """A corpus, document or token shard is missing, damaged or not what was asked for."""


class PackageMissing(EngineError):
    """A text or weight package that a command reads is not on this machine."""


class SchemaMismatch(EngineError):
    """A table differs from the contract in `engine.schema`."""


class CacheMissing(EngineError):
    """A run, table or stage that was asked for has not been computed."""


class CacheStale(EngineError):
    """A cache was made from other inputs, another schema or is damaged; it is never served."""


class StorageError(EngineError):
    """A file cannot be written: the disk is full or the folder is closed to us."""


class UnsupportedModel(EngineError):
    """A model or checkpoint has a shape this engine does not handle."""


class ScorerFailed(EngineError):
    """A scorer of texts cannot be used or gave no usable answer; no number stands for it."""
