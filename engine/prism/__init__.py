"""Prototype language models: a decoder whose last state is explained by a bank of prototypes."""
