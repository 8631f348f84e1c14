"""What tests of mining share: a miner of small text files, and runs of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from noisegen.data.rows import FileRange
from noisegen.mining.mine import mine
from noisegen.mining.miner import SentencePair, Tally, Task, WordPair
from noisegen.mining.miner_options import WikiOptions, Work
from noisegen.options import decode
from noisegen.text.segmentation import Language

EN = Language("en")


@dataclass(frozen=True)
class LineMiner:
    """Yields a pair for every line `unit<TAB>noisy<TAB>clean`; words are paired by position."""

    kill_at: str = ""  # a line that ends the process, if the file `flag` is not there
    flag: str = ""
    kind: str = "wiki"
    language: Language = EN

    def __call__(self, task: Task, tally: Tally) -> Iterator[SentencePair]:
        for path in task.paths:
            for line in Path(path).read_text("utf-8").splitlines():
                tally.read["lines"] += 1
                if self.kill_at and line.startswith(self.kill_at) and not Path(self.flag).exists():
                    self._die()
                unit, *sides = line.split("\t")
                if len(sides) != 2:
                    tally.damaged.append(f"{path}: {line[:20]!r} is no pair")
                    continue
                yield self._pair(int(unit), *sides)

    def _die(self) -> None:
        import os
        import signal

        Path(self.flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def _pair(self, unit: int, noisy: str, clean: str) -> SentencePair:
        pairs = zip(clean.split(), noisy.split(), strict=False)
        words = tuple(WordPair(c, n) for c, n in pairs if c != n)
        return SentencePair(noisy, clean, "en", unit, words, rev_old=1, rev_new=2)


def tasks_of(*paths: Path) -> list[Task]:
    return [Task(number, (FileRange(str(path)),)) for number, path in enumerate(paths)]


def run(paths, out, miner=None, *, config=None, **options):
    work = Work(tasks_of(*paths), miner or LineMiner(), config or {})
    given = {"dumps": paths, "out": out, "profile": "rcp", **options}
    return mine(work, decode(WikiOptions, given))


def run_cut(options, cut):
    """A run whose tasks are cut by `cut`, which gets the miner."""
    work = options.work()
    return mine(replace(work, tasks=cut(work.miner)), options)
