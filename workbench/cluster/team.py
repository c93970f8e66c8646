"""Trainers and shards of one training: placed, watched, and begun again from the newest checkpoint when one is lost.

A process that is lost takes its shards along, so all begin again: new shards on the processes that are there, and all
trainers from the checkpoint, with the bits that they would have had. A trainer that fails by itself ends the training.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from workbench.cluster import checkpoints, trainer
from workbench.cluster.dask_hosts import Lost
from workbench.cluster.security import SECONDS_JOIN
from workbench.cluster.trainer import Job
from workbench.kvstore import StoreError

if TYPE_CHECKING:
    from workbench.cluster.dask_hosts import Hosts
    from workbench.cluster.dask_transport import Run

SECONDS_LOOK = 0.05
SECONDS_REASON = 5.0
"""How long the reason is looked for elsewhere when a trainer was cut off."""
OF_ALL = ("bytes_peak", "bytes_grown", "bytes_resident", "bytes_asked")
"""What is told of each trainer's process."""
SECONDS_SETTLE = 3.0
"""After so long a trainer whose shards are gone is ended with its process, where that was started here."""
MOST_LOSSES = 5
"""Losses without a step more that was saved, after which the training fails."""


class TeamError(StoreError):
    """A training on several processes failed; the message says which trainer, why, and where the log is."""


