"""Language models from packages, folders and the hub."""
