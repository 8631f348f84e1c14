"""A stub package in the shape of NL-Augmenter's; its code draws from the global generators."""

import random
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from noisegen.errors import NoisegenError, UsageError
from noisegen.noising.edits import rewritten
from noisegen.noising.registry import Parameter, RowFunction, Settings
from noisegen.noising.rng import row_key, stream_key
from noisegen.text.buffers import Texts
from noisegen.transforms import nlaugmenter

pytestmark = pytest.mark.usefixtures("package")

INTERFACE = '''
class Operation:
    languages = None
    def __init__(self, seed=0, verbose=False, max_outputs=1):
        self.seed, self.verbose, self.max_outputs = seed, verbose, max_outputs

class SentenceOperation(Operation):
    """The base."""

class SentenceAndTargetOperation(Operation):
    """Another base."""
'''
SHUFFLE = '''
import random
import numpy as np
from nlaugmenter.interfaces.SentenceOperation import SentenceOperation
print("loading")
random.seed(5)
MADE = []

class Shuffle(SentenceOperation):
    """Shuffle the letters: 'abc' -> 'bca'.

    More.
    """
    languages = ["en", "All"]
    def __init__(self, times=1, seed=0, max_outputs=3, tail="", shout=False, share: float = 1,
                 drop_rate=0.25, most=float("inf"), words=None):
        super().__init__(seed, max_outputs=max_outputs)
        self.times, self.tail, self.shout, self.drop_rate = times, tail, shout, drop_rate
        MADE.append(drop_rate)
        random.random()
    def generate(self, sentence):
        print("working")
        random.seed(self.seed)
        letters = list(sentence)
        for _ in range(self.times):
            random.shuffle(letters)
        text = "".join(letters) + self.tail
        return [text.upper() if self.shout else text] * self.max_outputs

class ShuffleAgain(Shuffle):
    languages = "en"
'''
LOOSE = '''
import random
import numpy
from nlaugmenter.interfaces import SentenceOperation as module

class Loose(module.SentenceOperation):
    def generate(self, sentence):
        assert type(self.seed) is int
        return sentence + str(random.random()) + str(numpy.random.random())

class Given(module.SentenceOperation):
    """Answers with what the sentence names."""
    def generate(self, sentence):
        return {"tuple": ("t", "u"), "none": [], "empty": "", "bytes": [b"x"]}[sentence]

class Fussy(module.SentenceOperation):
    def __init__(self, model):
        super().__init__()

class Targeted(module.SentenceAndTargetOperation): pass
class Helper: pass
'''
FOLDERS = {
    "shuffle": SHUFFLE,
    "loose": LOOSE,
    "broken": "import a_module_that_nobody_has\nclass Broken(SentenceOperation): pass\n",
    "crashing": "class Crashing(SentenceOperation): pass\n",
    "torn": "class Torn(:\n",
}
ROWS = ["the quick brown fox", "jumps over dogs", "and naps here", "the quick brown fox"]


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "nlaugmenter"]:
        del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "nlaugmenter"
    files = {f"transformations/{name}/transformation.py": code for name, code in FOLDERS.items()}
    for name, content in {**files, "interfaces/SentenceOperation.py": INTERFACE}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(content)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield folder
    forget()


