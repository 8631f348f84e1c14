"""Tasks for mteb made of local text: they run offline and say what our own metrics say."""

import sys

import pytest

from noisegen.encoders.specs import open_encoder
from noisegen.errors import MissingExtra, UsageError
from noisegen.evaluation import mteb_tasks
from noisegen.evaluation.similarity import sts_spearman

NOISY = ["see u tmrw", "its raining agian", "wher is anna", "call me at 5"]
CLEAN = ["See you tomorrow.", "It's raining again.", "Where is Anna?", "Call me at five."]


@pytest.fixture
def mteb(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("mteb")


def run(mteb, task, encoder):
    model = mteb_tasks.mteb_model(encoder)
    found = mteb.evaluate(model, [task], cache=None, show_progress_bar=False, co2_tracker=False)
    return found.task_results[0]


@pytest.mark.filterwarnings("ignore")  # those of another package
def test_sts_of_mteb_is_ours(mteb, tiny_models):
    encoder, scores = open_encoder(str(tiny_models())), [3.0, 1.0, 2.5, 0.5]
    found = run(mteb, mteb_tasks.sts_task("LocalSts", NOISY, CLEAN, scores), encoder)
    ours = sts_spearman(encoder.encode(NOISY), encoder.encode(CLEAN), scores)
    assert 100 * found.get_score() == pytest.approx(ours)


@pytest.mark.filterwarnings("ignore")
def test_bitext_of_mteb_finds_equal_texts(mteb, tiny_models):
    task = mteb_tasks.bitext_task("LocalBitext", CLEAN, CLEAN)
    assert run(mteb, task, open_encoder(str(tiny_models()))).get_score() == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("mteb")
def test_sides_of_different_length_are_refused():
    with pytest.raises(UsageError, match="sentence1 4, sentence2 3"):
        mteb_tasks.bitext_task("LocalBitext", NOISY, CLEAN[:3])


def test_without_mteb_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'noisegen\[mteb\]'"):
        mteb_tasks.bitext_task("LocalBitext", NOISY, CLEAN)
