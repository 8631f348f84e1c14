"""The tool that sets the weights of lists by what people write."""

from collections import Counter

from noisegen.noising.lexicon import Lexicon, parse_tsv
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


def listed(*forms: str, lang: str = "en") -> Lexicon:
    """Return a list of these "clean noisy" forms, which says how often a word changes."""
    head = f"# name: x\n# lang: {lang}\n# source: me\n# license: MIT\n# of: 1000\n"
    rows = "".join("\t".join([*form.split(), "1"][:3]) + "\n" for form in forms)
    return parse_tsv(f"{head}clean\tnoisy\tweight\n{rows}".encode(), "x")


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
    assert found["gonna"] > found["u"] > 700  # a third, times ten, is always
    assert found["rar"] == 1  # no rare word was seen in a form of the list


def test_a_form_has_the_chance_of_the_pairs_times_one_in():
    lexicon = parse_tsv(LIST.format("# of: 1000\n").encode(), "x")
    found = {entry.noisy: entry.weight for entry in calibrated(lexicon, Counts.of(ROWS), 2)}
    assert 650 < found["u"] < 700  # a third of "you", twice


def test_rare_words_may_have_the_weights_of_their_change_of_letters():
    lexicon = listed("going goin", "doing doin", "tying tyin", "tying tieing")
    counts = Counts.of([Row("going and doing", "goin and doin", "en")] * 30)
    found = {entry.noisy: entry.weight for entry in calibrated(lexicon, counts, by_change=True)}
    assert found["tyin"] > 900 > 99 > found["tieing"] >= 1


def test_letters_that_change_between_some_neighbours_alone_stay_elsewhere():
    lexicon = listed("sign sin", "going goin", "doing doin", "action akyooshun")
    counts = Counts.of([Row("a sign of going on", "a sign of goin on", "en")] * 15)
    found = {entry.noisy: entry.weight for entry in calibrated(lexicon, counts, 1, by_change=True)}
    assert found["doin"] > 3 * found["sin"]
    assert found["akyooshun"] <= found["sin"] + found["doin"]


def test_text_without_spaces_is_counted_where_a_list_matches():
    lexicon = listed("เขา เค้า", "ภูเขา ภูเขา 1000", "มาก มากก", "มาก มากกก", lang="th")
    rows = [Row("เขาไปภูเขามาก", "เค้าไปภูเขามากกก", "th")] * 20 + [Row("เขามาก", "เขามาก", "th")] * 20
    counts = Counts.of_matches(rows, lexicon, "characters")
    assert counts.phrases == {"เขา": 40, "ภูเขา": 20, "มาก": 40}
    assert counts.written == {("เขา", "เค้า"): 20, ("มาก", "มากกก"): 20}
    found = {entry.noisy: entry.weight for entry in calibrated(lexicon, counts, 1)}
    assert found["มากกก"] > 400 > 50 > found["มากก"] >= 1
    assert found["ภูเขา"] == 1000


def test_only_weights_are_written(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(LIST.format("# note: mine\n"), "utf-8")
    rewrite(
        path,
        {
            ("going to", "gonna", ""): 1,
            ("rare", "rar", ""): 2,
            ("you", "u", ""): 3,
            ("you", "ya", ""): 4,
        },
    )
    lines = path.read_text("utf-8").split("\n")
    assert lines[:6] == LIST.format("# note: mine\n").split("\n")[:6]
    assert [line.split("\t")[2] for line in lines[6:-1]] == list("1234")
    assert Counter(map(len, (line.split("\t") for line in lines[6:-1]))) == {3: 4}


def test_phrases_that_stay_are_kept(tmp_path):
    path, stays = tmp_path / "x.tsv", "going to bed\tgoing to bed\t1000"
    path.write_text(LIST.format("# of: 1000\n") + stays + "\n", "utf-8")
    rewrite(path, {("you", "u", ""): 3})
    assert path.read_text("utf-8").split("\n")[-3:] == ["you\tu\t3", stays, ""]
