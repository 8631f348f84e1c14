"""Wiki mark-up of a line: what is left of it, and that it never takes long."""

import random
import time

import pytest

from noisegen.mining.wiki import plain_text

LINES = {
    "Plain text, as it is.": "Plain text, as it is.",
    "": "",
    "'''Fox'''es are ''[[canid]]s''.": "Foxes are canids.",
    "see [[red fox|the fox]] and [[Fox (zoology)]]": "see the fox and Fox (zoology)",
    "[[Star Wars: A New Hope]] is a film": "Star Wars: A New Hope is a film",
    "a [[:Category:Foxes]] link": "a Category:Foxes link",
    "at [http://a.example/x?y=1 a site], [http://b.example] or http://c.example/d": "at a site, or",
    "born{{citation needed|date={{CURRENTYEAR}}}} in 1900": "born in 1900",
    'A fox.<ref name="x">Book, {{p.|7}}</ref> It runs.<ref name=x />': "A fox. It runs.",
    "x<sub>2</sub><br/>y <!-- hidden --> z": "x2 y z",
    "a <math>x < y</math> b <nowiki>c</nowiki>": "a b c",
    "== Early  life ==": "Early life",
    "* one": "one",
    "#: second": "second",
    "AT&amp;T&nbsp;is &lt;big": "AT&T is <big",
    "[[File:Fox.jpg|thumb|A [[red fox]] at home]] The fox": "The fox",
    "[[Datei:Fuchs.PNG|mini|Ein Fuchs]]": "",
    "[[Category:Foxes|Red]]": "",
    "[[de:Fuchs]] [[fr:Renard]]": "",
    "[[wikt:fox|fox]] is a word": "fox is a word",
    "#REDIRECT [[Fox]]": "",
    "#weiterleitung [[Fuchs]]": "",
    "| name = Fox": "",
    "| image = }} The fox is red.": "The fox is red.",
    "{{Infobox animal": "",
    "{| class=wikitable": "",
    "|}": "",
    "File:Fox.jpg|A fox at home": "",
    "! head": "",
    "----": "",
    "__NOTOC__ text": "text",
    "end of comment --> text": "text",
    "start <!-- of a comment": "start",
    "of a note.</ref> The text": "of a note. The text",
    "The text.<ref>Start of a note": "The text.",
    "控制\x08chars\x0bno\ttab": "控制chars no tab",
    "-{zh}- 字": "zh 字",
    "l''''Iliade''": "l'Iliade",
}


@pytest.mark.parametrize("line", LINES)
def test_lines(line):
    assert plain_text(line) == LINES[line]


OPENINGS = """{{ }} [[ ]] [[a| {{a| <ref> <!-- --> </ref> <math> ' & &amp __A [http:// { < http://
    = -{ [[a: [[[ \x00"""


@pytest.mark.parametrize("sign", [*OPENINGS.split(), "<ref ", "[//a ", "#a [", " ", "\xa0"])
def test_any_sign_64000_times_takes_less_than_a_second(sign):
    line = sign * (64_000 // len(sign))
    began = time.process_time()

    plain_text(line)
    plain_text("A fox " + line + " runs")

    assert time.process_time() - began < 1


def test_any_mixture_is_read_in_bounded_time():
    dice = random.Random(4)
    signs = "{{ }} [[ ]] | <ref> </ref> <!-- --> ''' &lt; http:// = a 字 < > : File: .jpg -{ }-"
    signs = [*signs.split(), "\n", " "]
    began = time.process_time()
    for _ in range(3_000):
        text = plain_text("".join(dice.choices(signs, k=dice.randrange(60))))
        assert text == " ".join(text.split())
    assert time.process_time() - began < 3
