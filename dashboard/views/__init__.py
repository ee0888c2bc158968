"""One file a page; called views, never pages."""
