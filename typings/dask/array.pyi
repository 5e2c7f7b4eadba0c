from typing import Any

class Array:
    ndim: int
    shape: tuple[int, ...]
    chunks: tuple[tuple[int, ...], ...]
    numblocks: tuple[int, ...]
    dtype: Any
    def rechunk(self, chunks: Any) -> Array: ...
    def to_delayed(self) -> Any: ...
    def map_blocks(self, func: Any, *args: Any, **kwargs: Any) -> Array: ...
