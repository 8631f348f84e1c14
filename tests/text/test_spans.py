"""Spans that must not change, in rows of any length."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisegen
from noisegen.errors import UsageError
from noisegen.text.buffers import Texts
from noisegen.text.spans import PROTECTED, protect_kinds, protected, protected_in


def left_alone(text: str, protect: str = PROTECTED) -> list[str]:
    """The protected parts of a text, found alone and between other rows; equal in both forms."""
    kinds = protect_kinds(protect)
    found = [text[start:stop] for start, stop in protected_in(text, kinds)]
    rows = Texts.from_strings(["a.b/c", text, "", "x {y"])[1:3]
    spans = protected(rows, kinds)
    edges = zip(spans.starts.tolist(), spans.stops.tolist(), strict=True)
    assert [rows.values[a:b].tobytes().decode() for a, b in edges] == found
    return [part.strip(" ") for part in found]


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


LINKS = """
youtu.be/dQw4 bit.ly/3xYz discord.gg/abcd goo.gl/ab t.me/x wa.me/1 amzn.to/a fb.me/x g.co/x a.com
open.spotify.com/track/1 lnkd.in/x nyti.ms/x example.shop my-app.dev discord.gg foo.museum/x
example.online:8080/x пример.рф/путь xn--e1afmkfd.xn--p1ai/x
"""
FILES = """
main.py README.md node.js build.sh ok.so home.at done.the and/or he.she/they 1.2/3
v1.2.3 e.g./i.e. U.S. a.m./p.m. etc./x 10.5/x end.Then/now
"""
MARKS = """
{name} {{order_id}} {user.name!r:>10} {} {0} ${x} #{x} {{{raw}}} {%x%} %(agent)s %(n)05.2f %s %d
%1$s %.2f %NAME% $name <DATE> <PHONE_NUMBER> </s> <br/> <extra_id_0> <|im_start|> <<SYS>> [MASK]
[COL] [/INST] [unused12] [Name] __NAME__
"""
SPACED = ("[Your Name]", "{first name}", "{n, plural, one {# day} other {# days}}", '<a href="x">')


@pytest.mark.parametrize("link", LINKS.split())
def test_links_without_a_scheme_are_protected(link):
    for text in (link, f"watch {link} now", f"({link} and)", f"see...{link}"):
        assert link in "".join(left_alone(text)), text
    text = f"watch {link} because"
    assert link in noisegen.noise(text, "fing:rate=1", id=0)
    assert link in noisegen.noise([text] * 500, "fing:rate=1", id=[0] * 500)[0]


@pytest.mark.parametrize("text", FILES.split())
def test_files_and_sentences_without_a_space_are_no_links(text):
    assert left_alone(f"see {text} now") == []


@pytest.mark.parametrize("mark", [*MARKS.split(), *SPACED])
def test_placeholders_are_protected(mark):
    text = f"Dear {mark}, because of {mark} delays"
    assert left_alone(text, "placeholder") == [mark, mark]
    assert noisegen.noise(text, "fing:rate=1", id=0, protect="placeholder").count(mark) == 2
    many = noisegen.noise([text] * 500, "fing:rate=1", id=[*range(500)], protect="placeholder")
    assert all(noisy.count(mark) == 2 for noisy in many)
    assert many[0] == noisegen.noise(text, "fing:rate=1", id=0, protect="placeholder")


def test_prose_is_no_placeholder():
    text = "100% sure, 50%of 5 < 6 and 7 > 6 [see below] [sic] it costs $5 a_b (x) don't"
    assert left_alone(text, "placeholder") == []


def test_code_and_numbers_are_protected():
    text = "use `a b` and ``c ` d`` don`t can`t ```x\ny``` or `z`. ```open"
    assert left_alone(text, "code") == ["`a b`", "``c ` d``", "```x\ny```", "`z`", "```open"]
    numbers = "-5 3.14 1,234.56 €20 20€ 10:30 2024-05-01 90km/h 20% 5°C 3rd २०२४ 1/2 +49"
    for number in numbers.split():
        assert left_alone(f"about {number} or", "number") == [number]
    assert left_alone("2024年5月", "number") == ["2024", "5"]


def test_kinds_and_patterns_are_listed_together():
    listed = r"url, /\{[^{}]*,[^{}]*\}/,/b\/,c/ ,hashtag"
    assert protect_kinds(listed) == ("url", r"/\{[^{}]*,[^{}]*\}/", r"/b\/,c/", "hashtag")
    assert left_alone("no {x} but {x,y} b/,c x #tag a.com", listed) == [
        "{x,y} b/,c",
        "#tag",
        "a.com",
    ]
    assert left_alone("Ab ab", "/(?i)AB/") == ["Ab ab"]
    assert left_alone("Ab ab", "/ab/") == ["ab"]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (r"\{.*?\}", "or a pattern between slashes"),
        ("url,", "cannot protect ''"),
        ("/a", "write it between two slashes"),
        ("//", "write it between two slashes"),
        ("/(?=a)/", "without look-around or back-references"),
        (r"/(a)\1/", "without look-around or back-references"),
        ("/(/", "/(/: missing );"),
        ("/[a/", "/[a/: missing ];"),
        ("/x*/", "also matches the empty text"),
        (r"/\b/", "also matches the empty text"),
        (r"/$/", "also matches the empty text"),
        (r"/\C/", "half a character"),
        ("/\ud800/", "cannot protect the pattern"),
        (f"/{'a' * 1001}/", "at most 1000"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(listed, message):
    with pytest.raises(UsageError, match=re.escape(message)) as refused:
        noisegen.noise("a", "fing", protect=listed)
    assert "\n" not in str(refused.value)


def test_a_pattern_takes_linear_time():
    text, kinds = "a" * 100_000 + "!", protect_kinds(r"/(a+)+$/,/(a|a)*b/,/(.*,){9}x/")
    began = time.process_time()
    assert protected_in(text, kinds) == []
    assert time.process_time() - began < 2


PIECES = f"""
see you a.com bit.ly/x youtu.be/é 5km -3,5 {{x}} {{{{ y }}}} <B> [M] `a` `b ``` don`t @you #tag é
東京 😀 %s %(x)s $x , . / // : https://a.org/{{x}} me@x.org ./ a./b .b/c www.x пример.рф/x a.b.c.d/e
xn--p1ai/x ye.co/1 a.museum:80/x and/or … 1. .1/ .a/ {"b" * 70}.ly/x
""".split()
ANY = st.lists(st.sampled_from([*PIECES, " ", "\n"]), max_size=14).map("".join) | st.text(
    st.characters(codec="utf-8"), max_size=30
)
EVERY = [PROTECTED, "url", f"{PROTECTED},placeholder,code,number", r"number,/[a-z]+\W/,/\pL/"]


@given(st.lists(ANY, min_size=1, max_size=8), st.sampled_from(EVERY))
def test_rows_and_arrays_protect_the_same(texts, protect):
    kinds = protect_kinds(protect)
    rows = Texts.from_strings(["x", *texts])[1 : len(texts) + 1]
    spans = protected(rows, kinds)
    expected = []
    for text, base in zip(texts, rows.offsets.tolist(), strict=False):
        for start, stop in protected_in(text, kinds):
            assert start < stop
            edges = (base + len(text[:at].encode()) for at in (start, stop))
            expected.append(tuple(edges))
    assert list(zip(spans.starts.tolist(), spans.stops.tolist(), strict=True)) == expected
    assert all(a[1] <= b[0] for a, b in pairwise(expected))


def test_real_texts_protect_the_same_in_rows_and_arrays(real_sentences):
    for protect in EVERY:
        texts = real_sentences[: 1_500 if protect == PROTECTED else 150]
        rows = Texts.from_strings(texts)
        kinds = protect_kinds(protect)
        spans = protected(rows, kinds)
        sizes = [b - a for text in texts for a, b in protected_in(text, kinds)]
        content = rows.values
        edges = zip(spans.starts.tolist(), spans.stops.tolist(), strict=True)
        assert [len(content[a:b].tobytes().decode()) for a, b in edges] == sizes
