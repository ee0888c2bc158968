"""Scores of training texts for queries: every method in one frame, and how far methods agree.

A pool of training sequences and a set of queries are both `frame.Sequences`. A method is a function
of a model, a pool, queries and a progress that returns a score for every pair, [queries, pool].

Sign, for every method: larger means that the text speaks for the query. For scores from gradients
that is literal: positive means that weighting the text up LOWERS the query's loss, to first order.
For similarities (random, tfidf, bm25, knn) it means only that the two are more alike.

Loss of a sequence: the SUM over its predicted tokens of -log p, in nats; never a mean.
"""
