"""The report of a review: shares, the rule, agreement, kinds; also of reviews hardly begun."""

import io
import re
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest
from reviews import made, output, rows_of, sentences
from rich.console import Console

from noisegen import review
from noisegen.augmentation.statistics import wilson
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.report.terminal import show
from noisegen.review.reporting import CUT_OFF, ReviewReport, compose
from noisegen.review.review_file import ReviewFile
from noisegen.review.store import JudgedItem, Stratum, mean, most_realistic

NUMBERS = count()
STRENGTH = "SELECT items.id, strength FROM items JOIN groups ON groups.id = group_id"


def judge(path: Path, name: str, answers: dict[int, dict[str, object]]) -> None:
    """Store the answers of one reviewer, by item."""
    opened = ReviewFile(path)
    opened._opened.execute("PRAGMA synchronous = OFF")  # thousands of answers, no crash to fear
    key = opened.join(name, None, same=True)["reviewer"]
    for item, given in answers.items():
        for question, value in given.items():
            opened.answer(key, item, question, value, f"{next(NUMBERS)}")
    opened.close()


def verdicts(path: Path, unrealistic: dict[str, int]) -> dict[int, dict[str, object]]:
    """Answer everything; of each strength so many first items are unrealistic."""
    left, answers = dict(unrealistic), {}
    for item, strength in rows_of(path, STRENGTH + " ORDER BY items.id"):
        bad = left.get(strength, 0) > 0
        left[strength] = left.get(strength, 0) - 1
        answers[item] = {"realism": "unrealistic" if bad else "realistic", "meaning": "yes"}
    return answers


def shown(found: ReviewReport) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(compose(found), console)
    return console.file.getvalue()


@pytest.fixture
def path(tmp_path):
    return made(tmp_path)


def test_an_untouched_review_has_a_report(path, tmp_path):
    found = review.report(path, tmp_path / "report.html")
    assert (found.items, found.judged, found.answers) == (45, 0, 0)
    assert {(one.passes, one.reason) for one in found.verdicts} == {(None, "nothing is judged yet")}
    assert "0 of 45 rows judged; 0 reviewers" in shown(found)
    assert shown(found).startswith("Nothing is judged yet")
    assert len(shown(found).split()) == 15
    page = (tmp_path / "report.html").read_text()
    assert "<h1>Nothing is judged yet</h1>" in page
    assert re.findall(r'<section id="(\w+)"', page) == []


def test_a_review_half_answered_says_what_is_missing(path):
    answers = verdicts(path, {})
    judge(path, "Ana", {item: answers[item] for item in list(answers)[:20]})
    judge(path, "Ben", {1: {"meaning": "no"}, 2: {"kinds": [1]}, 3: {"comment": "hm"}})
    found = review.report(path)
    assert found.judged == 20
    assert sum(one.judged for one in found.groups) == 20
    assert "next: judge 25 rows of the first stage, then" in found.verdicts[0].reason
    assert [(one.name, one.items, one.complete) for one in found.reviewers] == [
        ("Ana", 20, 20),
        ("Ben", 0, 0),
    ]
    text = shown(found)
    assert text.splitlines()[0].endswith(" is not decided yet")
    assert "Rows of the sources" not in text
    assert "kind was named" not in text


def test_an_unfinished_report_has_only_what_is_judged(path):
    low = [item for item, strength in rows_of(path, STRENGTH) if strength == "low"]
    judge(path, "Ana", {item: {"realism": "realistic"} for item in low[:5]})
    text = shown(review.report(path))
    assert re.findall(r"(\w+) +\d+/15", text) == ["low"]
    for empty in ("Agreement", "Kinds of noise", "Rows of the sources", "Comments"):
        assert empty not in text


def test_shares_and_intervals_are_those_of_the_items(path):
    judge(path, "Ana", verdicts(path, {"high": 6, "middle": 1}))
    found = {one.strength: one for one in review.report(path).groups}
    assert found["high"].realistic == pytest.approx(9 / 15)
    assert (found["high"].low, found["high"].high) == wilson(9 / 15, 15)
    assert found["low"].realistic == found["low"].meaning_kept == 1
    assert found["middle"].moderate_or_better == pytest.approx(14 / 15)


