"""The documents of a corpus or an index."""

import pyarrow as pa

from engine.schema.columns import (
    DOCUMENT,
    DOMAIN,
    ColumnSpec,
    TableSpec,
    count,
    text,
)


DOCUMENTS = TableSpec(
    "documents",
    "Documents of a corpus or of an index; ids and sizes only, never text",
    "one row per document",
    ("document",),
    (
        DOCUMENT,
        ColumnSpec("doc_id", pa.string(), "id", "Hash of the domain and the text; stable"),
        DOMAIN,
        text("source", "Package and file, or path, the text comes from"),
        text("split", "train or validation"),
        count("n_bytes", "UTF-8 bytes of the text"),
    ),
)
