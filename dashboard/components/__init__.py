"""Panels: data in, selection out."""