def test_a_row_judged_by_two_counts_once_with_their_mean(path):
    answers = verdicts(path, {})
    judge(path, "Ana", answers)
    for given in answers.values():
        given["realism"] = "moderate"
    judge(path, "Ben", answers)
    one = review.report(path).groups[0]
    assert (one.judged, one.realistic, one.moderate_or_better) == (15, 0.5, 1.0)
    assert (one.low, one.high) == wilson(0.5, 15)


# The rule of RCP.


def test_the_most_realistic_strength_is_chosen_and_of_equal_ones_the_strongest():
    all_of, some_of = [
        [JudgedItem(1, {1: answer}) for answer in answers]
        for answers in (("realistic",), ("realistic", "moderate"))
    ]
    low, middle, high = (Stratum("en", "r", str(value), value) for value in (0.05, 0.1, 0.2))
    assert most_realistic({low: all_of, high: some_of, middle: all_of}) == ("0.1", 1, 1.0)
    assert most_realistic({low: all_of, high: some_of}).strength == "0.05"
    first, second = (Stratum("en", "r", name) for name in "ab")
    assert most_realistic({first: all_of, second: all_of}).strength == "b"
    assert most_realistic({first: [JudgedItem(1), JudgedItem(2, {1: "realistic"})]}) is None


@pytest.mark.parametrize(("unrealistic", "passes"), [(0, True), (3, True), (4, False)])
def test_the_cut_off_is_95_per_cent_of_15_and_60(path, unrealistic, passes):
    judge(path, "Ana", verdicts(path, {"high": 5, "low": 5, "middle": 1}))
    assert [one.strength for one in review.report(path).verdicts] == ["middle"]
    review.more(path, rows=60)
    judge(path, "Ana", verdicts(path, {"high": 5, "low": 5, "middle": unrealistic}))
    found = review.report(path)
    (verdict,) = found.verdicts
    assert ("reaches the cut-off" if passes else "is below the cut-off") in shown(found)[:60]
    assert verdict.passes is passes  # 72 of 75 is 96 %, 71 is 94.7 %
    assert "of 75 rows realistic" in verdict.reason
    assert "fewer" not in verdict.reason


def test_a_cut_off_over_fewer_rows_than_rcp_had_says_so(path):
    judge(path, "Ana", verdicts(path, {}))
    review.more(path, rows=5)
    judge(path, "Ana", verdicts(path, {}))
    (verdict,) = review.report(path).verdicts
    assert verdict.passes
    assert verdict.reason.endswith("RCP judged 75 rows")


def test_best_is_the_strength_that_the_reviewers_found_most_realistic(tmp_path):
    source, path = tmp_path / "clean.txt", tmp_path / "r.sqlite"
    source.write_text("\n".join(clean for clean, _ in sentences(300)))
    review.make(source, path, transforms=("fing",), strengths="0.05,0.1,0.2")
    judge(path, "Ana", verdicts(path, {"0.05": 4, "0.1": 1, "0.2": 9}))
    assert {group.strength for group, _ in review.more(path).drawn} == {"0.1"}
    found = review.report(path)
    assert [(one.strength, one.passes) for one in found.verdicts] == [("0.1", None)]
    assert "60 rows not judged yet" in found.verdicts[0].reason


# Agreement, kinds.


def test_agreement_is_of_the_rows_that_two_judged(path):
    judge(path, "Ana", verdicts(path, {"high": 9}))
    answers = verdicts(path, {"high": 9})
    judge(path, "Ben", {item: answers[item] for item in list(answers)[:30]})
    found = {one.question: one for one in review.report(path).agreement}
    assert (found["realism"].alpha, found["realism"].items) == (1.0, 30)
    assert found["meaning unchanged"].alpha is None  # all said yes


