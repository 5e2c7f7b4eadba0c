from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar
from uuid import UUID

F = TypeVar("F", bound=Callable[..., Any])

class CallbackContext:
    task_name: str
    task_id: int
    max_subtasks: int | None
    estimator_name: str
    parent: CallbackContext | None
    root_uuid: UUID

    def subcontext(
        self,
        task_name: str = "",
        task_id: int | None = None,
        max_subtasks: int | None = 0,
        sequential_subtasks: bool = True,
    ) -> CallbackContext: ...
    def propagate_callback_context(self, sub_estimator: Any) -> AbstractContextManager[None]: ...
    def call_on_fit_task_begin(self, estimator: Any, **kwargs: Any) -> Self: ...
    def call_on_fit_task_end(self, estimator: Any, **kwargs: Any) -> bool: ...

class CallbackSupportMixin:
    def set_callbacks(self, *callbacks: Any) -> Self: ...
    def _init_callback_context(
        self, task_name: str = "fit", task_id: int = 0, max_subtasks: int | None = 0, sequential_subtasks: bool = True
    ) -> CallbackContext: ...

class ProgressBar:
    def __init__(self, max_propagation_depth: int | None = 1) -> None: ...

def with_callbacks(fit: F) -> F: ...
