"""The preview is aligned, complete and readable without colour."""

import io
import json
import time
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from noisegen.augmentation.preview import ShownRow
from noisegen.augmentation.rendering import ORDER, carets_under, lines_of, render, side_of, style_of
from noisegen.cli import run
from noisegen.text import graphemes
from noisegen.text.moves import Edit

ONE_CHARACTER = (
    "aB \t\n\r\x00\xa0\u3000\u200b\u200c\u200d\ufe0f\ufe0e\u0301\u2028\u00ad\u0600\u202e京"
    "ﾊ한\u1100\u1161क\u094dष\u093fกำ👩\U0001f3fd❤\U0001f1eb\U0001f1f7·␣\u3164\U000e0067"
    "\ud800\ue000\u0378"
)
SEVERAL = ["\r\n", "👩‍👩‍👧", "👍🏽", "1️⃣"]
AWKWARD = [*ONE_CHARACTER, *SEVERAL]
TEXTS = st.lists(st.sampled_from(AWKWARD) | st.characters(), max_size=12).map("".join)
SEGMENTS = st.lists(
    st.tuples(st.sampled_from(["fing", "spac", "fing+spac", "x:[red]"]), TEXTS, TEXTS, TEXTS),
    max_size=6,
)
WIDTHS = st.integers(40, 200)


def example_of(segments: list[tuple[str, str, str, str]], row_id: int | str = 7) -> ShownRow:
    """Join (transform, clean, noisy, unchanged text behind) to a row."""
    clean, noisy, changes = "", "", []
    for name, before, after, same in segments:
        changes.append(Edit(name, len(clean), len(clean + before), len(noisy), len(noisy + after)))
        clean, noisy = clean + before + same, noisy + after + same
    names = {name for part in segments for name in part[0].split("+")}
    edits = [change._asdict() for change in changes]
    return ShownRow(row_id, clean, noisy, sorted(names), edits)


def shown(
    examples: list[ShownRow], width: int = 80, *, aligned: bool = True, **options: Any
) -> str:
    file = io.StringIO()
    render(examples, Console(file=file, width=width, **options), aligned=aligned)
    return file.getvalue()


SEE_YOU = example_of(
    [
        ("abr1", "see", "c", " "),
        ("abr1", "you", "u", " tomorro"),
        ("fing", "w", "e", ""),
        ("spac", " ", "", "at the sta"),
        ("fing+spac", "", " x", "tion"),
    ]
)


def test_a_row_without_colour_looks_like_this() -> None:
    assert shown([SEE_YOU]) == (
        "row 7  abr1, fing, spac  CER 29.0%\n"
        "clean  see you tomorrow␣at the sta··tion\n"
        "noisy  c·· u·· tomorroe·at the sta␣xtion\n"
        "       ^^^ ^^^        ^^          ^^\n"
        "\n"
        "1 row, 1 changed; changes by transform:\n"
        "abr1 2   fing 1   fing + spac 1   spac 1\n"
        "· filler, not part of the text   ␣ space\n"
    )


def test_whole_texts_have_neither_filler_nor_line_breaks() -> None:
    assert shown([SEE_YOU], width=36, aligned=False).splitlines()[1:4] == [
        "clean  see you tomorrow at the station",
        "noisy  c u tomorroeat the sta xtion",
        "",
    ]
    assert "filler" not in shown([SEE_YOU], aligned=False)


def test_the_legend_has_the_signs_that_are_shown_and_no_others() -> None:
    legend = [
        (("x", "a", "b", ""), None),
        (("x", "a", "bc", ""), "· filler, not part of the text"),
        (("x", "\t", " ", "\n"), "␣ space   ⇥ tab   ↵ line break"),
        (("x", "\xa0", "\u200b", ""), "⍽ no-break space   ▯ invisible character"),
        (("x", "a", "b", "␣·"), None),
    ]
    for segment, expected in legend:
        last = shown([example_of([segment])]).splitlines()[-1]
        assert last == (expected or "x 1")


