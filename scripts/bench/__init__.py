"""Speed, measured side by side: `make bench ARGS="training indexing pages"`."""
