"""Lines that a run prints at its end."""

import json

import pytest

from noisegen.cli import run as command
from noisegen.training.summary import (
    aligned,
    before_and_after,
    cost,
    cpu_time,
    forecast,
    outlook,
    reached,
    seen,
)


def power_law(seconds):
    return (seconds, 2 * (seconds + 1e-9) ** -0.3)


def test_a_curve_that_falls_by_a_factor_per_doubling_goes_on_so():
    curve = [(0, 5.0), *(power_law(second) for second in range(10, 601, 10))]
    assert forecast(curve) == pytest.approx(power_law(1200)[1], rel=1e-3)
    assert f"validation loss about {power_law(1200)[1]:.4f} instead of " in outlook(curve)
    assert "(-19%)" in outlook(curve)


def test_a_curve_that_stands_still_promises_nothing():
    assert forecast([(0, 5.0), (100, 1.0), (300, 1.0), (600, 1.2)]) == 1.0
    assert "has stopped falling" in outlook([(0, 5.0), (100, 1.0), (300, 1.0), (600, 1.2)])


@pytest.mark.parametrize(
    "curve",
    [[], [(0, 1.0)], [(0, 1.0), (600, 0.5)], [(0, 2), (5, 1), (9, 0.5)], [(0, 1), (0, 1), (0, 1)]],
)
def test_too_short_a_curve_says_so(curve):
    assert forecast(curve) is None
    assert "run was too short" in outlook(curve)


def test_the_share_of_the_data_that_was_seen():
    assert seen(250, 1000) == "250 of 1,000 training pairs were seen (25.0%)"
    assert seen(2500, 1000) == "all 1,000 training pairs were seen, 2.5 times on average"


def test_what_was_reached_and_when():
    whole = {
        "updates": 1234,
        "planned_updates": 1240,
        "seconds": 300.2,
        "prepared": 41.0,
        "stopped_early": False,
    }
    line = reached(whole)
    assert line == (
        "1,234 updates in 5 min: 41 s of preparation, 4 min 19 s of training and saving"
    )
    assert reached(whole | {"planned_updates": 3000}).startswith(
        "1,234 of about 3,000 planned updates in 5 min: "
    )
    one = whole | {"updates": 1, "planned_updates": 1, "seconds": 3, "prepared": 1}
    assert reached(one).startswith("1 update in 3 s: ")
    assert reached(one).endswith("learns little from so few: give it more time or text")
    spent = {"cpu_seconds": 60, "threads": 2}
    assert cpu_time(whole | spent) == "CPU time: 1 min, 10% of 2 threads"


def test_one_pair_is_no_pairs():
    sizes = {
        "updates": 1,
        "updates_per_epoch": 1,
        "pairs_per_update": 1,
        "update_seconds": 0.1,
        "seconds": 1,
        "prepared": 0,
        "pairs": 1,
    }
    of_ids = {
        "padding": 0,
        "weight_bytes": 1,
        "flop_per_token": 1,
        "parameters": 1,
        "trained": 1,
        "tokens_per_pair": 9,
    }
    assert next(line for line in cost(sizes | of_ids) if "pair of" in line).startswith("1 pair of")
    assert "1 pair of 1 text" in cost(sizes | {"weights": 1, "texts": 1})


def test_figures_stand_before_and_after_in_columns():
    figures = (
        {"distance": 0.2, "loss": 0.4, "xsim_error": 12.0},
        {"loss": 0.2, "loss_clean": 0.1, "distance": 0.1, "drift": 0.01, "xsim_error": 8.25},
    )
    table = aligned(before_and_after(*figures, "held-out pairs"))
    assert [line.split()[-2:] for line in table] == [
        ["before", "after"],
        ["0.2000", "0.1000"],
        ["-", "0.0100"],
        ["12.00", "8.25"],
        ["0.4000", "0.2000"],
    ]
    assert len({*map(len, table)}) == 1


def test_the_command_prints_before_after_data_and_outlook(tiny_bert, pairs_file, tmp_path, capsys):
    words = (
        f"train {pairs_file} -o {tmp_path / 'run'} --teacher {tiny_bert} --steps=30"
        " --set=validate_every=10 --set=precision=fp32 --set=batch_tokens=512"
    ).split()
    assert command(words) == 0
    lines = capsys.readouterr().out.splitlines()

    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert lines[0].startswith("30 updates in ")
    assert lines[1].startswith("CPU time: ")
    assert lines[2].startswith("data: ")
    row = next(line for line in lines if line.startswith("distance of noisy to clean text"))
    assert float(row.split()[-2]) == pytest.approx(metrics["before"]["distance"], abs=1e-4)
    assert float(row.split()[-1]) == pytest.approx(metrics["validation"]["distance"], abs=1e-4)
    assert any(line.startswith("drift of clean text") for line in lines)
    assert any(line.startswith("xSIM error") for line in lines)
    assert any(line.startswith("ten more minutes: ") for line in lines)
    assert metrics["validation"]["loss"] < metrics["before"]["loss"]


def test_a_run_that_changed_nothing_says_so(tiny_bert, pairs_file, tmp_path, capsys):
    """A learning rate of 10 makes every update worse than none."""
    run = tmp_path / "run"
    words = (
        f"train {pairs_file} -o {run} --teacher {tiny_bert} --steps=4 --set=validate_every=2"
        " --set=precision=fp32 --set=batch_tokens=512 --set=lr=10 --set=warmup=0"
    ).split()
    assert command(words) == 0
    said = capsys.readouterr()
    assert "pairs to train on: with fewer than 1,000" in said.err
    assert "no update improved the figures of the held-out pairs" in said.out
    assert json.loads((run / "metrics.json").read_text())["best_step"] == 0
    assert "No update improved the figures below" in (run / "student" / "README.md").read_text()
