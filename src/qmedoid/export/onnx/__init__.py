"""A fitted model as an ONNX graph of plain operators in double precision."""