@pytest.fixture(params=[None, ModuleType("nlaugmenter")])
def no_package(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    """Hide the package; a module put there by hand has no spec."""
    monkeypatch.setitem(sys.modules, "nlaugmenter", request.param)


def kernel(
    name: str, factors: tuple[Fraction, ...] = (Fraction(1),), **given: object
) -> RowFunction:
    transform = nlaugmenter.adapt(name)
    made = transform.make(Settings(factors=factors), transform.values(given))
    assert isinstance(made, RowFunction)
    return made


def outputs(made: RowFunction, rows: dict[int, str], strength: int = 0) -> dict[int, str]:
    """Run the kernel on rows by id and write its edits."""
    texts = Texts.from_strings(list(rows.values()))
    stream = stream_key(7, made.name)
    keys = np.array([row_key(stream, number) for number in rows], np.uint64)
    rates = [name for name in made.values if name.endswith("_rate")]
    strengths = {name: np.full(len(rows), strength) for name in rates}
    edits = made.propose(texts, keys, strengths)
    noisy = rewritten(texts, [edits])[0].to_strings()
    return dict(zip(rows, noisy, strict=True))


@pytest.mark.parametrize("name", ["nlaugmenter:Shuffle", "nlaugmenter:Loose"])
def test_a_row_has_one_output_in_any_order_and_company(name: str) -> None:
    made = kernel(name)
    rows = dict(enumerate(ROWS))
    together = outputs(made, rows)
    backwards = outputs(made, dict(reversed(rows.items())))
    alone = {number: outputs(kernel(name), {number: text})[number] for number, text in rows.items()}
    assert together == backwards == alone
    assert together != rows


@pytest.mark.parametrize("name", ["nlaugmenter:Shuffle", "nlaugmenter:Loose"])
def test_rows_have_dice_of_their_own(name: str) -> None:
    found = outputs(kernel(name), dict.fromkeys(range(6), "the same words"))
    assert len(set(found.values())) == 6


def test_python_and_numpy_dice_are_both_seeded() -> None:
    found = outputs(kernel("nlaugmenter:Loose"), {0: "x", 1: "x"})
    halves = [text[1:].split("0.")[1:] for text in found.values()]
    assert halves[0][0] != halves[1][0]
    assert halves[0][1] != halves[1][1]
    assert outputs(kernel("nlaugmenter:Loose"), {0: "x", 1: "x"}) == found


@pytest.mark.parametrize("name", ["nlaugmenter:Shuffle", "nlaugmenter:Loose"])
def test_the_global_generators_stay_as_they_were(name: str) -> None:
    random.seed(11)
    np.random.seed(11)
    state, state_of_numpy = random.getstate(), str(np.random.get_state())
    outputs(kernel(name), dict(enumerate(ROWS)))
    assert random.getstate() == state
    assert str(np.random.get_state()) == state_of_numpy


def test_the_global_generators_stay_after_a_failure() -> None:
    made = kernel("nlaugmenter:Given")
    state = random.getstate()
    with pytest.raises(NoisegenError):
        outputs(made, {0: "unknown"})
    assert random.getstate() == state


def test_prints_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    outputs(kernel("nlaugmenter:Shuffle"), {0: "some text"})
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "loading" in captured.err
    assert "working" in captured.err


@pytest.mark.parametrize(
    ("text", "expected"), [("tuple", "t"), ("none", "none"), ("empty", "empty")]
)
def test_the_first_output_counts_and_none_keeps_the_text(text: str, expected: str) -> None:
    assert outputs(kernel("nlaugmenter:Given"), {0: text}) == {0: expected}


@pytest.mark.parametrize(("text", "what"), [("unknown", "KeyError"), ("bytes", "returned bytes")])
def test_a_failing_row_is_shown(text: str, what: str) -> None:
    with pytest.raises(NoisegenError, match=f"'nlaugmenter:Given' failed on '{text}'.*{what}"):
        outputs(kernel("nlaugmenter:Given"), {0: text})


def test_plain_defaults_of_the_constructor_are_parameters() -> None:
    transform = nlaugmenter.adapt("nlaugmenter:Shuffle")
    assert list(transform.parameters.values()) == [
        Parameter("times", 1, int),
        Parameter("tail", "", str),
        Parameter("shout", False, bool),
        Parameter("share", 1.0, float),
        Parameter("drop_rate", 0.25, float),
    ]
    assert nlaugmenter.adapt("nlaugmenter:Loose").parameters == {}


def test_parameters_reach_the_transformation() -> None:
    made = kernel("nlaugmenter:Shuffle", times="0", tail="!", shout="true")
    assert outputs(made, {0: "see you"}) == {0: "SEE YOU!"}


def test_an_instance_is_made_once_for_each_strength() -> None:
    made = kernel("nlaugmenter:Shuffle", factors=(Fraction(1, 2), Fraction(1)))
    made_with = sys.modules["nlaugmenter.transformations.shuffle.transformation"].MADE
    outputs(made, dict(enumerate(ROWS)), strength=1)
    outputs(made, dict(enumerate(ROWS)), strength=1)
    assert made_with == [0.25]
    outputs(made, dict(enumerate(ROWS)), strength=0)
    assert made_with == [0.25, 0.125]


def test_the_transform_tells_its_summary_languages_and_source() -> None:
    shuffle, again, loose = (
        nlaugmenter.adapt(f"nlaugmenter:{name}") for name in ("Shuffle", "ShuffleAgain", "Loose")
    )
    assert shuffle.summary == "Shuffle the letters: 'abc' -> 'bca'."
    assert loose.summary == "Run Loose of NL-Augmenter."
    assert [made.languages() for made in (shuffle, again, loose)] == [["en", "*"], ["en"], ["*"]]
    assert "shuffle/transformation.py:" in shuffle.source


def test_only_the_module_of_the_class_is_imported() -> None:
    nlaugmenter.adapt("nlaugmenter:Shuffle")
    assert "nlaugmenter.transformations.shuffle.transformation" in sys.modules
    assert "nlaugmenter.transformations.loose.transformation" not in sys.modules


@pytest.mark.parametrize("name", ["Targeted", "Helper"])
def test_other_operations_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"nlaugmenter:{name} is no SentenceOperation"):
        nlaugmenter.adapt(f"nlaugmenter:{name}")


def test_an_unknown_class_gets_a_suggestion(package: Path) -> None:
    with pytest.raises(UsageError, match="has no class 'Shufle'; did you mean 'Shuffle'") as caught:
        nlaugmenter.adapt("nlaugmenter:Shufle")
    assert str(package) in str(caught.value)


def test_an_unlike_class_gets_the_list() -> None:
    with pytest.raises(UsageError, match="no class 'Zzz'; known: Broken, Crashing, "):
        nlaugmenter.adapt("nlaugmenter:Zzz")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Broken", "nobody_has.*; install what nlaugmenter/transformations/broken asks for"),
        ("Crashing", "nlaugmenter:Crashing cannot be imported: NameError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error_of_ours(name: str, message: str) -> None:
    with pytest.raises(NoisegenError, match=message):
        nlaugmenter.adapt(f"nlaugmenter:{name}")


def test_a_constructor_that_fails_is_an_error_of_ours_before_the_first_row() -> None:
    with pytest.raises(NoisegenError, match="nlaugmenter:Fussy cannot be set up"):
        kernel("nlaugmenter:Fussy")


@pytest.mark.usefixtures("no_package")
def test_without_the_package_the_error_says_how_to_install_it() -> None:
    with pytest.raises(UsageError, match=r"is on no package registry; run: .*pip install .*"):
        nlaugmenter.adapt("nlaugmenter:Shuffle")
