"""Arrays of a model file in the safetensors format, parsed by the safetensors library."""

from qmedoid.fields import Arrays, Fields, RefusedError, Shelf, parsed, shown

_TYPES = ("F64", "I64", "U8")
# Bytes of the largest header: an entry takes about a hundred.
_LARGEST_HEADER = 2**22


def arrays_bytes(arrays: Arrays) -> bytes:
    """Arrays by name as the contents of a file."""
    import safetensors.numpy

    return bytes(safetensors.numpy.save(arrays))


def read_arrays(content: memoryview) -> Shelf:
    """The arrays of a file that may hold anything.

    The library checks lengths, shapes and places. It takes names that are there twice, unknown fields and number types
    that NumPy lacks, so the header, of bounded size, is looked at before.
    """
    import safetensors.numpy

    length = int.from_bytes(content[:8], "little")
    if length > min(len(content) - 8, _LARGEST_HEADER):
        raise RefusedError("its header is longer than the file, or than headers are")
    header = parsed(bytes(content[8 : 8 + length]))
    if not isinstance(header, dict):
        raise RefusedError("its header is not an object")
    for name, entry in header.items():
        Fields(entry, f"array {shown(name)}", ("dtype", "shape", "data_offsets")).choice("dtype", _TYPES)
    try:
        return Shelf(safetensors.numpy.load(bytes(content)))
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise RefusedError(f"its arrays cannot be read ({shown(str(error))})") from None
