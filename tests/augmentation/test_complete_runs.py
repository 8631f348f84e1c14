"""A run ends well only if all of it is there: tasks are counted, shards are what they were."""

import shutil
import time

import pytest
from runs import DEMO, FAST, augment, contents, shards, whole_run

from noisegen.cli import run
from noisegen.errors import OutputError
from noisegen.runs.manifest import Manifest

OPTIONS = {"rows_per_shard": 60, "transforms": FAST}
REMOVING = """
import pathlib, noisegen
@noisegen.transform("remover")
def remover(text, draws, *, rate: float = 1.0):
    for path in pathlib.Path({out!r}).glob("data/part-00001.parquet"):
        path.unlink()
    return text
"""


whole = whole_run(**OPTIONS)


def test_a_shard_that_is_removed_meanwhile_is_missed(tmp_path):
    out, code = tmp_path / "out", tmp_path / "code.py"
    code.write_text(REMOVING.format(out=str(out)))
    options = {"rows_per_shard": 60, "code": (str(code),), "transforms": ["remover"]}

    said = "1 of 7 shards are gone or unreadable in .*, such as part-00001.* with --resume"
    with pytest.raises(OutputError, match=said):
        augment(DEMO, out, **options)
    assert not (out / "manifest.json").exists()


def test_parts_say_what_others_have_to_do(tmp_path, whole):
    one = augment(DEMO, tmp_path / "out", part="1/2", **OPTIONS)

    assert one.missing_tasks == Manifest.load(tmp_path / "out").missing_tasks == 3
    assert "4 shards; 3 tasks to do: run the other parts; " in one.summary()
    both = augment(DEMO, tmp_path / "out", part="2/2", **OPTIONS)
    assert both == Manifest.load(tmp_path / "out")
    assert "missing_tasks" not in (tmp_path / "out" / "manifest.json").read_text()
    assert both.shards == Manifest.load(whole).shards


def test_an_input_that_became_shorter_is_refused(tmp_path, monkeypatch, capfd):
    lines = [f"see you tomorrow {number}\n" for number in range(60)]
    for count, how in ((60, []), (20, ["--resume"])):
        (tmp_path / "in.txt").write_text("".join(lines[:count]))
        with (tmp_path / "in.txt").open() as file:
            monkeypatch.setattr("sys.stdin", file)
            words = f"augment - -o {tmp_path}/out -t spac --quiet --rows-per-shard 20 --workers 1"
            code = run([*words.split(), *how])

    [line] = capfd.readouterr().err.splitlines()
    assert code == 1
    assert line.endswith(
        "out has 3 shards, but the input now gives 1; use another folder, or "
        "--force to overwrite it"
    )


def _rotten(path):
    """Change a byte in the middle of a shard, which can be read as before."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    time.sleep(0.01)
    path.write_bytes(content)


@pytest.mark.parametrize("how", [{"resume": True}, {"part": "1/1"}])
def test_a_shard_that_rotted_is_made_again(tmp_path, whole, how):
    out = tmp_path / "out"
    augment(DEMO, out, **OPTIONS)
    before = Manifest.load(out)
    _rotten(shards(out)[3])
    assert contents(out) != contents(whole)

    made = augment(DEMO, out, **OPTIONS, **how)

    assert contents(out) == contents(whole)
    assert made.shards == before.shards


def test_what_rotted_is_not_what_a_new_manifest_says(tmp_path, whole):
    out = tmp_path / "out"
    augment(DEMO, out, **OPTIONS)
    _rotten(shards(out)[3])
    shards(out)[5].unlink()

    made = augment(DEMO, out, resume=True, **OPTIONS)

    assert contents(out) == contents(whole)
    assert made.shards == Manifest.load(whole).shards


def test_copies_of_a_run_are_taken_as_they_are(tmp_path, whole):
    out = shutil.copytree(whole, tmp_path / "out", copy_function=shutil.copyfile)  # all newer
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}

    augment(DEMO, out, resume=True, **OPTIONS)

    assert times == {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
