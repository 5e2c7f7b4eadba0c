from typing import Any

class DataFrame:
    def __getattr__(self, name: str) -> Any: ...

class Series:
    name: Any
    def __getattr__(self, name: str) -> Any: ...

def from_dask_array(x: Any, columns: Any = ...) -> DataFrame: ...
