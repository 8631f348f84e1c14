"""The tools that make the profiles of scans, the pairs of speech and the list of look-alikes."""

from tools.asr_pairs import aligned, pairs_of
from tools.confusables import look_alikes
from tools.ocr_profiles import outlines, work_of, write_pairs, written_today

REFERENCE = """token|speaker|ts|endTs|punctuation|case|tags|wer_tags
Good|0||||UC|[]|[]
morning|0|||,|LC|[]|[]
we|0||||LC|[]|[]
sold|0||||LC|[]|[]
35|0||||CA|[]|[]
houses|0|||.|LC|[]|[]
<laugh>|0||||LC|[]|[]
Thank|0||||UC|[]|[]
you|0|||.|LC|[]|[]
"""
HEARD = "good morning we told thirty five houses thank you".split()  # noqa: SIM905

CONFUSABLES = """# Version: 14.0.0
0430 ;\t0061 ;\tMA\t# ( а → a )
1D41A ;\t0061 ;\tMA\t# ( 𝐚 → a )
05E1 ;\t006F ;\tMA\t# ( ס → o )
FF21 ;\t0041 ;\tMA\t# ( Ａ → A )
"""


def test_lines_are_split_by_work_and_written_as_today(tmp_path):
    lines = [(f"work {n}", "Gefchichte , die", "Geſchichte, die") for n in range(40)]
    lines += [
        ("work 1", "xyz", "Geſchichte"),
        ("work 1", "", "Geſchichte"),
    ]  # not of the same print
    write_pairs("de", iter(lines), tmp_path)
    sizes = {}
    for part in ("train", "test"):
        head, *rows = (tmp_path / f"de.{part}.tsv").read_text("utf-8").splitlines()
        assert head == "noisy\tclean"
        assert {*rows} == {"Gefchichte, die\tGeschichte, die"}
        sizes[part] = len(rows)
    assert sum(sizes.values()) == 40
    assert 0 < sizes["test"] < sizes["train"]
    assert written_today("fa\u0364llt ‐ er’s") == "fällt - er's"
    assert work_of("a/b/000012.png") == "a/b"


def test_lines_of_a_page_have_an_outline_and_a_text():
    alto = """<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><TextBlock><TextLine>
    <Shape><Polygon POINTS="5 9 40,9 40.0 2"/></Shape><String CONTENT="The end."/></TextLine>
    <TextLine><String CONTENT="without an outline"/></TextLine></TextBlock></alto>"""
    assert [*outlines(alto.encode())] == [([(5, 9), (40, 9), (40, 2)], "The end.")]


def test_a_call_becomes_pairs_of_sentences(tmp_path):
    (tmp_path / "1.nlp").write_text(REFERENCE, "utf-8")
    times = "".join(f"1 A {n}.0 0.1 {word} 1.00\n" for n, word in enumerate([*HEARD, "<laugh>"]))
    (tmp_path / "1.ctm").write_text(times, "utf-8")
    found = pairs_of(tmp_path / "1.nlp", tmp_path / "1.ctm")
    # The second sentence has fewer than four words.
    heard = "good morning we told thirty five houses"
    assert found == [(heard, "Good morning, we sold 35 houses.")]


def test_words_are_aligned_with_what_was_heard():
    assert aligned(["a", "b", "c"], ["a", "x", "c"]) == [0, 1, 2, 3]
    assert aligned(["a", "b", "c"], ["a", "c"]) == [0, 1, 1, 2]
    assert aligned(["a", "c"], ["a", "b", "c"]) == [0, 2, 3]


def test_look_alikes_are_letters_of_one_direction_that_normalization_leaves(tmp_path):
    (tmp_path / "confusables.txt").write_text(CONFUSABLES, "utf-8")
    assert look_alikes(tmp_path / "confusables.txt") == {("a", "а"): 9, ("а", "a"): 9}
