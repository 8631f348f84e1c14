"""Spans that must not change, in rows of any length."""

import time

from noisegen.text.buffers import Texts
from noisegen.text.spans import PROTECTED, protect_kinds, protected


def test_the_links_of_a_long_row_are_found_in_linear_time() -> None:
    part = "să vezi http://a.com/x și @bob or #tag "
    began = time.process_time()
    spans = protected(Texts.from_strings(["", part * 50_000, part]), protect_kinds(PROTECTED))
    assert time.process_time() - began < 2  # with the square of the links it takes 60
    text = (part * 50_001).encode()
    found = zip(spans.starts.tolist()[-3:], spans.stops.tolist()[-3:], strict=True)
    assert len(spans.starts) == 150_003
    assert [text[start:stop].decode() for start, stop in found] == [
        " http://a.com/x ",
        " @bob ",
        " #tag ",
    ]