def test_both_sides_break_at_the_same_word() -> None:
    assert shown([SEE_YOU], width=24).splitlines()[2:8] == [
        "clean  see you tomorrow␣",
        "noisy  c·· u·· tomorroe·",
        "       ^^^ ^^^        ^^",
        "clean  at the sta··tion",
        "noisy  at the sta␣xtion",
        "                 ^^",
    ]
    lines = shown([example_of([("x", "a", "b", " few words that are wrapped")])], width=30)
    assert lines.splitlines()[1:6:3] == ["clean  a few words that are ", "clean  wrapped"]


def test_wide_signs_are_padded_by_their_columns() -> None:
    lines = shown(
        [example_of([("leet", "", "", "我"), ("leet", "们好", "ab京", "去")])]
    ).splitlines()
    assert lines[1:4] == ["clean  我们好去", "noisy  我ab京去", "         ^^^^"]
    lines = shown([example_of([("leet", "一", "1", "起")])]).splitlines()
    assert lines[1:4] == ["clean  一起", "noisy  1·起", "       ^^"]


def test_a_change_inside_a_grapheme_is_shown_as_the_whole_grapheme() -> None:
    lines = shown([example_of([("x", "", "", "cafe"), ("x", "\u0301", "", " ok")])]).splitlines()
    assert lines[1:4] == ["clean  cafe\u0301 ok", "noisy  cafe ok", "          ^"]


def test_changes_that_meet_in_one_grapheme_are_shown_as_one() -> None:
    row = example_of([("fing", "a", "b", ""), ("homo", "\u0301", "", "c")])
    (line,) = lines_of([row], 40)
    assert [(block.transforms[1], block.width) for block in line] == [("fing+homo", 1), ("", 1)]
    assert "fing 1   homo 1" in shown([row])


def test_what_cannot_be_seen_has_a_sign() -> None:
    row = example_of([("x", "\t", " ", "a\tb\nc"), ("x", "\xa0", " ", "d\u200be\r\n\x7f\x07")])
    assert shown([row]).splitlines()[1:3] == ["clean  ⇥a⇥b↵c⍽d▯e␍↵␡␇", "noisy  ␣a⇥b↵c␣d▯e␍↵␡␇"]


def test_a_joiner_between_latin_letters_has_a_sign() -> None:
    assert [cell.shown for cell in graphemes.displayed("a\u200db")] == ["a▯", "b"]
    assert [cell.shown for cell in graphemes.displayed("👩‍👩‍👧!")] == ["👩‍👩‍👧", "!"]


def test_a_flag_is_one_grapheme() -> None:
    assert graphemes.graphemes("🇫🇷🇩🇪🇪") == ["🇫🇷", "🇩🇪", "🇪"]


@pytest.mark.parametrize("changes", [[], [Edit("x", 0, 1, 0, 1)]])
def test_a_row_that_nothing_changed_says_so(changes: list[Edit]) -> None:
    lines = shown(
        [ShownRow("a\tb", "same", "same", ["week"], [change._asdict() for change in changes])]
    ).splitlines()
    assert lines == ["row a⇥b  week  nothing changed", "both   same", "", "1 row, 0 changed"]


def test_an_empty_row_says_so() -> None:
    assert shown([ShownRow(0, "", "", [], [])]).startswith("row 0  no transform  nothing changed (")
    assert "clean is empty" in shown([example_of([("x", "", "new", "")])])


def test_no_rows_say_so() -> None:
    assert shown([]) == "no rows to show\n"


def test_colour_replaces_the_carets() -> None:
    options = {"force_terminal": True, "color_system": "truecolor"}
    text = shown([SEE_YOU], **options, no_color=False)
    assert "^" not in text
    assert "48;2;" in text
    assert "\x1b[2mclean  \x1b[0m\x1b[30;48;2;" in text  # only the label is dim
    assert "^^^ ^^^" in shown([SEE_YOU], **options, no_color=True)


def test_the_built_in_transforms_have_styles_of_their_own() -> None:
    styles = [str(style_of(name)) for name in ORDER]
    assert len(set(styles)) == 12
    assert str(style_of("echo")) == str(style_of("echo"))


