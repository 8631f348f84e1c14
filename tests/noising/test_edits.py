"""Edits are applied once and recorded over steps; a character-by-character record must agree."""

import numpy as np
import oracle
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from noisegen.noising.edits import EditRecord, Edits, compose, rewritten
from noisegen.text.buffers import Texts
from noisegen.text.spans import Spans

ROW = st.text(st.sampled_from("abcde é東"), max_size=12)


@st.composite
def rows_with_edits(draw, steps: int):
    """Rows, and for each step a list of edits (start, stop, new) per row, in characters."""
    rows = draw(st.lists(ROW, min_size=1, max_size=4))
    plan, current = [], rows
    for _ in range(steps):
        edits = [draw(edits_of(text)) for text in current]
        plan.append(edits)
        current = [written(text, row) for text, row in zip(current, edits, strict=True)]
    return rows, plan


@st.composite
def edits_of(draw, text: str):
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    # Two edits may not both be insertions at one place: which comes first would be undefined.
    kept = [
        pair
        for i, pair in enumerate(pairs)
        if not i or pairs[i - 1][1] < pair[1] or pair[0] > pairs[i - 1][1]
    ]
    return [(start, stop, draw(st.text("xyzé", max_size=2))) for start, stop in dict.fromkeys(kept)]


def written(text: str, edits: list[oracle.Edit]) -> str:
    for start, stop, new in reversed(edits):
        text = text[:start] + new + text[stop:]
    return text


def proposed(texts: Texts, rows: list[str], edits: list[list[oracle.Edit]]) -> Edits:
    flat = [
        (row, *(int(texts.offsets[row]) + len(text[:at].encode()) for at in (start, stop)), new)
        for row, (text, found) in enumerate(zip(rows, edits, strict=True))
        for start, stop, new in found
    ]
    columns = [np.array([edit[i] for edit in flat], np.int64) for i in range(3)]
    pool = pa.array([edit[3].encode() for edit in flat], pa.binary())
    return Edits(*columns, np.arange(len(flat)), pool)


@given(rows_with_edits(steps=1))
def test_applying_writes_the_replacements_and_nothing_else(case):
    rows, (edits,) = case
    texts = Texts.from_strings(rows)
    made = rewritten(texts, [proposed(texts, rows, edits)])[0]
    assert made.to_strings() == [written(text, row) for text, row in zip(rows, edits, strict=True)]


@given(rows_with_edits(steps=3))
def test_composition_is_the_record_of_the_oracle(case):
    rows, steps = case
    current, record = rows, EditRecord.none()
    cells = [[oracle.Cell(c, at, at + 1) for at, c in enumerate(text)] for text in rows]
    for number, edits in enumerate(steps):
        texts = Texts.from_strings(current)
        step = proposed(texts, current, edits)
        step_bits = np.full(len(rows), 1 << number)
        record = compose(
            record, step.recorded(texts, np.arange(len(rows)), step_bits, np.zeros_like(step_bits))
        )
        cells = [
            oracle.apply(row, found, str(number)) for row, found in zip(cells, edits, strict=True)
        ]
        current = rewritten(texts, [step])[0].to_strings()
    assert spans(record) == [
        (row, start, stop, at, at + size, sum(1 << int(maker) for maker in makers))
        for row, found in enumerate(cells)
        for start, stop, at, size, makers in in_bytes(rows[row], found)
    ]


def spans(record: EditRecord) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in record), strict=True))


def in_bytes(clean: str, cells: list[oracle.Cell]):
    position = 0
    for cell in cells:
        size = len(cell.text.encode())
        if cell.makers:
            start, stop = (len(clean[:at].encode()) for at in (cell.clean_start, cell.clean_stop))
            yield start, stop, position, size, cell.makers
        position += size


@given(rows_with_edits(steps=1), st.data())
def test_protected_spans_keep_their_text(case, data):
    rows, (edits,) = case
    texts = Texts.from_strings(rows)
    ends = texts.offsets
    row = data.draw(st.integers(0, len(rows) - 1))
    low = data.draw(st.integers(0, len(rows[row])))
    high = data.draw(st.integers(low, len(rows[row])))
    start, stop = (int(ends[row]) + len(rows[row][:at].encode()) for at in (low, high))
    if start == stop:
        return
    spans_ = Spans(np.array([start]), np.array([stop]))
    outside = proposed(texts, rows, edits).outside(spans_)
    made, (moved,) = rewritten(texts, [outside], [spans_])
    kept = made.values[moved.starts[0] : moved.stops[0]]
    assert kept.tobytes() == texts.values[start:stop].tobytes()


def test_an_insertion_at_the_end_of_a_row_stays_in_its_row():
    texts = Texts.from_strings(["ab", "cd"])
    edits = proposed(texts, ["ab", "cd"], [[(2, 2, "!")], [(0, 0, "?")]])
    assert rewritten(texts, [edits])[0].to_strings() == ["ab!", "?cd"]


def test_edits_that_touch_are_one_edit():
    texts = Texts.from_strings(["abcdef"])
    edits = proposed(texts, ["abcdef"], [[(1, 2, "X"), (2, 3, ""), (4, 4, "-")]])
    record = edits.recorded(texts, np.array([5]), np.array([4]), np.array([0]))
    assert spans(record) == [(5, 1, 3, 1, 2, 4), (5, 4, 4, 3, 4, 4)]
