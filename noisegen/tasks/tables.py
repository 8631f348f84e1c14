"""Tasks in tables: MultiATIS++, MultiSNIPS with both sides of its noise, XNLI."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from noisegen.cells import ROWS_MAX, Cells, stream_cells
from noisegen.tasks.rows import Row, RowSet

SLOT_COLUMNS = {  # columns of a table -> the corpus whose format it is
    ("id", "old_utterance", "new_utterance", "slot_labels", "intent"): "snips",
    ("id", "utterance", "slot_labels", "intent"): "atis",
    ("utterance", "slot_labels", "intent"): "atis",
}
NLI_COLUMNS = {
    ("language", "sentence1", "sentence2", "gold_label"): "xnli",
    ("sentence1", "sentence2", "gold_label"): "xnli",
    ("premise", "hypothesis", "label"): "xnli",
    ("premise", "hypo", "label"): "xnli",
}
_REPLACED = re.compile(r"<(\S+?)\|\d+>")  # how RCP writes a token that its noise replaced
_PAIR = ("sentence1", "premise"), ("sentence2", "hypothesis", "hypo"), ("gold_label", "label")
# The English training data of XNLI says it otherwise than its test data; - is without agreement.
_CLASSES = {"contradictory": "contradiction"}
_NO_CLASS = ("-", "-1")  # the second is what Hugging Face's data sets have


def read_slots(source: str) -> RowSet:
    """Read requests with their slots, one label for each token between blanks; raises SourceError.

    A table with old_utterance and new_utterance has the noisy version of every request.
    """
    read = Cells({})
    found = RowSet("")
    rows = stream_cells(source, list(SLOT_COLUMNS), "intent-slots", read)
    for values in islice(rows, ROWS_MAX):
        cells = dict(zip(read.columns, values, strict=True))
        tags = tuple(cells["slot_labels"].split())
        clean = tuple(cells.get("old_utterance", cells.get("utterance", "")).split())
        other = tuple(_REPLACED.sub(r"\1", cells.get("new_utterance", "")).split())
        if len(clean) != len(tags) or (other and len(other) != len(tags)):
            found.dropped["unequal_labels"] += 1
            continue
        row = Row(clean, tags, cells["intent"].strip(), key=cells.get("id", ""))
        found.add(row, *([replace(row, tokens=other)] if other else []))
    found.corpus = SLOT_COLUMNS[tuple(read.columns)]
    _account(found, read)
    return found


def read_nli(source: str, lang: str) -> RowSet:
    """Read premises with hypotheses and class; raises SourceError.

    Of a table with a column language, the rows of one language.
    """
    read = Cells({})
    found = RowSet("xnli")
    rows = stream_cells(source, list(NLI_COLUMNS), "nli", read)
    for values in islice(rows, ROWS_MAX):
        cells = dict(zip(read.columns, values, strict=True))
        first, second, label = (_either(cells, names).strip() for names in _PAIR)
        if cells.get("language", lang) != lang:
            found.dropped["other_language"] += 1
        elif label in _NO_CLASS:
            found.dropped["no_label"] += 1
        else:
            label = _CLASSES.get(label, label)
            found.add(Row(tuple(first.split()), (), label, " ".join(second.split())))
    _account(found, read)
    return found


def _either(cells: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next(cells[name] for name in names if name in cells)


def _account(found: RowSet, read: Cells) -> None:
    found.dropped += read.dropped
    found.damaged += read.damaged
