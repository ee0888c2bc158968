"""PRISM: prototype language models."""