def test_makers_share_a_span_from_left_to_right() -> None:
    halves = [style_of("fing+spac", part).bgcolor for part in (0.0, 0.49, 0.5, 0.99)]
    fing, spac = (style_of(name).bgcolor for name in ("fing", "spac"))
    assert halves == [fing, fing, spac, spac]


@given(SEGMENTS, WIDTHS)
def test_nothing_is_lost(segments: list[tuple[str, str, str, str]], width: int) -> None:
    example = example_of(segments)
    blocks = [block for line in lines_of([example], width) for block in line]
    for side, text in enumerate((example.clean, example.noisy)):
        assert "".join(cell.text for block in blocks for cell in block.sides[side]) == text


@given(st.lists(SEGMENTS, min_size=2, max_size=3), WIDTHS)
def test_versions_of_a_text_are_whole_and_aligned(
    several: list[list[tuple[str, str, str, str]]], width: int
) -> None:
    """Each version changes one part of a common text, between its own beginning and end."""
    parts = [example_of(segments) for segments in several]
    clean = "".join(part.clean for part in parts)
    rows = []
    for number, part in enumerate(parts):
        before, after = (
            "".join(p.clean for p in some) for some in (parts[:number], parts[number:])
        )
        shift = len(before)
        edits = [
            {name: at if name == "transform" else at + shift for name, at in edit.items()}
            for edit in part.edits
        ]
        noisy = before + part.noisy + after[len(part.clean) :]
        rows.append(ShownRow(7, clean, noisy, [], edits, f"x{number}"))
    lines = list(lines_of(rows, width))
    blocks = [block for line in lines for block in line]
    for side, text in enumerate((clean, *(row.noisy for row in rows))):
        assert "".join(cell.text for block in blocks for cell in block.sides[side]) == text
    for line in lines:
        widths = {cell_len(side_of(line, side).plain) for side in range(len(rows) + 1)}
        assert len(widths) == 1
        assert widths.pop() <= width


def test_versions_of_a_text_look_like_this() -> None:
    same = " tomorrow morning at the old railway station in "
    strong = [("abr1", "see", "c", " "), ("abr1", "you", "u", same), ("x", "town", "Town", "")]
    weak = [("x", "", "", "see "), ("abr1", "you", "ya", f"{same}town")]
    rows = [replace(example_of(part), strength=f"x{n}") for n, part in enumerate((weak, strong), 1)]
    assert shown(rows, 60) == (
        "row 7  CER 3.4% at x1, 10.2% at x2\n"
        "clean  see you tomorrow morning at the old railway station \n"
        "x1     see ya· tomorrow morning at the old railway station \n"
        "           ^^^\n"
        "x2     c·· u·· tomorrow morning at the old railway station \n"
        "       ^^^ ^^^\n"
        "clean  in town\n"
        "x1     in town\n"
        "x2     in Town\n"
        "          ^^^^\n"
        "\n"
        "1 row; changed: 1 at x1, 1 at x2; changes by transform:\n"
        "abr1 3   x 1\n"
        "· filler, not part of the text\n"
    )
    same = [ShownRow(1, "as it was", "as it was", [], [], strength) for strength in ("x1", "x2")]
    assert "row 1  nothing changed\nall    as it was\n" in shown(same)
    assert same[0].to_dict().keys() - {"strength"} == replace(same[0], strength="").to_dict().keys()
    copies = [replace(row, strength="", copy=copy) for copy, row in enumerate(rows)]
    assert shown(copies).endswith(
        "1 row; changed: 1 in copy 0, 1 in copy 1; changes by transform:\n"
        "abr1 3   x 1\n"
        "· filler, not part of the text\n"
    )


