import pytest
import yaml

from noisegen.errors import UsageError
from noisegen.options import parse_values
from noisegen.training.settings import load_settings, preset_names, read_preset, seconds


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_read(name):
    needed = dict.fromkeys(read_preset(name).needs, "laser2:FOLDER")
    assert load_settings(name, None, needed).preset == name


@pytest.mark.parametrize("name", ["rolaser", "c-rolaser", "rolaser-v2"])
def test_rolaser_asks_for_its_teacher_in_one_line(name):
    with pytest.raises(
        UsageError, match=f"preset {name} needs LASER2.*give --teacher laser2:FOL"
    ) as caught:
        load_settings(name)
    assert "\n" not in str(caught.value)
    assert load_settings(name, None, {"teacher": "minilm"}).teacher == "minilm"


def test_the_papers_values():
    laser = {"teacher": "laser2:FOLDER"}
    rolaser, char = load_settings("rolaser", None, laser), load_settings("c-rolaser", None, laser)

    assert (rolaser.lr, rolaser.warmup, rolaser.clip, rolaser.eps) == (1e-4, 1000, 5.0, 1e-6)
    assert (rolaser.activation_dropout, char.activation_dropout) == (0.1, 0.1)
    assert (rolaser.betas, rolaser.dropout, rolaser.epochs) == ((0.9, 0.98), 0.1, 100)
    assert (rolaser.objective, rolaser.pooling, rolaser.project) == ("mse_sum", "max", "before")
    assert (char.lr, char.student, char.epochs) == (5e-5, "char", 34)
    assert (rolaser.batch_unit, char.batch_unit) == ("tokens", "characters")
    for one in (rolaser, char):
        assert (one.batch_tokens, one.validate_every, one.schedule) == (32_000, 30_000, "constant")
        assert (one.projection_bias, one.normalize, one.recipe) == (False, False, "rolaser")
    second = load_settings("rolaser-v2", None, laser)
    assert (second.objective, second.pooling, second.project) == ("two_term", "mean", "after")
    assert (second.projection_activation, second.projection_bias) == ("gelu", True)
    assert (second.lr, second.warmup, second.schedule) == (1e-4, 10_000, "inverse_sqrt")
    assert (second.patience, second.validate_every, second.seed) == (10, 20_000, 42)
    assert (second.betas, 8 * second.eps, 8 * second.clip) == ((0.9, 0.98), 1e-6, 1.0)
    assert (second.prepare, second.lower, second.normalize) == ("plain", False, False)
    two = load_settings("two-term")
    assert (two.objective, two.lr, two.warmup, two.max_length) == ("two_term", 2e-5, 20_000, 128)


def test_a_file_goes_over_the_preset_and_values_over_the_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("lr: 3.0e-5\nsteps: 10\n")

    found = load_settings("quickstart", path, {"lr": 1e-3, "betas": [0.8, 0.9]})

    assert (found.lr, found.steps, found.time_limit, found.betas) == (1e-3, 10, None, (0.8, 0.9))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"learning": 1}, "no setting 'learning'"),
        ({"lr": "x"}, "lr 'x' is not a number, above 0"),
        ({"lr": -1.0}, "lr -1.0 is not a number, above 0"),
        ({"pooling": "sum"}, "mean, max or cls"),
        ({"steps": 1.5}, "1.5 is not a whole number"),
        ({"lower": "maybe"}, "is not true or false"),
        ({"epochs": 1, "steps": 2}, "give one of"),
        ({"cpu_limit": "x"}, "cpu_limit 'x': write 90s"),
        ({"lr": None}, "None is not a number"),
        ({"lr": float("inf")}, "lr inf is not finite"),
        ({"epochs": float("inf")}, "inf is not finite"),
        ({"time_limit": "inf"}, "inf is not finite"),
        ({"steps": float("inf")}, "inf is not a whole number"),
        ({"betas": [1]}, "is not 2 values"),
        ({"betas": {"a": 1}}, "is not 2 values"),
        ({"betas": [0.9, 2]}, "is not 2 values"),
        ({"seed": 2**64}, "below 4,294,967,296"),
        ({"preset": "rolaser"}, "as --preset rolaser"),
        ({3: 4}, "no setting 3"),
        ({"prepare": "foo"}, "prepare 'foo' is not social, laser or plain$"),
        ({"projection_activation": "gelu"}, "needs a projection: add --set project=after"),
        ({"temperature": 1e-30}, "temperature 1e-30 is not a number, at least 0.001"),
        ({"temperature": float("nan")}, "temperature nan is not a number, at least"),
        ({"mask_rate": 0.1}, "preset quickstart has no setting 'mask_rate'"),
    ],
)
def test_bad_values_are_refused(values, said):
    with pytest.raises(UsageError, match=said):
        load_settings("quickstart", None, values)


def test_an_unknown_preset_and_a_bad_file_are_refused(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'rolaser'"):
        load_settings("rolasr")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "bad.yaml").write_text("a: [\n")
    for name, said in [
        ("list.yaml", "not a mapping"),
        ("bad.yaml", "cannot read"),
        ("none.yaml", "cannot read"),
    ]:
        with pytest.raises(UsageError, match=said):
            load_settings("quickstart", tmp_path / name)


def test_times_and_pairs_of_key_and_value():
    assert [seconds(text, "") for text in ("90", "90s", "1.5m", "2h")] == [90, 90, 90, 7200]
    assert parse_values(["lr=1e-3", "freeze=[embeddings]"]) == {
        "lr": "1e-3",
        "freeze": ["embeddings"],
    }
    with pytest.raises(UsageError, match="write KEY=VALUE"):
        parse_values(["lr"])


@pytest.mark.parametrize(
    "value", ["[", "!!python/object/apply:os.getcwd []", "a: b: c", "2020-13-45"]
)
def test_a_value_that_is_no_yaml_is_refused(value):
    with pytest.raises(UsageError, match="the value is not YAML"):
        parse_values([f"lr={value}"])


def test_the_config_of_a_run_is_a_file_of_settings(tmp_path):
    path = tmp_path / "config.yaml"
    said = load_settings("two-term", None, {"steps": 7, "freeze": ["embeddings"]})
    path.write_text(yaml.safe_dump({"version": "0.1", "data": ["news.txt"], **said.to_dict()}))

    assert load_settings("two-term", path) == said
    with pytest.raises(UsageError, match="as --preset two-term"):
        load_settings("quickstart", path)


def test_a_file_of_aliases_of_aliases_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    lines = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    path.write_text("\n".join(["a0: &a0 [x]", *lines, "lr: *a8"]))

    with pytest.raises(UsageError, match="over 10,000 nodes, aliases followed"):
        load_settings("quickstart", path)
