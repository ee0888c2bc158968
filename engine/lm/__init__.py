"""Language models that exist already: packaged weights, folders and hub ids."""
