"""Model maps: a language model is embedded by what its answers depend on.

The attribution of every answer option over the words of fixed multiple-choice questions is one long
vector; a random projection that depends on nothing but the name of a column makes it short. The
method is that of ABLE (arXiv 2606.07524); what differs from the paper is said where it is done.
"""