@final
class Team:
    """One training; `run` gives what trainer 0 answered, None if it was stopped.

    `tell` gets what happens as JSON has it: {"step", "loss", "seconds", "steps_epoch"} of steps that all trainers have
    done, in order; {"lost", "from"} when it goes on from a step; {"without"} of places that are left out; {"saved"}.
    """

    def __init__(
        self,
        processes: "Hosts",
        job: Job,
        shards: int | None = None,
        tell: Callable[[dict[str, Any]], None] = lambda said: None,
        work: str = trainer.WORK,
    ) -> None:
        """Prepare the training of `job` on the processes; `shards` None is one for each process.

        `tell(message)` is called from several threads; `work` is the "module:function" of a trainer.
        """
        self.processes, self.job, self.tell, self.work = processes, job, tell, work
        self.shards = shards
        self.is_asked_to_stop = threading.Event()
        self.lock = threading.Lock()
        self.steps: dict[int, dict[int, tuple[float, float]]] = {}
        self.reported, self.answers = 0, list[dict[str, Any]]()
        self.losses, self.saved = 0, -1
        self.grown: dict[int, int] = {}
        """Bytes of each trainer's process above its start, as it told them last."""
        self.attempt = 0
        self.trainers: list[tuple[str, Future]] = []
        """The process of each trainer of the last attempt, and its answer."""

    def run(self) -> dict[str, Any] | None:
        """Train to the end, starting again from the newest checkpoint after losses; return trainer 0's answer.

        None if stopped. Adds "losses" and the memory of all trainers. TeamError if a trainer fails by itself, no
        process is left, or losses repeat without progress.
        """
        while True:
            lost = self._attempt()
            if self.is_asked_to_stop.is_set():
                return None
            if not lost:
                of_all = {name: [answer[name] for answer in self.answers] for name in OF_ALL}
                return self.answers[0] | {"losses": self.losses, **of_all}
            self.losses += 1
            since = self._step_saved()
            text = " ".join(one.why for one in lost)
            if self.losses >= MOST_LOSSES and since == self.saved:
                raise TeamError(f"Processes were lost {self.losses} times and no step was saved between. {text}")
            self.saved = since
            self.tell({"lost": text, "from": since})
            if without := self.processes.renew():
                self.tell({"without": without})

    def stop(self) -> None:
        """Request the end of the training; may be called from any thread, returns at once."""
        self.is_asked_to_stop.set()

    def _step_saved(self) -> int:
        """Return the step of the newest checkpoint, 0 without one; TeamError if it is of another training."""
        if not self.job.folder or not (Path(self.job.folder) / checkpoints.MANIFEST).exists():
            return 0
        about = checkpoints.read(self.job.folder).about
        try:
            step, configuration = int(about["step"]), {**about["cell"], "epochs": self.job.cell["epochs"]}
        except (LookupError, TypeError, ValueError):
            raise TeamError(f"The checkpoint in {self.job.folder} is of no training by trainers.") from None
        if configuration != self.job.cell or about.get("trainers") != self.job.trainers:
            raise TeamError(
                f"The checkpoint in {self.job.folder} is of a training with other settings or of another number of "
                "trainers. Go on with the same ones, or name another folder."
            )
        return step

    def _attempt(self) -> list[Lost]:
        """Train from the newest checkpoint until the end, a stop or a loss; return the lost processes.

        Empty at the end or a stop. The run's shards are removed, and all its trainers have ended, on return.
        """
        step = self._step_saved()
        with self.lock:
            self.steps, self.reported = {}, step
            self.attempt += 1
        workers = self._workers()
        if self.is_asked_to_stop.is_set():
            return []
        run, placed = self.processes.begin(workers, self.shards or len(workers), self.job.trainers)
        try:
            lost = self._wait_for_shards(placed)
            return lost if lost or self.is_asked_to_stop.is_set() else self._run_trainers(run, workers, step)
        finally:
            self.processes.remove(run)
            self._settle()

    def _workers(self) -> list[str]:
        """Wait up to `SECONDS_JOIN` for workers and return their addresses; TeamError if none comes.

        Empty only after a stop.
        """
        end = time.monotonic() + SECONDS_JOIN
        while not (workers := self.processes.addresses()) and not self.is_asked_to_stop.is_set():
            if time.monotonic() > end:
                text = "Start workers, and the same training again: it goes on from its newest checkpoint."
                raise TeamError(f"No process is left to train on, and none came within {SECONDS_JOIN:g} s. {text}")
            time.sleep(SECONDS_LOOK)
        return workers

    def _settle(self) -> None:
        """Wait until every trainer of the last attempt has answered or its process has ended.

        A trainer that still writes a checkpoint would change the state that the others start from.
        """
        wait([future for _, future in self.trainers], SECONDS_SETTLE)
        while late := [address for address, future in self.trainers if not future.done()]:
            self.processes.kill(late)
            gone = {one.address for one in self._end_lost()}
            self.trainers = [(address, future) for address, future in self.trainers if address not in gone]
            time.sleep(SECONDS_LOOK)

    def _wait_for_shards(self, placed: Future) -> list[Lost]:
        """Wait until the future `placed` is done, a stop or a loss; return the lost processes, [] otherwise.

        TeamError if the shards cannot be placed although no process is lost.
        """
        failed = 0.0
        while not self.is_asked_to_stop.is_set():
            if lost := self._end_lost():
                return lost
            if placed.done():
                if (error := placed.exception()) is None:
                    return []
                failed = failed or time.monotonic()
                if self._is_reason_late(failed):
                    raise TeamError(f"The shards cannot be placed: {error!r}") from error
            time.sleep(SECONDS_LOOK)
        return []

    def _end_lost(self) -> list[Lost]:
        """Return the processes found lost now, with the reason, after ending all of them (`Hosts.end`)."""
        if lost := self.processes.lost():
            self.processes.end([one.address for one in lost])
        return lost

    def _is_reason_late(self, failed: float) -> bool:
        """Return whether a lost process would have been noticed by now, since `failed` (monotonic time)."""
        return time.monotonic() - failed > SECONDS_REASON + self.processes.seconds_silent

    def _run_trainers(self, run: "Run", workers: list[str], step: int) -> list[Lost]:
        """Start all trainers on the workers in turn and watch them; return the lost processes.

        `step` > 0 lets them load the checkpoint. TeamError if a trainer fails by itself.
        """
        attempt = self.attempt
        self.processes.listen(run, lambda said: self._hear(attempt, said))
        request = replace(self.job, resumes=step > 0).about
        where = [workers[number % len(workers)] for number in range(self.job.trainers)]
        futures = [
            self.processes.start(run, address, number, self.work, request) for number, address in enumerate(where)
        ]
        self.trainers = list(zip(where, futures, strict=True))
        return self._watch_trainers(futures, where)

    def _watch_trainers(self, futures: list[Future], where: list[str]) -> list[Lost]:
        """Wait for the futures of all trainers; return the lost processes, [] at the end or a stop.

        Sets `answers` at the end. TeamError if a trainer failed, or was cut off and no lost process is found.
        """
        cut_off, answers = 0.0, dict[int, dict[str, Any]]()
        while not self.is_asked_to_stop.is_set():
            if lost := self._end_lost():
                return lost
            for number, future in enumerate(futures):
                if number in answers or not future.done() or future.exception() is not None:
                    continue  # one whose process is gone is among the lost soon
                answer = json.loads(future.result())
                if "error" in answer and not answer["is_cut_off"]:
                    raise TeamError(self._failure_message(number, where[number], answer))
                answers[number] = answer
            failed = [number for number, answer in answers.items() if "error" in answer]
            broken = failed or [n for n, future in enumerate(futures) if future.done() and future.exception()]
            if broken:
                cut_off = cut_off or time.monotonic()
                if self._is_reason_late(cut_off):
                    said = answers.get(broken[0]) or {"error": str(futures[broken[0]].exception()), "trace": ""}
                    raise TeamError(self._failure_message(broken[0], where[broken[0]], said))
            elif len(answers) == len(futures):
                self.answers = [answers[number]["answer"] for number in sorted(answers)]
                self._hear_all()
                return []
            time.sleep(SECONDS_LOOK)
        return []

    def _hear_all(self) -> None:
        """Wait up to `SECONDS_REASON` for the messages of the last steps; later ones are dropped."""
        end = time.monotonic() + SECONDS_REASON
        while self.reported < self.answers[0]["step"] and time.monotonic() < end:
            time.sleep(SECONDS_LOOK)

    def _failure_message(self, number: int, address: str, answer: Mapping[str, Any]) -> str:
        """Return the message of the failed trainer `number`: its error, and the end of its log if that may help."""
        where = self.processes.name(address)
        log = "" if answer.get("is_wrong") else self.processes.tail(address)
        return f"Trainer {number} on {where} failed: {answer['error']}\n{log}".rstrip()

    def _hear(self, attempt: int, said: dict[str, Any]) -> None:
        """Process a trainer's message, unless it is of a former attempt; called on the client's thread.

        Passes on {"saved"}, and a {"step"} with the mean loss and the slowest time once all trainers have done it.
        """
        with self.lock:
            if attempt != self.attempt:
                return
            if "saved" in said:
                self.tell(said)
                return
            self.grown[said["trainer"]] = said["bytes_grown"]
            for place, (loss, seconds) in enumerate(zip(said["losses"], said["seconds"], strict=True)):
                self.steps.setdefault(said["first"] + place, {})[said["trainer"]] = (loss, seconds)
            while len(done := self.steps.get(self.reported + 1, {})) == self.job.trainers:
                self.reported += 1
                del self.steps[self.reported]
                loss = sum(done[trainer][0] for trainer in sorted(done)) / self.job.trainers
                seconds = max(seconds for _, seconds in done.values())
                self.tell({"step": self.reported, "loss": loss, "seconds": seconds, "steps_epoch": said["steps_epoch"]})
