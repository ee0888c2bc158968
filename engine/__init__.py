"""The engine: text to model, model to tables; no user interface."""

__version__ = "0.1.0"
