"""Plug-ins: as a function, as a word list, from a file, from an entry point."""

from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisegen
from noisegen.errors import NoisegenError, UsageError
from noisegen.noising import registry
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe, parse
from noisegen.noising.registry import Parameter, examples_in
from noisegen.testing import check_transform
from noisegen.text.alignment import difference
from noisegen.text.resources import DICTIONARIES


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


def echo(text: str, draws: noisegen.Draws, *, rate: float = 0.05, repeat_max: int = 3) -> str:
    """Repeat a letter: 'so good' -> 'sooo good'."""
    return "".join(
        c * (draws.pick(range(2, repeat_max + 1)) if c.isalpha() and draws.hit(rate) else 1)
        for c in text
    )


def noised(name: str, texts: list[str], with_record: bool = False, **values):
    engine = Engine(Recipe.of([Step(name, values)]))
    dice = Streams(np.arange(len(texts), dtype=np.uint64), 0)
    return engine.noise(pa.array(texts, pa.string()), dice, with_record=with_record)


def test_a_function_is_a_transform():
    noisegen.transform("echo", langs=["*"])(echo)
    check_transform("echo")
    assert registry.get("echo").summary == "Repeat a letter: 'so good' -> 'sooo good'."
    assert registry.get("echo").parameters["repeat_max"] == Parameter("repeat_max", 3, int)
    assert registry.get("echo").source.endswith(f":{echo.__code__.co_firstlineno}")
    (noisy,) = noised("echo", ["so"], rate=1, repeat_max=2).noisy.to_pylist()
    assert noisy == "ssoo"


def test_a_transform_without_a_name_is_refused():
    with pytest.raises(UsageError, match=r'needs a name: write @noisegen\.transform\("echo"\)'):
        noisegen.transform(echo)


def test_a_function_takes_part_in_recipes_with_edits_and_strength(demo_texts):
    noisegen.transform("echo")(echo)
    recipe = parse(
        "strength: {0: 1, 1: 1}\nsteps: [{echo: {rate: 0.5}}, fing, {echo: {rate: 1}}]", "e"
    )
    made = recipe.noise_batch(pa.table({"clean": demo_texts}), edits=True)
    assert made["noisy"] != made["clean"]
    for row in made.to_pylist()[:50]:
        at = noisy_at = 0
        for edit in row["edits"]:
            assert (
                row["clean"][at : edit["clean_start"]]
                == row["noisy"][noisy_at : edit["noisy_start"]]
            )
            at, noisy_at = edit["clean_end"], edit["noisy_end"]


@given(st.text("abcé ", max_size=30), st.text("abcé ", max_size=30))
def test_the_difference_of_two_texts_turns_one_into_the_other(clean, noisy):
    text = clean
    for start, stop, new in reversed(difference(clean, noisy)):
        assert clean[start:stop] != new
        text = text[:start] + new + text[stop:]
    assert text == noisy


def test_a_rewritten_long_row_is_one_edit():
    assert difference("a" * 20_000, "b" * 20_000) == [(0, 20_000, "b" * 20_000)]
    long = "x" * 50_000
    assert difference(long + "a" + long, long + "b" + long) == [(50_000, 50_001, "b")]


def test_a_word_list_is_a_transform(tmp_path):
    path = tmp_path / "regional.tsv"
    head = "# name: regional   # lang: en   # source: notes   # license: CC0-1.0\n"
    path.write_text(f"{head}clean\tnoisy\tweight\ngoing to\tgonna\t8\n")
    noisegen.lexical("regional", path, rate=0.3)
    assert registry.get("regional").parameters["rate"].default == 0.3
    assert noised("regional", ["Going to"], rate=1).noisy.to_pylist() == ["Gonna"]


def test_a_name_is_registered_once():
    noisegen.transform("echo")(echo)
    with pytest.raises(UsageError, match="'echo' is registered already"):
        noisegen.transform("echo")(echo)
    with pytest.raises(UsageError, match="'fing' is registered already"):
        noisegen.lexical("fing", DICTIONARIES / "en" / "homo.tsv")


