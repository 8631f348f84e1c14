"""Texts that others wrote in the report: hostile, endless, from right to left, beyond Unicode."""

import io
import re
from dataclasses import replace

import pytest
from made_results import made
from read_page import ALL, Read
from rich.console import Console

from noisegen.evaluation.findings import render
from noisegen.evaluation.page import page, write
from noisegen.evaluation.results import Comparison, Model, Results, ShownPair

HOSTILE = '</script></title><script>alert(1)</script><img src=x onerror="alert(1)">\'&\u202egnp'


@pytest.fixture(scope="module")
def results() -> Results:
    return made()


def test_hostile_text_stays_text_wherever_it_stands(results):
    dataset = replace(results.datasets[0], name=HOSTILE, note=HOSTILE)
    model = Model(HOSTILE, HOSTILE, 384, HOSTILE)
    old, new = results.datasets[0].name, results.models[1].name
    scores = {
        HOSTILE if name == new else name: {
            HOSTILE if key == old else key: found for key, found in sets.items()
        }
        for name, sets in results.scores.items()
    }
    example = ShownPair("repaired", HOSTILE, f"so {HOSTILE}", f"s {HOSTILE}", {HOSTILE: 0.1})
    projection = replace(results.projections[0], dataset=HOSTILE, texts=((HOSTILE, HOSTILE),) * 60)
    log = [{"step": 1, f"loss_{HOSTILE}": 0.3}, {"step": 2, f"loss_{HOSTILE}": 0.2}]
    html = page(
        Results(
            models=(results.models[0], model, results.models[2]),
            datasets=(dataset, *results.datasets[1:]),
            scores=scores,
            comparisons=(Comparison(HOSTILE, HOSTILE, "distance", -0.1, "t", 0.001, 0.001),),
            doses=(replace(results.doses[1], model=HOSTILE, dataset=HOSTILE),),
            examples=(example,),
            projections=(projection,),
            training={"config": {"preset": HOSTILE}, "log": log},
            settings={"recipe": HOSTILE, "versions": {HOSTILE: HOSTILE}, HOSTILE: HOSTILE},
        )
    )
    read = Read(html)
    assert read.sections == ALL
    assert len(read.all("script")) == 1
    assert read.all("img") == []
    assert not any(name.startswith("on") for _, found in read.tags for name in found)


def test_controls_and_lone_surrogates_become_signs_that_can_be_written(results, tmp_path):
    example = ShownPair("broken", "jfleg", "a\x00b \ud800 c\x1b[31m", "a b", {"minilm": 0.4})
    write(replace(results, examples=(example,)), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text("utf-8")
    assert "\ufffd" in html
    assert not re.search("[\x00-\x08\x0b-\x1f]", html)


def test_a_sentence_of_ten_thousand_characters_is_cut_with_an_ellipsis(results):
    long = "word " * 2_000
    example = ShownPair("broken", "jfleg", long, long.replace("w", "v", 1), {"minilm": 0.4})
    html = page(replace(results, examples=(example,)))
    card = html[html.index('<li class="card"') :]
    shown = re.findall(r"<dd>(.*?)</dd>", card)[:2]
    assert all(one.endswith("…</bdi>") and len(one) < 500 for one in shown)


def test_an_edit_far_from_the_beginning_is_shown(results):
    start = "one two three four five " * 30
    example = ShownPair("broken", "jfleg", f"{start} right.", f"{start} wrogn.", {"minilm": 0.4})
    html = page(replace(results, examples=(example,)))
    assert '<mark class="noisy">wrogn</mark>' in html
    assert '<mark class="clean">right</mark>' in html


def test_marks_and_what_lies_between_give_the_sentence_back(results):
    html = page(results)
    cards = re.findall(r"<dt>(noisy|clean)</dt><dd><bdi>(.*?)</bdi></dd>", html)
    shown = [re.sub("<[^>]*>|‸", "", said) for _, said in cards]
    wanted = [one for example in results.examples for one in (example.noisy, example.clean)]
    assert shown == wanted


def test_names_and_sentences_keep_their_own_direction(results):
    example = ShownPair("broken", "jfleg", "أنا في البيت", "انا ف البيت", {"minilm": 0.4})
    html = page(replace(results, examples=(example,)))
    card = html[html.index('<li class="card"') :]
    assert re.match(r".*?<dd><bdi>(.*?)</bdi></dd>.*?<dd><bdi>", card, re.DOTALL)


def test_insertions_at_one_place_are_one_caret(results):
    example = ShownPair("broken", "jfleg", "so we know that it is", "so", {"minilm": 0.4})
    html = page(replace(results, examples=(example,)))
    assert html.count('<mark class="noisy">‸</mark>') == 1


def test_examples_beyond_the_first_six_are_folded_away(results):
    example = results.examples[0]
    html = page(replace(results, examples=(example,) * 20))
    before, folded = html[html.index('id="examples"') :].split("<summary>14 more</summary>")
    assert before.count('<li class="card"') == 6
    assert folded.count('<li class="card"') == 14


def test_notes_stand_at_the_end_and_damage_at_the_head(results):
    html = page(replace(results, settings={"notes": ["half <of> it"], "damaged": ["a: 3 rows"]}))
    end = html.index('<section id="again"')
    assert html.index("a: 3 rows") < html.index("<section") < end < html.index("half &lt;of&gt; it")


@pytest.mark.parametrize("width", [20, 60, 200])
def test_a_narrow_terminal_cuts_no_figure(results, width):
    long = replace(results.datasets[0], name=f"{'n' * 300}")
    old = results.datasets[0].name
    scores = {
        name: {"n" * 300 if key == old else key: found for key, found in sets.items()}
        for name, sets in results.scores.items()
    }
    shown = io.StringIO()
    render(
        replace(results, datasets=(long, *results.datasets[1:]), scores=scores, comparisons=()),
        Console(file=shown, width=width),
    )
    lines = [line for line in shown.getvalue().splitlines() if line.startswith("nnn")]
    names, rest = zip(*(line.partition("…")[::2] for line in lines), strict=True)
    assert {*names} == {"n" * 39}
    assert "…" not in shown.getvalue().replace(f"{'n' * 39}…", "")
    assert all("→" in line for line in rest)
