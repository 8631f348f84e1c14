"""Our pairs, batches and objectives inside SentenceTransformerTrainer."""

import copy

import numpy as np
import pytest
import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from torch.utils.data import DataLoader

from noisegen.encoders.encoder import open_encoder
from noisegen.errors import UsageError
from noisegen.training.losses import Batch, Output
from noisegen.training.objectives import WeightedSum
from noisegen.training.sentence_transformers import (
    BudgetedBatches,
    StudentLoss,
    TokenBudget,
    noisy_pairs,
)

BUDGET = 512


@pytest.fixture(scope="module")
def clean_file(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("clean") / "clean.txt"
    path.write_text("\n".join(sentences) + "\n")
    return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory, tiny_bert, clean_file):
    folder = tmp_path_factory.mktemp("pairs") / "data"
    return noisy_pairs([clean_file], folder, teacher=str(tiny_bert), recipe="ugc", held_out=30)


@pytest.fixture
def made(shared):
    """Datasets at epoch 0."""
    shared.training.format["format_kwargs"]["transform"].set_epoch(0)
    return shared


@pytest.fixture
def model(tiny_bert):
    found = SentenceTransformer(str(tiny_bert), device="cpu")
    for module in found.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return found


def arguments(out, model, **values):
    return SentenceTransformerTrainingArguments(
        str(out),
        batch_sampler=TokenBudget.of(model, BUDGET),
        use_cpu=True,
        seed=3,
        learning_rate=1e-3,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **values,
    )


def test_one_source_is_as_good_as_a_list_of_one(tmp_path, tiny_bert, clean_file, made):
    given = {"teacher": str(tiny_bert), "recipe": "ugc", "held_out": 30}
    alone = noisy_pairs(str(clean_file), str(tmp_path / "alone"), **given)
    assert alone.training[:5]["noisy"] == made.training[:5]["noisy"]
    with pytest.raises(UsageError, match="noisy_pairs has no option 'recpie'"):
        noisy_pairs(clean_file, tmp_path / "alone", recpie="ugc")


def rectangles(batches, dataset, model):
    """Return real and computed tokens of every batch, shape (batches, sides, 2)."""
    tokenizer = TokenBudget.of(model).tokenizer
    rows = dataset[:]
    sides = [tokenizer.tokenize(rows[side]).lengths for side in ("noisy", "clean")]
    found = []
    for batch in batches:
        lengths = [side[batch] for side in sides]
        found.append([[side.sum(), len(side) * side.max()] for side in lengths])
    return np.array(found)


@pytest.mark.filterwarnings("ignore")  # warnings of the Trainer
def test_a_student_learns_in_the_trainer_and_opens_here(made, model, tmp_path, tiny_bert):
    with torch.no_grad():
        for weight in model[0].parameters():
            weight.mul_(1.2)  # not what the teacher is
    trainer = SentenceTransformerTrainer(
        model,
        arguments(tmp_path / "out", model, max_steps=20),
        train_dataset=made.training,
        eval_dataset=made.validation,
        loss=StudentLoss(model, "two_term+0.2*info_nce"),
    )
    before = trainer.evaluate()["eval_loss"]
    seen = []
    collate = trainer.data_collator
    trainer.data_collator = lambda rows: seen.append(batch := collate(rows)) or batch
    trainer.data_collator.valid_label_columns = collate.valid_label_columns
    trainer.train()

    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert len(losses) == 20
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:3])
    assert trainer.evaluate()["eval_loss"] < 0.7 * before
    real = sum(int(batch[f"{side}_attention_mask"].sum()) for batch in seen for side in SIDES)
    computed = sum(batch[f"{side}_input_ids"].numel() for batch in seen for side in SIDES)
    assert max(batch[f"{side}_input_ids"].numel() for batch in seen for side in SIDES) <= BUDGET
    assert real / computed > 0.9
    model.save_pretrained(str(tmp_path / "student"))
    texts = list(made.validation[:20]["noisy"])
    ours = open_encoder(str(tmp_path / "student")).encode(texts)
    assert abs(ours - model.encode(texts)).max() < 1e-5


SIDES = ("noisy", "clean")


def test_every_row_is_in_one_batch_of_an_epoch_and_batches_keep_the_budget(made, model):
    batches = TokenBudget.of(model, BUDGET)(made.training, seed=1)
    for epoch in (0, 1, 5):
        batches.set_epoch(epoch)
        dealt = list(batches)
        assert len(dealt) == len(batches)
        assert sorted(row for batch in dealt for row in batch) == list(range(len(made.training)))
        real, computed = rectangles(dealt, made.training, model).transpose(2, 0, 1)
        assert computed.max() <= BUDGET
        assert real.sum() / computed.sum() > 0.9


