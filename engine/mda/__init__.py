"""Mechanistic data attribution: which training samples formed an attention head."""