def test_a_word_list_without_summary_shows_its_first_entry_and_its_languages(tmp_path):
    path = tmp_path / "regional.tsv"
    head = "# name: regional   # lang: en de   # source: notes   # license: CC0-1.0\n"
    path.write_text(f"{head}clean\tnoisy\tweight\ngoing to\tgonna\t8\n")
    noisegen.lexical("regional", path)
    assert (
        registry.get("regional").summary == "Replace words of regional.tsv: 'going to' -> 'gonna'."
    )
    assert registry.get("regional").languages() == ["en", "de"]
    check_transform("regional")
    with pytest.raises(NoisegenError, match="cannot read lexicon"):
        noisegen.lexical("missing", tmp_path / "missing.tsv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "verb"}, "mine has no tags 'verb'; known: equal, no-verb, no-name, article, "),
        ({"kind": "slips"}, "mine has no kind 'slips'; known: habit, slip, script, style"),
        ({"rate": 3.0}, "mine.rate = 3.0 is outside 0 to 1"),
    ],
)
def test_a_word_list_with_wrong_options_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        noisegen.lexical("mine", DICTIONARIES / "en" / "homo.tsv", **options)
    assert not registry.is_name("mine")


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UsageError, match="no transform named 'leat'; did you mean 'leet'"):
        registry.get("leat")
    with pytest.raises(UsageError, match="no transform named 'phn'; did you mean 'phon'"):
        registry.get("phn")
    with pytest.raises(UsageError, match="no transform named 'zzzz'; known: abr1"):
        registry.get("zzzz")


def test_a_plug_in_that_fails_says_which_row():
    @noisegen.transform("broken")
    def broken(text: str, draws: noisegen.Draws, *, rate: float = 1.0) -> str:
        """Fail: 'a' -> 'b'."""
        raise ValueError("no luck")

    with pytest.raises(
        NoisegenError, match="transform 'broken' failed on 'some text': ValueError: no luck"
    ):
        noised("broken", ["some text"])


def test_a_plug_in_that_leaves_is_an_error():
    noisegen.transform("leaver")(lambda text, draws, *, rate=1.0: exit(0))
    with pytest.raises(NoisegenError, match="transform 'leaver' failed on 'a': SystemExit: 0"):
        noised("leaver", ["a"])


def test_a_plug_in_without_draws_or_options_is_told_the_form():
    with pytest.raises(UsageError, match=r"write def loud\(text, draws, \*, rate=0.3\)"):
        noisegen.transform("loud")(lambda text, rate=0.3: text)
    noisegen.transform("plain")(lambda text, draws, rate=0.3: text)
    with pytest.raises(NoisegenError, match=r"has no parameter 'rate'; it has none \(in code they"):
        noisegen.noise("a", "plain:rate=1")


def test_a_plug_in_that_returns_something_else_says_so():
    noisegen.transform("silent")(lambda text, draws, *, rate=1.0: None)
    with pytest.raises(NoisegenError, match="'silent' failed on 'a': TypeError: it returned None"):
        noised("silent", ["a"])
    noisegen.transform("lone")(lambda text, draws, *, rate=1.0: "\ud800")
    with pytest.raises(NoisegenError, match="transform 'lone' failed on"):
        noised("lone", ["a"])


def test_code_files_register_and_their_errors_are_told(tmp_path):
    good = tmp_path / "steps.py"
    good.write_text(
        "import noisegen\n@noisegen.transform('shout')\n"
        "def shout(text, draws, *, rate: float = 1.0):\n"
        "    '''Shout: 'a' -> 'A'.'''\n    return text.upper() if draws.hit(rate) else text\n"
    )
    registry.load_code(good)
    assert noised("shout", ["abc"]).noisy.to_pylist() == ["ABC"]
    bad = tmp_path / "bad.py"
    bad.write_text("1 / 0\n")
    with pytest.raises(UsageError, match=r"bad.py failed: ZeroDivisionError: division by zero"):
        registry.load_code(bad)


