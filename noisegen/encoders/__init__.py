"""Sentence encoders: teachers and students under one protocol, opened by a SPEC.

`noisegen.encoders.encoder.open_encoder("minilm")` gives an `Encoder`. A trainable one is a
`SentenceEncoder`, a torch module of tokenizer, network and head.
"""

import os

# oneDNN caches the kernels of 1,024 batch shapes, which takes gigabytes after ten minutes on a CPU.
# It reads the size of its cache at the first kernel. A size set by the user is kept.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
