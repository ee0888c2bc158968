"""Stages: each calls the methods and writes one family of tables through the store."""
