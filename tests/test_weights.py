"""The tool that sets the weights of lists by what people write."""

from collections import Counter

from noisegen.noise.lexicon import Lexicon, parse_tsv
from tools.habits import Row
from tools.weights import Counts, calibrated, rewrite

LIST = """# name: x
# lang: en
# source: written
# license: MIT
{}clean	noisy	weight
going to	gonna	5
rare	rar	9
you	u	3
you	ya	9
"""
ROWS = [Row("are you going to go", "are u gonna go", "en")] * 30
ROWS += [Row("you and you", "you and you", "en")] * 30


def weights(head: str, counts: Counts) -> dict[str, int]:
    lexicon: Lexicon = parse_tsv(LIST.format(head).encode(), "x")
    return {entry.noisy: entry.weight for entry in calibrated(lexicon, counts)}


def test_forms_have_the_shares_of_the_pairs_and_rare_words_keep_theirs():
    found = weights("", Counts.of(ROWS))
    assert found["u"] > 90 > 5 > found["ya"] >= 1
    assert found["rar"] == 9


def test_a_list_with_of_says_how_often_a_word_changes():
    counts = Counts.of(ROWS)
    assert (counts.phrases["you"], counts.written["going to", "gonna"]) == (90, 30)
    found = weights("# of: 1000\n", counts)
    assert found["gonna"] > found["u"] > 700  # odds of a third, times ten
    assert found["rar"] == 1  # no rare word was seen in a form of the list


def test_rare_words_may_have_the_weights_of_their_change_of_letters():
    head = "# name: x\n# lang: en\n# source: me\n# license: MIT\n# of: 1000\nclean\tnoisy\tweight\n"
    forms = ["going goin", "doing doin", "tying tyin", "tying tieing"]
    lexicon = parse_tsv(
        (head + "".join(f"{form.replace(' ', chr(9))}\t1\n" for form in forms)).encode(), "x"
    )
    counts = Counts.of([Row("going and doing", "goin and doin", "en")] * 30)
    found = {entry.noisy: entry.weight for entry in calibrated(lexicon, counts, by_change=True)}
    assert found["tyin"] > 900 > 99 > found["tieing"] >= 1


def test_only_weights_are_written(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(LIST.format("# note: mine\n"), "utf-8")
    rewrite(path, {("going to", "gonna", ""): 1, ("rare", "rar", ""): 2, ("you", "u", ""): 3,
                   ("you", "ya", ""): 4})  # fmt: skip
    lines = path.read_text("utf-8").split("\n")
    assert lines[:6] == LIST.format("# note: mine\n").split("\n")[:6]
    assert [line.split("\t")[2] for line in lines[6:-1]] == list("1234")
    assert Counter(map(len, (line.split("\t") for line in lines[6:-1]))) == {3: 4}