def test_entry_points_of_other_packages_are_loaded_by_name(tmp_path, monkeypatch):
    """A package is a module and its metadata, as an installer leaves them."""
    (tmp_path / "regional_noise.py").write_text(
        "def echo(text, draws, *, rate: float = 0.05):\n"
        '    """Repeat a letter: \'so\' -> \'soo\'."""\n    return text\n'
    )
    metadata = tmp_path / "regional_noise-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: regional_noise\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[noisegen.transforms]\necho_point = regional_noise:echo\nbroken_point = no_such_module:f\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "echo_point" in registry.names()
    assert registry.get("echo_point").summary.startswith("Repeat a letter")
    with pytest.raises(NoisegenError, match="plug-in 'broken_point' cannot be imported"):
        registry.get("broken_point")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate", 1.5, "echo.rate = 1.5 is outside 0 to 1"),
        ("rate", "much", "echo.rate = 'much' is not a float"),
        ("repeat_max", "x", "echo.repeat_max = 'x' is not a int"),
        ("repeats", 1, "echo has no parameter 'repeats'; did you mean 'repeat_max'"),
    ],
)
def test_parameters_are_checked(name, value, message):
    noisegen.transform("echo")(echo)
    with pytest.raises(UsageError, match=message):
        registry.get("echo").values({name: value})


def test_check_transform_tells_an_author_what_to_mend():
    def identity_breaker(text, draws, *, rate: float = 0.5):
        """Break the identity: 'a' -> 'a!'."""
        return text + "!"

    def global_dice(text, draws, *, rate: float = 0.5):
        """Use global dice: 'a' -> 'b'."""
        import random

        return text.upper() if rate and random.random() < rate else text

    numbers = count()

    def own_counter(text, draws, *, rate: float = 0.5):
        """Count the rows: 'a' -> 'a1'."""
        return f"{text}{next(numbers)}" if rate else text

    def line_breaker(text, draws, *, rate: float = 0.5):
        """Break lines: 'a b' -> 'a b'."""
        return text.replace(" ", "\n") if draws.hit(rate) else text

    def undocumented(text, draws, *, rate: float = 0.5):
        return text

    def without_example(text, draws, *, rate: float = 0.5):
        """Do something."""
        return text

    example = "such as: Drop apostrophes: 'I don't know' -> 'I dont know'."
    for function, reason in (
        (identity_breaker, "with rate at 0 it must change nothing, but it made 'See you .*!'"),
        (global_dice, r"take randomness from draws \(.*\), not from random.random\(\)"),
        (
            own_counter,
            ".* became .*in another order of rows .*not from other rows, a counter or the",
        ),
        (line_breaker, "it must add no line break, but it made ' ' into"),
        (undocumented, f"the first line of its docstring is no sentence; write one {example}"),
        (without_example, f"the first line of its docstring needs an example, {example}"),
    ):
        noisegen.transform(function.__name__)(function)
        with pytest.raises(AssertionError, match=f"^{function.__name__}: {reason}"):
            check_transform(function.__name__)


def test_examples_are_read_from_a_summary():
    assert examples_in("Do: 'I do not' -> 'I don't', 'a' -> 'b'.") == [
        ("I do not", "I don't"),
        ("a", "b"),
    ]


@pytest.mark.parametrize("given", ["de", ["de"]])
def test_languages_of_a_function_may_be_one(given):
    name = f"one_{type(given).__name__}"
    noisegen.transform(name, langs=given)(lambda text, draws: text)
    assert registry.get(name).languages() == ["de"]


def test_names_that_people_guess_are_those_of_transforms(tmp_path):
    """They make the noise of the transform under its own name, from Python and from a recipe."""
    text = "see you tomorrow at the station"
    assert not set(registry.OTHER_NAMES) & set(registry.names())
    assert set(registry.OTHER_NAMES.values()) <= set(registry.names())
    found = noisegen.noise(text, "keyboard:rate=0.5", id=3, edits=True)
    assert found == noisegen.noise(text, "fing:rate=0.5", id=3, edits=True)
    assert {edit.transform for edit in found.edits} == {"fing"}
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("steps:\n- typo: {rate: 0.5}\n- leetspeak: {p: 0.5}\n")
    assert [step.label for step in Recipe.named(recipe).steps()] == ["fing", "leet"]


def test_a_plug_in_may_have_a_name_that_people_guess():
    noisegen.transform("emoji")(echo)
    assert registry.own_name("emoji") == "emoji"
    assert registry.own_name("emoticon") == "emot"
