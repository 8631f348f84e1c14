"""Tasks of mteb with noisy text, on local data; the package is an extra."""

import pytest
from sentence_transformers import SentenceTransformer

from noisegen.augmentation.on_the_fly import Noising
from noisegen.errors import UsageError
from noisegen.evaluation.mteb import noisy
from noisegen.noising.recipe import Recipe

mteb = pytest.importorskip("mteb")
datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.filterwarnings("ignore")

RECIPE = "ugc-heavy"
# Kind of data -> a task of mteb
TASKS = {
    "retrieval": "SciFact",
    "classification": "Banking77Classification",
    "sts": "STSBenchmark",
    "pairs": "TwitterSemEval2015",
}


@pytest.fixture(scope="module")
def texts(demo):
    return [row["text"] for row in demo if row["lang"] == "en"][:80]


def noise(texts, seed=100):
    return Noising().noise(Recipe.named(RECIPE), texts, seed)


def data(kind, texts, *, change=lambda texts: texts):
    """Return local data of a task whose texts that get noise went through `change`."""
    table = datasets.Dataset.from_dict
    half = len(texts) // 2
    if kind == "retrieval":
        queries = change([text[: len(text) // 2] for text in texts])
        ids = [str(number) for number in range(len(texts))]
        return {
            "default": {
                "test": {
                    "queries": table({"id": [f"q{i}" for i in ids], "text": queries}),
                    "corpus": table({"id": ids, "title": [""] * len(ids), "text": texts}),
                    "relevant_docs": {f"q{i}": {i: 1} for i in ids},
                    "top_ranked": None,
                }
            }
        }
    labels = [len(text) % 3 for text in texts]
    if kind == "classification":
        train = table({"text": texts[:half], "label": labels[:half]})
        test = table({"text": change(texts[half:]), "label": labels[half:]})
        return datasets.DatasetDict(train=train, test=test)
    second = [text[number % 9 :] for number, text in enumerate(texts)]
    columns = {"sentence1": change(texts), "sentence2": second}
    gold = {"score": [5 - n % 6 for n in range(len(texts))]}
    if kind == "pairs":
        alike = (" ".join(text.split()[::-2]) for text in texts)
        columns["sentence2"] = [texts[n - 1] if n % 2 else text for n, text in enumerate(alike)]
        gold = {"labels": [1 - n % 2 for n in range(len(texts))]}
    return datasets.DatasetDict(test=table(columns | gold))


def main_score(task, model):
    found = mteb.evaluate(model, [task], cache=None, co2_tracker=False, show_progress_bar=False)
    [result] = found.task_results
    assert result.task_name == task.metadata.name
    return result.scores["test"][0]["main_score"]


def with_data(task, rows):
    task.dataset, task.data_loaded = rows, True
    return task


@pytest.mark.parametrize("kind", TASKS)
def test_scores_are_those_of_texts_noised_by_hand(kind, texts, tiny_models):
    name = TASKS[kind]
    model = SentenceTransformer(str(tiny_models()), device="cpu")
    clean = main_score(with_data(mteb.get_task(name), data(kind, texts)), model)
    noised = main_score(with_data(noisy(name, RECIPE), data(kind, texts)), model)
    by_hand = data(kind, texts, change=noise)
    expected = main_score(with_data(mteb.get_task(name), by_hand), model)
    assert noised == expected
    assert noised != clean


def test_clean_and_noisy_stand_side_by_side(texts, tiny_models):
    rows = data("retrieval", texts)
    task = with_data(mteb.get_task("SciFact"), rows)
    others = [noisy(task, RECIPE), noisy(task, RECIPE, seed=3), noisy(task, "leet:rate=1")]
    model = SentenceTransformer(str(tiny_models()), device="cpu")
    found = mteb.evaluate(
        model, [task, *others], cache=None, co2_tracker=False, show_progress_bar=False
    )
    names = [result.task_name for result in found.task_results]
    assert names[0] == "SciFact"
    assert len(set(names)) == 4
    assert all(name.startswith("SciFact-") for name in names[1:])
    assert names[2].endswith("-3")


def test_tasks_of_other_kinds_are_refused():
    with pytest.raises(UsageError, match=r"SummEval.* is a task of Summarization; noise is for"):
        noisy("SummEvalSummarization.v2")
