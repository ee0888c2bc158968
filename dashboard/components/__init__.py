"""Panels and controls: data in, a selection out."""
