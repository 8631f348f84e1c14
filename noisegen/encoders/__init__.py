"""Sentence encoders for teachers and students; a SPEC names the encoder to open.

`noisegen.encoders.encoder.open_encoder("minilm")` returns an `Encoder`. An encoder that can be
trained is a `SentenceEncoder`: a torch module with a tokenizer, a network and a head.
"""

import os

# By default oneDNN caches the compiled kernels of 1,024 batch shapes: gigabytes after ten minutes.
# oneDNN reads this limit at its first kernel, so it is set on import. A value that the user has set
# is kept.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

CHUNK_ROWS = 32_768  # maximum rows noised, tokenised and batched at once
