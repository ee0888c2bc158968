"""Scripts of the house: rerunnable, deterministic, called by the Makefile."""
