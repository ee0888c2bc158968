"""A zoo of small language models whose lineage is known because it was made.

Roots are trained from random weights on synthetic facts and real lines of text; derivatives are
made from them in every way in which published models are made from one another.
"""
