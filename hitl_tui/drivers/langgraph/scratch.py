"""A checkpointer for trials: reads from another one and keeps new checkpoints in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from hitl_tui.drivers.langgraph.pregel import on_loop_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

_Key = tuple[str, str, str]
"""Thread, namespace, checkpoint."""


class ScratchSaver(BaseCheckpointSaver[Any]):
    """The checkpoints of `base` plus those written here; `base` itself is never written.

    Values come as `base` reads them from its storage, so that a reducer or a route never gets objects in use
    elsewhere.  It works sync and async, as far as `base` does.
    """

    def __init__(self, base: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=base.serde)
        self._base = base
        self._put: dict[_Key, CheckpointTuple] = {}
        self._writes: dict[_Key, list[tuple[str, str, Any]]] = {}

    @property
    def config_specs(self) -> list[Any]:
        """The fields that a config may have."""
        return self._base.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after this one, as the base counts."""
        return self._base.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint of either."""
        held = self._held(config)
        return self._with_writes(held or self._base.get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint of either."""
        if held := self._held(config):
            return self._with_writes(held)
        try:
            saved = await on_loop_of(self._base, self._base.aget_tuple(config))
        except NotImplementedError:
            saved = self._base.get_tuple(config)
        return self._with_writes(saved)

    def list(self, config: RunnableConfig | None, **terms: Any) -> Iterator[CheckpointTuple]:
        """Those of the base alone: what is tried out is asked for by its id."""
        return self._base.list(config, **terms)

    def alist(self, config: RunnableConfig | None, **terms: Any) -> AsyncIterator[CheckpointTuple]:
        """Those of the base alone."""
        return self._base.alist(config, **terms)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Hold a checkpoint in memory."""
        thread_id, namespace, parent = _key(config)
        stored: RunnableConfig = {
            "configurable": {
                "thread_id": thread_id,
                "checkpoint_ns": namespace,
                "checkpoint_id": checkpoint["id"],
            }
        }
        self._put[_key(stored)] = CheckpointTuple(
            stored, checkpoint, metadata, config if parent else None, []
        )
        return stored

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Hold a checkpoint in memory."""
        return self.put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Hold a task's writes in memory."""
        self._writes.setdefault(_key(config), []).extend((task_id, *write) for write in writes)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Hold a task's writes in memory."""
        self.put_writes(config, writes, task_id, task_path)

    def _held(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread_id, namespace, checkpoint_id = _key(config)
        if checkpoint_id:
            return self._put.get((thread_id, namespace, checkpoint_id))
        own = [saved for key, saved in self._put.items() if key[:2] == (thread_id, namespace)]
        return max(own, key=lambda saved: saved.checkpoint["id"], default=None)

    def _with_writes(self, saved: CheckpointTuple | None) -> CheckpointTuple | None:
        added = self._writes.get(_key(saved.config)) if saved else None
        if saved is None or not added:
            return saved
        return saved._replace(pending_writes=[*(saved.pending_writes or ()), *added])


def _key(config: RunnableConfig) -> _Key:
    place = config["configurable"]
    return str(place["thread_id"]), place.get("checkpoint_ns", ""), place.get("checkpoint_id") or ""
