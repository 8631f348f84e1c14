"""Sentence encoders: teachers and students under one protocol, opened by a SPEC.

`noisegen.encoders.encoder.open_encoder("minilm")` gives an `Encoder`; those that can be trained are
`SentenceEncoder`, a torch module of tokenizer, network and head.
"""
