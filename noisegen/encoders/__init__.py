"""Sentence encoders: teachers and students under one protocol, opened by a SPEC.

`noisegen.encoders.encoder.open_encoder("minilm")` gives an `Encoder`; those that can be trained are
`SentenceEncoder`, a torch module of tokenizer, network and head.
"""

import os

# oneDNN caches the kernels of 1,024 shapes, and each shape of a batch has its own: gigabytes after
# ten minutes on a CPU. It reads the size at its first kernel; one that the user has set holds.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
