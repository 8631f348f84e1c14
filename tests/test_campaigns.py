"""The first trials of every campaign, all trials that were once broken, and how they are saved."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from campaigns.__main__ import CAMPAIGNS
from campaigns.campaign import Campaign, Trial, replay, run

REPLAYS = sorted((Path(__file__).parent / "campaigns" / "replays").glob("*.zip"))
TRIALS = {"mutations": 200, "rows": 60}  # the others take long, and find what is not mended yet


@pytest.mark.nightly
@pytest.mark.parametrize("name", TRIALS)
def test_the_first_trials_hold(tmp_path, name):
    table = run(CAMPAIGNS[name], seed=1, seconds=600, saved=tmp_path, show=print, most=TRIALS[name])
    assert table.broken == []
    assert table.tried.total() == TRIALS[name]


@pytest.mark.nightly
@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: path.stem)
def test_what_was_broken_holds(path):
    assert replay(CAMPAIGNS, path) == ""


def thrower(limit: int) -> Campaign:
    """A campaign that throws a die, writes what it shows, and expects it to be small."""

    def make(_: None, trial: Trial) -> None:
        trial.label = "die"
        (trial.folder / "in" / "die").write_text(str(trial.random().randint(1, 6)))

    def check(_: None, trial: Trial) -> None:
        shown = (trial.folder / "in" / "die").read_text()
        (trial.folder / "in" / "die").write_text("eaten")
        trial.expect(int(shown) <= limit, f"it shows {shown}")

    return Campaign("thrower", nullcontext, make, check)


def test_a_broken_promise_is_saved_with_its_inputs_and_replays(tmp_path):
    shown: list[str] = []
    table = run(thrower(5), seed=1, seconds=60, saved=tmp_path, show=shown.append, most=40)

    assert table.tried == {"die": 40}
    assert {what for _, what, _ in table.broken} == {"it shows 6"}
    assert [line.partition(":")[0] for line in shown] == [str(path) for _, _, path in table.broken]
    held = 40 - len(table.broken)
    assert f"| die | 40 | {held} |" in list(table.lines())
    path = table.broken[0][2]
    assert replay({"thrower": thrower(5)}, path) == "it shows 6"
    assert replay({"thrower": thrower(6)}, path) == ""


def test_a_trial_without_input_files_replays(tmp_path):
    def check(_: None, trial: Trial) -> None:
        trial.expect(False, f"{trial.notes['rows']} rows")

    campaign = Campaign("no-files", nullcontext, lambda _, trial: trial.notes.update(rows=3), check)
    table = run(campaign, seed=1, seconds=60, saved=tmp_path, show=lambda _: None, most=1)

    assert replay({"no-files": campaign}, table.broken[0][2]) == "3 rows"


def test_trials_are_the_same_for_a_seed(tmp_path):
    twice = [run(thrower(3), 7, 60, tmp_path / str(n), lambda _: None, most=20) for n in (0, 1)]

    assert [path.name for _, _, path in twice[0].broken] == [p.name for _, _, p in twice[1].broken]
