"""Figures: frame in, figure out, nothing else."""