def test_batches_are_a_function_of_seed_and_epoch(made, model):
    def dealt(seed, epoch):
        batches = TokenBudget.of(model, BUDGET)(made.training, seed=seed)
        batches.set_epoch(epoch)
        return list(batches)

    assert dealt(1, 4) == dealt(1, 4)
    assert dealt(1, 4) != dealt(1, 5)
    assert dealt(1, 4) != dealt(2, 4)


def test_an_epoch_has_as_many_batches_as_the_first_even_where_noise_lengthens_it(made, model):
    batches = TokenBudget.of(model, BUDGET)(made.training, seed=1)
    count = len(batches)
    batches.lengths = batches.lengths * 2

    dealt = list(batches)

    assert len(dealt) == count
    assert sorted(row for batch in dealt for row in batch) == list(range(len(made.training)))


def test_noise_is_another_in_every_epoch_and_the_label_is_the_teachers_vector(
    made, model, tiny_bert, sentences
):
    batches = TokenBudget.of(model)(made.training, seed=0)
    seen = []
    for epoch in (0, 1, 0):
        batches.set_epoch(epoch)
        seen.append(made.training[:50])

    assert seen[0]["noisy"] != seen[1]["noisy"]
    assert seen[0]["noisy"] == seen[2]["noisy"]
    assert seen[0]["clean"] == seen[1]["clean"]
    assert set(seen[0]["clean"]) <= set(sentences)
    teacher = open_encoder(str(tiny_bert)).encode(seen[0]["clean"])
    assert abs(torch.stack(seen[0]["label"]).numpy() - teacher).max() < 1e-2  # kept as float16
    assert made.training.column_names == ["pair"]


def test_noise_of_validation_stays_and_its_texts_are_not_trained_on(made, model):
    before = made.validation[:30]
    TokenBudget.of(model)(made.validation, seed=0).set_epoch(7)

    assert made.validation[:30]["noisy"] == before["noisy"]
    assert not set(before["clean"]) & set(made.training[:]["clean"])


def test_a_selection_keeps_what_belongs_together(made):
    rows = [7, 3, 100]
    picked = made.training.select(rows)

    assert picked[:]["noisy"] == made.training[rows]["noisy"]
    assert torch.equal(picked[2]["label"], made.training[100]["label"])


def test_stored_pairs_need_no_recipe_and_one_side_can_be_left_out(pairs_file, tmp_path, tiny_bert):
    made = noisy_pairs([pairs_file], tmp_path / "data", teacher=str(tiny_bert), both_sides=False)
    noisy = {line.split("\t")[1] for line in pairs_file.read_text().splitlines()[1:]}

    assert set(made.training[:]["noisy"]) <= noisy
    assert set(made.training[0]) == {"noisy", "label"}


def test_loading_processes_see_the_epoch_change(made):
    """A copy of the dataset, as datasets makes of it, shares its epoch with its processes."""
    dataset = copy.deepcopy(made.training).select(range(8))
    transform = dataset.format["format_kwargs"]["transform"]
    loader = DataLoader(
        dataset, 8, num_workers=1, persistent_workers=True, collate_fn=lambda rows: rows
    )
    seen = []
    for epoch in (0, 1):
        transform.set_epoch(epoch)
        (rows,) = loader
        seen.append([row["noisy"] for row in rows])
        assert seen[-1] == dataset[:]["noisy"]

    assert seen[0] != seen[1]


def test_the_loss_is_that_of_the_objective(made, model):
    rows = made.training[:9]
    model.eval()
    features = [model.preprocess(rows[side]) for side in SIDES]
    labels = torch.stack(rows["label"])
    sides = [torch.from_numpy(model.encode(rows[side])) for side in SIDES]
    wanted, _ = WeightedSum.parse("two_term+0.3*nt_xent")(Batch(labels), Output(*sides))

    loss = StudentLoss(model, "two_term+0.3*nt_xent")

    assert loss(features, labels).item() == pytest.approx(float(wanted), rel=1e-4)
    assert len(list(loss.parameters())) == len(list(model.parameters()))
    assert StudentLoss(model, "mse_mean")(features[:1], labels).ndim == 0


def test_a_dataset_that_does_not_fit_is_refused_in_one_line(made, model):
    rows = made.training[:4]
    features = [model.preprocess(rows["noisy"])]
    labels = torch.stack(rows["label"])

    with pytest.raises(UsageError, match="needs the columns noisy, clean and label"):
        StudentLoss(model, "two_term")(features, labels)
    with pytest.raises(UsageError, match="add a Dense module"):
        StudentLoss(model, "mse_sum")(features, torch.zeros(4, 7))


def test_other_datasets_of_text_can_have_these_batches_too(model, sentences):
    from datasets import Dataset

    other = Dataset.from_dict({"anchor": sentences[:90], "positive": sentences[90:180]})
    batches = BudgetedBatches(other, TokenBudget.of(model, 600), seed=0)

    assert sorted(row for batch in batches for row in batch) == list(range(90))
