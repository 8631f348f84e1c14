"""Tasks of the package mteb (version 2) with noisy text, for `mteb.evaluate`.

    tasks = [mteb.get_task("SciFact"), noisy("SciFact", "ugc")]
    mteb.evaluate(SentenceTransformer("run/student"), tasks)

The text that a user would type is noised: queries of retrieval and reranking, test texts of
classification and regression, first sentences of STS and pair classification, texts of clustering.
Documents, training texts and second sentences stay clean.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from noisegen.augmentation.on_the_fly import Noising
from noisegen.errors import UsageError, naming_extras
from noisegen.evaluation.sets import FIRST_SEED
from noisegen.noising.recipe import Recipe
from noisegen.text.languages import language_code
from noisegen.text.resources import DEFAULT_RECIPE

Noise = Callable[[Sequence[str]], list[str]]
_KINDS = "retrieval, reranking, classification, regression, STS, pair classification, clustering"


def noisy(task: Any, recipe: str | Recipe = DEFAULT_RECIPE, seed: int = FIRST_SEED) -> Any:
    """Return a copy of an mteb task whose texts get noise before a model encodes them.

    `task` is a task or its name. The name of the copy ends in the recipe, its digest and the seed,
    so that mteb caches the results of different noise apart; models get the prompts of the task
    itself. Each subset is noised in its first language. Raises UsageError for tasks of other kinds
    than the ones named above, and for tasks without text; MissingExtra if mteb is not installed.
    """
    with naming_extras():
        import mteb
    given = mteb.get_task(task) if isinstance(task, str) else task
    if not isinstance(recipe, Recipe):
        recipe = Recipe.named(recipe)
    column = _column(given)
    made = copy(given)
    noise = f"{recipe.name}-{recipe.digest}-{seed}".replace("/", "_")  # mteb makes it a path
    name = f"{given.metadata.name}-{noise}"
    made.metadata = given.metadata.model_copy(update={"name": name})

    def _evaluate_subset(
        model: Any, data: Any, *, hf_split: str, hf_subset: str, **rest: Any
    ) -> Any:
        noising = Noising(_language(given, hf_subset))
        data = _noised(data, hf_split, column, lambda texts: noising.noise(recipe, texts, seed))
        return given._evaluate_subset(model, data, hf_split=hf_split, hf_subset=hf_subset, **rest)

    vars(made)["_evaluate_subset"] = _evaluate_subset  # instead of the method of its class
    return made


def _column(task: Any) -> str:
    """Return the column of the texts to noise; raises UsageError for a task that has none."""
    from mteb import abstasks

    columns = {  # kind of task -> name of the attribute that names its columns
        abstasks.AbsTaskClassification: "input_column_name",
        abstasks.AbsTaskClustering: "input_column_name",
        abstasks.AbsTaskSTS: "column_names",
        abstasks.AbsTaskPairClassification: "input1_column_name",
    }
    name = task.metadata.name
    if task.metadata.modalities != ["text"]:
        raise UsageError(f"{name} is not a task of text alone; noise is for text")
    if isinstance(task, abstasks.AbsTaskRetrieval):
        return "text"
    for kind, attribute in columns.items():
        if isinstance(task, kind):
            found = getattr(task, attribute)
            return found if isinstance(found, str) else str(found[0])
    raise UsageError(f"{name} is a task of {task.metadata.type}; noise is for {_KINDS}")


def _language(task: Any, subset: str) -> str:
    """Return the code of the first language of a subset, 'en' for 'eng-Latn'."""
    [first, *_] = task.metadata.hf_subsets_to_langscripts.get(subset) or task.metadata.languages
    return language_code(first.partition("-")[0]) or "en"


def _noised(data: Any, split: str, column: str, noise: Noise) -> Any:
    """Return a split of a task with noise in one of its columns.

    `data` has rows, or {split: rows}, where the rows of `split` get noise. For a retrieval task it
    has queries and documents, and the queries get noise.
    """
    from datasets import Dataset, DatasetDict

    if isinstance(data, DatasetDict):
        return DatasetDict({**data, split: _noised(data[split], split, column, noise)})
    if not isinstance(data, Dataset):
        return {**data, "queries": _noised(data["queries"], split, column, noise)}
    if len(data) == 1 and isinstance(data[0][column], list):  # all rows in one, as in mteb 1
        data = Dataset.from_dict(data[0])
    texts = data[column]
    strings = [text for text in texts if isinstance(text, str)]
    if len(strings) < len(texts):
        raise UsageError(f"the column {column!r} holds other values than text")
    return data.remove_columns(column).add_column(column, noise(strings))
