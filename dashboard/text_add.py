"""Names and sentences of the page Add a model."""

ADD = "One model more on this map: checked, embedded, and put beside its true nearest neighbours."
ADD_HOW = """
- **Checks** come first and change nothing: is it there, is it a causal language model, does its
  tokenizer say which characters each token covers, do the questions fit its context, do memory and
  disk suffice, does it have gradients. What needs the weights of a large or fetched model is seen
  when they are loaded.
- **Adding** asks it every question of the map and attributes its answers, as was done with the
  others. It runs beside this page: closing the browser does not stop it, and every visitor sees
  the same progress. Stopped, it goes on where it was.
- **Its place** on the pictures is a mean of its nearest neighbours' places, weighted by cosine, for
  the projection is not fitted anew. **No other model moves.** `headwater models map` lays all of
  them out anew.
- **A model's own Python code never runs from here**; the command line allows it with
  `--allow-code`.
"""
PLACE = "Folder on this machine, or hub id"
PLACE_HINT = "/path/to/model or OWNER/NAME"
PLACE_HELP = (
    "A folder that transformers saved (safetensors, config.json, tokenizer.json), an adapter's "
    "folder, a hub id, or smollm2 where its package was prepared."
)
NAME = "Name on the map"
NAME_HINT = "its folder's name or hub id"
CHECK = "Check"
ADD_IT = "Add it to the map"
NOTHING = "Name a folder or a hub id above and press Check; nothing is changed by checking."
CHECKING = "Checking the model; the first time the engine is loaded for it …"
FAILED = "A check failed, so the model cannot be added as it is."
READY = "Nothing speaks against it."
STATES = {
    "passed": ("✓", "passed"),
    "failed": ("✗", "failed"),
    "later": ("…", "seen when it is loaded"),
}
COMMAND = "The same on the command line:"
SHIPPED = (
    "This map ships with Headwater and is not changed. The command below copies it to {own} and "
    "adds the model there; this page then works on the copy."
)
SHIPPED_COPY = "Or copy it yourself and choose the copy in the sidebar:"
OWN_EXISTS = "A copy of it that takes models is here already; a click switches to it:"
RUNNING = "{label} is being added."
STOPPING = "It is asked to stop; what was finished is kept."
FINISHED = "{label} is on the map, after {seconds}."
STOPPED = "Adding {label} was stopped; what was finished is kept, and it goes on from there."
BROKEN = "{label} was not added: {sentence}"
READING = "Finished; the map is read again …"
CANCEL = "Stop"
CANCEL_NOW = "End at once"
RESUME = "Go on"
LOG = "What it said"
NOT_REPORTED = "Loading; progress is reported every ten seconds."
ADDED = "Added models"
NONE_ADDED = "No model was added to this map yet."
UNMOVED = (
    "Its place is a mean of the places of its nearest neighbours by cosine; the {n} other models "
    "are where they were."
)
NO_PICTURE = "This map was not laid out yet, so the model has neighbours and no place on a picture."
PICTURES = {"umap": "UMAP", "tsne": "t-SNE", "pca": "PCA"}
SECONDS = "About how long asking it takes here, from a trial over a few questions."
MEMORY = "About what is held at once, weights and activations; an estimate, not a bound."
DISK = "Fetched and removed again; nothing where it is on this machine."
"""Help of the estimates."""
