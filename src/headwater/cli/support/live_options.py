"""Options of the commands that run a live model, on the command line or in a file of TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import option, split_names

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.live.engine import EngineSettings
    from headwater.live.learner import Notice
    from headwater.live.outlets import Outlets

LISTS = ("sink", "alarm", "dead_letter")
# Options of a file that both commands take; watch has no use for those of the server.
FURTHER = {"source": list, "follow": bool, "host": str, "port": int, "token_file": str, "certificate": str, "key_file": str}


@dataclass(frozen=True)
class LiveMessages:
    """What is written to standard error."""

    quiet: Annotated[bool, option("--quiet", "-q", text="Write warnings alone to standard error.", panel="Messages")] = False
    debug: Annotated[bool, option("--debug", text="Show the traceback of an error.", panel="Messages")] = False


WHAT, WHERE, STATE = "What it does", "Where answers go", "State"


@dataclass(frozen=True)
class LiveOptions:
    """What a live model does with its events. None, and no sinks, are what was not said."""

    model: Annotated[str | None, option("--model", "-m", text="Model file to begin with.", panel=WHAT)] = None
    learn: Annotated[
        bool | None,
        option("--learn/--freeze", text="Whether to learn the events; by default they are only scored.", panel=WHAT),
    ] = None
    rate: Annotated[
        float | None, option("--rate", text="Share of usual events that may be called odd, such as 0.001.", panel=WHAT)
    ] = None
    fdr: Annotated[
        float | None, option("--fdr", text="Share of the events called odd that may be usual, such as 0.1.", panel=WHAT)
    ] = None
    threshold: Annotated[float | None, option("--threshold", text="Score below which an event is odd.", panel=WHAT)] = None
    id: Annotated[
        str | None, option("--id", text="Field with an id: an event that comes twice is learned once.", panel=WHAT)
    ] = None
    keep: Annotated[
        list[str], option("--keep", text="Fields to pass on to the answers: names, separated by commas.", panel=WHAT)
    ] = ()  # type: ignore[assignment]
    sink: Annotated[
        list[str], option("--sink", text="Where all answers go: -, csv:-, a file, or an address.", panel=WHERE)
    ] = ()  # type: ignore[assignment]
    alarm: Annotated[list[str], option("--alarm", text="Where answers for odd events go.", panel=WHERE)] = ()  # type: ignore[assignment]
    dead_letter: Annotated[
        list[str], option("--dead-letter", text="Where events go that cannot be read, with the reason.", panel=WHERE)
    ] = ()  # type: ignore[assignment]
    state: Annotated[
        Path | None,
        option("--state", text="Folder of snapshots and log. While learning: the name of the model, and .live.", panel=STATE),
    ] = None
    snapshot_seconds: Annotated[
        float | None, option("--snapshot-seconds", text="Seconds between two snapshots (10).", panel=STATE, min=0.01)
    ] = None
    output: Annotated[Path | None, option("--output", "-o", text="Model file to write at the end.", panel=STATE)] = None
    config: Annotated[str | None, option("--config", text="File of TOML with these options, by their names.", panel=STATE)] = (
        None
    )

    def completed(self, further: Mapping[str, object] | None = None) -> tuple[LiveOptions, Mapping[str, object]]:
        """Return the options with those of the file that were not given, and those `further` ones that the file has."""
        if self.config is None:
            return self, {}
        try:
            found = tomllib.loads(Path(self.config).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.config} is no TOML: {error}") from error
        found = {name.replace("-", "_"): value for name, value in found.items()}
        kinds: dict[str, object] = {
            "model": str, "learn": bool, "rate": float, "fdr": float, "threshold": float, "id": str, "keep": str, "state": str,
            "snapshot_seconds": float, "output": str, **dict.fromkeys(LISTS, list), **(further or {}),
        }  # fmt: skip
        for name, value in found.items():
            _check_kind(self.config, name, value, kinds)
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        mine = {name: found[name] for name in given if name in found and given[name] in (None, (), [])}
        for name in ("state", "output"):
            if name in mine:
                mine[name] = Path(str(mine[name]))
        return replace(self, **mine), {name: found[name] for name in further or {} if name in found}

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.model is None:
            raise usage_error("a live model begins with a model file: name it by -m model.hw (learned by headwater fit)")
        if self.alarm and self.rate is None and self.threshold is None and self.fdr is None:
            raise usage_error("--alarm needs --rate, --fdr or --threshold, which say what is odd")
        if self.output is not None and self.output.resolve() == Path(self.model).resolve():
            raise usage_error(
                "-o must be another file than -m, since a stream that goes on compares the model that it began with: its "
                "snapshots continue by themselves"
            )

    @property
    def _folder(self) -> Path | None:
        return self.state or (Path(f"{self.model}.live") if self.learn else None)

    @property
    def all_sinks(self) -> tuple[str, ...]:
        """All addresses of sinks."""
        return (*self.sink, *self.alarm, *self.dead_letter)

    @property
    def owner(self) -> str:
        """What reads the sources: the folder, or the model."""
        return str((self._folder or Path(str(self.model))).resolve())

    def settings(self, digest: str) -> EngineSettings:
        """Return the settings of an engine for the model with this digest."""
        from headwater.live.engine import EngineSettings
        from headwater.live.learner import SNAPSHOT_SECONDS
        from headwater.live.scorer import Decision

        assert self.model is not None
        learns = bool(self.learn)
        folder = self._folder
        return EngineSettings(
            learns=learns,
            decision=Decision(self.rate, self.threshold, self.fdr),
            folder=folder,
            identity={"model": digest},
            id_field=self.id,
            kept_fields=tuple(split_names(self.keep) or ()),
            snapshot_seconds=self.snapshot_seconds or SNAPSHOT_SECONDS,
        )

    def outlets(self, notice: Notice, otherwise: tuple[str, ...] = ("-",)) -> Outlets:
        """Return the sinks; if there are none, `otherwise`."""
        from headwater.live.addresses import open_sink
        from headwater.live.outlets import Outlets

        asked = tuple(self.sink) or (() if self.alarm else otherwise)
        names = split_names(self.keep) or ()
        shown = [*([self.id] if self.id else []), *names]
        return Outlets(*([open_sink(text, shown, notice) for text in texts] for texts in (asked, self.alarm, self.dead_letter)))


def check_rate(model: StreamingEstimator, options: LiveOptions) -> str:
    """Refuse a rate that nothing can be compared with; return a note if it is too fine for what is known."""
    from headwater.cli.support.score_judge import find_judge, refuse_discovery_rate

    if options.fdr is not None:
        refuse_discovery_rate(model)
    if options.rate is None:
        return ""
    if (judge := find_judge(model, options.rate)) is not None:
        return judge.rate_warning()
    history = getattr(model, "history_", None)
    known = 0 if history is None else history.now.start + history.now.scored
    if not known and not options.learn:
        raise usage_error(
            "--rate needs the scores of learned rows, which this model has not kept: learn it by headwater fit, or give "
            "--threshold"
        )
    if options.rate * known < 1.0:
        return f"note: --rate {options.rate:g} is finer than the {known:,} usual scores that are known"
    return ""


def _check_kind(file: str, name: str, value: object, kinds: Mapping[str, object]) -> None:
    if name not in kinds:
        raise ValueError(f"{file} has the option {name!r}, which there is not; there are {', '.join(sorted(kinds))}")
    kind: Any = kinds[name]
    fits = isinstance(value, int | float) and not isinstance(value, bool) if kind is float else isinstance(value, kind)
    if kind is list:
        fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if not fits:
        word = {str: "a text", bool: "true or false", float: "a number", int: "a whole number", list: "a list of texts"}[kind]
        raise ValueError(f"{file}: {name} must be {word}, got {value!r}")