def test_the_command_previews_copies_at_levels_of_strength(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--recipe", "ugc-heavy", "--seed", "7", "--copies", "2", "--strength", "x0,x1"]
    source = tmp_path / "texts.txt"
    source.write_text("The letter from him came on Monday.\nSee you tomorrow.\n")
    assert run(["preview", str(source), *words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["id"], row["strength"], row["copy"]) for row in rows] == [
        (number, strength, copy)
        for number in (0, 1)
        for strength in ("x0", "x1")
        for copy in (0, 1)
    ]
    assert rows[0]["noisy"] == rows[0]["clean"] != rows[2]["noisy"]
    assert run(["augment", str(source), "-o", str(tmp_path / "o.jsonl"), *words, "-q"]) == 0
    made = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert [row["text"] for row in made] == [row["noisy"] for row in rows]
    assert run(["preview", "See you tomorrow.", *words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 4


@given(SEGMENTS, WIDTHS)
def test_the_text_behind_each_change_stands_in_the_same_column(
    segments: list[tuple[str, str, str, str]], width: int
) -> None:
    for line in lines_of([example_of(segments)], width):
        stops = list(accumulate(block.width for block in line))
        assert stops[-1] <= width
        for side in (0, 1):
            parts = [side_of([block], side).plain for block in line]
            assert [cell_len("".join(parts[: i + 1])) for i in range(len(parts))] == stops
            assert cell_len(side_of(line, side).plain) == stops[-1]


@given(SEGMENTS, WIDTHS)
def test_carets_stand_under_the_changes_and_only_there(
    segments: list[tuple[str, str, str, str]], width: int
) -> None:
    for line in lines_of([example_of(segments)], width):
        carets = carets_under(line, 1).plain
        column = 0
        for block in line:
            under = set(carets[column : column + block.width]) or {" "}
            assert (under == {"^"}) == block.is_changed
            column += block.width


@given(SEGMENTS, WIDTHS)
def test_printed_pairs_are_equally_wide_and_fit(
    segments: list[tuple[str, str, str, str]], width: int
) -> None:
    printed = shown([example_of(segments)], width).split("\n")
    clean = [cell_len(line) for line in printed if line.startswith("clean  ")]
    noisy = [cell_len(line) for line in printed if line.startswith("noisy  ")]
    assert clean == noisy
    assert all(columns <= width for columns in clean)


@given(TEXTS | st.text())
def test_every_grapheme_is_seen_and_widths_add_up(text: str) -> None:
    cells = graphemes.displayed(text)
    assert "".join(cell.text for cell in cells) == text
    assert all(cell.width > 0 for cell in cells)
    assert cell_len("".join(cell.shown for cell in cells)) == sum(cell.width for cell in cells)


def test_a_long_change_is_cut_and_a_narrow_terminal_survives() -> None:
    row = example_of([("x", "京" * 50, "a" * 33, "end")])
    for width in (1, 5, 9, 40):
        text = shown([row], width)
        assert text.count("京") == 50
        assert text.count("a·") <= text.count("noisy  ")


def test_a_text_among_sources_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "ref.txt"
    source.write_text("see you\n")
    assert run(["preview", str(source), "extra", "-t", "fing"]) == 2
    said = capsys.readouterr().err
    assert "'extra' is a text (there is no such file)" in said
    assert f"{str(source)!r} a source" in said
    assert run(["preview", "one", "two", "-t", "fing"]) == 0
    assert run(["augment", str(source), "extra", "-t", "fing", "--dry-run"]) == 1
    assert "'extra': no such file or folder" in capsys.readouterr().err


def test_of_a_huge_row_the_beginning_is_printed() -> None:
    segments = [("fing", "see", "sea", " you tomorrow ")] * 10_000
    began = time.process_time()
    printed = shown([example_of(segments)])
    assert time.process_time() - began < 4  # all of it takes 10
    assert len(printed) < 40_000
    assert "and 160,000 more characters" in printed
    assert "fing 10,000" in printed


@pytest.mark.parametrize("sides", [("a" * 30_000, "b" * 25_000), ("", "b" * 25_000)])
def test_of_a_huge_edit_the_beginning_is_printed(sides: tuple[str, str]) -> None:
    row = example_of([("latn", *sides, " behind it")]).beginning(1_000)
    assert row.noisy.startswith("b" * 1_000)
    assert len(row.clean) + len(row.noisy) < 2_100
    assert row.edits[0]["noisy_end"] == 1_000
