"""Two-level labels of prototypes: a predicate over a token's context, and how well it predicts."""