def test_kinds_are_shares_of_the_judged_rows_and_agreed_upon_or_not(path):
    for name, kinds in (("Ana", [1, 2]), ("Ben", [1])):
        judge(
            path,
            name,
            {
                item: {"realism": "realistic", "kinds": kinds if item % 2 else []}
                for item in range(1, 11)
            },
        )
    found = review.report(path)
    assert found.kinds[0].shares["typo"] == 0.5
    assert found.kinds[0].shares["misspelling"] == 0.25
    page = path.with_suffix(".html")
    review.report(path, page)
    assert "typo: 50 % of judged rows" in page.read_text("utf-8")  # RCP's Figure 2
    alphas = {one.question: one.alpha for one in found.agreement}
    assert alphas["kind: typo"] == 1
    assert alphas["kind: misspelling"] < 0.5


# The page.


def test_the_page_is_one_file_that_asks_for_nothing(path, tmp_path):
    judge(path, "Ana", {1: {"realism": "realistic", "kinds": [1], "comment": "fine"}})
    review.report(path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Kinds of noise by language" in page
    assert '<table class="heat">' in page
    assert "default-src 'none'" in page
    assert not any(word in page for word in ("<script", "src=", "url(", "@import"))
    assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)', page))


def test_intervals_are_drawn_on_an_axis_in_per_cent(path, tmp_path):
    judge(path, "Ana", verdicts(path, {"low": 3}))
    review.report(path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    (drawn,) = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert all(f">{tick}</text>" in drawn for tick in (0, 20, 40, 60, 80, 100))
    assert all(f">{strength}</text>" in drawn for strength in ("low", "middle", "high"))
    assert "low: 80% of 15 realistic, interval 55 to 93%" in drawn
    assert drawn.count("threshold") == 1


def test_a_language_in_which_nothing_changed_holds_nobody_up(tmp_path):
    pairs = [("same in both", "same in both"), ("a line of words", "a lien of words")]
    path = tmp_path / "r.sqlite"
    review.make(output(tmp_path / "out", pairs * 3, lang=["zh", "en"] * 3), path, rows=1)
    judge(path, "Ana", {1: {"realism": "realistic", "meaning": "yes"}})
    reasons = {one.lang: one.reason for one in review.report(path).verdicts}
    assert reasons["zh"] == "no row was drawn"
    opened = ReviewFile(path)
    assert opened.languages() == ["en"]  # those that the page offers, all ticked
    opened.close()
    with pytest.raises(SourceError, match="nothing to review"):  # only en, and no new text
        review.more(path)


def test_texts_in_the_page_are_escaped(path, tmp_path):
    opened = ReviewFile(path)
    key = opened.join("<img src=x>", None)["reviewer"]
    kind = opened.add_kind(key, "<b>kind</b>")["id"]
    opened.answer(key, 1, "realism", "realistic", "1")
    opened.answer(key, 1, "kinds", [kind], "2")
    opened.answer(key, 1, "comment", "</td><script>alert(1)</script>", "3")
    opened.close()
    review.report(path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;kind" in page
    assert not any(word in page for word in ("<img", "<b>", "<script"))


def test_a_page_that_cannot_be_written_is_said(path, tmp_path):
    with pytest.raises(OutputError, match="cannot write"):
        review.report(path, tmp_path / "none" / "report.html")


@pytest.mark.parametrize("out", ["", ".", "/"])
def test_a_name_that_is_none_is_refused(path, out):
    with pytest.raises(OutputError, match="is not the name of a file"):
        review.report(path, out)


def test_a_report_can_be_had_while_the_server_has_the_file(path):
    opened = ReviewFile(path)
    key = opened.join("Ana", None)["reviewer"]
    opened.answer(key, 1, "realism", "realistic", "n")
    assert review.report(path).judged == 1
    opened.answer(key, 2, "realism", "realistic", "m")
    opened.close()
    assert review.report(path).judged == 2


def test_thirds_that_add_up_to_the_cut_off_reach_it():
    """57 of 60 is 95 %, however the nine noes of three reviewers fall on the rows."""
    for first in range(52):
        shares = [Fraction(1)] * first + [Fraction(2, 3)] * 9 + [Fraction(1)] * (51 - first)
        assert mean(shares) == CUT_OFF
    assert mean([]) is None


def test_the_page_never_replaces_the_review(path, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(path)
    for out in (path, link):
        with pytest.raises(UsageError, match="is the review itself"):
            review.report(path, out)
    assert review.report(path).items == 45
