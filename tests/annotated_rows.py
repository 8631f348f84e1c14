"""Rows whose texts and annotations tests follow through the noise."""

import json

CONTRACTED = ("-t", "cont")  # "I do not know" becomes "I don't know"
TEXT, NOISY = "I do not know Anna Keller of Oslo.", "I don't know Anna Keller of Oslo."


def rows(text):
    return [json.loads(line) for line in text.splitlines()]
