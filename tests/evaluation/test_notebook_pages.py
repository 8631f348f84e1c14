"""The results of an evaluation are one line in a console, and their report in a notebook."""

import re
from html import unescape

from made_results import made

from noisegen.evaluation.page import page


def test_results_are_one_line_and_a_notebook_shows_the_report():
    results = made(2, 3)
    names = ", ".join(model.name for model in results.models)
    assert repr(results).startswith(f"<Results of {names} on ")
    assert len(repr(made())) <= 200
    [framed] = re.findall('srcdoc="([^"]*)"', results._repr_html_())
    assert unescape(framed) == page(results)
